package doctor

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/app/inspect/contract/schemadiff"
	"github.com/parley-mcp/parley/app/inspect/lists"
)

// compareEras compares the tools of all revisions with those of the newest one that is spoken.
func (e *examination) compareEras() {
	if len(e.offers) < 2 || !e.offers[0].listed[lists.Tools.Method] {
		return
	}
	newest := e.offers[0]
	for _, o := range e.offers[1:] {
		if !o.listed[lists.Tools.Method] {
			continue
		}
		e.missing(newest, o)
		e.missing(o, newest)
		here := o.byName()
		for _, t := range newest.tools {
			if other := here[t.name]; other != nil {
				e.differs(t, other, newest.version, o.version)
			}
		}
	}
}

func (o *offer) byName() map[string]*tool {
	tools := make(map[string]*tool, len(o.tools))
	for _, t := range o.tools {
		tools[t.name] = t
	}
	return tools
}

// missing tells of the tools that one revision has and another has not.
func (e *examination) missing(from, in *offer) {
	there := in.byName()
	for _, t := range from.tools {
		if there[t.name] == nil {
			e.found.add("MCP-ERA-001", t.path(), fmt.Sprintf("the tool is there in %s, and missing in others", from.version), "", in.version)
		}
	}
}

// told are the effects of changes that touch no arguments.
var told = []schemadiff.Effect{
	schemadiff.Described, schemadiff.Titled, schemadiff.Defaulted, schemadiff.Carried, schemadiff.Annotated,
}

// differs tells of a tool that takes other arguments.
func (e *examination) differs(a, b *tool, newer, older string) {
	before, err := json.Marshal(a.input)
	after, err2 := json.Marshal(b.input)
	if err != nil || err2 != nil || string(before) == string(after) {
		return
	}
	changes, err := schemadiff.Compare(before, after)
	if err != nil {
		return // told with the schema
	}
	for _, c := range changes {
		if !slices.Contains(told, c.Effect) {
			e.found.add("MCP-ERA-002", a.path("inputSchema"), fmt.Sprintf("the schema is another one than in %s", newer), "", older)
			return
		}
	}
}
