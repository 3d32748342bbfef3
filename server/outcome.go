package server

import (
	"context"
	"errors"

	"github.com/parley-mcp/parley/mcp"
)

// An Outcome says how the handling of a request went, for metrics and traces.
type Outcome uint8

// The outcomes. A question to the client is none of the failures.
const (
	// OutcomeOK is a result.
	OutcomeOK Outcome = iota
	// OutcomeInputRequired is a question to the client, which will send the
	// request again with the answer: another round follows.
	OutcomeInputRequired
	// OutcomeToolError is a tool's result with isError, made for the model:
	// an error of package mcp, or arguments that do not fit.
	OutcomeToolError
	// OutcomeRefused is an error that the caller can do something about:
	// invalid params, what does not exist, missing rights, too many requests.
	OutcomeRefused
	// OutcomeFailed is an error of the server: one whose text is kept from the
	// caller, or one with the code for internal errors.
	OutcomeFailed
	// OutcomeCancelled is a request that ended before it was done, because the
	// client cancelled it, its connection ended or the server shut down.
	OutcomeCancelled
	// OutcomeTimedOut is a request that took too long.
	OutcomeTimedOut
)

var outcomeNames = [...]string{"ok", "input required", "tool error", "refused", "failed", "cancelled", "timed out"}

// String is the outcome in words, such as "input required".
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// OutcomeOf says what res and err, which next returned to middleware, mean for
// the request. A handler that panics does not return, so middleware that must
// count it too does so in a deferred function.
func OutcomeOf(c *Call, res Result, err error) Outcome {
	if c.needsInput() {
		return OutcomeInputRequired
	}
	if cause := context.Cause(&c.first); cause != nil {
		if errors.Is(cause, ErrTimeout) || errors.Is(cause, context.DeadlineExceeded) {
			return OutcomeTimedOut
		}
		return OutcomeCancelled
	}
	if err != nil {
		return c.outcomeOfError(err)
	}
	if out, ok := res.(*mcp.CallToolResult); ok && out != nil && out.IsError {
		if c.concealed() {
			return OutcomeFailed
		}
		return OutcomeToolError
	}
	if absent(res) { // the caller gets an error in its place
		return OutcomeFailed
	}
	if r, ok := res.(mcp.Result); ok && r.Base() != nil && r.Base().ResultType == mcp.ResultInputRequired {
		return OutcomeInputRequired
	}
	return OutcomeOK
}

// outcomeOfError is what an error means, by what the caller is told of it.
func (c *Call) outcomeOfError(err error) Outcome {
	if isEnd(err) && c.Err() != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return OutcomeTimedOut
		}
		return OutcomeCancelled
	}
	if _, left := errors.AsType[*peerGoneError](err); left {
		return OutcomeCancelled
	}
	code := mcp.Code(err)
	switch {
	case errors.Is(err, ErrNotCapable), errors.Is(err, ErrNotFound):
		return OutcomeRefused
	case code == mcp.CodeTimeout:
		return OutcomeTimedOut
	case code == mcp.CodeURLElicitationRequired:
		return OutcomeInputRequired
	case code == mcp.CodeInternalError:
		return OutcomeFailed
	}
	return OutcomeRefused
}
