package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// What a proxy needs in addition to handlers: the questions, waits and notices of
// the server behind it reach the client of the request.

// Ask asks the client a question as another server asked it, and returns the
// client's answer as it came. params are *mcp.ElicitParams for
// elicitation/create, *mcp.CreateMessageParams for sampling/createMessage and
// *mcp.ListRootsParams for roots/list. An answer is checked for its form; whether
// it fits what was asked is for that server to say. The errors are those of
// [Elicit] and [Sample].
func Ask(ctx context.Context, params mcp.Params, o ...*AskOptions) (mcp.RawValue, error) {
	q := &question{key: keyOf(o), params: params}
	switch p := params.(type) {
	case *mcp.ElicitParams:
		q.method, q.what = mcp.MethodElicit, "a form"
		if p.IsURL() {
			q.what = "opening a URL"
		}
		q.check = func(raw mcp.RawValue) error { return decodeElicit(raw, new(mcp.ElicitResult)) }
	case *mcp.CreateMessageParams:
		q.method, q.what = mcp.MethodCreateMessage, "a sampling"
		q.check = func(raw mcp.RawValue) error { return decodeSample(raw, new(mcp.CreateMessageResult)) }
	case *mcp.ListRootsParams:
		q.method, q.what = mcp.MethodRootsList, "the roots"
		q.check = func(raw mcp.RawValue) error { return decodeRoots(raw, new(mcp.ListRootsResult)) }
	default:
		return nil, fmt.Errorf("ask: %T are params of no question", params)
	}
	var answer mcp.RawValue
	check := q.check
	q.check = func(raw mcp.RawValue) error {
		answer = raw
		return check(raw)
	}
	if _, err := askOf(ctx, q); err != nil {
		return nil, err
	}
	return answer, nil
}

// CheckAnswer says why a client's answer does not fit a question, with the place, or
// nil. method and params are those that an [Asker] was given. An extension whose
// answers come by a request of their own can refuse one, or ask again, in place of
// ending the handler with it.
func CheckAnswer(method string, params, answer mcp.RawValue) error {
	switch method {
	case mcp.MethodElicit:
		return checkElicited(params, answer)
	case mcp.MethodCreateMessage:
		return decodeSample(answer, new(mcp.CreateMessageResult))
	case mcp.MethodRootsList:
		return decodeRoots(answer, new(mcp.ListRootsResult))
	}
	return fmt.Errorf("%q is no question", clip(method))
}

// checkElicited checks what a person filled in against the form that was asked.
func checkElicited(params, answer mcp.RawValue) error {
	var p mcp.ElicitParams
	if err := wire.DecodeParams(params, &p); err != nil {
		return fmt.Errorf("question: %w", err)
	}
	var res mcp.ElicitResult
	if err := decodeElicit(answer, &res); err != nil || res.Action != mcp.ElicitAccept || p.IsURL() {
		return err
	}
	form, err := wire.Marshal(p.RequestedSchema)
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	checker, err := schema.Compile(form, &schema.Limits{AssertFormats: true, Lenient: true})
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	content, err := wire.Marshal(res.Content)
	if err != nil {
		return err
	}
	return checker.Check(content)
}

func decodeSample(raw mcp.RawValue, res *mcp.CreateMessageResult) error {
	if err := wire.DecodeParams(raw, res); err != nil {
		return err
	}
	if res.Role == "" || len(res.Content) == 0 {
		return errors.New("role or content is missing")
	}
	return nil
}

func decodeRoots(raw mcp.RawValue, res *mcp.ListRootsResult) error {
	if err := wire.DecodeParams(raw, res); err != nil {
		return err
	}
	if res.Roots == nil {
		return errors.New("roots are missing")
	}
	return nil
}

// Elicited tells the client that what it opened a URL for is done. id is the
// ElicitationID of the question that Ask asked within the request. It does
// nothing in revisions that do not know of it.
//
// spec 2025-11-25, client/elicitation: notifications/elicitation/complete.
func (c *Call) Elicited(ctx context.Context, id string) error {
	if !c.facts.Has(mcp.NotifyElicitationComplete) {
		return nil
	}
	return c.notify(ctx, mcp.NotifyElicitationComplete, &mcp.ElicitationCompleteParams{ElicitationID: id})
}

// RetryLater ends a round of the request without a question: the client of a
// stateless revision sends the request again after a pause, and the handler runs
// again. Return the error, which is ErrInputPending. In a handshake revision,
// where the call can last, and in a detached call, it is ErrCannotAsk.
func (c *Call) RetryLater() error {
	if c.facts.Handshake || c.Detached() || !c.row.Asks {
		return fmt.Errorf("putting off %s: %w", c.Method(), ErrCannotAsk)
	}
	c.extras().asks.requestRetry()
	return fmt.Errorf("not ready yet: %w", ErrInputPending)
}

// Keep puts a value by under key for the rounds of the request that follow, in
// the place of what was there. It travels like the result of [Once], which finds
// it under the same key.
func Keep[T any](ctx context.Context, key string, v T) error {
	c := CallFrom(ctx)
	if c == nil {
		return fmt.Errorf("keep %q: %w", key, ErrNoCall)
	}
	raw, err := wire.Marshal(v)
	if err != nil {
		return fmt.Errorf("keep %q: %w", key, err)
	}
	if err := c.replaceResult(key, raw); err != nil {
		return fmt.Errorf("keep %q: %w", key, err)
	}
	return nil
}

// Kept returns what Keep or Once put by under key, and whether there is anything.
func Kept[T any](ctx context.Context, key string) (v T, ok bool, err error) {
	c := CallFrom(ctx)
	if c == nil {
		return v, false, fmt.Errorf("kept %q: %w", key, ErrNoCall)
	}
	raw, ok := c.extras().asks.result(key)
	if !ok {
		return v, false, nil
	}
	if err := wire.Decode(raw, &v); err != nil {
		return v, false, fmt.Errorf("kept %q: %w", key, err)
	}
	return v, true, nil
}

// LogLevel is the least severe level of log messages that the client wants for
// this request; "" is none.
func (c *Call) LogLevel() mcp.LogLevel { return c.era().level(c) }

// Handshake reports whether the revision of the request has a handshake and
// sessions. In the others every request, and every round of one, stands for
// itself and may reach another process.
func (c *Call) Handshake() bool { return c.facts.Handshake }

// PauseTimeouts stops the time limits of the request until resume is called: while a
// person is asked elsewhere, nothing is slow. Call it before a context is derived
// with a timeout that may end after [Call.Deadline]: one that was derived before
// has no timer, and lasts longer by as much. A second call of resume does nothing.
func (c *Call) PauseTimeouts() (resume func()) {
	c.timer.Pause()
	return sync.OnceFunc(c.timer.Resume)
}
