package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/app/internal/tui"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// Exit codes. exitTool is also for resources, prompts and completions that the
// server did not give. 130 is what shells expect of a program that Ctrl-C ended.
const (
	exitOK          = 0
	exitUsage       = 1
	exitInternal    = 2
	exitConsent     = 3
	exitUnreachable = 4
	exitTool        = 5
	exitContract    = 6 // what is there is not what was promised
	exitInterrupted = 130
	exitSignal      = 128 // and the number of the signal
)

// errInterrupted is the cause that everything ends with after Ctrl-C.
var errInterrupted = errors.New("cancelled")

// A usageError is a mistake in the command line.
type usageError struct{ err error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// flagError is the error of flags that cannot be read, without the words of Go for it.
func flagError(cmd *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usagef("%w; see '%s --help'", err, cmd.CommandPath())
	}
	flag := invalid.GetFlag()
	what := invalid.Unwrap().Error()
	switch kind := flag.Value.Type(); {
	case errors.Is(err, strconv.ErrRange):
		what = "the number is too large"
	case kind == "duration":
		what = "write a number with its unit, such as 90s, 5m or 24h"
	case kind == "bool":
		what = "write true or false"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		what = "write a whole number"
	case strings.HasPrefix(kind, "float"):
		what = "write a number"
	}
	return usagef("--%s %q: %s; see '%s --help'", flag.Name, invalid.GetValue(), what, cmd.CommandPath())
}

// A silentError ends the program with a code, and has been told already.
type silentError struct{ code int }

func (e *silentError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// An unreachableError is about something that is no MCP server and cannot be
// reached.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// exitCode returns the exit code of an error.
func exitCode(err error) int {
	var silent *silentError
	var usage *usageError
	var unreachable *host.ServerError
	var answered *jsonrpc.Error
	var status *web.StatusError
	access, isAccess := exitAccess(err)
	switch {
	case errors.As(err, &silent):
		return silent.code
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, tui.ErrTerminal): // the signal of it may come later, or not at all
		return exitSignal + int(syscall.SIGHUP)
	case errors.As(err, &usage):
		return exitUsage
	case isAccess:
		return access
	case errors.Is(err, host.ErrConsent), errors.Is(err, client.ErrInputRefused):
		return exitConsent
	case errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		return exitConsent
	case errors.As(err, &status), errors.As(err, &unreachable), errors.As(err, new(*unreachableError)), errors.As(err, new(*provider.Error)),
		errors.Is(err, transport.ErrClosed),
		errors.Is(err, transport.ErrInterrupted), errors.Is(err, transport.ErrStalled):
		return exitUnreachable
	case errors.As(err, &answered), isAny(err, serverFaults):
		return exitTool
	case isContract(err):
		return exitContract
	}
	return exitInternal
}

// serverFaults are what a server can do wrong that can be reached.
var serverFaults = []error{
	client.ErrNotCapable, client.ErrTimeout, client.ErrResultType, client.ErrMalformed, client.ErrOutput,
	client.ErrPages, client.ErrTooManyRounds, client.ErrNoTool, client.ErrUnsupportedVersion,
	tasks.ErrCancelled,
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// maxSaid is how many bytes of an error are shown: servers write them.
const maxSaid = 4 << 10

// errorText is the text of an error, which servers may have written: escaped, and
// with its further lines indented, so that none passes for one of ours.
func errorText(err error) string {
	text := setOption.ReplaceAllString(err.Error(), "")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "… (cut off)"
	}
	return strings.ReplaceAll(host.Escape(text), "\n", "\n    | ")
}

// setOption is advice for programs that use the library.
var setOption = regexp.MustCompile(` \(set Options\.\w+\)`)

// explain makes a sentence of an error: what failed, why, and what to do.
func explain(err error) string {
	var logged *loggedError
	if errors.As(err, &logged) {
		return explain(logged.err) + logged.said
	}
	text := errorText(err)
	if access, ok := explainAccess(err); ok {
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
		return text + "\n  Start its command by hand to see more"
	case errors.As(err, &consent) && !consent.Refused && consent.Changed:
		return text + ". Use 'parley chat' to see what has changed and to agree"
	case errors.As(err, &consent) && !consent.Refused:
		return fmt.Sprintf("%s. Use 'parley chat' to be asked, or allow it with --allow%s", text, pattern(consent))
	case errors.As(err, &answered) && answered.Code == mcp.CodeMissingClientCapability:
		return text + missing(answered)
	case errors.Is(err, client.ErrUnsupportedVersion):
		return text + "\n  Without --protocol every version is tried"
	case errors.Is(err, http.ErrSchemeMismatch):
		return text + "\n  The server speaks no TLS there; write http:// or ws://, if that is safe"
	case errors.As(err, &status) && status.Status == http.StatusUnauthorized:
		return text + "\n  It does not take the token or header that it was sent; 'parley auth doctor URL' may tell why"
	case errors.As(err, &network) && network.Op == "dial":
		return text + "\n  Check the address, and that the server runs there"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, client.ErrTimeout):
		return text + "\n  The server may be busy or waiting for something; try again, or start it by hand to see"
	}
	return text
}

// pattern is the rule that would allow what was not, to be copied into a
// shell. Names are a server's: one that holds more than plain characters could
// end the quotes, or be a pattern for other tools, and is not put there.
func pattern(e *host.ConsentError) string {
	if e.Kind == policy.KindSkill && plainName.MatchString(e.Server) { // of this server, any
		return " 'skill:" + e.Server + "/*'"
	}
	if !plainName.MatchString(e.Name) || !plainName.MatchString(e.Server) {
		return ""
	}
	p := e.Server + "/" + e.Name
	if e.Kind != policy.KindTool {
		p = string(e.Kind) + ":" + p
	}
	return " '" + p + "'"
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// missing says what to do for a server that needs what this run does not offer.
func missing(e *jsonrpc.Error) string {
	needs := string(e.Data)
	switch {
	case strings.Contains(needs, `"roots"`):
		return "\n  It asks for directories to work in: give --root DIRECTORY"
	case strings.Contains(needs, `"elicitation"`), strings.Contains(needs, `"sampling"`):
		return "\n  It asks for a person: run it at a terminal"
	}
	return ""
}
