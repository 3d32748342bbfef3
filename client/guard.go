package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanicked says that a handler of the user panicked, or middleware or the
// dialer in what the client does by itself. The stack is in the client's log; the
// process lives, and a server that waits for an answer is told "internal error".
var ErrPanicked = errors.New("a handler of this client panicked")

// guard runs a handler of the user. Every handler is called through it: a
// server must not be able to end the process by what it sends to a handler
// that did not expect it.
func (c *Client) guard(handler string, f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("a handler panicked", "handler", handler, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %s", ErrPanicked, handler)
		}
	}()
	f()
	return nil
}

// guarded is guard for what has an error of its own.
func (c *Client) guarded(handler string, f func() error) (err error) {
	if panicked := c.guard(handler, func() { err = f() }); panicked != nil {
		return panicked
	}
	return err
}

// run asks a question of the server.
func (c *Client) run(ctx context.Context, q *question) (v any, err error) {
	if panicked := c.guard(q.method, func() { v, err = q.ask(ctx) }); panicked != nil {
		return nil, panicked
	}
	return v, err
}
