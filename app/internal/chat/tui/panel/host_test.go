package panel_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
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

// bank is a server that asks.
func bank() *server.Server {
	type transfer struct {
		To   string `json:"to"`
		Euro int    `json:"euro"`
	}
	s := server.New("bank", "1.0.0", nil)
	s.Add(
		server.Tool("transfer", "Sends money.", func(_ context.Context, in transfer) (string, error) { return "sent to " + in.To, nil }),
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
	)
	return s
}

// A step is a question of a kind, and what is pressed in its panel.
type step struct {
	kind host.QuestionKind
	keys []string
	// rejected is what the session says of that answer; again is pressed after that.
	rejected string
	again    []string
}

// Answers that panels give count in a session of a real host: what was shown and edited is
// what runs, byte for byte, and the log has the answer.
func TestHost(t *testing.T) {
	t.Parallel()
	call := step{kind: host.QuestionCall, keys: ks("y")}
	for name, test := range map[string]struct {
		request string
		steps   []step
		want    string // what the model says at the end
		sent    string // the arguments that ran
	}{
		"edited": {
			`bank__transfer {"to":"ada","euro":5}`,
			[]step{{kind: host.QuestionCall, keys: keys(ks("e 1 ctrl+u"), chars("eve"), ks("enter b y"))}},
			"It says: sent to eve", `{"to":"eve","euro":5}`,
		},
		"denied": {
			`bank__transfer {"to":"ada","euro":5}`,
			[]step{{
				kind: host.QuestionCall, keys: keys(ks("e 2 ctrl+u"), chars("500"), ks("enter b y")),
				rejected: "the edited arguments are denied", again: ks("u y"),
			}},
			"It says: sent to ada", `{"to":"ada","euro":5}`,
		},
		"refused": {
			`bank__transfer {"to":"ada","euro":5}`,
			[]step{{kind: host.QuestionCall, keys: keys(ks("n"), chars("too much"), ks("enter"))}},
			"It says: The call was refused. Do not repeat it. The reason: too much", "",
		},
		"remembered": {`bank__transfer {"to":"ada","euro":5}`, []step{{kind: host.QuestionCall, keys: ks("r h 2")}}, "It says: sent to ada", `{"to":"ada","euro":5}`},
		"form": {"bank__register {}", []step{call, {
			kind: host.QuestionForm, keys: keys(ks("y"), chars("Ada"), ks("tab enter y")),
		}}, "It says: accept Ada", "{}"},
		"form declined": {"bank__register {}", []step{call, {kind: host.QuestionForm, keys: ks("n")}}, "It says: decline ", "{}"},
		"page":          {"bank__pay {}", []step{call, {kind: host.QuestionPage, keys: ks("n")}}, "It says: false", "{}"},
		"sampling": {"bank__summarize {}", []step{
			call,
			{kind: host.QuestionSample, keys: keys(ks("e 1"), ks("i"), chars("/messages/0/content/text=Be brief."), ks("alt+left i"), chars("/messages/0/content/text=Be brief."), ks("enter b y"))},
			{kind: host.QuestionSampled, keys: keys(ks("e i"), chars("/content/text=Nothing."), ks("enter b y"))},
		}, "It says: Nothing.", "{}"},
		"roots": {"bank__where {}", []step{call, {kind: host.QuestionRoots, keys: ks("down down space y")}}, "It says: file:///b", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := converse(t, test.request, test.steps)
			var said, sent string
			for _, r := range records {
				switch b := r.Body.(type) {
				case *host.TextRecord:
					said += b.Text
				case *host.StartRecord:
					sent = string(b.Arguments)
				}
			}
			if said != test.want {
				t.Errorf("the model said %q, want %q", said, test.want)
			}
			if sent != test.sent {
				t.Errorf("what ran: %s, want %s", sent, test.sent)
			}
		})
	}
}

// converse sends a request to a host and answers what is asked at panels.
func converse(t *testing.T, request string, steps []step) []host.Record {
	t.Helper()
	rules, err := policy.New([]policy.Rule{{
		Effect: policy.Deny, Server: "bank", Name: "transfer",
		Where: []policy.Predicate{{Pointer: "/euro", Op: policy.OpRange, Min: mcp.RawValue("100")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := host.New(&host.Options{Attended: true, Policy: rules, SampleModels: []host.Model{caller{}}, Roots: []mcp.Root{{URI: "file:///a"}, {URI: "file:///b"}}})
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
	if err := s.Send(t.Context(), host.Input{Text: request}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var want *host.Answer
	for r, err := range s.Watch(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := r.Body.(type) {
		case *host.QuestionRecord:
			if len(steps) == 0 || steps[0].kind != b.Question.Kind {
				t.Fatalf("asked for a %s, the steps left: %+v", b.Question.Kind, steps)
			}
			want = answerStep(t, s, &b.Question, &steps[0])
			steps = steps[1:]
		case *host.AnswerRecord:
			if diff := cmp.Diff(*want, b.Answer); diff != "" {
				t.Errorf("the log has another answer: %s", diff)
			}
		case *host.RunEndRecord:
			if len(steps) > 0 {
				t.Errorf("not asked: %+v", steps)
			}
			return s.Snapshot().Records
		}
	}
	t.Fatal("the session ended")
	return nil
}

// answerStep answers a question at its panel.
func answerStep(t *testing.T, s *host.Session, q *host.Question, st *step) *host.Answer {
	t.Helper()
	p := sit(t, q)
	out := p.press(st.keys...)
	if out.Answer == nil {
		t.Fatalf("no answer:\n%s", p.look())
	}
	err := s.Answer(t.Context(), q.ID, *out.Answer)
	if st.rejected != "" {
		if err == nil || !strings.Contains(err.Error(), st.rejected) {
			t.Fatalf("the session says %v, want %s", err, st.rejected)
		}
		p.panel.Reject(err)
		if shown := p.look(); !strings.Contains(shown, "That answer does not count: ") {
			t.Errorf("it shows:\n%s", shown)
		}
		out = p.press(st.again...)
		err = s.Answer(t.Context(), q.ID, *out.Answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Answer
}
