package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Errors that handlers meet, to be found with errors.Is.
var (
	// ErrInputPending is returned by an ask that has no answer yet in the
	// stateless revision. Return it, wrapped or not: whatever a handler
	// returns after it is discarded, and the handler runs again when the
	// client brings the answer.
	ErrInputPending = errors.New("waiting for the client's answer; the handler will run again")
	// ErrNotCapable says that the client did not declare what an ask needs.
	// It is always a *NotCapableError.
	ErrNotCapable = errors.New("the client cannot answer this")
	// ErrCannotAsk says that requests of this method must not ask: only
	// tools/call, prompts/get and resources/read may.
	ErrCannotAsk = errors.New("this request cannot ask the client")
	// ErrNoCall says that the context belongs to no request.
	ErrNoCall = errors.New("no request under way in this context")
	// ErrCancelled is the cause, for context.Cause, of the end of a request
	// that the client cancelled: with a notification on a pipe or in a
	// session, by closing the response in the stateless revision over HTTP.
	ErrCancelled = jsonrpc.ErrCancelled
	// ErrTimeout is the cause of the end of a call that took longer than
	// Limits.CallTimeout or Limits.MaxCallTime.
	ErrTimeout = errors.New("the call took too long")
	// ErrShutdown is the cause of the end of what still runs when
	// Server.Shutdown does not wait any longer. It does not wait at all for
	// requests of methods that are MethodOptions.Long, nor for detached calls with
	// DetachOptions.Record, which are saved work for another process.
	ErrShutdown = errors.New("the server is shutting down")
	// ErrRefused says that the person behind the client said no.
	ErrRefused = mcp.Errorf("refused by the user")
	// ErrAskFailed says that the client answered an ask with an error, with
	// something that is no answer, or not within Limits.MaxAskTime.
	ErrAskFailed = mcp.Errorf("the client did not answer the question")
	// ErrNotFound makes resources/read answer as the revision says for what
	// does not exist, if a handler returns it.
	ErrNotFound = errors.New("not found")
)

// errAnswerOnly is an ErrCannotAsk that says why (ruling 46).
var errAnswerOnly = mcp.Errorf("%w: it takes one JSON answer only; name text/event-stream in the Accept header, too", ErrCannotAsk)

// NotCapableError says what a client would have had to declare.
type NotCapableError struct {
	// Required is what is missing.
	Required    mcp.ClientCapabilities
	what        string
	version     string // the revision of the request, if no client of it can have that
	sessionless bool   // no session is kept for the client
}

// Error names the missing capability, or the revision that does not have it.
func (e *NotCapableError) Error() string {
	if e.version != "" {
		return "protocol revision " + e.version + ", which the client speaks, has no " + e.what
	}
	if e.sessionless {
		return "this server keeps no sessions for clients of this protocol revision, and cannot ask them for " + e.what +
			"; clients of the stateless revision can be asked"
	}
	return "the client did not declare the capability for " + e.what
}

// Is reports that the error is ErrNotCapable.
func (e *NotCapableError) Is(target error) bool { return target == ErrNotCapable }

// internalError is an error whose text is for the log alone.
type internalError struct {
	ref      string
	panicked bool
}

func (e *internalError) Error() string { return "internal error (ref " + e.ref + ")" }

// reference makes a name under which peer and log find the same error.
func reference() string {
	b := make([]byte, 3)
	rand.Read(b)
	return strings.ToUpper(fmt.Sprintf("%x", b))
}

// refusal is what a peer learns of an error that its request met before anything
// of an author ran. Only there an error of the envelope is this server's own:
// handlers get those of other servers from their clients.
func (s *Server) refusal(c *Call, err error) *jsonrpc.Error {
	if own, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return own
	}
	switch {
	case errors.Is(err, jsonrpc.ErrTooMany):
		return toWire(tooMany(s.limits.MaxInFlight))
	case errors.Is(err, jsonrpc.ErrClosed):
		return toWire(shuttingDown())
	}
	return s.wireError(c, err)
}

// wireError decides what a peer learns of an error, and logs the rest. The methods
// of an author's error may panic, those of a typed nil for one.
func (s *Server) wireError(c *Call, err error) (shown *jsonrpc.Error) {
	defer func() {
		if v := recover(); v != nil {
			shown = s.shown(c, s.recovered(c, v))
		}
	}()
	if shown := s.shown(c, err); shown != nil {
		return shown
	}
	return jsonrpc.NewError(jsonrpc.CodeInternalError, "%s", s.concealError(c, err))
}

// shown is what a peer learns of an error, or nil if that is only that there was
// one.
func (s *Server) shown(c *Call, err error) *jsonrpc.Error {
	var (
		me *mcp.Error
		nc *NotCapableError
		ie *internalError
		le *peerGoneError
	)
	switch {
	case errors.As(err, &le):
		return cancelled()
	case errors.As(err, &ie):
		return jsonrpc.NewError(jsonrpc.CodeInternalError, "%v", ie)
	case errors.As(err, &nc) && c.facts != nil:
		return c.era().refusal(c, nc)
	case errors.As(err, &me):
		if me.Code == mcp.CodeURLElicitationRequired && !c.facts.URLRequiredError { // Ruling 18: one revision's alone
			return jsonrpc.NewError(jsonrpc.CodeInternalError, "%s", me.Message)
		}
		return toWire(me)
	case errors.Is(err, ErrShutdown):
		return toWire(shuttingDown())
	case errors.Is(err, ErrCannotAsk):
		return jsonrpc.NewError(jsonrpc.CodeInternalError, "%v", ErrCannotAsk)
	case errors.Is(err, ErrNotFound):
		return toWire(c.notFound(c.target))
	case c.Err() != nil && (isEnd(err) || errors.Is(err, context.Cause(c))):
		return s.endError(c)
	}
	return nil
}

