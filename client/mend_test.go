package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// answered is what a client makes of one result: JSON of what it returns, and the problems.
func answered(t *testing.T, versions []string, method, result string) (got string, problems []string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: versions, on: map[string]func(*req) (any, error){method: func(*req) (any, error) { return raw(result), nil }}}
		var handled []string
		c := connect(t, s, &client.Options{Versions: versions, OnProblem: func(_ context.Context, p *client.Problem) { handled = append(handled, p.String()) }})
		var v any
		switch method {
		case mcp.MethodToolsList:
			v, err = collected(c.Tools(t.Context()))
		case mcp.MethodPromptsList:
			v, err = collected(c.Prompts(t.Context()))
		case mcp.MethodResourcesList:
			v, err = collected(c.Resources(t.Context()))
		case mcp.MethodResourcesTemplates:
			v, err = collected(c.ResourceTemplates(t.Context()))
		case mcp.MethodToolsCall:
			v, err = c.CallTool(t.Context(), "t", nil, nil)
		case mcp.MethodResourcesRead:
			v, err = c.ReadResource(t.Context(), "a:1", nil)
		case mcp.MethodPromptsGet:
			v, err = c.GetPrompt(t.Context(), "p", nil, nil)
		}
		text, failed := json.Marshal(v)
		if failed != nil {
			t.Error(failed)
		}
		got = string(text)
		for _, p := range c.Problems() {
			problems = append(problems, p.String())
		}
		if !slices.Equal(handled, problems) {
			t.Errorf("the handler got %q, and Problems returned %q", handled, problems)
		}
	})
	return got, problems, err
}

func collected[T any](list func(func(*T, error) bool)) (all []*T, err error) {
	for item, failed := range list {
		if failed != nil {
			return all, failed
		}
		all = append(all, item)
	}
	return all, nil
}

