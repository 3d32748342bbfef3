package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// ExitCode returns the exit code of an error.
func ExitCode(err error) int {
	var silent *kit.SilentError
	var coded *kit.CodeError
	var usage *kit.UsageError
	var unreachable *host.ServerError
	var answered *jsonrpc.Error
	var status *web.StatusError
	access, isAccess := ExitAccess(err)
	switch {
	case errors.As(err, &silent):
		return silent.Code
	case errors.Is(err, kit.ErrInterrupted):
		return kit.ExitInterrupted
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &usage):
		return kit.ExitUsage
	case isAccess:
		return access
	case errors.Is(err, host.ErrConsent), errors.Is(err, client.ErrInputRefused):
		return kit.ExitConsent
	case errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		return kit.ExitConsent
	case errors.As(err, &status), errors.As(err, &unreachable), errors.As(err, new(*kit.UnreachableError)), errors.As(err, new(*provider.Error)),
		errors.Is(err, transport.ErrClosed),
		errors.Is(err, transport.ErrInterrupted), errors.Is(err, transport.ErrStalled):
		return kit.ExitUnreachable
	case errors.As(err, &answered), IsServerFault(err):
		return kit.ExitTool
	case IsContract(err):
		return kit.ExitContract
	}
	return kit.ExitInternal
}

// IsServerFault reports whether a server that was reached did something wrong.
func IsServerFault(err error) bool {
	return slices.ContainsFunc(serverFaults, func(fault error) bool { return errors.Is(err, fault) })
}

// Explain returns the text of an error for the user: what failed, why, and what to do.
func Explain(err error) string {
	var logged *LoggedError
	if errors.As(err, &logged) {
		return Explain(logged.Err) + logged.Said
	}
	text := kit.ErrorText(err)
	if access, ok := ExplainAccess(err); ok {
		return access
	}
	var consent *host.ConsentError
	var answered *jsonrpc.Error
	var server *host.ServerError
	var ended *stdio.ExitError
	var network *net.OpError
	var status *web.StatusError
	switch {
	case errors.As(err, new(*provider.Error)):
		return text // it says what to do
	case errors.As(err, &server) && errors.As(err, &ended):
		return text + "\n  Run its command in a terminal to see more"
	case errors.As(err, &consent) && !consent.Refused && consent.Changed:
		return text + "; run 'parley chat' to review and approve the change"
	case errors.As(err, &consent) && !consent.Refused:
		return fmt.Sprintf("%s; run 'parley chat' to approve it, or allow it with --allow%s", text, pattern(consent))
	case errors.As(err, &answered) && answered.Code == mcp.CodeMissingClientCapability:
		return text + missing(answered)
	case errors.Is(err, client.ErrUnsupportedVersion):
		return text + "\n  Omit --protocol to try all versions"
	case errors.Is(err, http.ErrSchemeMismatch):
		return text + "\n  The server does not use TLS at this address; write http:// or ws:// if that is safe"
	case errors.As(err, &status) && status.Status == http.StatusUnauthorized:
		return text + "\n  The server rejected the token or header; run 'parley auth doctor URL' to find the cause"
	case errors.As(err, &network) && network.Op == "dial":
		return text + "\n  Check the address, and that the server is running"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, client.ErrTimeout):
		return text + "\n  The server might be overloaded or waiting for input; try again, or run its command in a terminal"
	}
	return text
}

// pattern is the rule that would allow what was not, to be copied into a
// shell. Names are a server's: one that holds more than plain characters could
// end the quotes, or be a pattern for other tools, and is not put there.
func pattern(e *host.ConsentError) string {
	if e.Kind == policy.KindSkill && kit.IsPlainName(e.Server) { // of this server, any
		return " 'skill:" + e.Server + "/*'"
	}
	if !kit.IsPlainName(e.Name) || !kit.IsPlainName(e.Server) {
		return ""
	}
	p := e.Server + "/" + e.Name
	if e.Kind != policy.KindTool {
		p = string(e.Kind) + ":" + p
	}
	return " '" + p + "'"
}

// missing says what to do for a server that needs what this run does not offer.
func missing(e *jsonrpc.Error) string {
	needs := string(e.Data)
	switch {
	case strings.Contains(needs, `"roots"`):
		return "\n  The server needs directories to work in; add --root DIRECTORY"
	case strings.Contains(needs, `"elicitation"`), strings.Contains(needs, `"sampling"`):
		return "\n  The server needs input from a user; run the command in a terminal"
	}
	return ""
}

// IsContract reports whether something is not what was promised of it.
func IsContract(err error) bool {
	return errors.As(err, new(*skills.VerifyError)) || errors.As(err, new(*skills.EntryError)) ||
		errors.As(err, new(*skills.LimitError)) || errors.Is(err, client.ErrMalformed)
}

// serverFaults are what a server can do wrong that can be reached.
var serverFaults = []error{
	client.ErrNotCapable, client.ErrTimeout, client.ErrResultType, client.ErrMalformed, client.ErrOutput,
	client.ErrPages, client.ErrTooManyRounds, client.ErrNoTool, client.ErrUnsupportedVersion,
	tasks.ErrCancelled,
}
