package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// definitionLimits bound the JSON form of a definition. It is deeper than what
// comes from a server, since it contains that.
var definitionLimits = wire.Limits{Bytes: 4 << 20, Depth: 128}

// A Definition is what a person agrees to: everything that a server says of one
// tool, or what it says of itself. It is kept to be compared with what the
// server says later. It must not be changed while others read it.
type Definition struct {
	// Tool is the tool. Nil is the definition of a server.
	Tool *mcp.Tool
	// Execution is the member "execution" of the tool, which extensions define,
	// or nil.
	Execution mcp.RawValue
	// Instructions are those of a server.
	Instructions string
	// Tools are the names of the tools of a server.
	Tools []string
}

// definitionJSON is the JSON form of a Definition, before its members are
// sorted.
type definitionJSON struct {
	Tool         *mcp.Tool    `json:"tool,omitzero"`
	Execution    mcp.RawValue `json:"execution,omitzero"`
	Instructions string       `json:"instructions,omitzero"`
	Tools        []string     `json:"tools,omitzero"`
}

// MarshalJSON returns the canonical form: the members of every object in order
// of their names, no white space, numbers as they were written, and the names
// of a server's tools in order. Definitions that say the same have the same
// form. The error says which part is not valid JSON or not valid UTF-8.
func (d *Definition) MarshalJSON() ([]byte, error) {
	tools := slices.Clone(d.Tools)
	slices.Sort(tools)
	raw, err := wire.Marshal(definitionJSON{d.Tool, d.Execution, d.Instructions, slices.Compact(tools)})
	if err != nil {
		return nil, fmt.Errorf("writing a definition: %w; the server must send valid JSON", err)
	}
	if err := wire.Valid(raw, wire.Limits{Depth: definitionLimits.Depth}); err != nil {
		return nil, fmt.Errorf("writing a definition: %w; the server must send valid JSON", err)
	}
	return schematext.AppendCanonical(make([]byte, 0, len(raw)), raw), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. It refuses members with the same
// name, invalid UTF-8 and more than 4 MiB.
func (d *Definition) UnmarshalJSON(raw []byte) error {
	if err := wire.Valid(raw, definitionLimits); err != nil {
		return fmt.Errorf("reading a definition: %w; remove the stored one, and the person is asked again", err)
	}
	var v definitionJSON
	if err := wire.Decode(slices.Clone(raw), &v); err != nil {
		return fmt.Errorf("reading a definition: %w; remove the stored one, and the person is asked again", err)
	}
	*d = Definition(v)
	return nil
}

// Digest returns "sha256:" and the hexadecimal SHA-256 of the canonical form.
// The order of members and white space in schemas do not change it; everything
// else does. A definition without a canonical form has a digest too, of what
// it was made of.
func (d *Definition) Digest() string {
	raw, err := d.MarshalJSON()
	if err != nil {
		raw = fmt.Appendf(nil, "not JSON %q %q %q", d.Execution, d.Instructions, d.Tools)
		if t := d.Tool; t != nil {
			raw = fmt.Appendf(raw, "%q %q %q %q %q", t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema)
			raw = fmt.Appendf(raw, "%q %q %q", hints(t), t.Icons, t.Meta)
		}
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// nameless is the digest without the tool's name: that of a renamed tool is the
// same.
func (d *Definition) nameless() string {
	if d.Tool == nil {
		return ""
	}
	tool := *d.Tool
	tool.Name = ""
	return (&Definition{Tool: &tool, Execution: d.Execution}).Digest()
}

// hints writes the annotations of a tool as its server gave them.
func hints(t *mcp.Tool) map[string]string {
	said := make(map[string]string)
	a := t.Annotations
	if a == nil {
		return said
	}
	if a.Title != "" {
		said["title"] = a.Title
	}
	for name, hint := range map[string]*bool{
		"readOnlyHint": a.ReadOnlyHint, "destructiveHint": a.DestructiveHint,
		"idempotentHint": a.IdempotentHint, "openWorldHint": a.OpenWorldHint,
	} {
		if hint != nil {
			said[name] = fmt.Sprint(*hint)
		}
	}
	return said
}