// A wrong part of an answer is left out, replaced by what is safe, or kept as text, and each is named;
// the rest is as it came (ruling 37).
func TestPartsLeftOut(t *testing.T) {
	const hologram = `{"content":[{"type":"text","text":"one"},{"type":"hologram","data":{"x":1}},{"type":"text","text":"two"}]}`
	for name, test := range map[string]struct{ method, result, want, problems string }{
		"title":        {"tools/list", `{"tools":[{"name":"a","title":5,"inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}`, `[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]`, `tools/list "a": /tools/0/title: expected string, got number`},
		"hint":         {"tools/list", `{"tools":[{"name":"a","annotations":{"readOnlyHint":"yes","idempotentHint":1,"title":"A"},"inputSchema":{"type":"object"}}]}`, `[{"name":"a","inputSchema":{"type":"object"},"annotations":{"title":"A"}}]`, `/tools/0/annotations/readOnlyHint`},
		"annotations":  {"tools/list", `{"tools":[{"name":"a","annotations":[],"icons":{},"_meta":"x","inputSchema":{"type":"object"}}]}`, `[{"name":"a","inputSchema":{"type":"object"},"annotations":{}}]`, `/tools/0/icons`},
		"icon":         {"tools/list", `{"tools":[{"name":"a","icons":[{"src":"data:,"},{"src":7},"x"],"inputSchema":{"type":"object"}}]}`, `[{"name":"a","inputSchema":{"type":"object"},"icons":[{"src":"data:,"}]}]`, `/tools/0/icons/1`},
		"no name":      {"tools/list", `{"tools":[{"name":7,"inputSchema":{"type":"object"}},5,{"name":"b","inputSchema":{"type":"object"}}]}`, `[{"name":"b","inputSchema":{"type":"object"}}]`, `/tools/0/name`},
		"empty array":  {"prompts/list", `{"prompts":[[],{"name":"p","arguments":[[],{"name":"x"}]}]}`, `[{"name":"p","arguments":[{"name":"x"}]}]`, `prompts/list: /prompts/0: expected object, got array`},
		"cursor":       {"tools/list", `{"tools":[{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":1}`, `[{"name":"b","inputSchema":{"type":"object"}}]`, `tools/list: /nextCursor`},
		"argument":     {"prompts/list", `{"prompts":[{"name":"p","arguments":[{"name":"x","required":"true"},{"name":{}},{"name":"y"}]},{"name":"q","arguments":{}}]}`, `[{"name":"p","arguments":[{"name":"x"},{"name":"y"}]},{"name":"q"}]`, `prompts/list "p": /prompts/0/arguments/0/required`},
		"size":         {"resources/list", `{"resources":[{"uri":"a:1","name":"one","size":"large"},{"uri":5,"name":"two"}]}`, `[{"uri":"a:1","name":"one"}]`, `resources/list "one": /resources/0/size`},
		"template":     {"resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"a:{x}","name":"t","mimeType":[]}]}`, `[{"uriTemplate":"a:{x}","name":"t"}]`, `/resourceTemplates/0/mimeType`},
		"block":        {"tools/call", hologram, `"text":"one"`, `tools/call "t": /content/1: of an unknown type`},
		"named block":  {"tools/call", `{"content":[{"type":"hologram","name":"another"}]}`, `hologram`, `tools/call "t": /content/0: of an unknown type`},
		"kept":         {"tools/call", hologram, `As it came:]\n{\"type\":\"hologram\",\"data\":{\"x\":1}}`, ``},
		"error flag":   {"tools/call", `{"content":[],"isError":"no"}`, `"isError":true`, `/isError`},
		"text alone":   {"tools/call", `{"content":"done"}`, `{"content":[{"type":"text","text":"done"}]`, `/content`},
		"no block":     {"tools/call", `{"content":7,"structuredContent":{"a":1}}`, `As it came:]\n7"}],"structuredContent":{"a":1}`, `/content: expected an array`},
		"no blocks":    {"tools/call", `{"content":null,"structuredContent":{"a":1}}`, `{"content":[],"structuredContent":{"a":1}`, `/content: expected an array, got null`},
		"one block":    {"tools/call", `{"content":{"type":"text","text":"done"}}`, `{"content":[{"type":"text","text":"done"}]`, `/content`},
		"priority":     {"tools/call", `{"content":[{"type":"text","text":"done","annotations":{"priority":"high","audience":["user"]}}]}`, `{"content":[{"type":"text","text":"done","annotations":{"audience":["user"]}}]`, `/content/0/annotations/priority`},
		"base64":       {"tools/call", `{"content":[{"type":"image","data":"aGk","mimeType":"image/png"}]}`, `"data":"aGk="`, `/content/0/data: base64 in another form`},
		"text, blob":   {"resources/read", `{"contents":[{"uri":"a:1","text":"t","blob":""},{"uri":"a:2","text":"","blob":"aGk="}]}`, `[{"uri":"a:1","text":"t"},{"uri":"a:2","blob":"aGk="}]`, `resources/read "a:1": /contents/0/blob`},
		"null, blob":   {"resources/read", `{"contents":[{"uri":"a:1","text":null,"blob":"","mimeType":5},{"uri":"a:2","text":"t","blob":null,"mimeType":5}]}`, `[{"uri":"a:1","blob":""},{"uri":"a:2","text":"t"}]`, `resources/read "a:1": /contents/0/mimeType: expected string, got number`},
		"bad text":     {"resources/read", `{"contents":[{"uri":"a:1","text":5},{"uri":"a:2","text":"t"}]}`, `[{"uri":"a:2","text":"t"}]`, `/contents/0/text: expected string, got number`},
		"bad blob":     {"resources/read", `{"contents":[{"uri":"a:1","blob":"!"},{"uri":"a:2","text":"t"}]}`, `[{"uri":"a:2","text":"t"}]`, `/contents/0/blob: expected base64`},
		"neither":      {"resources/read", `{"contents":[{"uri":"a:1"},{"uri":"a:2","text":"t"}]}`, `"contents":[{"uri":"a:2","text":"t"}]`, `/contents/0: resource contents have neither text nor blob`},
		"role":         {"prompts/get", `{"messages":[{"role":7,"content":{"type":"text","text":"x"}},{"role":"user","content":"y"}]}`, `[{"role":"user","content":{"type":"text","text":"x"}},{"role":"user","content":{"type":"text","text":"y"}}]`, `prompts/get "p": /messages/0/role`},
		"nothing":      {"tools/list", `{"tools":[]}`, `null`, ``},
		"unknown left": {"tools/list", `{"tools":[{"name":"a","strange":[],"inputSchema":{"type":"object"}}],"more":1}`, `[{"name":"a","inputSchema":{"type":"object"}}]`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			eras(t, func(t *testing.T, versions []string) {
				got, problems, err := answered(t, versions, test.method, test.result)
				if err != nil || !strings.Contains(got, test.want) {
					t.Errorf("%s\n got %s, %v\nwant %s", test.result, got, err, test.want)
				}
				all := strings.Join(problems, "\n")
				if !strings.Contains(all, test.problems) || (test.problems == "") != (all == "") && name != "kept" {
					t.Errorf("problems are\n%s\nwant %s", all, test.problems)
				}
			})
		})
	}
}

