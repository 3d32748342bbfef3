package host_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"time"

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

func (robot) Info() host.ModelInfo { return host.ModelInfo{Name: "robot"} }

func (robot) Generate(_ context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		last := r.Messages[len(r.Messages)-1]
		if result, ok := last.Blocks[0].Content.(*mcp.ToolResultContent); ok {
			yield(host.Piece{Text: "The tool says: " + host.ContentText(result.Content[0])}, nil)
			return
		}
		yield(host.Piece{Call: &mcp.ToolUseContent{ID: "1", Name: "bank__transfer", Input: mcp.RawValue(`{"euro":5}`)}}, nil)
	}
}

// answers reads the records of a session, and answers the questions in them.
func answers(s *host.Session) {
	ctx := context.Background()
	for r, err := range s.Watch(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		if q, ok := r.Body.(*host.QuestionRecord); ok {
			fmt.Printf("May %s of %s run with %s?\n", q.Name, q.Server, q.Arguments)
			if err := s.Answer(ctx, q.ID, host.Answer{Action: host.Approve}); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// A conversation of a person and a model, which uses tools with consent.
func Example() {
	ctx := context.Background()
	h := host.New(&host.Options{Attended: true})
	defer func() { _ = h.Close() }()
	if err := h.Add(bank()); err != nil {
		log.Fatal(err)
	}
	s, err := h.NewSession(ctx, robot{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	go answers(s)
	answer, _, err := s.Ask(ctx, "Send Ada 5 euro.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	// Output:
	// May transfer of bank run with {"euro":5}?
	// The tool says: 5 euro are sent
}

// The tools of all servers, under names that models take, and a call without
// asking anybody.
func ExampleHost_Settle() {
	h := host.New(nil)
	defer func() { _ = h.Close() }()
	if err := h.Add(bank()); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	catalog := h.Settle(ctx, time.Minute)
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

// Without rules and without a person nothing is done.
func ExampleConsentError() {
	h := host.New(nil)
	defer func() { _ = h.Close() }()
	if err := h.Add(bank()); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	s, err := h.NewSession(ctx, robot{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = s.Ask(ctx, "Send Ada 5 euro.")
	if missing, ok := errors.AsType[*host.ConsentError](err); ok {
		fmt.Println(missing.Server, missing.Name)
	}
	// Output: bank transfer
}
