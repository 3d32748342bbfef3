package ui_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A caller is a model that calls the tool which the last message names, and then says what
// came of it.
type caller struct{}

func (caller) Info() host.ModelInfo { return host.ModelInfo{Name: "caller"} }

func (caller) Generate(_ context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		blocks := slices.DeleteFunc(slices.Clone(r.Messages[len(r.Messages)-1].Blocks), func(b host.Block) bool {
			text, ok := b.Content.(*mcp.TextContent)
			return ok && strings.HasPrefix(text.Text, "[host: ") // no request
		})
		switch c := blocks[len(blocks)-1].Content.(type) {
		case *mcp.ToolResultContent:
			yield(host.Piece{Text: "It says: " + host.ContentText(c.Content[0])}, nil)
		case *mcp.TextContent:
			name, args, found := strings.Cut(c.Text, " ")
			if !found || !strings.HasPrefix(args, "{") {
				yield(host.Piece{Text: "You said: " + c.Text}, nil)
				return
			}
			yield(host.Piece{Call: &mcp.ToolUseContent{ID: "1", Name: name, Input: mcp.RawValue(args)}}, nil)
		}
	}
}

// bank is a server with a tool, a form, a prompt and a resource.
func bank() *server.Server {
	type transfer struct {
		To   string `json:"to"`
		Euro int    `json:"euro"`
	}
	s := server.New("bank", "1.0.0", nil)
	s.Add(
		server.Tool("transfer", "Sends money.", func(_ context.Context, in transfer) (string, error) { return "sent to " + in.To, nil }),
		server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
			<-ctx.Done()
			return "", errors.New("ended")
		}),
		server.Tool("register", "Asks who you are.", func(ctx context.Context, _ mcp.None) (string, error) {
			answer, err := server.Elicit[struct {
				Name string `json:"name" minlen:"2"`
			}](ctx, "Who are you?")
			return string(answer.Action) + " " + answer.Value.Name, err
		}),
		server.Tool("pay", "Leads to a page.", func(ctx context.Context, _ mcp.None) (bool, error) {
			return server.ElicitURL(ctx, "https://pay.example/now", "Pay.", func(context.Context) (bool, error) { return true, nil })
		}),
		server.Tool("summarize", "Asks the model.", func(ctx context.Context, _ mcp.None) (string, error) {
			r, err := server.Sample(ctx, &mcp.CreateMessageParams{
				MaxTokens: 10, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("Summarize.")}}},
			})
			if err != nil {
				return "", err
			}
			return host.ContentText(r.Content[0]), nil
		}),
		server.Tool("where", "Asks for directories.", func(ctx context.Context, _ mcp.None) (string, error) {
			roots, err := server.Roots(ctx)
			var uris []string
			for _, r := range roots {
				uris = append(uris, r.URI)
			}
			return strings.Join(uris, " "), err
		}),
		server.Resource("bank://rates", "rates", func(context.Context) (string, error) { return "three percent", nil }),
		server.Prompt("advise", "Asks for advice.", func(_ context.Context, in struct {
			Topic string `json:"topic"`
		},
		) (string, error) {
			return "Advise me on " + in.Topic + ".", nil
		}).With(server.PromptOptions{Complete: map[string]server.Completer{"topic": server.Choices("loans", "shares")}}),
	)
	return s
}