// An answer without an essential member, of which nothing is left, or with one in the wrong letter
// case, is an error that names the place.
func TestPartsRefused(t *testing.T) {
	for _, test := range []struct{ method, result, want string }{
		{"tools/list", `{"tools":{"a":1}}`, "/tools: expected array"},
		{"tools/list", `{"tools":[{"name":"a","Title":"A","title":5,"inputSchema":{"type":"object"}}]}`, `/tools/0: member "Title" must be written "title"`},
		{"tools/list", `{"tools":[{"name":"a","annotations":{"ReadOnlyHint":true},"title":5}]}`, `must be written "readOnlyHint"`},
		{"resources/read", `{"contents":"x"}`, "/contents"},
		{"prompts/get", `{"messages":7}`, "/messages"},
		{"resources/read", `{"_meta":5,"contents":[{"uri":"a:1","text":5}]}`, "server: /contents/0/text: expected string"},
		{"resources/read", `{"contents":[7,{"uri":"a:2","blob":"!"}]}`, "/contents/0"},
		{"prompts/get", `{"messages":[{"role":"user"}]}`, "/messages/0/content"},
	} {
		eras(t, func(t *testing.T, versions []string) {
			got, _, err := answered(t, versions, test.method, test.result)
			if !errors.Is(err, client.ErrMalformed) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %s, %v, want %s", test.result, got, err, test.want)
			}
		})
	}
}

// Nothing is left out of what is decoded into a type of the caller's, of which the client does not
// know what is safe.
func TestPartsInOwnTypes(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: map[string]func(*req) (any, error){mcp.MethodToolsCall: func(*req) (any, error) {
				return raw(`{"content":[],"isError":"true"}`), nil
			}}}
			c := connect(t, s, &client.Options{Versions: versions})
			var own struct {
				IsError bool `json:"isError"`
			}
			for _, out := range []any{&own, mcp.CallToolResult{}, (*mcp.EmptyResult)(nil), map[string]any{}} {
				err := c.Request(t.Context(), mcp.MethodToolsCall, &mcp.CallToolParams{Name: "t"}, out, nil)
				if !errors.Is(err, client.ErrMalformed) {
					t.Errorf("%T: %+v, %v", out, out, err)
				}
			}
			var r mcp.CallToolResult
			if err := c.Request(t.Context(), mcp.MethodToolsCall, &mcp.CallToolParams{Name: "t"}, &r, nil); err != nil || !r.IsError {
				t.Errorf("%+v, %v", r, err)
			}
		})
	})
}

// A server with wrong parts in its handshake can be used.
func TestPartsOfHandshake(t *testing.T) {
	for _, capabilities := range []string{`{"tools":true}`, `{"tools":[]}`, `{"tools":{"listChanged":"yes"},"logging":5}`} {
		for version, method := range map[string]string{modern: mcp.MethodDiscover, newest: mcp.MethodInitialize} {
			synctest.Test(t, func(t *testing.T) {
				result := fmt.Sprintf(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","protocolVersion":%q,"supportedVersions":[%q,7],"capabilities":%s,`+
					`"serverInfo":{"name":"odd","version":2},"instructions":["be kind"],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"odd","version":2}}}`, version, version, capabilities)
				s := &script{versions: []string{version}, on: map[string]func(*req) (any, error){
					method:              func(*req) (any, error) { return raw(result), nil },
					mcp.MethodToolsList: func(*req) (any, error) { return raw(`{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`), nil },
				}}
				c := connect(t, s, &client.Options{Versions: []string{version}})
				if tool, err := c.Tool(t.Context(), "a"); err != nil || tool.Name != "a" {
					t.Errorf("%s in %s: %v", capabilities, version, err)
				}
				if c.Server() == nil || c.Server().Name != "odd" || len(c.Problems()) < 3 {
					t.Errorf("%s in %s: %+v, %v", capabilities, version, c.Server(), c.Problems())
				}
			})
		}
	}
}

