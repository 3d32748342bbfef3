package main

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

func TestPrompts(t *testing.T) {
	c, ctx := mcptest.Client(t, newServer()), t.Context()
	res, err := c.GetPrompt(ctx, "review", map[string]string{"language": "go", "focus": "names"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Messages[0].Content.(*mcp.TextContent).Text; text != "Review the go code that follows. Look at names most." {
		t.Error(text)
	}
	res, err = c.GetPrompt(ctx, "explain", map[string]string{"project": "parley", "number": "12"}, nil)
	if err != nil || len(res.Messages) != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if e, ok := res.Messages[1].Content.(*mcp.EmbeddedResource); !ok || e.Resource.URI != "issue:///parley/12" {
		t.Errorf("%+v", res.Messages[1])
	}
	for _, test := range []struct {
		args map[string]string
		want string
	}{
		{nil, `member "language" is required`},
		{map[string]string{"language": "cobol"}, "/language"},
	} {
		if _, err := c.GetPrompt(ctx, "review", test.args, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test.args, err)
		}
	}
}

func TestCompletion(t *testing.T) {
	c := mcptest.Client(t, newServer())
	for _, test := range []struct {
		prompt, argument, value string
		sofar                   map[string]string
		want                    string
	}{
		{"review", "language", "", nil, "go python rust"},
		{"review", "focus", "s", nil, "speed"},
		{"explain", "number", "", map[string]string{"project": "other"}, "7"},
		{"explain", "number", "1", map[string]string{"project": "parley"}, "1 12"},
	} {
		p := &mcp.CompleteParams{Ref: mcp.PromptRef(test.prompt), Argument: mcp.CompletionArgument{Name: test.argument, Value: test.value}}
		if test.sofar != nil {
			p.Context = &mcp.CompletionContext{Arguments: test.sofar}
		}
		found, err := c.Complete(t.Context(), p)
		if err != nil || strings.Join(found.Values, " ") != test.want {
			t.Errorf("%+v: %+v, %v", test, found, err)
		}
	}
}
