// Package browser takes a person to an authorization server and brings the response back: through
// the browser of this machine and a loopback address ([Receiver]), or by hand ([Manual]). Both are
// an Authorizer for package login, which checks the response.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A Visit is one authorization request in the person's browser.
type Visit interface {
	// RedirectURI is where the response will come in.
	RedirectURI() string
	// Wait opens the authorization URL and waits for the response, whose parameters it returns
	// unchecked, or for the end of ctx. accept, which may be called for several responses, says
	// whether one is ours (its state); others are refused and waiting goes on.
	Wait(ctx context.Context, authorizationURL *url.URL, accept func(url.Values) bool) (url.Values, error)
	// Close ends it. The visit's server is gone when it returns.
	Close() error
}

const (
	// visitTimeout is how long a person has by default.
	visitTimeout = 5 * time.Minute
	// callbackGrace is how long a callback may take to notice that its context has ended.
	callbackTimeout = time.Second
)

// errClosed says that a visit ended before the person came back.
var errClosed = errors.New("the sign-in was closed")

// visitContext ends with ctx, after a time, with life, or when cancel is called; its cause says which.
func visitContext(ctx, life context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	late := fmt.Errorf("nobody answered within %v: %w", timeout, context.DeadlineExceeded)
	timed, release := context.WithTimeoutCause(ctx, timeout, late)
	visit, stop := context.WithCancelCause(timed)
	ignore := context.AfterFunc(life, func() { stop(context.Cause(life)) })
	return visit, func() {
		ignore()
		stop(context.Canceled)
		release()
	}
}

// A callbackResult is what a callback of the user's returned.
type callbackResult[T any] struct {
	value T
	err   error
}

// inBackground calls f, and leaves it behind if it does not return within a second of the end of
// ctx. running counts what waits for it.
func inBackground[T any](ctx context.Context, running *sync.WaitGroup, f func(context.Context) (T, error)) <-chan callbackResult[T] {
	returned := make(chan callbackResult[T], 1)
	go func() {
		value, err := f(ctx)
		returned <- callbackResult[T]{value, err}
	}()
	out := make(chan callbackResult[T], 1)
	running.Go(func() {
		select {
		case o := <-returned:
			out <- o
			return
		case <-ctx.Done():
		}
		select {
		case o := <-returned:
			out <- o
		case <-time.After(callbackTimeout):
			out <- callbackResult[T]{err: context.Cause(ctx)}
		}
	})
	return out
}

// parseResponse reads the parameters of what may be a response. Whether it is one, and a good one,
// accept and its caller say: a bad response to our request ends the visit as a good one does.
func parseResponse(query string) (url.Values, bool) {
	if len(query) > maxCallbackQuery || strings.Count(query, "&") >= maxCallbackParams {
		return nil, false
	}
	values, err := url.ParseQuery(query)
	return values, err == nil && (values.Has("state") || values.Has("code") || values.Has("error"))
}

// A verdict is what became of a response.
type verdict int

const (
	responseRefused verdict = iota // not ours
	responseTaken                  // ours, and the first
	responseTooLate                // another was first
)

// firstResponse lets one response through, of however many come in at once.
type firstResponse struct {
	mu   sync.Mutex
	done bool
}

// take asks accept whether a response is ours. accept is called by one goroutine at a time, and not
// again once it has said yes.
func (o *firstResponse) take(values url.Values, accept func(url.Values) bool) verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return responseTooLate
	}
	if !accept(values) {
		return responseRefused
	}
	o.done = true
	return responseTaken
}
