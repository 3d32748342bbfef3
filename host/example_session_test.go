package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

// trusting is a policy that allows all tools of the bank.
func trusting() *policy.Policy {
	p, err := policy.New([]policy.Rule{{Effect: policy.Allow, Server: "bank"}})
	if err != nil {
		log.Fatal(err)
	}
	return p
}

// A session that another process began, from its store, and a fork of it.
func ExampleHost_OpenSession() {
	ctx := context.Background()
	store := new(host.Memory) // one that outlives the process in a real program
	first := host.New(&host.Options{Store: store, Policy: trusting()})
	if err := first.Add(bank()); err != nil {
		log.Fatal(err)
	}
	s, err := first.NewSession(ctx, robot{}, &host.SessionOptions{ID: "monday"})
	if err != nil {
		log.Fatal(err)
	}
	if _, _, err := s.Ask(ctx, "Send Ada 5 euro."); err != nil {
		log.Fatal(err)
	}
	if err := first.Close(); err != nil {
		log.Fatal(err)
	}

	h := host.New(&host.Options{Store: store})
	defer func() { _ = h.Close() }()
	s, err = h.OpenSession(ctx, "monday", robot{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range s.Snapshot().Records {
		fmt.Println(r.N, r.Body.Kind())
	}
	fork, err := s.Fork(ctx, 10, &host.SessionOptions{Title: "another way"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("a fork of", fork.Info().Parent, "after record", fork.Info().At)
	// Output:
	// 1 user
	// 2 turn
	// 3 call
	// 4 turn-end
	// 5 start
	// 6 result
	// 7 turn
	// 8 text
	// 9 turn-end
	// 10 end
	// a fork of monday after record 10
}

// A call that a rule allows is asked about once the conversation holds what must
// not meet.
func ExampleServer_labels() {
	ctx := context.Background()
	h := host.New(&host.Options{Attended: true, Policy: trusting()})
	defer func() { _ = h.Close() }()
	s := bank()
	s.Labels = []policy.Label{policy.LabelPrivate, policy.LabelUntrusted}
	s.ToolLabels = []host.ToolLabels{{Tools: "transfer", Labels: []policy.Label{policy.LabelSends}}}
	if err := h.Add(s); err != nil {
		log.Fatal(err)
	}
	session, err := h.NewSession(ctx, robot{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	go answers(session)
	for range 2 { // the first call labels the conversation
		if _, _, err := session.Ask(ctx, "Send Ada 5 euro."); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// May transfer of bank run with {"euro":5}?
}

// What a grant lets through, until it is taken back.
func ExampleHost_Revoke() {
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
	go func() {
		for r, err := range s.Watch(ctx, 0) {
			if err != nil {
				log.Fatal(err)
			}
			if q, ok := r.Body.(*host.QuestionRecord); ok {
				narrowest := q.Offers[0]
				fmt.Println("from now on:", narrowest.Text)
				if err := s.Answer(ctx, q.ID, host.Answer{Action: host.Approve, Offer: 1}); err != nil {
					log.Fatal(err)
				}
			}
		}
	}()
	for range 2 { // one question for both
		if _, _, err := s.Ask(ctx, "Send Ada 5 euro."); err != nil {
			log.Fatal(err)
		}
	}
	grants, err := h.Grants(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range grants {
		if err := h.Revoke(ctx, g.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(len(grants), "taken back")
	// Output:
	// from now on: this tool with exactly these arguments
	// 1 taken back
}