// sitAtHost lets a person sit down at a Line before a real host.
func sitAtHost(t *testing.T) (*person, *host.Host, *host.Session) {
	t.Helper()
	h := host.New(&host.Options{Attended: true, SampleModels: []host.Model{caller{}}, Roots: []mcp.Root{{URI: "file:///a"}, {URI: "file:///b"}}})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.Add(host.Server{Name: "bank", Dialer: mem.New(bank(), nil), Origin: "test"}); err != nil {
		t.Fatal(err)
	}
	s, err := h.NewSession(t.Context(), caller{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Settle(t.Context(), patience)
	return sit(t, ui.OfHost(h), ui.OfSession(s, nil), ui.LineOptions{Discard: func() {}}), h, s
}

// What servers ask through a real host: a form, a page, the model, directories; and what
// the person takes from them: a prompt, a resource.
//
// Proves: FLOW-ELICIT-H, FLOW-SAMPLE-H, FLOW-ROOTS, FLOW-PROMPT, FLOW-RESOURCE.
func TestLineServersAsk(t *testing.T) {
	t.Parallel()
	p, _, _ := sitAtHost(t)
	calls := func(tool string) {
		t.Helper()
		p.types("bank__" + tool + " {}\n")
		p.sees("The model wants to call " + tool)
		p.sees("Your answer")
		p.types("y\n")
	}
	calls("register")
	p.sees("Server bank asks you for something.")
	p.sees("Your answer")
	p.types("y\n")
	p.sees("Your value for name")
	p.types("A\n")
	p.sees("at least 2 characters")
	p.types("Ada\n")
	p.sees("Send it?")
	p.types("y\n")
	p.sees("It says: accept Ada")
	p.sees("Done: ")
	calls("pay")
	p.sees("the page is at: pay.example")
	p.sees("Your answer")
	p.types("n\n")
	p.sees("It says: false")
	p.sees("Done: ")
	calls("summarize")
	p.sees("Server bank wants to use the model.")
	p.sees("Your answer")
	p.types("e /messages/0/content/text=Be brief.\n")
	p.sees("yes, as you edited it")
	p.types("y\n")
	p.sees("The model's answer would go to server bank.")
	p.sees("| You said: Be brief.")
	p.sees("Your answer")
	p.types("e /content/text=Nothing.\n")
	p.sees(`"text": "Nothing."`)
	p.types("y\n")
	p.sees("It says: Nothing.")
	p.sees("Done: ")
	calls("where")
	p.sees("directory 2: file:///b")
	p.sees("Your answer")
	p.types("2\n")
	p.sees("It says: file:///b")
	p.sees("Done: ")
	p.types("/bank:advise\n")
	p.sees("Your value for topic")
	p.types("?s\n")
	p.sees("value 1 (untrusted): shares")
	p.types("1\n")
	p.sees("| Advise me on shares.")
	p.sees("Done: ")
	p.types("Tell me about @bank:bank://rates please\n")
	p.sees("three percent")
	p.sees("You said: Tell me about")
	p.sees("Done: ")
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
}

// A real host behind the line mode: what the person edits is what runs, a grant is used and
// taken back, a reason reaches the model, a call is cancelled.
//
// Proves: FLOW-TOOL-H, SEC-TOOL-5.
func TestLineOnHost(t *testing.T) {
	t.Parallel()
	p, h, s := sitAtHost(t)
	p.types(`bank__transfer {"to":"ada","euro":5}` + "\n")
	p.sees("Your answer (y, 1, 2, 3, e, n):")
	p.types("e to=eve\n")
	p.sees("yes, as you edited it")
	p.types("y\n")
	p.sees("sent now with your arguments")
	p.sees("It says: sent to eve")
	p.sees("Done: ")
	p.types(`bank__transfer {"to":"bob","euro":5}` + "\n")
	p.sees(`"to": "bob"`)
	p.sees("Your answer")
	p.types("2\n")
	p.sees("From now on allowed")
	p.sees("It says: sent to bob")
	p.sees("Done: ")
	p.types(`bank__transfer {"to":"dan","euro":5}` + "\n")
	p.sees("It says: sent to dan")
	p.sees("Done: ")
	grants, err := h.Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("%+v, %v", grants, err)
	}
	p.types("/revoke " + grants[0].ID + "\n")
	p.sees("is taken back")
	p.types(`bank__transfer {"to":"fay","euro":5}` + "\n")
	p.sees(`"to": "fay"`)
	p.sees("Your answer")
	p.types("n not fay\n")
	p.sees("It says: The call was refused. Do not repeat it. The reason: not fay")
	p.sees("Done: ")
	p.types(`bank__wait {}` + "\n")
	p.sees("The model wants to call wait of server bank.")
	p.sees("Your answer")
	p.types("y\n")
	p.sees("wait of server bank: sent now")
	calls := s.Snapshot().Records
	p.types("/cancel " + lastCall(calls) + "\n")
	p.sees("cancelled: the person cancelled the call")
	p.sees("It says: the person cancelled the call")
	p.sees("Done: ")
	p.types("/compact\n")
	p.sees("The model is given a summary")
	p.types("/fork 1\n")
	p.sees("a fork of " + s.ID() + " after record 1")
	p.types("Hello again.\n")
	p.sees("You said: Hello again.")
	p.sees("Done: ")
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
}

// A person whose /compact fails is told why, and that nothing was lost.
func TestLineWithoutSummary(t *testing.T) {
	p, _, s := sitAtHost(t)
	p.types("Hello.\n")
	p.sees("Done: ")
	if err := s.SetModel(namedModel("mute")); err != nil {
		t.Fatal(err)
	}
	p.types("/compact\n")
	p.sees("There is no summary: summarizing the conversation: model mute: it wrote no text; the conversation is unchanged: try again, or use another model.")
	if err := p.leaves(); err != nil {
		t.Error(err)
	}
}

// lastCall is the id of the last call in a log.
func lastCall(records []host.Record) string {
	id := ""
	for i := range records {
		if c, ok := records[i].Body.(*host.CallRecord); ok {
			id = c.ID
		}
	}
	return id
}
