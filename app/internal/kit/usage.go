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

// Exit codes. ExitTool is also used for resources, prompts and completions that the
// server did not return. Shells expect 130 from a program that Ctrl-C ended.
const (
	ExitOK          = 0
	ExitUsage       = 1
	ExitInternal    = 2
	ExitConsent     = 3
	ExitUnreachable = 4
	ExitTool        = 5
	ExitContract    = 6 // an expectation is not met, such as a contract
	ExitInterrupted = 130
	ExitSignal      = 128 // plus the number of the signal
)

// ErrInterrupted is the cancellation cause after Ctrl-C.
var ErrInterrupted = errors.New("cancelled")

// A UsageError is a mistake in the command line.
type UsageError struct{ err error }

// Usagef returns a UsageError; it formats the text as fmt.Errorf does.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

// FlagError turns an error of parsing flags into a UsageError, without the terms of Go's packages.
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
		what = "must be a number with a unit, such as 90s, 5m or 24h"
	case kind == "bool":
		what = "must be true or false"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		what = "must be a whole number"
	case strings.HasPrefix(kind, "float"):
		what = "must be a number"
	}
	return Usagef("--%s %q: %s; see '%s --help'", flag.Name, invalid.GetValue(), what, cmd.CommandPath())
}

// A SilentError ends the program with an exit code. Its cause has been reported already.
type SilentError struct{ Code int }

func (e *SilentError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// An UnreachableError means that something other than an MCP server cannot be reached.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// NoCommand is the argument check of a command that only has subcommands: any argument is an unknown
// subcommand.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	name := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()) + " " + args[0])
	if mean := DidYouMean(cmd, args[0]); mean != "" {
		return Usagef("unknown command %q%s Run '%s --help' to list commands", name, mean, cmd.CommandPath())
	}
	return Usagef("unknown command %q; run '%s --help' to list commands", name, cmd.CommandPath())
}

// DidYouMean returns a question that suggests the subcommand of cmd with the most similar name, or "".
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

// UsageArgs returns check with a UsageError for a wrong number of arguments.
func UsageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("wrong number of arguments; usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// A CodeError ends the program with a specific exit code.
type CodeError struct {
	Code int
	Err  error
}

func (e *CodeError) Error() string { return e.Err.Error() }
func (e *CodeError) Unwrap() error { return e.Err }
