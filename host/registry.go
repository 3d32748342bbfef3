package host

import (
	"cmp"
	"crypto/sha256"
	"log/slog"
	"slices"

	"github.com/parley-mcp/parley/mcp"
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
	// Hidden says that the policy denies the tool, so that the model is not
	// told of it.
	Hidden bool

	digest digest
}

// A digest stands for the whole definition of a tool, so that a change shows.
type digest [sha256.Size]byte

// digestOf makes the digest of what a person agreed to: everything of a
// definition that is shown to a person or to the model.
func digestOf(t *mcp.Tool) digest {
	h := sha256.New()
	part := func(p string) {
		var size [8]byte
		for i := range size {
			size[i] = byte(len(p) >> (8 * i))
		}
		h.Write(size[:])
		h.Write([]byte(p))
	}
	part(t.Name)
	part(t.Title)
	part(t.Description)
	part(string(t.InputSchema))
	part(string(t.OutputSchema))
	if a := t.Annotations; a != nil {
		part(a.Title)
		for _, hint := range []*bool{a.ReadOnlyHint, a.DestructiveHint, a.IdempotentHint, a.OpenWorldHint} {
			switch {
			case hint == nil:
				part("")
			case *hint:
				part("yes")
			default:
				part("no")
			}
		}
	}
	return digest(h.Sum(nil))
}

// A Catalog is the tools of all servers at one moment. It is never written to.
type Catalog struct {
	// Tools are in order of server and name.
	Tools []*Tool
	// Down are the servers whose tools are missing, and why.
	Down []*ServerError

	byModelName map[string]*Tool
}

// Named returns the tool that the model calls by name.
func (c *Catalog) Named(modelName string) (*Tool, bool) {
	t, ok := c.byModelName[modelName]
	return t, ok
}

// specs are the tools as the model is told of them: those that policy denies
// are left out.
func (c *Catalog) specs() []ToolSpec {
	specs := make([]ToolSpec, 0, len(c.Tools))
	for _, t := range c.Tools {
		if !t.Hidden {
			specs = append(specs, ToolSpec{Name: t.ModelName, Description: t.Def.Description, InputSchema: t.Def.InputSchema})
		}
	}
	return specs
}

// newCatalog gives every tool a model name that no other has, the same one
// each time for the same set of tools. A pair that comes twice is kept once.
func newCatalog(tools []*Tool, log *slog.Logger) *Catalog {
	slices.SortStableFunc(tools, func(a, b *Tool) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Def.Name, b.Def.Name))
	})
	tools = slices.CompactFunc(tools, func(a, b *Tool) bool {
		same := a.Server == b.Server && a.Def.Name == b.Def.Name
		if same {
			log.Warn("a server lists a tool twice; the first one counts", "server", a.Server, "tool", a.Def.Name)
		}
		return same
	})
	wanted := make(map[string]int, len(tools))
	for _, t := range tools {
		t.ModelName = modelName(t.Server, t.Def.Name)
		wanted[t.ModelName]++
	}
	c := &Catalog{byModelName: make(map[string]*Tool, len(tools))}
	for _, t := range tools {
		if wanted[t.ModelName] > 1 {
			// A long hash, which cannot be forged: a tool must not be able
			// to take over the calls that are meant for another.
			t.ModelName = hashedName(t.Server, t.Def.Name, 2*hashDigits)
		}
		if _, taken := c.byModelName[t.ModelName]; taken {
			log.Warn("a tool's name for the model is taken; the tool is left out", "server", t.Server, "tool", t.Def.Name)
			continue
		}
		c.byModelName[t.ModelName] = t
		c.Tools = append(c.Tools, t)
	}
	return c
}