// mapped is what Options.MapError makes of an error that would be hidden.
func (c *Call) mapped(err error) error {
	if c.srv.opts.MapError != nil && err != nil && !c.needsInput() && c.srv.shown(c, err) == nil {
		if m := c.mapError(err); m != nil {
			return m
		}
	}
	return err
}

// mapError asks Options.MapError about an error; nil: it has nothing to say.
func (c *Call) mapError(err error) error {
	if f := c.srv.opts.MapError; f != nil {
		return f(c, err)
	}
	return nil
}

// isEnd reports whether err only says that a context ended.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// endError words why a call was ended.
func (s *Server) endError(c *Call) *jsonrpc.Error {
	cause := context.Cause(c)
	if late, ok := errors.AsType[*timeoutError](cause); ok {
		return toWire(timedOut(late))
	}
	switch {
	case errors.Is(cause, ErrShutdown), errors.Is(cause, jsonrpc.ErrClosed):
		return toWire(shuttingDown())
	}
	return cancelled()
}

func cancelled() *jsonrpc.Error {
	return jsonrpc.NewError(jsonrpc.CodeInternalError, "the request was cancelled")
}

// concealError gives the text that a peer may see of an error that was not made for
// peers, and logs the error under the same reference.
func (s *Server) concealError(c *Call, err error) string {
	c.extras().hidden.Store(true)
	if s.opts.ExposeErrors {
		return err.Error()
	}
	ref := reference()
	s.log.ErrorContext(c, "handler error", "ref", ref, "err", err)
	return (&internalError{ref: ref}).Error()
}

// answerError answers a call with an error.
func (s *Server) answerError(c *Call, err error) { s.answerWire(c, s.wireError(c, err)) }

// answerWire is answerError for an error as the caller is told it.
func (s *Server) answerWire(c *Call, e *jsonrpc.Error) {
	out := &jsonrpc.Outgoing{ID: c.ID(), Error: e}
	if err := c.x.Out.Answer(context.WithoutCancel(c), out); err != nil {
		s.log.DebugContext(c, "error not delivered", "err", err)
	}
}

// toWire makes the envelope's error of one made for peers.
func toWire(e *mcp.Error) *jsonrpc.Error {
	out := &jsonrpc.Error{Code: mcp.Code(e), Message: e.Error()}
	if e.Data != nil {
		return out.With(e.Data)
	}
	return out
}

// notFound is the error for a resource that does not exist or is hidden.
// Ruling 23: the code depends on the revision, data.uri is always there.
func (c *Call) notFound(uri string) *mcp.Error {
	return mcp.NewError(c.facts.NotFoundCode, "resource not found").With(mcp.ResourceNotFoundData{URI: uri})
}

// clip makes a peer's text fit for messages and logs: short, and without
// control characters.
func clip(s string) string {
	const most = 80
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	if r := []rune(clean); len(r) > most {
		return string(r[:most]) + "…"
	}
	return clean
}

// retryable makes an error of our own table, with when to try again.
func retryable(code int64, wait time.Duration, format string, args ...any) *mcp.Error {
	return mcp.NewError(code, format, args...).With(mcp.RetryData{RetryAfterMs: (wait + time.Millisecond - 1).Milliseconds()})
}

func tooMany(limit int) *mcp.Error {
	return retryable(mcp.CodeTooManyInFlight, time.Second, "more than %d requests under way on this connection or session (Limits.MaxInFlight); wait for answers first", limit)
}

// tooManyOf is tooMany for self-contained requests.
func tooManyOf(anonymous bool, limit int) error {
	if anonymous {
		return limitedBy("Limits.MaxAnonymousInFlight", retryable(mcp.CodeTooManyInFlight, time.Second,
			"more than %d requests under way by the anonymous callers of one address (Limits.MaxAnonymousInFlight); wait for answers first", limit))
	}
	return limitedBy(optionMaxInFlight, retryable(mcp.CodeTooManyInFlight, time.Second,
		"more than %d requests under way by one caller (Limits.MaxInFlight); wait for answers first", limit))
}

func timedOut(late *timeoutError) *mcp.Error {
	return retryable(mcp.CodeTimeout, 0, "%v", late)
}

func shuttingDown() *mcp.Error {
	return retryable(mcp.CodeShuttingDown, time.Second, "%v", ErrShutdown)
}

func unsupportedVersion(requested string, supported []string) *mcp.Error {
	return mcp.NewError(mcp.CodeUnsupportedVersion, "unsupported protocol version %q: this server speaks %v", clip(requested), supported).
		With(mcp.UnsupportedVersionData{Supported: supported, Requested: requested})
}

func missingCapability(lacks *NotCapableError) *mcp.Error {
	return mcp.NewError(mcp.CodeMissingClientCapability, "%v", lacks).
		With(mcp.MissingCapabilityData{RequiredCapabilities: lacks.Required})
}

func tooManyListens(anonymous bool, limit int) *mcp.Error {
	if anonymous {
		return retryable(mcp.CodeTooManyInFlight, time.Second, "more than %d subscriptions open by the anonymous callers of one address (Limits.MaxAnonymousListens); end one first", limit)
	}
	return retryable(mcp.CodeTooManyInFlight, time.Second, "more than %d subscriptions open by one caller (Limits.MaxListens); end one first", limit)
}
