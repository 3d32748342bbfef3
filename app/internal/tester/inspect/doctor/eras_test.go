package doctor_test

import (
	"maps"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
)

// older is the revision in which the faults of eraFaults are planted.
const older = "2025-06-18"

// eraFaults are planted in the older of two revisions. at is the revision in which they are found.
var eraFaults = []struct {
	code, where, at string
	plant           func(s *script)
}{
	{"MCP-ERA-001", "$.tools.order", older, func(s *script) { s.tools = s.tools[:1] }},
	{"MCP-ERA-001", "$.tools.more", sessions, func(s *script) {
		s.tools = append(s.tools[:2:2], object{"name": "more", "description": "Does more.", "inputSchema": object{"type": "object"}})
	}},
	{"MCP-ERA-002", "$.tools.look.inputSchema", older, func(s *script) {
		s.tools = []any{object{"name": "look", "description": "Looks.", "inputSchema": object{"type": "object"}}, s.tools[1]}
	}},
	{"MCP-ERA-003", "$.prompts.ask", older, func(s *script) { s.prompts = []any{} }},
	{"MCP-ERA-003", "$.prompts.tell", sessions, func(s *script) {
		s.prompts = append(s.prompts[:1:1], object{"name": "tell", "description": "Tells."})
	}},
	{"MCP-ERA-004", "$.prompts.ask.arguments", older, func(s *script) {
		s.prompts = []any{object{"name": "ask", "description": "Asks."}}
	}},
	{"MCP-ERA-004", "$.prompts.ask.arguments", older, func(s *script) {
		s.prompts = []any{object{"name": "ask", "description": "Asks.", "arguments": []any{object{"name": "what", "description": "What.", "required": true}}}}
	}},
	{"MCP-ERA-004", "$.prompts.ask.arguments", older, func(s *script) {
		s.prompts = []any{object{"name": "ask", "description": "Asks.", "arguments": []any{
			object{"name": "what", "description": "What."}, object{"name": "why", "description": "Why."},
		}}}
	}},
	{"MCP-ERA-005", "$.resources['shop://news']", older, func(s *script) { s.resources = s.resources[:1] }},
	{"MCP-ERA-005", "$.resourceTemplates['shop://items/{id}']", older, func(s *script) { s.templates = []any{} }},
	{"MCP-ERA-006", "$.capabilities.prompts", older, func(s *script) {
		s.capabilities = maps.Clone(s.capabilities)
		delete(s.capabilities, "prompts")
		s.prompts = nil
	}},
	{"MCP-ERA-006", "$.capabilities.tools.listChanged", sessions, func(s *script) {
		s.capabilities = maps.Clone(s.capabilities)
		s.capabilities["tools"] = object{"listChanged": true}
	}},
	{"MCP-ERA-007", "$.resources['shop://prices']", older, func(s *script) {
		s.resources = []any{object{"uri": "shop://prices", "name": "prices", "mimeType": "text/plain"}, s.resources[1]}
	}},
}

// eraScript is a server whose offer is changed in one revision; client has what its client declares.
func eraScript(change func(s *script, version string, client object)) *script {
	s := newScript(sessions)
	good := newScript(sessions)
	s.on["initialize"] = func(params object) fault {
		version, _ := params["protocolVersion"].(string)
		declared, _ := params["capabilities"].(object)
		s.tools, s.prompts, s.resources, s.templates, s.capabilities = good.tools, good.prompts, good.resources, good.templates, good.capabilities
		change(s, version, declared)
		return fault{result: object{"protocolVersion": version, "capabilities": s.capabilities, "serverInfo": s.info}}
	}
	return s
}

// What differs from revision to revision is found, each by its code, and nothing else is.
func TestEras(t *testing.T) {
	for _, f := range eraFaults {
		t.Run(f.code+" "+f.where, func(t *testing.T) {
			r, err := examine(t, eraScript(func(s *script, version string, _ object) {
				if version == older {
					f.plant(s)
				}
			}), nil, sessions, older)
			if err != nil {
				t.Fatal(err)
			}
			found := find(r, f.code, f.where)
			if found == nil || len(found.Revisions) != 1 || found.Revisions[0] != f.at || found.Reason == "" || found.Fix == "" {
				t.Fatalf("got %+v; there is:\n%s", found, listed(r))
			}
			for _, other := range r.Findings {
				if other.Code != f.code && other.Severity != doctor.Note {
					t.Errorf("there is more: %s %s: %s", other.Code, other.Where, other.Reason)
				}
			}
		})
	}
}

// Tools that a client sees by what it can be asked are no fault of a revision that cannot say it.
func TestToolsByClient(t *testing.T) {
	r, err := examine(t, eraScript(func(s *script, version string, client object) {
		if version == older || client["elicitation"] == nil {
			s.tools = s.tools[:1]
		}
	}), nil, sessions, older)
	if err != nil {
		t.Fatal(err)
	}
	if f := find(r, "MCP-ERA-008", "$.tools.order"); f == nil || f.Severity != doctor.Note || find(r, "MCP-ERA-001", "") != nil {
		t.Errorf("there is:\n%s", listed(r))
	}
}

// A list that has changed meanwhile is no difference between revisions.
func TestListChangesMeanwhile(t *testing.T) {
	connections := 0
	r, err := examine(t, eraScript(func(s *script, _ string, _ object) {
		if connections++; connections > 1 {
			s.resources = append(s.resources[:2:2], object{"uri": "shop://new", "name": "new"})
		}
	}), nil, sessions, older)
	if err != nil || connections != 3 || len(r.Findings) > 0 {
		t.Errorf("%v, %d connections; there is:\n%s", err, connections, listed(r))
	}
}

// Schemas of an old dialect are one finding, however many there are in each revision.
func TestDialectInRevisions(t *testing.T) {
	r, err := examine(t, eraScript(func(s *script, version string, _ object) {
		old := object{"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}
		s.tools = []any{s.tools[0], object{"name": "order", "description": "Orders.", "inputSchema": old}}
		if version == sessions {
			s.tools = append(s.tools, object{"name": "pay", "description": "Pays.", "inputSchema": old})
		}
	}), nil, sessions, older)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range r.Findings {
		if f.Code == "MCP-SCHEMA-013" {
			n++
			if len(f.Revisions) != 2 {
				t.Errorf("it is found in %v", f.Revisions)
			}
		}
	}
	if n != 1 {
		t.Errorf("there is:\n%s", listed(r))
	}
}
