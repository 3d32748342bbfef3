package web

import (
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/parley-mcp/parley/jsonrpc"
)

// Refuse answers a request with a status and, as its JSON body, an error
// response without id. Errors that carry retryAfterMs in their data get a
// Retry-After header. nullID writes "id": null, as older peers expect.
func Refuse(w http.ResponseWriter, status int, e *jsonrpc.Error, nullID bool) {
	m := jsonrpc.Outgoing{Error: e, NullID: nullID}
	body, _ := m.AppendJSON(nil) // an error can always be written
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if seconds, ok := RetryAfter(e); ok {
		h.Set("Retry-After", strconv.Itoa(seconds))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone needs no answer
}

// Codes of our own for what is refused before it reaches the core (ruling 26).
// They are those of package mcp, which no transport imports; a test compares them.
const (
	codeTooMany      = -31002
	codeShuttingDown = -31004
)

// retryPause is after how many milliseconds those who were refused may try again.
const retryPause = 1000

// TooMany is the error, for status 429, that refuses a session or connection
// that is one too many. limit names the option that says how many there may be;
// the text says of what, and what to do.
func TooMany(limit, format string, args ...any) *jsonrpc.Error {
	e := later(codeTooMany, format, args...)
	e.Limit = limit
	return e
}

// AnonymousShare is how many of most sessions or connections the anonymous
// callers of an endpoint may have together: nine tenths, rounded up, so that
// they cannot keep out authenticated callers.
func AnonymousShare(most int) int { return most - most/10 }

// ShuttingDown is the error, for status 503, of an endpoint that ends.
func ShuttingDown() *jsonrpc.Error { return later(codeShuttingDown, "the server is shutting down") }

// Unavailable is the error, for status 503, for what cannot be had just now.
func Unavailable(format string, args ...any) *jsonrpc.Error {
	return later(jsonrpc.CodeInternalError, format, args...)
}

func later(code int64, format string, args ...any) *jsonrpc.Error {
	return jsonrpc.NewError(code, format, args...).With(struct {
		After int64 `json:"retryAfterMs"`
	}{retryPause})
}

// RetryAfter says how many seconds the peer should wait before it tries again,
// as the Retry-After header wants them: retryAfterMs of the error's data,
// rounded up. It is not ok if the error does not say.
func RetryAfter(e *jsonrpc.Error) (seconds int, ok bool) {
	if len(e.Data) == 0 {
		return 0, false
	}
	// The members of a value are read where it is validated: in a message.
	text := slices.Concat([]byte(`{"jsonrpc":"2.0","method":"x","params":`), e.Data, []byte{'}'})
	m, err := jsonrpc.Parse(text, jsonrpc.Limits{})
	if err != nil {
		return 0, false
	}
	raw, _ := m.Params.Member("retryAfterMs")
	ms, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || ms < 0 {
		return 0, false
	}
	return int((min(ms, math.MaxInt32*1000) + 999) / 1000), true
}
