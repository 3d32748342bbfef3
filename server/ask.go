package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// AskOptions are the optional parts of a question. The zero value, and nil, work.
type AskOptions struct {
	// Key names the question within the request. It is needed only where the
	// same question is asked twice. Default: a digest of the question.
	Key string
}

// Answer is what came back from a form.
type Answer[T any] struct {
	// Action is accept, decline or cancel.
	Action mcp.ElicitAction
	// Value is what was filled in; its zero value unless Accepted.
	Value T
}

// Accepted reports whether the person filled in the form and sent it.
func (a Answer[T]) Accepted() bool { return a.Action == mcp.ElicitAccept }

// question is one thing asked of the client.
type question struct {
	key    string // given by the author, or ""
	what   string // for messages: "a form"
	method string
	params any // newest shape
	// check says whether an answer is one; its error is told to the handler.
	check func(mcp.RawValue) error
}

// Elicit asks the person a form made of T: a flat struct of strings, numbers,
// booleans and choices, with the tags of package schema. It returns when there
// is an answer, or with ErrInputPending; see the package comment. Declining
// and cancelling are answers, not errors. The form must not ask for secrets.
//
// It fails with ErrNotCapable if the client has no forms, ErrCannotAsk and
// ErrNoCall if asking is not possible here, and with the context's cause.
//
// spec 2026-07-28, client/elicitation.
func Elicit[T any](ctx context.Context, message string, o ...*AskOptions) (Answer[T], error) {
	form, err := formOf[T]()
	if err != nil {
		return Answer[T]{}, fmt.Errorf("elicit: %w", err)
	}
	var a Answer[T]
	res, err := elicit(ctx, message, form.wire, form.checker, o, func(content mcp.RawValue) error {
		return form.checker.Decode(content, &a.Value)
	})
	if err != nil {
		return Answer[T]{}, err
	}
	a.Action = res.Action
	return a, nil
}

// ElicitForm asks the person a form that is known only at run time, or that no
// Go type can say; [Elicit] is simpler where the form is a type. The accepted
// content is checked against the form; defaults are the client's to fill in.
// The result is never nil without an error. Errors are those of Elicit.
//
// spec 2026-07-28, client/elicitation.
func ElicitForm(ctx context.Context, message string, form *mcp.ElicitSchema, o ...*AskOptions) (*mcp.ElicitResult, error) {
	raw, err := wire.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("elicit: %w", err)
	}
	checker, err := schema.Compile(raw, &schema.Limits{AssertFormats: true})
	if err != nil {
		return nil, fmt.Errorf("elicit: %w", err)
	}
	return elicit(ctx, message, form, checker, o, checker.Check)
}

// elicit asks a form. What the person accepts is taken by take.
func elicit(ctx context.Context, message string, form *mcp.ElicitSchema, checker *schema.Compiled, o []*AskOptions, take func(mcp.RawValue) error) (*mcp.ElicitResult, error) {
	q := &question{
		key: keyOf(o), what: "a form", method: mcp.MethodElicit,
		params: &mcp.ElicitParams{Mode: mcp.ModeForm, Message: message, RequestedSchema: form},
	}
	if c := CallFrom(ctx); c != nil {
		// spec 2026-07-28, client/elicitation: servers "MUST NOT use form mode
		// elicitation to request sensitive information".
		if secret := checker.SecretMembers(); len(secret) > 0 {
			c.srv.log.WarnContext(c, "a form asks for what looks like secrets; use ElicitURL for those", "fields", secret)
		}
	}
	res := new(mcp.ElicitResult)
	q.check = func(raw mcp.RawValue) error {
		if err := decodeElicit(raw, res); err != nil || res.Action != mcp.ElicitAccept {
			return err
		}
		content, err := wire.Marshal(res.Content)
		if err != nil {
			return err
		}
		// In a stated order, so that the error for one answer is always the same.
		if content, err = wire.Canonical(content); err != nil {
			return err
		}
		return take(content)
	}
	if _, err := askOf(ctx, q); err != nil {
		return nil, err
	}
	return res, nil
}

