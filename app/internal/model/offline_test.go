package model_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func tools() []host.ToolSpec {
	spec := func(name, description, schema string) host.ToolSpec {
		return host.ToolSpec{Name: name, Description: description, InputSchema: mcp.RawValue(schema)}
	}
	return []host.ToolSpec{
		spec("s__add", "Adds two numbers.", `{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["a","b"]}`),
		spec("s__echo", "Sends the message back.", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`),
		spec("s__createIssue", "Opens an issue in a repository.", `{"type":"object","properties":{
			"repo":{"type":"string"},"title":{"type":"string"},"urgent":{"type":"boolean"},"count":{"type":["null","integer"]},
			"labels":{"type":"array","items":{"type":"string"}},"kind":{"type":"string","enum":["bug","feature"]},"meta":{"type":"object"}},
			"required":["repo","title"]}`),
		spec("s__list_files", "Lists files.", `{"type":"object"}`),
		spec("s__open_page", "Opens a page.", `{"type":"object","properties":{"url":{"type":"string","format":"uri"}},"required":["url"]}`),
		spec("s__broken", "Has a schema that is none.", `7`),
	}
}

func user(text string) host.Message {
	return message(mcp.RoleUser, mcp.Text(text))
}

func message(role mcp.Role, c mcp.Content) host.Message {
	return host.Message{Role: role, Blocks: []host.Block{{Content: c}}}
}

// generate takes one turn.
func generate(t *testing.T, r *host.Request) host.Piece {
	t.Helper()
	var got host.Piece
	n := 0
	for piece, err := range (model.Offline{}).Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		got = piece
		n++
	}
	if n != 1 {
		t.Fatalf("%d pieces", n)
	}
	return got
}

// Proves: PART-LLM. The planner finds the tool and its arguments.
func TestOfflineCalls(t *testing.T) {
	for request, want := range map[string]string{
		"add 2 and 3":                      `s__add {"a":2,"b":3}`,
		"What is the sum of -1.5 and 2e3?": `s__add {"a":-1.5,"b":2000}`,
		"add b=1 a=2":                      `s__add {"a":2,"b":1}`,
		"add 7, 8":                         `s__add {"a":7,"b":8}`,
		"echo message=hello":               `s__echo {"message":"hello"}`,
		`echo "hello; then world"`:         `s__echo {"message":"hello; then world"}`,
		"echo hello there world":           `s__echo {"message":"hello there world"}`,
		"please say 'hi'":                  `s__echo {"message":"hi"}`,
		`echo message="a \u202e"`:          `s__echo {"message":"a \\u202e"}`,
		"s/echo hello":                     `s__echo {"message":"hello"}`,
		"list the files":                   `s__list_files {}`,
		"open page https://example.com/x":  `s__open_page {"url":"https://example.com/x"}`,
		`create an issue repo=a/b title="It broke" labels=x,y kind=BUG urgent=yes count=3 meta={"k":["v; w"]}`: `s__createIssue {"repo":"a/b","title":"It broke","count":3,"kind":"bug","labels":["x","y"],"meta":{"k":["v; w"]},"urgent":true}`,
		"create urgent bug issue 'a/b' 'It broke' 4":                                                           `s__createIssue {"repo":"a/b","title":"It broke","count":4,"kind":"bug","urgent":true}`,
	} {
		piece := generate(t, &host.Request{Messages: []host.Message{user(request)}, Tools: tools()})
		if piece.Call == nil {
			t.Errorf("%q: no call, but %q", request, piece.Text)
			continue
		}
		if got := piece.Call.Name + " " + string(piece.Call.Input); got != want {
			t.Errorf("%q:\n got %s\nwant %s", request, got, want)
		}
	}
}

// What cannot be planned is said, with what to do.
func TestOfflineDeclines(t *testing.T) {
	for request, want := range map[string]string{
		"sing a song":   "finds no tool for that",
		"add 2":         "finds no value for b",
		"":              "Nothing was asked",
		"  ;; then ;":   "Nothing was asked",
		"create issue":  "finds no value for repo, title",
		"add a=x b=y":   "finds no value for a, b",
		"42 \x1b[31m !": "finds no tool for that",
		"t/echo hello":  "knows no tool t/echo. Its server may still be starting",
	} {
		piece := generate(t, &host.Request{Messages: []host.Message{user(request)}, Tools: tools()})
		if piece.Call != nil || !strings.Contains(piece.Text, want) {
			t.Errorf("%q: %+v, want %q", request, piece, want)
		}
	}
	piece := generate(t, &host.Request{Messages: []host.Message{user("think")}})
	if want := "The offline model cannot think. It was asked: think"; piece.Text != want {
		t.Errorf("without tools: %q, want %q", piece.Text, want)
	}
}

// Steps are taken one after the other; the answer is all their results.
func TestOfflineSteps(t *testing.T) {
	r := &host.Request{Messages: []host.Message{user("add 1 and 2; then echo hi")}, Tools: tools()}
	var calls []string
	for range 2 {
		piece := generate(t, r)
		if piece.Call == nil {
			t.Fatalf("no call, but %q", piece.Text)
		}
		calls = append(calls, piece.Call.ID+" "+piece.Call.Name)
		r.Messages = append(r.Messages,
			message(mcp.RoleAssistant, piece.Call),
			message(mcp.RoleUser, &mcp.ToolResultContent{ToolUseID: piece.Call.ID, Content: mcp.Contents{mcp.Text("result of " + piece.Call.Name)}}))
	}
	if diff := cmp.Diff([]string{"call-1 s__add", "call-2 s__echo"}, calls); diff != "" {
		t.Error(diff)
	}
	if got, want := generate(t, r).Text, "result of s__add\nresult of s__echo"; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	// A new request begins anew, with ids of its own.
	r.Messages = append(r.Messages, user("echo again"))
	if piece := generate(t, r); piece.Call == nil || piece.Call.ID != "call-3" {
		t.Errorf("the next request: %+v", piece)
	}
}

// A failure ends the plan.
func TestOfflineStopsAtFailure(t *testing.T) {
	r := &host.Request{Tools: tools(), Messages: []host.Message{
		user("add 1 and 2; then echo hi"),
		message(mcp.RoleUser, &mcp.ToolResultContent{ToolUseID: "call-1", IsError: true, Content: mcp.Contents{mcp.Text("no")}}),
	}}
	if piece := generate(t, r); piece.Call != nil || piece.Text != "no" {
		t.Errorf("got %+v", piece)
	}
}

func TestOfflineCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for piece, err := range (model.Offline{}).Generate(ctx, &host.Request{Messages: []host.Message{user("add 1 and 2")}, Tools: tools()}) {
		if !errors.Is(err, context.Canceled) || piece.Call != nil {
			t.Errorf("got %+v, %v", piece, err)
		}
	}
}

// Whatever is asked, the arguments are JSON.
func FuzzOffline(f *testing.F) {
	f.Add(`create issue "a" 'b' x={"`)
	f.Add("echo message=\xff\xfe ;then; =\"")
	f.Add("add 1e999 NaN 0x10 Inf")
	f.Fuzz(func(t *testing.T, request string) {
		piece := generate(t, &host.Request{Messages: []host.Message{user(request)}, Tools: tools()})
		if piece.Call != nil && model.CheckObject(piece.Call.Input) != nil {
			t.Errorf("%q gives %s", request, piece.Call.Input)
		}
	})
}

func TestArguments(t *testing.T) {
	schema := tools()[2].InputSchema
	for _, tt := range []struct {
		pairs      []model.Pair
		want, says string
	}{
		{[]model.Pair{{"labels", "a"}, {"count", "5"}, {"labels", "b,c"}}, `{"labels":["a","b,c"],"count":5}`, ""},
		{[]model.Pair{{"count", "5"}, {"count", "6"}}, "", `argument "count" is given twice, and is no array`},
		{[]model.Pair{{"other", "5"}, {"other", "6"}}, "", `argument "other" is given twice`},
	} {
		got, err := model.Arguments(schema, tt.pairs)
		if string(got) != tt.want || err == nil != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: %s, %v, want %s%s", tt.pairs, got, err, tt.want, tt.says)
		}
	}
	got, err := model.Arguments(schema, []model.Pair{{"repo", "5"}, {"count", "5"}, {"labels", `["a,b"]`}, {"other", "true"}, {"more", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"repo":"5","count":5,"labels":["a,b"],"other":true,"more":"x"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []model.Pair{{"count", "x"}, {"urgent", "perhaps"}, {"kind", "joke"}, {"meta", "[]"}, {"labels", "["}} {
		if got, err := model.Arguments(schema, []model.Pair{bad}); err == nil {
			t.Errorf("%+v gives %s", bad, got)
		}
	}
	if diff := cmp.Diff([]string{"a: number", "b: number"}, model.Signature(tools()[0].InputSchema)); diff != "" {
		t.Error(diff)
	}
}
