package inspect

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os/exec"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// The exit codes, as the MCP Inspector has them; ExitInternal is of this program alone.
const (
	ExitUsage             = 1 // a wrong command line, and what no other code is for
	ExitNoApp             = 2 // --app-info of a tool without a page
	ExitAuth              = 3 // the server wants to know who calls
	ExitUnreachable       = 4 // no server, or no answer in time
	ExitTool              = 5 // the tool failed, or does not exist
	ExitSchema            = 6 // --strict found schemas that models refuse
	ExitSkillFailed       = 7 // --verify found a skill that breaks a rule
	ExitSkillIncomplete   = 8 // --verify could not read all
	ExitSkillUnverifiable = 9 // --require-digests found a skill without digests
	ExitInternal          = 70
)

// Codes of errors that are used in several places.
const (
	codeUsage        = "error"
	codeAuth         = "auth_required"
	codeUnreachable  = "unreachable"
	codeTimeout      = "timeout"
	codeToolNotFound = "tool_not_found"
	codeNoSkills     = "skills_unsupported"
)

// An Error is what a failure is told as: one JSON object.
type Error struct {
	Exit    int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// Cause is what is below it, where that says more.
	Cause string `json:"cause,omitzero"`
	// Status is that of an HTTP response.
	Status int `json:"status,omitzero"`
	// URL is that of the server, without what may be secret in it.
	URL string `json:"url,omitzero"`
	// RPC is the error that the server answered with, as it came.
	RPC mcp.RawValue `json:"rpc,omitzero"`

	err error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.err }

// usage is the error of a wrong command line.
func usage(message string) error {
	return &Error{Exit: ExitUsage, Code: codeUsage, Message: message}
}

// Internal is the error of what went wrong in this program.
func Internal(err error) *Error {
	return &Error{Exit: ExitInternal, Code: "internal", Message: err.Error(), err: err}
}

// Classify says of an error how it is told, and with which exit code. Where the Inspector
// has a code the code is the same.
func Classify(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	e := &Error{Exit: ExitUsage, Code: codeUsage, Message: err.Error(), err: err}
	var status *web.StatusError
	if errors.As(err, &status) {
		e.Status = status.Status
	}
	var answered *jsonrpc.Error
	unread := errors.As(err, new(*jsonrpc.ParseError)) // what was read was no message: the server answered with no error
	if !unread && errors.As(err, &answered) {
		if raw, err := answered.MarshalJSON(); err == nil {
			e.RPC = raw
		}
	}
	switch {
	case isAccess(err, status):
		e.Exit, e.Code = ExitAuth, codeAuth
	case status != nil: // whether the time or the number of tries came to its end first
		e.Code = "http_status"
	case errors.Is(err, errConnectTimeout):
		e.Exit, e.Code = ExitUnreachable, codeUnreachable
	case errors.Is(err, client.ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, transport.ErrStalled):
		e.Exit, e.Code = ExitUnreachable, codeTimeout
	case notStarted(err):
		e.Code = "command_not_started"
	case errors.As(err, new(*stdio.ExitError)):
		e.Code = "server_exited"
	case isUnreachable(err):
		e.Exit, e.Code = ExitUnreachable, codeUnreachable
	case e.RPC != nil:
		e.Code = "rpc_error"
	case errors.As(err, new(*client.NoExtensionError)), errors.Is(err, client.ErrNotCapable):
		e.Code = "not_supported"
	case errors.Is(err, client.ErrInputRefused):
		e.Code = "input_refused"
	case errors.Is(err, client.ErrUnsupportedVersion):
		e.Code = "unsupported_version"
	case unread, errors.Is(err, client.ErrMalformed), errors.Is(err, client.ErrPages), errors.Is(err, client.ErrResultType):
		e.Code = "bad_result"
	case errors.Is(err, tasks.ErrCancelled):
		e.Exit, e.Code = ExitTool, "task_cancelled"
	case errors.Is(err, client.ErrPanicked):
		e.Exit, e.Code = ExitInternal, "internal"
	}
	return e
}

// isAccess reports whether it fails because of who calls.
func isAccess(err error, status *web.StatusError) bool {
	var network *net.OpError
	switch {
	case status != nil && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		return true
	case errors.Is(err, transport.ErrDenied), errors.As(err, new(*login.SignInRequiredError)),
		errors.As(err, new(*login.AuthorizationError)), errors.As(err, new(*oauth.Error)):
		return true
	case errors.As(err, new(*login.DiscoveryError)), errors.As(err, new(*login.Error)):
		return !errors.As(err, &network)
	}
	return false
}

// notStarted reports whether a command could not be started.
func notStarted(err error) bool {
	return errors.As(err, new(*exec.Error)) || errors.Is(err, exec.ErrNotFound) || errors.As(err, new(*fs.PathError))
}

// isUnreachable reports whether there is no server where one was looked for.
func isUnreachable(err error) bool {
	return errors.As(err, new(*net.OpError)) || errors.As(err, new(*net.DNSError)) ||
		errors.Is(err, transport.ErrInterrupted) || errors.Is(err, transport.ErrClosed)
}
