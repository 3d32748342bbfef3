package kit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/config"
)

// Exit codes. ExitTool is also for resources, prompts and completions that the
// server did not give. 130 is what shells expect of a program that Ctrl-C ended.
const (
	ExitOK          = 0
	ExitUsage       = 1
	ExitInternal    = 2
	ExitConsent     = 3
	ExitUnreachable = 4
	ExitTool        = 5
	ExitContract    = 6 // what is there is not what was promised
	ExitInterrupted = 130
	ExitSignal      = 128 // and the number of the signal
)

// ErrInterrupted is the cause that everything ends with after Ctrl-C.
var ErrInterrupted = errors.New("cancelled")

// A UsageError is a mistake in the command line.
type UsageError struct{ err error }

// Usagef is a UsageError with a text, as fmt.Errorf makes it.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

// FlagError is the error of flags that cannot be read, without the words of Go for it.
func FlagError(cmd *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return Usagef("%w; see '%s --help'", err, cmd.CommandPath())
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
	return Usagef("--%s %q: %s; see '%s --help'", flag.Name, invalid.GetValue(), what, cmd.CommandPath())
}

// A SilentError ends the program with a code, and has been told already.
type SilentError struct{ Code int }

func (e *SilentError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// An UnreachableError is about something that is no MCP server and cannot be
// reached.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// NoCommand refuses arguments of a command that takes none and has commands beneath it: they are the
// name of one that is not there.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	name := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()) + " " + args[0])
	return Usagef("there is no command %q%s; '%s --help' lists the commands", name, DidYouMean(cmd, args[0]), cmd.CommandPath())
}

// DidYouMean asks after a command beneath cmd whose name is nearly that of one that is not there.
func DidYouMean(cmd *cobra.Command, name string) string {
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	near := config.Nearest(name, known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// UsageArgs makes a wrong number of arguments an error of usage.
func UsageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("too few or too many arguments; write: %s", cmd.UseLine())
		}
		return nil
	}
}

// A CodeError is an error that ends the program with a code of its own.
type CodeError struct {
	Code int
	Err  error
}

func (e *CodeError) Error() string { return e.Err.Error() }
func (e *CodeError) Unwrap() error { return e.Err }