// ElicitURL asks the person to open a URL, for what must not pass through the
// client: a sign-in, a payment. Accepting only means that the person agreed to
// open it, so after that done is called, paced, until it reports that the
// matter is settled or fails. The result is false if the person declined.
//
// The URL must carry nothing that lets its opener act as another user, and
// done must check that the user who opened it is the one asked (ruling 18).
//
// spec 2026-07-28, client/elicitation: URL mode.
func ElicitURL(ctx context.Context, url, message string, done func(context.Context) (bool, error), o ...*AskOptions) (bool, error) {
	q := &question{
		key: keyOf(o), what: "opening a URL", method: mcp.MethodElicit,
		params: &mcp.ElicitParams{Mode: mcp.ModeURL, Message: message, URL: url},
	}
	var res mcp.ElicitResult
	q.check = func(raw mcp.RawValue) error { return decodeElicit(raw, &res) }
	c, err := askOf(ctx, q)
	if err != nil {
		return false, err
	}
	if res.Action != mcp.ElicitAccept {
		return false, nil
	}
	if err := c.inAskTime(q, func(c *Call) error { return c.await(q, done) }); err != nil {
		return false, err
	}
	return true, nil
}

// Sample asks the client's model. The person may change or refuse the request
// (ErrRefused), and sees the answer first.
//
// spec 2026-07-28, client/sampling.
//
// Deprecated: sampling is deprecated in the newest revision; call a model of
// your own where you can.
func Sample(ctx context.Context, p *mcp.CreateMessageParams, o ...*AskOptions) (*mcp.CreateMessageResult, error) {
	res := new(mcp.CreateMessageResult)
	q := &question{key: keyOf(o), what: "a sampling", method: mcp.MethodCreateMessage, params: p}
	q.check = func(raw mcp.RawValue) error { return decodeSample(raw, res) }
	if _, err := askOf(ctx, q); err != nil {
		return nil, err
	}
	return res, nil
}

// Roots asks the client for the directories it works in. They restrict what a
// server should touch; they grant nothing.
//
// spec 2026-07-28, client/roots.
//
// Deprecated: roots are deprecated in the newest revision; take directories as
// arguments or from configuration.
func Roots(ctx context.Context, o ...*AskOptions) ([]mcp.Root, error) {
	var res mcp.ListRootsResult
	q := &question{key: keyOf(o), what: "the roots", method: mcp.MethodRootsList, params: &mcp.ListRootsParams{}}
	q.check = func(raw mcp.RawValue) error { return decodeRoots(raw, &res) }
	if _, err := askOf(ctx, q); err != nil {
		return nil, err
	}
	return res.Roots, nil
}

// decodeElicit decodes what a person answered. What names none of the actions
// is no answer: a handler must not take it for one.
func decodeElicit(raw mcp.RawValue, res *mcp.ElicitResult) error {
	if err := wire.DecodeParams(raw, res); err != nil {
		return err
	}
	switch res.Action {
	case mcp.ElicitAccept, mcp.ElicitDecline, mcp.ElicitCancel:
		return nil
	}
	return fmt.Errorf("unknown action %q", clip(string(res.Action)))
}

// CanElicit reports whether the client of the request can show forms.
func CanElicit(ctx context.Context) bool { return can(ctx, needForm) }

// CanElicitURL reports whether the client of the request can open URLs.
func CanElicitURL(ctx context.Context) bool { return can(ctx, needURL) }

// CanSample reports whether the client of the request offers its model.
func CanSample(ctx context.Context) bool { return can(ctx, needSampling) }

// CanRoots reports whether the client of the request tells its roots.
func CanRoots(ctx context.Context) bool { return can(ctx, needRoots) }

func can(ctx context.Context, n need) bool {
	c := CallFrom(ctx)
	return c != nil && c.row.Asks && !c.x.AnswerOnly && n.missing(c) == nil
}

