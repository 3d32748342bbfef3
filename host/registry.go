package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema/provider"
)

// A Tool is one tool of one server. Its identity is the pair of the server's
// name in this host and the tool's own name.
type Tool struct {
	// Server is the name of the server in this host.
	Server string
	// ModelName is the name under which the model knows the tool.
	ModelName string
	// Def is what the server says of the tool: untrusted.
	Def *mcp.Tool
	// Hidden says that the model is not told of the tool and cannot call it: the policy
	// denies it whatever its arguments, or it is for pages of its server alone.
	Hidden bool

	owner      *link // what the tool was listed by
	definition *Definition
	digest     string // of definition
	leftOut    bool   // it is none of Server.OnlyTools
	uses       uses
}

// pinKey is where the store has the definition that was agreed to.
func (t *Tool) pinKey() PinKey { return PinKey{t.owner.spec.pinServer(), t.Def.Name} }

// agreed is the tool as the person agreed to it: the model reads no words of a server
// that came in their place, until the person has seen them too.
func (t *Tool) agreed(pinned map[PinKey]*Pin) *Tool {
	pin := pinned[t.pinKey()]
	if pin == nil || pin.Digest == t.digest {
		return t
	}
	old := new(Definition)
	if old.UnmarshalJSON(pin.Definition) != nil || old.Tool == nil {
		return t
	}
	before := *t
	before.Def = old.Tool
	return &before
}

// pinned are the pins of all servers, by their keys.
func (h *Host) pinned(ctx context.Context) (map[PinKey]*Pin, error) {
	pins, err := h.opts.Store.Pins(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("reading what was agreed to: %w", err)
	}
	pinned := make(map[PinKey]*Pin, len(pins))
	for i := range pins {
		pinned[pins[i].PinKey] = &pins[i]
	}
	return pinned, nil
}

// Tokens estimates how many tokens the definition of the tool takes in a request.
func (t *Tool) Tokens() int {
	spec := t.spec(provider.Any)
	return tokens(&spec)
}

// spec is the tool as a model is told of it.
func (t *Tool) spec(p provider.Profile) ToolSpec {
	spec := ToolSpec{Name: t.ModelName, Description: t.Def.Description, InputSchema: mcp.RawValue(`{"type":"object"}`)}
	if schema, notes, err := provider.Reduce(t.Def.InputSchema, p); err == nil {
		spec.InputSchema = schema
		if len(notes) > 0 {
			spec.Description += "\n" + strings.Join(notes, "\n")
		}
	}
	return spec
}
