package client

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
)

// maxProblems bounds the problems that are kept and reported for one server.
const maxProblems = 1000

// A Problem is a part of an answer that does not follow the specification. The rest of the
// answer is used. Its texts quote the server: they are bounded and untrusted.
type Problem struct {
	// Method is the request, such as tools/list.
	Method string `json:"method"`
	// Subject is the name or URI of the item of a list, or the tool, resource or prompt that was asked
	// for; empty where there is none.
	Subject string `json:"subject,omitempty"`
	// Place is a JSON pointer (RFC 6901) into the result, such as /tools/3/title.
	Place string `json:"place,omitempty"`
	// Effect says what came of it.
	Effect Effect `json:"effect"`
	// Why says what is wrong.
	Why string `json:"why"`
}

// An Effect is what came of a [Problem].
type Effect string

const (
	// Omitted means that the item is not in its list.
	Omitted Effect = "omitted"
	// ArgumentsUnchecked means that the arguments of the tool are not compared with its input schema.
	ArgumentsUnchecked Effect = "arguments unchecked"
	// ResultsUnchecked means that the results of the tool are not compared with its output schema.
	ResultsUnchecked Effect = "results unchecked"
	// Incomplete means that the list may lack items, or that more is wrong than is reported.
	Incomplete Effect = "incomplete"
	// Changed means that the part was left out or replaced, and the rest is as the server sent it.
	Changed Effect = "changed"
)

// String is the problem in one line.
func (p *Problem) String() string {
	text := p.Method
	if p.Subject != "" {
		text += fmt.Sprintf(" %q", p.Subject)
	}
	if p.Place != "" {
		text += ": " + p.Place
	}
	text += ": " + p.Why
	if p.Effect != Changed {
		text += " (" + string(p.Effect) + ")"
	}
	return text
}

// problems holds what was wrong in the server's answers.
type problems struct {
	mu       sync.Mutex
	list     []Problem
	reported map[Problem]bool // since the client was made
}

// Problems returns what was wrong in the server's answers, in order and each once. Reading a list
// again to its end, and connecting again, replaces what was found there before. After 1,000
// problems one more says that there are others.
func (c *Client) Problems() []Problem {
	c.problems.mu.Lock()
	defer c.problems.mu.Unlock()
	return append([]Problem(nil), c.problems.list...)
}

// forget drops and returns what was found in answers to a method, before a list is read anew.
func (b *problems) forget(method string) (dropped []Problem) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.list[:0]
	for _, p := range b.list {
		if p.Method != method {
			kept = append(kept, p)
		} else {
			dropped = append(dropped, p)
		}
	}
	b.list = kept
	return dropped
}

// restore keeps again what was dropped, for a list that was not read to its end.
func (b *problems) restore(dropped []Problem) {
	for _, p := range dropped {
		b.add(&p)
	}
}

// add keeps a problem, and says whether it is new and has to be reported.
func (b *problems) add(p *Problem) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) > maxProblems {
		return false
	}
	for i := range b.list {
		if b.list[i] == *p {
			return false
		}
	}
	others := Problem{Method: p.Method, Effect: Incomplete, Why: fmt.Sprintf("more than %d parts of answers are wrong; the others are not reported", maxProblems)}
	if len(b.list) == maxProblems {
		*p = others
	}
	b.list = append(b.list, *p)
	if b.reported[*p] || len(b.reported) > maxProblems {
		return false
	}
	if len(b.reported) == maxProblems {
		*p = others
	}
	if b.reported == nil {
		b.reported = make(map[Problem]bool)
	}
	b.reported[*p] = true
	return true
}

// Report adds a problem that an extension found in an answer. If it is new, Report passes it to the
// log and to Options.OnProblem. Its texts are shortened to 300 bytes, and its default effect is Changed.
func (c *Client) Report(ctx context.Context, p *Problem) {
	p.Effect = cmp.Or(p.Effect, Changed)
	p.Subject, p.Place, p.Why = brief(p.Subject), brief(p.Place), brief(p.Why)
	if !c.problems.add(p) {
		return
	}
	c.log.Warn("a part of an answer is wrong", "method", p.Method, "subject", p.Subject, "place", p.Place, "effect", string(p.Effect), "why", p.Why)
	if f := c.opts.OnProblem; f != nil {
		_ = c.guard("OnProblem", func() { f(ctx, p) }) // the error is logged
	}
}

// reportFlaws reports what was wrong with an answer as a message, if there is one.
func (c *Client) reportFlaws(ctx context.Context, method, subject string, in *jsonrpc.Incoming) {
	if in == nil {
		return
	}
	for _, flaw := range in.Flaws() {
		c.Report(ctx, &Problem{Method: method, Subject: subject, Effect: Changed, Why: flaw})
	}
}

// brief bounds a text of the server's.
func brief(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
