package doctor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

const (
	stateless = "2026-07-28"
	sessions  = "2025-11-25"
)

// An object is one of JSON.
type object = map[string]any

// A fault is an answer with an error, or none: see its fields.
type fault struct {
	code   int    // of the error
	silent bool   // there is no answer
	dies   bool   // the connection ends
	before string // a line that is written before the answer
	text   string // an answer as it is written; ID in it stands for that of the request
	result object // the result
}

// A script is a server by hand: good, but for what a test changes in it.
type script struct {
	version      string
	info         object
	instructions string
	capabilities object
	tools        []any
	prompts      []any
	resources    []any
	templates    []any
	// on has answers by method; a function is asked each time.
	on      map[string]func(params object) fault
	running sync.WaitGroup // of connections
}

// newScript is a server without a fault.
func newScript(version string) *script {
	return &script{
		version: version, info: object{"name": "shop", "version": "1"}, instructions: "Look before you order.",
		capabilities: object{"tools": object{}, "prompts": object{}, "resources": object{}, "completions": object{}},
		tools: []any{
			object{
				"name": "look", "description": "Looks at an item.", "annotations": object{"readOnlyHint": true},
				"inputSchema": object{"type": "object", "properties": object{"item": object{"type": "string", "description": "Which item."}}, "required": []any{"item"}},
			},
			object{"name": "order", "description": "Orders.", "inputSchema": object{"type": "object"}},
		},
		prompts: []any{object{"name": "ask", "description": "Asks.", "arguments": []any{object{"name": "what", "description": "What."}}}},
		resources: []any{
			object{"uri": "shop://prices", "name": "prices", "mimeType": "text/csv"}, object{"uri": "shop://news", "name": "news"},
		},
		templates: []any{object{"uriTemplate": "shop://items/{id}", "name": "item"}},
		on:        make(map[string]func(object) fault),
	}
}

// tool is the first tool, to be changed.
func (s *script) tool() object { return s.tools[0].(object) }

// argument is the argument of the first tool.
func (s *script) argument() object {
	return s.tool()["inputSchema"].(object)["properties"].(object)["item"].(object)
}

// fails has a method answered with a fault.
func (s *script) fails(method string, f fault) { s.on[method] = func(object) fault { return f } }

// serve answers the requests of one connection until it ends.
func (s *script) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewScanner(conn)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m object
		if json.Unmarshal(in.Bytes(), &m) != nil || m["id"] == nil || m["method"] == nil {
			continue
		}
		params, _ := m["params"].(object)
		f := s.answer(m["method"].(string), params)
		if f.dies {
			return
		}
		if f.before != "" {
			_, _ = fmt.Fprintln(conn, f.before)
		}
		answer := object{"jsonrpc": "2.0", "id": m["id"]}
		switch {
		case f.silent:
			continue
		case f.text != "":
			id, err := json.Marshal(m["id"])
			if err != nil {
				panic(err)
			}
			_, _ = fmt.Fprintln(conn, strings.ReplaceAll(f.text, "ID", string(id)))
			continue
		case f.code != 0:
			answer["error"] = object{"code": f.code, "message": "no"}
		default:
			if s.version == stateless {
				f.result = maps.Clone(f.result)
				f.result["resultType"] = "complete"
			}
			answer["result"] = f.result
		}
		raw, err := json.Marshal(answer)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintln(conn, string(raw)) // the end of the connection shows when it is read
	}
}

// answer is what a request is answered with.
func (s *script) answer(method string, params object) fault {
	if f, ok := s.on[method]; ok {
		return f(params)
	}
	list := func(member string, items []any) fault {
		if params["cursor"] != nil {
			return fault{code: -32602}
		}
		if items == nil {
			return fault{code: -32601}
		}
		return fault{result: object{member: items, "ttlMs": 0, "cacheScope": "private"}}
	}
	switch method {
	case "initialize":
		if s.version == stateless {
			return fault{code: -32601}
		}
		return fault{result: object{"protocolVersion": s.version, "capabilities": s.capabilities, "serverInfo": s.info, "instructions": s.instructions}}
	case "server/discover":
		if s.version != stateless {
			return fault{code: -32601}
		}
		return fault{result: object{
			"supportedVersions": []string{stateless}, "capabilities": s.capabilities, "instructions": s.instructions,
			"_meta": object{"io.modelcontextprotocol/serverInfo": s.info}, "ttlMs": 0, "cacheScope": "private",
		}}
	case "ping":
		return fault{result: object{}}
	case "tools/list":
		return list("tools", s.tools)
	case "prompts/list":
		return list("prompts", s.prompts)
	case "resources/list":
		return list("resources", s.resources)
	case "resources/templates/list":
		return list("resourceTemplates", s.templates)
	case "resources/read":
		return s.read(params)
	case "tools/call", "prompts/get", "completion/complete", "logging/setLevel":
		return fault{code: -32602}
	}
	return fault{code: -32601}
}

func (s *script) read(params object) fault {
	for _, item := range s.resources {
		if r, ok := item.(object); ok && r["uri"] == params["uri"] {
			contents := object{"uri": params["uri"], "text": "x"}
			if kind, ok := r["mimeType"]; ok {
				contents["mimeType"] = kind
			}
			return fault{result: object{"contents": []any{contents}, "ttlMs": 0, "cacheScope": "private"}}
		}
	}
	return fault{code: -32602}
}

// A scriptDialer connects to a script, each time anew.
type scriptDialer struct {
	s     *script
	watch *doctor.Watch
}

func (d *scriptDialer) Key() string { return "" }

func (d *scriptDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	ours, theirs := net.Pipe()
	d.s.running.Go(func() { d.s.serve(theirs) }) // until ours is closed
	dialer := stdio.Conn(ours)
	dialer.Tap = d.watch.Tap
	return dialer.Dial(ctx, in)
}

// patient are options with which a busy machine has the time that it needs.
var patient = &doctor.Options{Timeout: time.Minute, Revision: 10 * time.Minute}

// examine examines a script in its revision, and the others that are given. Default options: patient.
func examine(t *testing.T, s *script, o *doctor.Options, versions ...string) (*doctor.Report, error) {
	t.Helper()
	if versions == nil {
		versions = []string{s.version}
	}
	if o == nil {
		o = patient
	}
	watch := &doctor.Watch{}
	defer s.running.Wait()
	return doctor.Examine(t.Context(), doctor.Target{Name: "shop", Dialer: &scriptDialer{s, watch}, Watch: watch, Versions: versions}, o)
}

// find is the first finding of a code whose place has a text.
func find(r *doctor.Report, code, where string) *doctor.Finding {
	if r == nil {
		return nil
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Code == code && strings.Contains(f.Where, where) {
			return f
		}
	}
	return nil
}

// listed is a report in a few words, for failures.
func listed(r *doctor.Report) string {
	if r == nil {
		return "no report"
	}
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.Code+" "+f.Where+": "+f.Reason)
	}
	return strings.Join(lines, "\n")
}
