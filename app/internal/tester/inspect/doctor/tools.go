package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/losses"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// Bounds of what a model is told.
const (
	maxToolName     = 128
	maxDescription  = 1024 // characters
	maxInstructions = 4000 // characters
	maxTokens       = 16_000
	maxToolTokens   = 2_000
)

// toolName is what names of tools should be made of.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// A tool is one that a server lists.
type tool struct {
	name     string
	def      *mcp.Tool // nil if it cannot be read
	input    any       // the schema of the arguments
	compiled *schema.Compiled
}

func (t *tool) path(more ...string) string {
	return contract.Path(append([]string{"tools", t.name}, more...)...)
}

// tools examines the list of tools.
func (x *subject) tools(ctx context.Context, items []mcp.RawValue) {
	names := make(map[string]bool)
	similar := make(map[string]string)
	total := 0
	var costs []Cost
	var readable []*tool
	for _, raw := range items {
		if ctx.Err() != nil {
			return // told once, at the end
		}
		t := x.tool(raw)
		x.offer.tools = append(x.offer.tools, t)
		switch form := lookalike(t.name); {
		case names[t.name]:
			x.add("MCP-TOOL-004", t.path(), fmt.Sprintf("the name %q is listed more than once", t.name))
		case similar[form] != "":
			x.add("MCP-TOOL-005", t.path(), fmt.Sprintf("%q is easily confused with %q", t.name, similar[form]))
		default:
			similar[form] = t.name
		}
		names[t.name] = true
		if t.def == nil {
			continue
		}
		c := x.cost(t)
		total += c.Tokens
		costs = append(costs, c)
		if c.Tokens > maxToolTokens {
			x.add("MCP-MODEL-004", t.path(), fmt.Sprintf("it uses about %d tokens, more than %d", c.Tokens, maxToolTokens))
		}
		if t.compiled != nil {
			readable = append(readable, t)
		}
	}
	x.providers(readable)
	if total > maxTokens {
		x.add("MCP-MODEL-003", "$.tools", fmt.Sprintf("the tools use about %d tokens, more than %d", total, maxTokens))
	}
	if x.report.Model == nil { // the newest revision comes first
		x.report.Model, x.report.Tokens = costs, total
	}
}

// similarities are characters that are taken for each other.
var similarities = strings.NewReplacer("-", "", "_", "", ".", "", " ", "", "/", "", "0", "o", "1", "l", "i", "l", "rn", "m", "vv", "w")

// lookalike is the same for names that are easily taken for each other.
func lookalike(name string) string { return similarities.Replace(strings.ToLower(name)) }

// tool examines one tool by itself.
func (x *subject) tool(raw mcp.RawValue) *tool {
	var head struct {
		Name   string       `json:"name"`
		Input  mcp.RawValue `json:"inputSchema"`
		Output mcp.RawValue `json:"outputSchema"`
	}
	t := &tool{}
	if err := decode(raw, &head); err != nil {
		x.add("MCP-TOOL-013", contract.Path("tools"), reasonOf(err))
		return t
	}
	t.name = head.Name
	var def mcp.Tool
	if err := decode(raw, &def); err != nil {
		x.add("MCP-TOOL-013", t.path(), reasonOf(err))
	} else {
		t.def = &def
		x.said(t)
	}
	switch {
	case t.name == "":
		x.add("MCP-TOOL-001", t.path(), "the name is empty")
	case !toolName.MatchString(t.name):
		x.add("MCP-TOOL-002", t.path(), fmt.Sprintf("the name is %q", t.name))
	}
	if len(t.name) > maxToolName {
		x.add("MCP-TOOL-003", t.path(), fmt.Sprintf("the name has %d characters, more than %d", len(t.name), maxToolName))
	}
	x.inputSchema(t, head.Input)
	if len(head.Output) > 0 {
		s := &schemaCheck{subject: x, path: []string{"tools", t.name, "outputSchema"}, raw: head.Output}
		s.compile(true)
		s.walk()
	}
	return t
}

// said examines the texts and annotations of a tool.
func (x *subject) said(t *tool) {
	if strings.TrimSpace(t.def.Description) == "" {
		x.add("MCP-TOOL-006", t.path("description"), "the description is empty")
	}
	if n := utf8.RuneCountInString(t.def.Description); n > maxDescription {
		x.add("MCP-TOOL-007", t.path("description"), fmt.Sprintf("the description has %d characters, more than %d", n, maxDescription))
	}
	if a := t.def.Annotations; a != nil && a.ReadOnly() && a.DestructiveHint != nil && *a.DestructiveHint {
		x.add("MCP-TOOL-010", t.path("annotations"), "readOnlyHint means that the tool changes nothing, destructiveHint that it can destroy data")
	}
	x.flags(&host.Definition{Tool: t.def}, flagCodes{"MCP-TOOL-008", "MCP-TOOL-009", "MCP-TOOL-005"}, t.path())
}

