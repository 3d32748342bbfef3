package host_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// bank stands for a server program: usually the dialer would be
// stdio.Command("./bank") or streamable.URL("https://bank.example/mcp").
func bank() host.Server {
	type transfer struct {
		Euro int `json:"euro"`
	}
	s := server.New("bank", "1.0.0", nil)
	s.Add(
		server.Tool("balance", "Tells the balance.", func(context.Context, mcp.None) (int, error) { return 70, nil }),
		server.Tool("transfer", "Sends money.", func(_ context.Context, in transfer) (string, error) {
			return fmt.Sprintf("%d euro are sent", in.Euro), nil
		}),
	)
	return host.Server{Name: "bank", Dialer: mem.New(s, nil)}
}

// A robot stands for a language model: it calls a tool, and then says what came
// of it.
type robot struct{}

func (robot) Name() string  { return "robot" }
func (robot) Offline() bool { return false }

func (robot) Generate(_ context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		last := r.Messages[len(r.Messages)-1]
		if result, ok := last.Content[0].(*mcp.ToolResultContent); ok {
			yield(host.Piece{Text: "The tool says: " + host.ContentText(result.Content[0])}, nil)
			return
		}
		yield(host.Piece{Call: &mcp.ToolUseContent{ID: "1", Name: "bank__transfer", Input: mcp.RawValue(`{"euro":5}`)}}, nil)
	}
}

// A person is asked before a tool runs.
type asked struct{}

func (asked) Ask(_ context.Context, q *host.Question) (host.Decision, error) {
	fmt.Printf("May %s of %s run with %s?\n", q.Name, q.Server, q.Arguments)
	return host.Decision{Grant: host.Once}, nil
}

// A conversation of a person and a model, which uses tools with consent.
func Example() {
	h := host.New(&host.Options{Consent: asked{}})
	defer func() { _ = h.Close() }()
	if err := h.Add(bank()); err != nil {
		log.Fatal(err)
	}
	answer, err := h.Conversation(robot{}).Ask(context.Background(), "Send Ada 5 euro.", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text)
	// Output:
	// May transfer of bank run with {"euro":5}?
	// The tool says: 5 euro are sent
}

// The tools of all servers, under names that models take, and a call without
// asking anybody.
func ExampleHost_Catalog() {
	h := host.New(nil)
	defer func() { _ = h.Close() }()
	if err := h.Add(bank()); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	catalog, err := h.Catalog(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range catalog.Tools {
		fmt.Println(t.ModelName)
	}
	tool, _ := catalog.Named("bank__balance")
	c, err := h.Client(ctx, tool.Server)
	if err != nil {
		log.Fatal(err)
	}
	result, err := c.CallTool(ctx, tool.Def.Name, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(host.ContentText(result.Content[0]))
	// Output:
	// bank__balance
	// bank__transfer
	// 70
}

// Rules say what may run without asking, and what may not; each verdict can be
// explained.
func ExamplePolicy_Decide() {
	var rules []host.Rule
	for _, r := range []struct {
		effect  host.Effect
		pattern string
	}{{host.Allow, "bank/balance"}, {host.Deny, "bank/trans*"}} {
		rule, err := host.ParseRule(r.effect, r.pattern, "policy.txt")
		if err != nil {
			log.Fatal(err)
		}
		rules = append(rules, rule)
	}
	p := &host.Policy{Rules: rules}
	for _, name := range []string{"balance", "transfer", "loan"} {
		v := p.Decide(host.KindTool, "bank", name)
		fmt.Println(name, v.Effect, "-", v.Why())
	}
	// Output:
	// balance allow - rule: allow bank/balance, from policy.txt
	// transfer deny - rule: deny bank/trans*, from policy.txt
	// loan ask - no rule matches
}

// Without rules and without a person nothing is done.
func ExampleConsentError() {
	h := host.New(nil)
	defer func() { _ = h.Close() }()
	if err := h.Add(bank()); err != nil {
		log.Fatal(err)
	}
	_, err := h.Conversation(robot{}).Ask(context.Background(), "Send Ada 5 euro.", nil)
	if missing, ok := errors.AsType[*host.ConsentError](err); ok {
		fmt.Println(missing.Server, missing.Name)
	}
	// Output: bank transfer
}
