package streamable

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// codeTimeout is the code of an error in place of an answer that took too long.
// It is that of package mcp, which no transport imports; a test compares them.
const codeTimeout = -31003

// Why sessions end, in [SessionEvent], to be found with errors.Is; each is
// transport.ErrClosed too. Others are the handler's own.
var (
	// ErrStopped says that the endpoint was shut down.
	ErrStopped = fmt.Errorf("%w: the server is shutting down", transport.ErrClosed)
	// ErrDeleted says that the client ended its session.
	ErrDeleted = fmt.Errorf("%w: the client ended the session", transport.ErrClosed)
	// ErrIdle says that nobody used the session for SessionIdle.
	ErrIdle = fmt.Errorf("%w: the session was idle for too long", transport.ErrClosed)
	// ErrDisplaced says that an idle session of an anonymous caller made place for
	// another one; see MaxSessions and MaxSessionsPerAddress.
	ErrDisplaced = fmt.Errorf("%w: the session made place for another one", transport.ErrClosed)

	errRefused = fmt.Errorf("%w: the session was not opened", transport.ErrClosed)
	errBroken  = fmt.Errorf("%w: writing the response ended in a panic", transport.ErrClosed)
	errNobody  = fmt.Errorf("%w: the client has gone and did not come back", transport.ErrClosed)
)

// scopesOf are what the data of an error of insufficient scope says is needed.
// That is the one error whose status is 403.
func scopesOf(e *jsonrpc.Error) []string {
	var data struct {
		Scopes []string `json:"scopes"`
	}
	if len(e.Data) == 0 || wire.Decode(e.Data, &data) != nil {
		return nil // a gateway may pass any error on
	}
	return data.Scopes
}

// Errors that are always the same. Nobody writes to them.
var (
	errUnknown = jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"unknown session; it has ended, or was never opened here: begin a new one with an initialize request")
	errAbandoned = jsonrpc.NewError(jsonrpc.CodeInternalError, "the request ended without an answer")
	errBatch     = jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"JSON-RPC batches are not part of the protocol revision in use; send each message by itself")
	errUnasked = jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"this server keeps no sessions, and has asked nothing that this could answer")
	errResponse = jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"responses are not sent in this protocol revision; send the request again with its input responses")
)

// refuse answers a request that belongs to no session, or to none yet.
func (h *Handler) refuse(a *activeRequest, hd *head, status int, e *jsonrpc.Error) {
	h.refused(a, e)
	web.Refuse(a.Writer(), status, e, hd.nullID())
}

// refused tells the core of a request that belongs to no session and is refused.
func (h *Handler) refused(a *activeRequest, e *jsonrpc.Error) {
	h.core.Refused(a.r.Context(), transport.Refusal{Err: e, Principal: a.x.Principal, Transport: &selfContained})
}

// notAllowed answers a method that is not for this endpoint or this caller.
func (h *Handler) notAllowed(a *activeRequest, hd *head, allow string) {
	a.Header().Set("Allow", allow)
	h.refuse(a, hd, http.StatusMethodNotAllowed, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"method %.16q is not allowed here; allowed: %s", a.r.Method, allow))
}

// closed returns cause as an error that is transport.ErrClosed.
func closed(cause error) error {
	switch {
	case cause == nil:
		return transport.ErrClosed
	case errors.Is(cause, transport.ErrClosed):
		return cause
	}
	return fmt.Errorf("%w: %w", transport.ErrClosed, cause)
}
