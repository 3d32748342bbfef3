// Command host is a host of MCP servers in one file: a model uses their tools, and the
// person at the terminal decides. The model is a script, which calls the tool that the
// message names, so that no account is needed. See docs/guide/hosts.md.
//
//	host 'hello__greet {"name":"Ada"}' hello=hello
//	host -allow 'hello/*' 'hello__greet {"name":"Ada"}' hello=hello
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/transport/stdio"
)

func main() {
	allow := flag.String("allow", "", "call these tools without a question: SERVER/TOOL")
	flag.Parse()
	if flag.NArg() < 2 {
		log.Fatal("usage: host [-allow SERVER/TOOL] MESSAGE NAME=COMMAND...")
	}
	t := &terminal{in: bufio.NewScanner(os.Stdin), out: os.Stdout}
	if err := run(context.Background(), t, *allow, flag.Arg(0), flag.Args()[1:]); err != nil {
		log.Fatal(err)
	}
}

// run gives a message to the model, and returns once everything that came of it was shown.
func run(ctx context.Context, t *terminal, allow, message string, servers []string) (err error) {
	rules, err := rulesOf(allow)
	if err != nil {
		return err
	}
	h := host.New(&host.Options{
		Attended:  true,  // t answers questions
		Policy:    rules, // calls that need no approval
		MaxSteps:  8,
		MaxTime:   5 * time.Minute,
		MaxTokens: 100_000,
	})
	defer func() { err = errors.Join(err, h.Close()) }()
	for _, entry := range servers {
		name, command, _ := strings.Cut(entry, "=")
		words := strings.Fields(command)
		if len(words) == 0 {
			return fmt.Errorf("%q: write NAME=COMMAND", entry)
		}
		if err := h.Add(host.Server{Name: name, Key: command, Origin: command, Dialer: stdio.Command(words[0], words[1:]...)}); err != nil {
			return err
		}
	}
	s, err := h.NewSession(ctx, script{}, nil)
	if err != nil {
		return err
	}
	shown := make(chan error, 1)
	go func() { shown <- t.show(ctx, s) }()
	_, end, err := s.Ask(ctx, message)
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	if showErr := <-shown; err == nil {
		err = showErr
	}
	if err == nil {
		t.say("%s after %d calls.\n", end.Outcome, end.Calls)
	}
	return err
}

// rulesOf makes a policy of a pattern. Without a rule that matches, the person is asked.
func rulesOf(allow string) (*policy.Policy, error) {
	if allow == "" {
		return policy.New(nil)
	}
	r, err := policy.ParsePattern(policy.Allow, allow, policy.Source{File: "-allow", Text: allow})
	if err != nil {
		return nil, err
	}
	return policy.New([]policy.Rule{r})
}

// A terminal shows a session to the person, and asks them.
type terminal struct {
	in  *bufio.Scanner
	out io.Writer
}

func (t *terminal) say(format string, args ...any) { _, _ = fmt.Fprintf(t.out, format, args...) }

// show shows the records of a session until it is closed, and answers its questions.
func (t *terminal) show(ctx context.Context, s *host.Session) error {
	for r, err := range s.Watch(ctx, 0) {
		if err != nil {
			return err
		}
		switch b := r.Body.(type) {
		case *host.TextRecord:
			t.say("%s\n", host.Escape(b.Text))
		case *host.StartRecord:
			t.say("Sent, because %s.\n", host.EscapeLine(b.Why))
		case *host.NoticeRecord:
			t.say("Notice: %s\n", host.Escape(b.Text))
		case *host.QuestionRecord:
			err := s.Answer(ctx, b.ID, t.answer(&b.Question))
			if err != nil && !errors.Is(err, host.ErrSettled) { // it may have been answered elsewhere
				return err
			}
		}
	}
	return nil
}

// answer asks the person. What it prints of a question is a stranger's text.
func (t *terminal) answer(q *host.Question) host.Answer {
	t.say("%s: server %s (%s), %s\n", q.Kind, host.EscapeLine(q.Server), host.EscapeLine(q.Origin), host.EscapeLine(q.Name))
	if q.Arguments != nil {
		t.say("%s\n", host.Indent(q.Arguments))
	}
	for _, c := range q.Changes {
		t.say("%s %s: %s -> %s\n", host.EscapeLine(c.Path), c.Kind, host.EscapeLine(c.Before), host.EscapeLine(c.After))
	}
	for _, w := range q.Warnings {
		t.say("Warning: %s\n", host.EscapeLine(w))
	}
	t.say("Asked because: %s\n", host.EscapeLine(q.Why))
	for i, o := range q.Offers {
		t.say("  %d: from now on: %s\n", i+1, host.EscapeLine(o.Text))
	}
	if q.Kind == host.QuestionForm || q.Kind == host.QuestionPage || q.Kind == host.QuestionRoots {
		return host.Answer{Action: host.Dismiss, Face: "terminal"} // this program has no forms
	}
	if q.Kind == host.QuestionCalls {
		return host.Answer{Action: host.Each, Face: "terminal"} // it shows one call at a time
	}
	t.say("Do it (y, a number, or no and why)?\n")
	line := ""
	if t.in.Scan() {
		line = t.in.Text()
	}
	if offer, err := strconv.Atoi(line); err == nil {
		return host.Answer{Action: host.Approve, Offer: offer, Face: "terminal"}
	}
	if line == "y" {
		return host.Answer{Action: host.Approve, Face: "terminal"}
	}
	return host.Answer{Action: host.Refuse, Reason: strings.TrimSpace(strings.TrimPrefix(line, "no")), Face: "terminal"}
}
