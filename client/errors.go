package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Errors to be found with errors.Is. An error answer of the server is a
// *jsonrpc.Error in the chain, to be found with errors.As; a tool that failed
// is a [ToolError].
var (
	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("client is closed")
	// ErrDisconnected says that the connection ended, and that the client does not
	// make another one; see Options.OnDisconnect.
	ErrDisconnected = errors.New("the connection to the server has ended")
	// ErrTimeout says that the server did not answer in the time allowed; it
	// was told that it is cancelled.
	ErrTimeout = errors.New("no answer in time")
	// ErrNotCapable says that one side did not declare the capability that a
	// request needs. Nothing was sent, or no question was asked; or a server
	// that declares nothing at all does not know the method.
	ErrNotCapable = errors.New("capability not declared")
	// ErrUnsupportedVersion says that no revision suits both sides.
	ErrUnsupportedVersion = errors.New("no protocol version in common")
	// ErrRefused is what a handler of this client returns when the person
	// said no.
	ErrRefused = errors.New("refused by the user")
	// ErrInputRefused says that a call ended because what the server asked
	// for was not given. The handler's error is in the chain. In revisions with
	// a handshake the server is told of the refusal instead, and its answer is
	// that of the call, but for pages that it wants visited before (-32042).
	ErrInputRefused = errors.New("the input that the server asked for was refused")
	// ErrResultType says that a result is of a type this client cannot use.
	ErrResultType = errors.New("unusable type of result")
	// ErrMalformed says that a result is not what the protocol says it is.
	ErrMalformed = errors.New("malformed result of the server")
	// ErrTooManyRounds says that the server asked again more often than
	// MaxRounds allows.
	ErrTooManyRounds = errors.New("the server asks too often")
	// ErrPages says that the pages of a list never end or never settle.
	ErrPages = errors.New("the server's list cannot be paged through")
	// ErrNoTool says that the server lists no such tool, or none that can be
	// used.
	ErrNoTool = errors.New("no such tool")
	// ErrOutput says that a tool's structured result breaks the schema that
	// the tool declares, or cannot be decoded.
	ErrOutput = errors.New("structured result does not fit")
)

// UnsupportedVersionError tells which revisions each side speaks. It is an
// [ErrUnsupportedVersion].
type UnsupportedVersionError struct {
	// Offered are the server's revisions, as far as it named them.
	Offered []string
	// Allowed are ours: those that Options.Versions allows.
	Allowed []string
	// Cause is the server's error, or nil.
	Cause error
}

// Error says what each side speaks, and what to do about it.
func (e *UnsupportedVersionError) Error() string {
	offered := "names no version"
	if len(e.Offered) > 0 {
		offered = "offers " + strings.Join(e.Offered, ", ")
	}
	text := fmt.Sprintf("%v: the server %s, this client allows %s; update the server, or allow another version",
		ErrUnsupportedVersion, offered, strings.Join(e.Allowed, ", "))
	if e.Cause != nil {
		text += " (" + e.Cause.Error() + ")"
	}
	return text
}

// Is makes the error an ErrUnsupportedVersion.
func (e *UnsupportedVersionError) Is(target error) bool { return target == ErrUnsupportedVersion }

// Unwrap returns the server's error.
func (e *UnsupportedVersionError) Unwrap() error { return e.Cause }

// CapabilityError says that the server needs a capability of this client that
// was not declared, and so refused a request (code -32021). It is an
// [ErrNotCapable].
type CapabilityError struct {
	// Required are what the client would have to declare.
	Required mcp.ClientCapabilities
	// Err is the server's error.
	Err *jsonrpc.Error
}

// Error names the capabilities, and what would declare them.
func (e *CapabilityError) Error() string {
	var missing []string
	add := func(needed bool, name, by string) {
		if needed {
			missing = append(missing, name+" (set "+by+")")
		}
	}
	c := &e.Required
	if c.Elicitation != nil {
		add(c.Elicitation.URL == nil || c.Elicitation.Form != nil, mcp.CapElicitationForm, "Options.OnElicit")
		add(c.Elicitation.URL != nil, mcp.CapElicitationURL, "Options.OnElicitURL")
	}
	if c.Sampling != nil {
		add(true, mcp.CapSampling, "Options.OnSample")
		add(c.Sampling.Tools != nil, mcp.CapSamplingTools, "Options.SampleTools")
		add(c.Sampling.Context != nil, mcp.CapSamplingContext, "Options.SampleContext")
	}
	add(c.Roots != nil, mcp.CapRoots, "Options.OnRoots")
	for _, name := range slices.Sorted(maps.Keys(c.Extensions)) {
		add(true, fmt.Sprintf("extension %.64q", name), "Options.Extensions")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Experimental)) {
		add(true, fmt.Sprintf("experimental %.64q", name), "Options.Experimental")
	}
	if len(missing) == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v; this client does not declare %s", e.Err, strings.Join(missing, ", "))
}

// Is makes the error an ErrNotCapable.
func (e *CapabilityError) Is(target error) bool { return target == ErrNotCapable }

// Unwrap returns the server's error.
func (e *CapabilityError) Unwrap() error { return e.Err }

// An undeclaredByServer is the ErrNotCapable for a capability of the server.
type undeclaredByServer struct{ capability string }

func (e *undeclaredByServer) Error() string {
	return fmt.Sprintf("%v: the server does not offer %q", ErrNotCapable, e.capability)
}

// Unwrap returns ErrNotCapable.
func (*undeclaredByServer) Unwrap() error { return ErrNotCapable }

// explain adds to an error of the server what its data says.
func explain(e *jsonrpc.Error) error {
	var data mcp.MissingCapabilityData
	if e.Code != mcp.CodeMissingClientCapability || len(e.Data) == 0 || wire.Decode(e.Data, &data) != nil {
		return e
	}
	return &CapabilityError{Required: data.RequiredCapabilities, Err: e}
}

// ToolError is the failure of a tool: a result with isError, which is meant
// to be read by the model or the person who asked.
type ToolError struct {
	// Tool is the name of the tool.
	Tool string
	// Result is the whole result.
	Result *mcp.CallToolResult
}

// Error gives the text of the result.
func (e *ToolError) Error() string {
	text := textOf(e.Result)
	if text == "" {
		text = "no reason given"
	}
	return fmt.Sprintf("tool %q: %s", e.Tool, text)
}

// An inputError says which input a call could not get. It is an ErrInputRefused
// if a handler refused.
type inputError struct {
	method string
	err    error
}

func (e *inputError) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrInputRefused, e.method, e.err)
}

func (e *inputError) Is(target error) bool { return target == ErrInputRefused }

func (e *inputError) Unwrap() error { return e.err }

// A timeoutError tells which limit was passed.
type timeoutError struct {
	limit time.Duration
	hard  bool
}

func newTimeoutError(l pausetimer.Limit, idle, hard time.Duration) error {
	if l == pausetimer.Hard {
		return &timeoutError{limit: hard, hard: true}
	}
	return &timeoutError{limit: idle}
}

func (e *timeoutError) Error() string {
	if e.hard {
		return fmt.Sprintf("%v: the call took longer than %v in all", ErrTimeout, e.limit)
	}
	return fmt.Sprintf("%v: nothing heard for %v", ErrTimeout, e.limit)
}

func (e *timeoutError) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}
