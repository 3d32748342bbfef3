package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type reviewArgs struct {
	Code  string `json:"code" desc:"What to look at."`
	Lines int    `json:"lines,omitzero"`
	Hard  bool   `json:"hard,omitzero"`
}

func review() *server.PromptFeature {
	return server.Prompt("review", "Reviews code.", func(_ context.Context, a reviewArgs) (string, error) {
		return fmt.Sprintf("review %s %d %v", a.Code, a.Lines, a.Hard), nil
	})
}

func (l *line) prompt(name, arguments string) message {
	l.t.Helper()
	return l.call("prompts/get", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
}

type promptResult struct {
	Description string `json:"description"`
	Messages    []struct {
		Role    string         `json:"role"`
		Content map[string]any `json:"content"`
	} `json:"messages"`
}

// Arguments are data: typed, checked, bounded. Proves: SEC-PROMPT-1,
// SEC-PROMPT-3, FLOW-PROMPT.
func TestPromptArguments(t *testing.T) {
	o := unlimited()
	o.Limits.MaxArgument = 40
	s := newServer(o, review())
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		for arguments, want := range map[string]string{
			`{"code":"x"}`:                           "review x 0 false",
			`{"code":"x","lines":"7","hard":"true"}`: "review x 7 true",
			`{"code":"12"}`:                          "review 12 0 false", // a string stays one
			`{"code":"{{.Secret}} a\nb\t"}`:          "review {{.Secret}} a\nb\t 0 false",
		} {
			got := decode[promptResult](t, l.result(l.prompt("review", arguments)))
			if len(got.Messages) != 1 || got.Messages[0].Content["text"] != want || got.Messages[0].Role != "user" || got.Description != "Reviews code." {
				t.Errorf("%s: %+v", arguments, got)
			}
		}
		for _, arguments := range []string{
			`{}`, `{"code":"x","nosuch":"y"}`, `{"code":"x","lines":"many"}`, `{"code":"x","lines":"1}"}`, `{"code":5}`,
			`{"code":"\u0007"}`, `{"code":"\u001b[2J"}`, `{"code":"` + strings.Repeat("x", 41) + `"}`, `[]`,
		} {
			l.fails(l.prompt("review", arguments), mcp.CodeInvalidParams)
		}
		l.fails(l.prompt("nosuch", emptyBody), mcp.CodeInvalidParams)
	})
}

// Each form of result. Proves: FLOW-PROMPT.
func TestPromptMessages(t *testing.T) {
	message := mcp.PromptMessage{Role: mcp.RoleAssistant, Content: mcp.Image([]byte("x"), "image/png")}
	kept := &mcp.GetPromptResult{Messages: []mcp.PromptMessage{message}}
	s := newServer(nil,
		server.Prompt("one", "d", func(context.Context, none) (mcp.PromptMessage, error) { return message, nil }),
		server.Prompt("many", "d", func(context.Context, none) ([]mcp.PromptMessage, error) {
			return []mcp.PromptMessage{message, message}, nil
		}),
		server.Prompt("own", "d", func(context.Context, mcp.None) (*mcp.GetPromptResult, error) { return kept, nil }),
		server.Prompt("nil", "d", func(context.Context, mcp.None) (*mcp.GetPromptResult, error) { return nil, nil }),
		server.Prompt("fails", "d", func(context.Context, mcp.None) (string, error) { return "", errors.New("secret") }),
	)
	l := join(t, s, v2607)
	for name, want := range map[string]int{"one": 1, "many": 2, "own": 1} {
		got := decode[promptResult](t, l.result(l.prompt(name, emptyBody)))
		if len(got.Messages) != want || got.Messages[0].Role != "assistant" || got.Messages[0].Content["type"] != "image" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if kept.Description != "" || kept.ResultType != "" {
		t.Errorf("the author's value was changed: %+v", kept)
	}
	for _, name := range []string{"nil", "fails"} {
		if got := l.fails(l.prompt(name, emptyBody), mcp.CodeInternalError); strings.Contains(got, "secret") || !strings.Contains(got, "ref ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPromptRegistration(t *testing.T) {
	panics(t, "is no message", func() { server.Prompt("p", "", func(context.Context, none) (int, error) { return 0, nil }) })
	panics(t, "strings, numbers or booleans", func() {
		server.Prompt("p", "", func(context.Context, struct {
			A []string `json:"a"`
		},
		) (string, error) {
			return "", nil
		})
	})
	panics(t, "no argument of it", func() {
		newServer(nil, review().With(server.PromptOptions{Complete: map[string]server.Completer{"x": server.Choices()}}))
	})
	panics(t, "reserved", func() {
		newServer(nil, review().With(server.PromptOptions{Meta: mcp.Meta{"traceparent": mcp.RawValue("1")}}))
	})
}

// Proves: FLOW-PROMPT, FLOW-ELICIT-P: prompts may ask too, in every revision.
func TestPromptEachEra(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(review().With(server.PromptOptions{Title: "Review"}))
		s.Add(server.Prompt("asks", "", func(ctx context.Context, _ none) (string, error) {
			a, err := server.Elicit[sure](ctx, "Really?")
			return fmt.Sprintf("%s %v", a.Action, a.Value.Sure), err
		}))
		return s
	}
	o := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(sure{true})
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		var list []string
		for p, err := range c.Prompts(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range p.Arguments {
				list = append(list, fmt.Sprintf("%s.%s %s %v", p.Name, a.Name, a.Description, a.Required))
			}
		}
		want := []string{"review.code What to look at. true", "review.lines  false", "review.hard  false"}
		if d := cmp.Diff(want, list); d != "" {
			t.Error(d)
		}
		res, err := c.GetPrompt(t.Context(), "review", map[string]string{"code": "f()"}, nil)
		if err != nil || res.Messages[0].Content.(*mcp.TextContent).Text != "review f() 0 false" {
			t.Errorf("got %+v, %v", res, err)
		}
		res, err = c.GetPrompt(t.Context(), "asks", nil, nil)
		switch {
		case era.Version < v2506:
			if err == nil {
				t.Errorf("a client without elicitation got %+v", res)
			}
		case err != nil || res.Messages[0].Content.(*mcp.TextContent).Text != "accept true":
			t.Errorf("got %+v, %v", res, err)
		}
	})
}
