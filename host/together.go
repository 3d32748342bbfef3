package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// Bounds of one question about several calls.
const (
	maxTogether      = 16
	maxTogetherBytes = 32 << 10 // of arguments
)

// An authorizer gets consent for the calls of one turn, in their order. Calls of one tool
// that would be asked about for the same reason are asked about together.
type authorizer struct {
	session *Session
	catalog *Catalog
	calls   []*CallRecord
	// settled are the calls that an answer about several calls settled, by their ids.
	settled map[string]*together
	// apart are the calls that the person wants to be asked about one by one.
	apart map[string]bool
	// edited are the arguments that the person wrote for a call, by its id. Such a call is asked
	// about alone.
	edited map[string]mcp.RawValue
	// unwanted are the refusals of tools that have changed, by the keys of their pins.
	unwanted map[PinKey]*ConsentError
}

func newAuthorizer(s *Session, catalog *Catalog, calls ...*CallRecord) *authorizer {
	return &authorizer{session: s, catalog: catalog, calls: calls, settled: make(map[string]*together), apart: make(map[string]bool), unwanted: make(map[PinKey]*ConsentError)}
}

// changed gets consent for a tool that has changed. A refusal is for all calls of it in the
// turn.
func (a *authorizer) changed(ctx context.Context, c *readyCall, changes []Change) error {
	s, key := a.session, c.tool.pinKey()
	if refused := a.unwanted[key]; refused != nil {
		s.audited(ctx, &policy.Query{Kind: refused.Kind, Server: refused.Server, Name: refused.Name}, "refused", refused.Why)
		return refused
	}
	err := s.askChange(ctx, c, changes)
	var refused *ConsentError
	if errors.As(err, &refused) && refused.Refused {
		a.unwanted[key] = refused
	}
	return err
}

// A together is the answer to a question about several calls.
type together struct {
	why string // why it was asked
	err error  // nil if the person agreed
}

// asked settles a call that a verdict leaves to the person by the answer to a question
// about several calls, and reports whether there is one: from before, or from now. The
// error is that of settle.
func (a *authorizer) asked(ctx context.Context, c *readyCall, q *policy.Query, v *verdict) (bool, error) {
	s := a.session
	if t := a.settled[c.record.ID]; t != nil && t.why == v.why {
		event, why := "approved", "the person agreed"
		if t.err != nil {
			event, why = "refused", "the person refused"
		}
		s.audited(ctx, q, event, why)
		return true, t.err
	}
	if !s.host.opts.Attended || v.effect != policy.Ask || v.skill != nil || c.edited || a.apart[c.record.ID] { // grants for skills are offered for one call
		return false, nil
	}
	calls, err := a.similar(ctx, c, v)
	if err != nil || len(calls) < 2 {
		return err != nil, err
	}
	question := a.question(c, calls, q.Trusted, v.once)
	tool := c.tool
	answer, err := s.settle(ctx, &proposal{
		query: q, verdict: *v, question: question,
		grant: func(a *Answer) *Grant { return s.grant(question, a, tool.owner.spec.Key, tool.digest) },
	})
	var refused *ConsentError
	if err != nil && (!errors.As(err, &refused) || !refused.Refused) {
		return true, err
	}
	for _, call := range calls {
		if answer.Action == Each {
			a.apart[call.ID] = true
		} else {
			a.settled[call.ID] = &together{v.why, err}
		}
	}
	return answer.Action != Each, err
}

// similar are the calls, from c on, that would be asked about as c is.
func (a *authorizer) similar(ctx context.Context, c *readyCall, v *verdict) ([]*CallRecord, error) {
	list, size := []*CallRecord{c.record}, len(c.args)
	for _, call := range a.calls[slices.Index(a.calls, c.record)+1:] {
		size += len(call.Arguments)
		if len(list) == maxTogether || size > maxTogetherBytes {
			break
		}
		if call.ModelName != c.record.ModelName || call.Arguments == nil || a.edited[call.ID] != nil || a.apart[call.ID] {
			continue
		}
		other := &readyCall{record: call, tool: c.tool, args: call.Arguments}
		w, err := a.session.judge(ctx, a.session.callQuery(other), a.session.host.labels(c.tool.Server, c.tool.Def.Name), c.tool.digest)
		if err != nil {
			return nil, err
		}
		if w.effect == v.effect && w.why == v.why && w.once == v.once {
			list = append(list, call)
		}
	}
	return list, nil
}

// question asks about several calls.
func (a *authorizer) question(c *readyCall, calls []*CallRecord, trusted, once bool) *Question {
	server, tool := c.tool.Server, c.tool.Def.Name
	q := &Question{
		Kind: QuestionCalls, Server: server, Origin: a.session.host.origin(server),
		Name: tool, Tool: c.tool.Def, Warnings: c.warnings,
	}
	same := policy.Predicate{Op: policy.OpEquals}
	secret := false
	for _, call := range calls {
		batched := BatchedCall{call.ID, call.Arguments, ArgumentSecrets(call.Arguments)}
		q.Batch = append(q.Batch, batched)
		same.Values = append(same.Values, mcp.RawValue(call.Arguments))
		secret = secret || len(batched.Secrets) > 0
	}
	if once {
		return q
	}
	if !secret {
		q.Offers = append(q.Offers, Offer{
			Scope: ScopeArguments, Text: fmt.Sprintf("this tool with exactly the arguments of one of these %d calls", len(calls)),
			Rule: policy.Rule{
				Effect: policy.Allow, Kind: policy.KindTool, Server: policy.Quote(server), Name: policy.Quote(tool),
				Where: []policy.Predicate{same},
			},
		})
	}
	for _, o := range offersFor(server, tool, c.args, trusted) {
		if o.Scope != ScopeArguments && o.Scope != ScopePattern {
			q.Offers = append(q.Offers, o)
		}
	}
	return q
}
