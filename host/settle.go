package host

import (
	"context"
	"errors"

	"github.com/parley-mcp/parley/policy"
)

// A proposal is something that may be done, has to be asked about, or is refused.
type proposal struct {
	query   *policy.Query
	verdict verdict
	// question is put to the person if the verdict is to ask; Why is that of the verdict.
	question *Question
	// check, which may be nil, says whether an approval fits.
	check func(*Answer) error
	// grant makes what an answer grants; nil if the question offers none.
	grant func(*Answer) *Grant
	// changed says that it is about a definition that has changed.
	changed bool
}

// settle decides what a verdict leaves to the person, and adds the decision to the audit
// log. What a rule or a grant allows has the answer that approves. A [ConsentError] says
// that it must not be done: the answer is then that of the person, if they were asked.
func (s *Session) settle(ctx context.Context, p *proposal) (Answer, error) {
	q, v := p.query, &p.verdict
	refuse := func(why, reason string, refused bool) error {
		s.audited(ctx, q, "refused", why)
		return &ConsentError{
			Kind: q.Kind, Server: q.Server, Name: q.Name, Why: why, Refused: refused, Changed: p.changed, Reason: reason,
		}
	}
	switch v.effect {
	case policy.Allow:
		s.audited(ctx, q, "allowed", v.why)
		return Answer{Action: Approve}, nil
	case policy.Deny:
		return Answer{}, refuse(v.why, v.reason, true)
	case policy.Ask, policy.Approve: // the person at this host is who agrees
	}
	p.question.Why = v.why
	a, err := s.ask(ctx, p.question, p.check, p.grant)
	switch {
	case errors.Is(err, errUnattended):
		return a, refuse("it needs a person's consent, and nobody can be asked here ("+v.why+")", "", false)
	case err != nil:
		return a, err
	case a.Action == Each: // the questions that follow settle it
		return a, nil
	case a.Action != Approve:
		return a, refuse("the person refused", a.Reason, true)
	}
	why := "the person agreed"
	if a.Edited != nil {
		why = "the person agreed, with other arguments"
		q.Arguments = a.Edited
	}
	s.audited(ctx, q, "approved", why)
	return a, nil
}
