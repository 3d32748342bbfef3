package tester

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// A question that was withdrawn while it waited for the one before, or whose method has ended, as with
// Ctrl-C, is neither asked nor noted, and takes no --answer.
func TestInspectAsksNothingThatIsOver(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	over, end := context.WithCancelCause(t.Context())
	end(gone)
	for name, lives := range map[string][2]context.Context{"withdrawn": {t.Context(), over}, "ended": {over, t.Context()}} {
		for _, attended := range []bool{true, false} {
			var said bytes.Buffer
			p := &inspector{connect.New(&kit.Console{Streams: &kit.Streams{In: strings.NewReader("y\ny\n"), Err: &said}})}
			answers := []*givenAnswer{{number: 1, text: wordDecline}}
			q := &questionnaire{p: p, server: &inspect.Target{Name: "s"}, method: lives[0], attended: attended, answers: answers}
			params := &mcp.ElicitParams{Message: "Why?", RequestedSchema: &mcp.ElicitSchema{}}
			_, form := q.elicit(lives[1], &client.ElicitRequest{Params: params})
			_, page := q.visit(lives[1], &client.ElicitRequest{Params: params, Page: &client.ElicitPage{URL: "https://example.com"}})
			_, sample := q.sample(lives[1], &mcp.CreateMessageParams{})
			for _, err := range []error{form, page, sample} {
				if !errors.Is(err, gone) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if said.Len() > 0 || answers[0].used || q.asked > 0 {
				t.Errorf("%s: asked %d times, answered %t, said %q", name, q.asked, answers[0].used, &said)
			}
		}
	}
}

// The example of an answer has values that fit the types of fields, also of those that are asked for as JSON.
func TestExampleOfForm(t *testing.T) {
	t.Parallel()
	form := new(mcp.ElicitSchema)
	if err := form.Properties.UnmarshalJSON([]byte(`{"s":{"type":"string"},"n":{"type":"integer"},"o":{"type":"object","properties":{}},"a":{"type":"array","items":{"type":"string"}},` +
		`"i":{"type":"integer","enum":[1]},"two":{"type":["string","null"]},"any":true}`)); err != nil {
		t.Fatal(err)
	}
	const want = `'{"s": "…", "n": 1, "o": {}, "a": [], "i": 1, "two": "…", "any": "…"}'`
	if got := exampleOf(form); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
