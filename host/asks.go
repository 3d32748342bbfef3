package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A sessionCall is the session, and the call, that a request to a server is for.
type sessionCall struct {
	session *Session
	call    string
	life    context.Context //nolint:containedctx // of the call; nil if there is none
}

type sessionKey struct{}

// withSession notes in ctx for whom a server is called, so that its questions
// find the person.
func withSession(ctx context.Context, s *Session, call string) context.Context {
	c := sessionCall{session: s, call: call}
	if call != "" {
		c.life = ctx
	}
	return context.WithValue(ctx, sessionKey{}, c)
}

// until returns a context for a question, which ends when the call that it belongs to is cancelled: not
// every server withdraws what it asks then. The function that it returns has to be called.
func (c sessionCall) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if life := c.life; life != nil {
		stop = context.AfterFunc(life, func() {
			if why := context.Cause(life); !errors.Is(why, errCallEnded) {
				cancel(why)
			}
		})
	}
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Context returns a context for requests to servers outside a run, so that what
// servers ask meanwhile is asked in this session.
func (s *Session) Context(ctx context.Context) context.Context { return withSession(ctx, s, "") }

// errWhose says that a question cannot be put to anybody.
var errWhose = errors.New("it is not known in which conversation the server asks")

// whose finds the session in which a server asks: that of the request; else the one for
// which a request is under way there; else the one that fetches something; else the only
// one that is open.
func (l *link) whose(ctx context.Context) (sessionCall, error) {
	if c, ok := ctx.Value(sessionKey{}).(sessionCall); ok {
		return c, nil
	}
	h := l.host
	h.mu.Lock()
	open := slices.Clone(h.sessions)
	h.mu.Unlock()
	calling := l.calling()
	if len(calling) == 0 {
		calling = gathering(open)
	}
	other := func(c sessionCall) bool { return c.session != calling[0].session }
	switch {
	case len(calling) == 1:
		return calling[0], nil
	case len(calling) > 1 && !slices.ContainsFunc(calling, other):
		return sessionCall{session: calling[0].session}, nil
	case len(calling) == 0 && len(open) == 1:
		return sessionCall{session: open[0]}, nil
	}
	return sessionCall{}, fmt.Errorf("%w: %w", client.ErrRefused, errWhose)
}

// gathering are the sessions that fetch what the person puts into them: the server may
// have to be started for it first.
func gathering(open []*Session) []sessionCall {
	var list []sessionCall
	for _, s := range open {
		s.mu.Lock()
		if s.gathering {
			list = append(list, sessionCall{session: s})
		}
		s.mu.Unlock()
	}
	return list
}

// options are what the server's client is set up with: a capability is
// declared only if there is something that answers.
func (l *link) options() *client.Options {
	h := l.host
	o := &client.Options{
		Info:       h.opts.Info,
		Versions:   l.spec.Versions,
		Logger:     h.opts.Logger.With("server", l.spec.Name),
		Extensions: h.opts.Extensions,
		Middleware: []client.Middleware{l.counted},
		OnProblem:  func(context.Context, *client.Problem) { h.servers.problem() },
	}
	if h.opts.Attended {
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return l.elicit(ctx, mcp.ModeForm, r)
		}
		o.OnElicitURL = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return l.elicit(ctx, mcp.ModeURL, r)
		}
	}
	if len(h.opts.SampleModels) > 0 && l.may(policy.KindSampling, sampleRequest, nil) {
		o.OnSample, o.SampleTools = l.sample, true
	}
	if slices.ContainsFunc(h.opts.Roots, func(r mcp.Root) bool { return l.may(policy.KindRoots, rootsList, rootArguments(r.URI)) }) {
		o.OnRoots = l.roots
	}
	if log := h.opts.OnLog; log != nil {
		o.LogLevel = h.opts.LogLevel
		o.OnLog = func(_ context.Context, p *mcp.LogParams) { log(l.spec.Name, p) }
	}
	return o
}

// may reports whether something could be allowed to the server: by a rule, or by
// a person where there is one.
func (l *link) may(kind policy.Kind, name string, args mcp.RawValue) bool {
	q := &policy.Query{Kind: kind, Server: l.spec.Name, Name: name, Arguments: args, Trusted: l.spec.Trusted}
	return !l.host.opts.Policy.Hides(q) && (l.host.opts.Attended || l.host.opts.Policy.Decide(q).Effect == policy.Allow)
}