// Problems are bounded in number and in size, whatever the server sends. Reading a list again replaces
// what was found in it before.
func TestProblemsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, page := false, 0
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsList: func(*req) (any, error) {
			if page++; good || page%20 == 0 {
				return raw(`{"tools":[]}`), nil
			}
			return raw(`{"tools":[{"name":"` + strings.Repeat("n", 10_000) + `","title":5},` + strings.Repeat("5,", 2_000) + fmt.Sprintf(`5],"nextCursor":"%d"}`, page)), nil
		}}}
		told := 0
		c := connect(t, s, &client.Options{OnProblem: func(context.Context, *client.Problem) { told++ }})
		for range 3 {
			if _, err := collected(c.Tools(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		all := c.Problems()
		if len(all) == 0 || len(all) > 1001 || told > 1001 {
			t.Errorf("%d problems, %d told", len(all), told)
		}
		more := false
		for _, p := range all {
			if strings.Contains(p.Why, "more parts of the same answer are wrong") || strings.Contains(p.Why, "are not reported") {
				more = true
				if p.Effect != client.Incomplete { // there are items among them
					t.Errorf("%s has the effect %q", &p, p.Effect)
				}
			}
			if len(p.String()) > 1000 {
				t.Errorf("a problem of %d bytes", len(p.String()))
			}
		}
		if !more {
			t.Error("what was not told is not counted")
		}
		good = true
		if _, err := collected(c.Tools(t.Context())); err != nil || len(c.Problems()) != 0 {
			t.Errorf("when the server is right: %v, %d problems", err, len(c.Problems()))
		}
	})
}

// Looking for one tool keeps what was found in the rest of the list.
func TestProblemsOfPartOfList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsList: func(r *req) (any, error) {
			if text(r.in, "cursor") == "" {
				return raw(`{"tools":[{"name":"a","title":5,"inputSchema":{"type":"object"}}],"nextCursor":"2"}`), nil
			}
			return raw(`{"tools":[{"name":"b","title":5,"inputSchema":{"type":"object"}},{"name":"c"}]}`), nil
		}}}
		told := 0
		c := connect(t, s, &client.Options{OnProblem: func(context.Context, *client.Problem) { told++ }})
		if _, err := collected(c.Tools(t.Context())); err != nil || len(c.Problems()) != 3 {
			t.Fatalf("%v, %v", c.Problems(), err)
		}
		if _, err := c.Tool(t.Context(), "a"); err != nil || len(c.Problems()) != 3 || told != 3 {
			t.Errorf("after looking for a tool: %v, %d told, %v", c.Problems(), told, err)
		}
	})
}

// The handler is told that it is told no more, also where the list of problems was read anew in between.
func TestProblemsToldAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		round := 0
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodPromptsList: func(*req) (any, error) {
			round++
			list := ""
			for i := range 99 {
				list += fmt.Sprintf(`{"name":"%d-%d","title":5},`, round, i)
			}
			return raw(`{"prompts":[` + list + `5]}`), nil
		}}}
		told, last := 0, ""
		c := connect(t, s, &client.Options{OnProblem: func(_ context.Context, p *client.Problem) { told, last = told+1, p.Why }})
		for range 15 {
			if _, err := collected(c.Prompts(t.Context())); err != nil || len(c.Problems()) != 100 {
				t.Fatalf("%d problems, %v", len(c.Problems()), err)
			}
		}
		if told != 1001 || !strings.Contains(last, "the others are not reported") {
			t.Errorf("%d told, the last: %s", told, last)
		}
	})
}

// What was wrong in a handshake is forgotten when the next one is right.
func TestProblemsOfEarlierHandshake(t *testing.T) {
	for version, method := range map[string]string{modern: mcp.MethodDiscover, newest: mcp.MethodInitialize} {
		synctest.Test(t, func(t *testing.T) {
			instructions := "5"
			s := &script{versions: []string{version}, on: map[string]func(*req) (any, error){
				method: func(*req) (any, error) {
					return raw(fmt.Sprintf(`{"protocolVersion":%q,"supportedVersions":[%q],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":%s}`, version, version, instructions)), nil
				},
				mcp.MethodToolsCall: func(*req) (any, error) { return raw(`{"content":[]}`), nil },
			}}
			c := connect(t, s, &client.Options{Versions: []string{version}, Eras: client.NewEraMemory()})
			if len(c.Problems()) != 1 {
				t.Errorf("%s: %v", version, c.Problems())
			}
			instructions = `"be kind"`
			s.last().end()
			synctest.Wait()
			if _, err := c.CallTool(t.Context(), "t", nil, nil); err != nil || len(c.Problems()) != 0 {
				t.Errorf("%s again: %v, %v", version, c.Problems(), err)
			}
		})
	}
}

// A problem that an extension reports without an effect is told like others.
func TestProblemWithoutEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, &script{}, nil)
		c.Report(t.Context(), &client.Problem{Method: "x/list", Why: "it is odd"})
		want := client.Problem{Method: "x/list", Effect: client.Changed, Why: "it is odd"}
		if got := c.Problems(); len(got) != 1 || got[0] != want || got[0].String() != "x/list: it is odd" {
			t.Errorf("%+v", got)
		}
	})
}