// flagCodes are the codes of what host.Flags finds; an empty one is no finding.
type flagCodes struct{ hidden, orders, lookalike string }

// flags examines texts for what people do not see and models obey.
func (x *subject) flags(d *host.Definition, codes flagCodes, where string) {
	for _, f := range host.Flags(host.ServerDefinition{Server: x.target.Name, Definition: d}, nil) {
		id := map[host.FlagKind]string{host.FlagHidden: codes.hidden, host.FlagInstruction: codes.orders, host.FlagLookalike: codes.lookalike}[f.Kind]
		if id != "" {
			x.add(id, where, f.Text)
		}
	}
}

func (x *subject) instructions(text string) {
	const where = "$.instructions"
	if n := utf8.RuneCountInString(text); n > maxInstructions {
		x.add("MCP-INSTR-001", where, fmt.Sprintf("the instructions have %d characters, more than %d", n, maxInstructions))
	}
	x.flags(&host.Definition{Instructions: text}, flagCodes{"MCP-INSTR-002", "MCP-INSTR-003", ""}, where)
}

// modelName is what every provider of models takes as a name.
var modelName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`) })

// cost is what a model is told of a tool.
func (x *subject) cost(t *tool) Cost {
	name := x.target.Name + "__" + t.name
	if !modelName().MatchString(name) {
		name = "a name with a digest instead of " + name
	}
	return Cost{t.name, name, (&host.Tool{Server: x.target.Name, Def: t.def, ModelName: x.target.Name + "__" + t.name}).Tokens()}
}

// providers tells what providers of models do not take of the tools.
func (x *subject) providers(list []*tool) {
	defs := make([]*mcp.Tool, len(list))
	for i, t := range list {
		defs[i] = t.def
	}
	lost, _ := losses.Of(defs) // what is wrong with a schema is told with the schema
	for _, l := range lost {
		id := "MCP-MODEL-002"
		if l.RefusesName() {
			id = "MCP-MODEL-001"
		}
		where := "$.tools"
		if len(l.Tools) == 1 {
			where = contract.Path("tools", l.Tools[0])
		}
		reason := l.ProviderNames() + ": " + l.What + ": " + l.Why
		if n := len(l.Tools); n > 1 {
			reason += fmt.Sprintf("; of %d tools: %s", n, l.ToolNames())
		}
		x.found.add(id, where, reason, l.Mend, x.version)
	}
}

// inputSchema examines the schema of the arguments of a tool.
func (x *subject) inputSchema(t *tool, raw mcp.RawValue) {
	path := []string{"tools", t.name, "inputSchema"}
	if len(raw) == 0 || raw[0] != '{' {
		x.add("MCP-SCHEMA-001", contract.Path(path...), "the schema is missing, or not an object")
		return
	}
	s := &schemaCheck{subject: x, path: path, raw: raw, input: true}
	t.compiled = s.compile(false)
	t.input = s.walk()
	if t.compiled == nil {
		return
	}
	if got := t.compiled.Type(); got != "object" {
		x.add("MCP-SCHEMA-005", contract.Path(path...), fmt.Sprintf("the type is %q", got))
	}
	for _, name := range t.compiled.SecretMembers() {
		x.add("MCP-SCHEMA-012", contract.Path(append(path, "properties", name)...), fmt.Sprintf("the argument %q", name))
	}
}

// schemaCodes are the codes of what can be wrong with a schema as a whole.
var schemaCodes = []struct {
	err error
	id  string
}{
	{schema.ErrDialect, "MCP-SCHEMA-003"},
	{schema.ErrExternal, "MCP-SCHEMA-004"},
	{schema.ErrTooComplex, "MCP-SCHEMA-010"},
	{schema.ErrHeader, "MCP-SCHEMA-009"},
	{schema.ErrInvalid, "MCP-SCHEMA-002"},
}

func schemaCode(err error) string {
	for _, c := range schemaCodes {
		if errors.Is(err, c.err) {
			return c.id
		}
	}
	return "MCP-SCHEMA-002"
}