// elicit asks the person for a server.
func (l *link) elicit(ctx context.Context, mode string, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	c, err := l.whose(ctx)
	if err != nil {
		return nil, err
	}
	ctx, end := c.until(ctx)
	defer end()
	s := c.session
	var args mcp.RawValue
	if mode == mcp.ModeURL {
		if args, err = wire.Marshal(map[string]string{"url": r.Params.URL}); err != nil {
			return nil, fmt.Errorf("the address cannot be shown: %w", err)
		}
	}
	p := &proposal{query: s.query(policy.KindElicitation, l.spec.Name, mode, args)}
	p.verdict = verdict{effect: policy.Ask, why: "the server asks you"} // no rule fills in a form
	if v := s.ruled(p.query); v.effect == policy.Deny {
		p.verdict = v
	} else if err := l.countQuestion(); err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	p.question = &Question{
		Kind: QuestionForm, Server: l.spec.Name, Origin: l.spec.Origin, Call: c.call, Name: mode, Form: r.Params,
	}
	p.check = func(a *Answer) error {
		_, err := r.Complete(a.Values)
		return err
	}
	if mode == mcp.ModeURL {
		p.question.Kind, p.question.Page, p.check = QuestionPage, r.Page, nil
	}
	a, err := s.settle(ctx, p)
	var refused *ConsentError
	switch {
	case errors.As(err, &refused) && refused.Refused && a.Action == Dismiss:
		return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
	case errors.As(err, &refused) && refused.Refused:
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", client.ErrRefused, err)
	case mode == mcp.ModeURL:
		return &mcp.ElicitResult{Action: mcp.ElicitAccept}, nil
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: a.Values}, nil
}

// roots tells a server the directories that a rule allows, and those that the
// person picks of the others.
//
// SEC-ROOTS-1: consent for each root.
func (l *link) roots(ctx context.Context) ([]mcp.Root, error) {
	h := l.host
	c, err := l.whose(ctx)
	if err != nil {
		return nil, err
	}
	ctx, end := c.until(ctx)
	defer end()
	s := c.session
	var given, open []mcp.Root
	for _, root := range h.opts.Roots {
		chosen, known := s.rootChoice(l.spec.Name, root.URI)
		if known {
			if chosen {
				given = append(given, root)
			}
			continue
		}
		q := s.query(policy.KindRoots, l.spec.Name, rootsList, rootArguments(root.URI))
		v, err := s.judge(ctx, q, nil, "")
		switch {
		case err != nil:
			return nil, err
		case v.effect == policy.Allow:
			given = append(given, root)
		case v.effect == policy.Ask:
			open = append(open, root)
		}
	}
	if len(open) == 0 {
		return given, nil
	}
	q := &Question{
		Kind: QuestionRoots, Server: l.spec.Name, Origin: l.spec.Origin, Call: c.call, Name: rootsList, Roots: open,
		Why:    "the server wants to know in which directories it should work",
		Offers: []Offer{{Scope: ScopeServer, Text: "tell this server of the chosen directories from now on"}},
	}
	a, err := s.ask(ctx, q, func(a *Answer) error {
		for _, uri := range a.Roots {
			if !slices.ContainsFunc(open, func(r mcp.Root) bool { return r.URI == uri }) {
				return fmt.Errorf("%s is not one of the directories", uri)
			}
		}
		return nil
	}, func(a *Answer) *Grant { return s.grantRoots(q, a, l.spec.Key) })
	if errors.Is(err, errUnattended) {
		return given, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrRefused, err)
	}
	s.chooseRoots(l.spec.Name, open, &a)
	s.audited(ctx, s.query(policy.KindRoots, l.spec.Name, rootsList, nil), "approved", fmt.Sprintf("the person chose %d of %d directories", len(a.Roots), len(open)))
	if a.Action == Approve {
		for _, r := range open {
			if slices.Contains(a.Roots, r.URI) {
				given = append(given, r)
			}
		}
	}
	return given, nil
}

// rootsList is the name of what roots are asked for, in rules.
const rootsList = "list"

// rootArguments is a root as rules see it.
func rootArguments(uri string) mcp.RawValue {
	raw, err := wire.Marshal(map[string]string{"uri": uri})
	if err != nil { // a URI that is no valid UTF-8: no rule can name it
		return nil
	}
	return raw
}

// rootChoice is what the person chose about a root in this session.
func (s *Session) rootChoice(server, uri string) (chosen, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen, known = s.chosenRoots[PinKey{server, uri}]
	return chosen, known
}

// chooseRoots remembers an answer for as long as the session is open.
func (s *Session) chooseRoots(server string, asked []mcp.Root, a *Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chosenRoots == nil {
		s.chosenRoots = make(map[PinKey]bool)
	}
	for _, r := range asked {
		s.chosenRoots[PinKey{server, r.URI}] = a.Action == Approve && slices.Contains(a.Roots, r.URI)
	}
}

// grantRoots makes a grant of the chosen roots.
func (s *Session) grantRoots(q *Question, a *Answer, entry string) *Grant {
	p := policy.Predicate{Pointer: "/uri", Op: policy.OpEquals}
	for _, uri := range a.Roots {
		raw, err := wire.Marshal(uri)
		if err == nil {
			p.Values = append(p.Values, raw)
		}
	}
	if len(p.Values) == 0 {
		return nil
	}
	rule := policy.Rule{Effect: policy.Allow, Kind: policy.KindRoots, Server: policy.Quote(q.Server), Where: []policy.Predicate{p}}
	return s.newGrant(entry, rule, "", a)
}