// keyOf returns the key that the options of a question give, or "".
func keyOf(o []*AskOptions) string {
	if len(o) == 0 || o[0] == nil {
		return ""
	}
	return o[0].Key
}

// askOf asks within the request that ctx belongs to.
func askOf(ctx context.Context, q *question) (*Call, error) {
	c := CallFrom(ctx)
	if c == nil {
		return nil, fmt.Errorf("asking for %s: %w", q.what, ErrNoCall)
	}
	if !c.row.Asks {
		return nil, fmt.Errorf("asking for %s in %s: %w", q.what, c.Method(), ErrCannotAsk)
	}
	if nc := needOf(q).missing(c); nc != nil {
		nc.sessionless = c.sessionless() && !c.Detached()
		return nil, nc
	}
	if c.x.AnswerOnly {
		return nil, fmt.Errorf("asking for %s: %w", q.what, errAnswerOnly)
	}
	if err := ctx.Err(); err != nil {
		c.extras().asks.noteEndedAsk()
		return nil, context.Cause(ctx)
	}
	c = c.in(ctx) // an ask ends with the context it is made in
	id, err := c.extras().asks.begin(q)
	if err != nil {
		return nil, err
	}
	raw, known := c.extras().asks.answer(id)
	if !known {
		if err := c.recordQuestion(q, id); err != nil {
			return nil, err
		}
		err := c.inAskTime(q, func(c *Call) (err error) {
			raw, err = c.asker().ask(c, id, q)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if err := q.check(raw); err != nil {
		return nil, badAnswer(q, err)
	}
	if err := c.recordAnswer(q, id, raw); err != nil {
		return nil, err
	}
	return c, nil
}

// errAskTime is the cause of the end of a question that was open for too long.
var errAskTime = errors.New("no answer in time")

// inAskTime waits for the answer to q for as long as a question may be open, where
// questions wait at all.
func (c *Call) inAskTime(q *question, wait func(*Call) error) error {
	most := c.srv.limits.MaxAskTime
	if most < 0 || !c.waitsForAnswers() {
		return wait(c)
	}
	ctx, cancel := context.WithTimeoutCause(c, most, errAskTime)
	defer cancel()
	err := wait(c.WithContext(ctx))
	if err != nil && errors.Is(context.Cause(ctx), errAskTime) {
		return mcp.Errorf("asking for %s: %w within %v (Limits.MaxAskTime)", q.what, ErrAskFailed, most)
	}
	return err
}

// badAnswer words an answer that does not fit its question.
func badAnswer(q *question, err error) error {
	var we *wire.Error
	if errors.As(err, &we) {
		err = we
	}
	return mcp.NewError(mcp.CodeInvalidParams, "the answer to %s does not fit: %v", q.what, err)
}

// identify gives a question that sends the person to a URL an id, in the revisions
// that have one.
func (q *question) identify(c *Call) {
	if p, ok := q.params.(*mcp.ElicitParams); ok && c.facts.ElicitID && p.IsURL() && p.ElicitationID == "" {
		p.ElicitationID = rand.Text()
	}
}

// digest names a question by what it asks.
func (q *question) digest() (string, error) {
	raw, err := wire.Marshal(q.params)
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w", q.what, err)
	}
	if raw, err = wire.Canonical(raw); err != nil {
		return "", fmt.Errorf("asking for %s: %w", q.what, err)
	}
	sum := sha256.Sum256(append([]byte(q.method+"\x00"), raw...))
	return base64.RawURLEncoding.EncodeToString(sum[:12]), nil
}

// form is what Elicit knows of a type.
type form struct {
	checker *schema.Compiled
	wire    *mcp.ElicitSchema
}

// formOf makes the form of a type. It is made anew for each ask, which is
// nothing beside the time a person takes.
func formOf[T any]() (*form, error) {
	c, err := schema.Elicitation(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	f := &form{checker: c, wire: new(mcp.ElicitSchema)}
	if err := wire.Decode(c.JSON(), f.wire); err != nil {
		return nil, err
	}
	return f, nil
}
