package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// A callDelta is a part of a call.
type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name string `json:"name"`
		// Arguments are a string; some servers send the object itself.
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// arguments is the text that the part adds.
func (d *callDelta) arguments() string {
	var text string
	if json.Unmarshal(d.Function.Arguments, &text) == nil {
		return text
	}
	return string(d.Function.Arguments)
}

// calls are those of a turn, in the order in which they begin. A message has no order between
// its text and its calls, and only its end says that a call is whole.
type calls struct {
	list []*call
	ids  map[string]bool // of those that were yielded
}

// A call is one under way.
type call struct {
	index     *int
	id, name  string
	arguments strings.Builder
	ending    ending
}

// An ending finds out whether the arguments of a call are whole: an object or a list that
// was closed. It looks at each byte once, however many parts there are.
type ending struct {
	depth           int
	quoted, escaped bool
	whole           bool
}

func (e *ending) add(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case e.escaped:
			e.escaped = false
		case e.quoted:
			e.escaped, e.quoted = c == '\\', c != '"'
		case c == '"':
			e.quoted = true
		case c == '{', c == '[':
			e.depth++
			e.whole = false
		case c == '}', c == ']':
			e.depth--
			e.whole = e.depth == 0
		}
	}
}

// add adds a part of a call.
func (cs *calls) add(d *callDelta) {
	arguments := d.arguments()
	c := cs.of(d, arguments)
	if c == nil {
		c = &call{index: d.Index}
		cs.list = append(cs.list, c)
	}
	if c.id == "" {
		c.id = d.ID
	}
	if c.name == "" { // some servers repeat it in each part
		c.name = d.Function.Name
	}
	c.arguments.WriteString(arguments)
	c.ending.add(arguments)
}

// of is the call that a part belongs to, or nil if the part begins one. The index says it,
// but some servers give several calls one index, or none at all.
func (cs *calls) of(d *callDelta, arguments string) *call {
	var c *call
	for i := len(cs.list) - 1; i >= 0 && c == nil; i-- {
		of := cs.list[i]
		switch {
		case d.Index == nil && (d.ID == "" || of.id == d.ID):
			c = of
		case d.Index != nil && of.index != nil && *d.Index == *of.index:
			c = of
		}
	}
	if c == nil {
		return nil
	}
	another := d.ID != "" && c.id != "" && d.ID != c.id
	again := d.ID == "" && d.Function.Name != "" && arguments != "" && c.ending.whole
	if another || again {
		return nil
	}
	return c
}

// use is the call as the host takes it, with an id that no other call has. Arguments that
// are no JSON are passed on: the host tells the model.
func (c *call) use(all *calls) *mcp.ToolUseContent {
	if all.ids == nil {
		all.ids = make(map[string]bool)
	}
	id := c.id
	for n := 1; id == "" || all.ids[id]; n++ {
		id = fmt.Sprintf("%s_%d", cmp.Or(c.id, "call"), n)
	}
	all.ids[id] = true
	arguments := strings.TrimSpace(c.arguments.String())
	if arguments == "" || arguments == "null" {
		arguments = "{}"
	}
	return &mcp.ToolUseContent{ID: id, Name: c.name, Input: mcp.RawValue(arguments)}
}
