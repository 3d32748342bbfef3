package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// An openQuestion waits for its answer.
type openQuestion struct {
	question *Question
	check    func(*Answer) error
	grant    func(*Answer) *Grant // nil if the question offers none
	done     chan Answer
}

// Answer settles a question. The first answer counts: later ones get an error that
// is [ErrSettled]. An answer that does not fit the question is an error, and
// the question stays open.
func (s *Session) Answer(ctx context.Context, question string, a Answer) error {
	o, grant, err := s.take(question, &a)
	if err != nil {
		return err
	}
	defer func() { o.done <- a }() // has room for the one answer
	if grant != nil {
		// The log has it, so that opening the session takes it up if this fails.
		// The answer counts, and the person who leaves now has given it.
		if err := s.host.addGrant(context.WithoutCancel(ctx), grant); err != nil {
			s.log.Error("keeping a grant", "grant", grant.ID, "error", err)
		}
	}
	return nil
}

// take writes an answer down. The question is not open any more then, and waits for the answer. The
// grant is what the answer gives, or nil.
func (s *Session) take(question string, a *Answer) (*openQuestion, *Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[question]
	if o == nil {
		return nil, nil, s.settled(question)
	}
	if err := o.fits(a); err != nil {
		return nil, nil, fmt.Errorf("answer to %s: %w", question, err)
	}
	rec := &AnswerRecord{Question: question, Answer: *a}
	rec.Values = withoutSecrets(a.Values, o.question.Form)
	if a.Action == Approve && a.Offer > 0 {
		rec.Grant = o.grant(a)
	}
	if _, err := s.appendLocked(rec); err != nil {
		return nil, nil, err
	}
	delete(s.open, question)
	return o, rec.Grant, nil
}

// withoutSecrets are the values of a form, which may be nil, as the log keeps them.
func withoutSecrets(values map[string]mcp.RawValue, form *mcp.ElicitParams) map[string]mcp.RawValue {
	if values == nil {
		return nil
	}
	kept := make(map[string]mcp.RawValue, len(values))
	for name, value := range values {
		if SecretName(name) || len(ArgumentSecrets(value)) > 0 || wantsSecret(form, name) {
			value = quoted(notKept)
		}
		kept[name] = value
	}
	return kept
}

// wantsSecret reports whether a field of a form is for a secret.
func wantsSecret(form *mcp.ElicitParams, name string) bool {
	return form != nil && form.RequestedSchema != nil && slices.ContainsFunc(form.RequestedSchema.Properties, func(p mcp.Property) bool {
		return p.Name == name && SecretProperty(&p)
	})
}

// maxMinutes bounds grants that end by themselves: ten years.
const maxMinutes = 10 * 365 * 24 * 60

// fits says what is wrong with an answer.
func (o *openQuestion) fits(a *Answer) error {
	switch a.Action {
	case "":
		a.Action = Refuse
	case Refuse, Approve, Dismiss:
	case Each:
		if o.question.Kind != QuestionCalls {
			return errors.New("the question is about one thing; each is for questions about several calls")
		}
	default:
		return fmt.Errorf("no such action %q; the actions are refuse, approve, dismiss, each", a.Action)
	}
	if a.Edited != nil && o.question.Kind == QuestionCalls {
		return errors.New("the arguments of several calls cannot be edited at once; answer with each")
	}
	if a.Offer < 0 || a.Offer > len(o.question.Offers) {
		return fmt.Errorf("offer %d: the question has %d", a.Offer, len(o.question.Offers))
	}
	if a.Minutes < 0 || a.Minutes > maxMinutes {
		return fmt.Errorf("a grant for %d minutes; it lasts between 1 and %d minutes, or with 0 until it is revoked", a.Minutes, maxMinutes)
	}
	if a.Offer > 0 && a.Edited != nil {
		return errors.New("edited arguments are for this time only; choose no grant with them")
	}
	if a.Action == Approve && o.check != nil {
		return o.check(a)
	}
	return nil
}

// settled is the error for a question that is not open. s.mu is held.
func (s *Session) settled(question string) error {
	for i := range slices.Backward(s.records) {
		if a, ok := s.records[i].Body.(*AnswerRecord); ok && a.Question == question {
			by := a.Withdrawn
			if by == "" {
				by = "answered at the " + cmp.Or(a.Face, "other face")
			}
			return fmt.Errorf("question %s: %w: %s", question, ErrSettled, by)
		}
	}
	return fmt.Errorf("question %q: %w", question, ErrNoQuestion)
}

// ask puts a question to the person and waits for the answer. Questions come one
// at a time; meanwhile the time of the run stands still. check, which may be nil,
// says whether an approval fits; grant makes what the answer grants.
func (s *Session) ask(ctx context.Context, q *Question, check func(*Answer) error, grant func(*Answer) *Grant) (Answer, error) {
	if !s.host.opts.Attended {
		return Answer{}, errUnattended
	}
	s.mu.Lock()
	if s.closed && s.current == nil {
		s.mu.Unlock()
		return Answer{}, ErrClosed
	}
	s.asking.Add(1)
	s.mu.Unlock()
	defer s.asking.Done()
	s.host.limits.Pause()
	defer s.host.limits.Resume()
	select {
	case s.person <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	case <-s.over:
		return Answer{}, ErrClosed
	}
	defer func() { <-s.person }()
	o := &openQuestion{question: q, check: check, grant: grant, done: make(chan Answer, 1)}
	if err := s.put(o); err != nil {
		return Answer{}, err
	}
	select {
	case a := <-o.done:
		return a, nil
	case <-s.failed: // no answer can be taken
		s.mu.Lock()
		defer s.mu.Unlock()
		return Answer{}, s.broken
	case <-ctx.Done():
	case <-s.over:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[q.ID] == nil { // answered just now
		return <-o.done, nil
	}
	delete(s.open, q.ID)
	why := context.Cause(ctx)
	if why == nil {
		why = ErrClosed
	}
	_, err := s.appendLocked(&AnswerRecord{Question: q.ID, Answer: Answer{Action: Refuse}, Withdrawn: "withdrawn: " + bounded(why.Error(), maxWhy)})
	return Answer{}, errors.Join(why, err)
}

// put writes a question down, and opens it.
func (s *Session) put(o *openQuestion) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.question.ID = "q" + strconv.Itoa(len(s.records)+1)
	_, err := s.appendLocked(&QuestionRecord{*o.question})
	if err == nil {
		s.open[o.question.ID] = o
	}
	return err
}

// errUnattended says that nobody can be asked.
var errUnattended = errors.New("nobody can be asked here")

// maxWhy bounds the reasons in records, in bytes: errors of servers are as long
// as the server likes.
const maxWhy = 2 << 10

// bounded is a text of at most so many bytes, in valid UTF-8.
func bounded(s string, limit int) string {
	short, isCut := cut(s, limit)
	short = strings.ToValidUTF8(short, "\uFFFD")
	if isCut {
		short += "..."
	}
	return short
}
