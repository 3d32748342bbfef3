// Package kit is what the commands of the program share: the streams they are connected to, how results
// and errors are written, exit codes, and where files of the program are.
package kit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
)

// A Console is what one run of a command writes to and asks at: the streams, and how the flags
// --json and --verbose want them.
type Console struct {
	Streams *Streams
	JSON    bool // results are written as JSON
	Verbose bool // the log begins at debug messages

	rewrites map[*cobra.Command]func(args []string) []string // what Rewrite set
}

// JSONFlag adds the flag --json to commands, and to a command with others below it for all of those.
func (c *Console) JSONFlag(commands ...*cobra.Command) {
	for _, cmd := range commands {
		FlagsOf(cmd).BoolVar(&c.JSON, "json", false, "write results as JSON")
	}
}

// VerboseFlag adds the flag --verbose to all commands below root.
func (c *Console) VerboseFlag(root *cobra.Command) {
	root.PersistentFlags().BoolVarP(&c.Verbose, "verbose", "v", false, "show debug messages")
}

// FlagsOf returns the flags of a command, or those that it shares with the commands below it.
func FlagsOf(cmd *cobra.Command) *pflag.FlagSet {
	if cmd.HasSubCommands() {
		return cmd.PersistentFlags()
	}
	return cmd.Flags()
}

// Rewrite sets how the arguments of the program are rewritten before they are parsed, if they name cmd.
func (c *Console) Rewrite(cmd *cobra.Command, rewrite func(args []string) []string) {
	if c.rewrites == nil {
		c.rewrites = make(map[*cobra.Command]func([]string) []string)
	}
	c.rewrites[cmd] = rewrite
}

// Rewritten returns the arguments of the program, which name cmd, as they are parsed.
func (c *Console) Rewritten(cmd *cobra.Command, args []string) []string {
	if rewrite := c.rewrites[cmd]; rewrite != nil {
		return rewrite(args)
	}
	return args
}

// Print writes a result. On a terminal a stranger's control characters are
// escaped; into a pipe or file everything goes as it is.
func (c *Console) Print(text string) error {
	if c.Streams.OutTerminal {
		text = host.Escape(text)
	}
	if _, err := fmt.Fprint(c.Streams.Out, text); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// Println writes a result that ends its line.
func (c *Console) Println(text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return c.Print(text)
}

// PrintJSON writes a value as JSON: laid out on a terminal, else in one line.
func (c *Console) PrintJSON(v any) error {
	raw, err := jsonrpc.JSON(v).AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return c.PrintIndented(raw)
}

// PrintIndented writes JSON: laid out on a terminal, else in one line.
func (c *Console) PrintIndented(raw []byte) error {
	if c.Streams.OutTerminal {
		return c.Println(host.Indent(raw))
	}
	return c.Println(string(raw))
}

// PrintJSONLines writes lines of JSON as they are, but for what EscapeJSON escapes on a terminal.
func (c *Console) PrintJSONLines(lines string) error {
	if c.Streams.OutTerminal {
		lines = EscapeJSON(lines)
	}
	return c.Println(lines)
}

// EscapeJSON writes the characters in JSON that host.Escape would escape as JSON escapes, so that
// the values stay the same.
func EscapeJSON(text string) string {
	if host.Escape(text) == text {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if char := string(r); host.Escape(char) == char {
			b.WriteString(char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Note writes a line to standard error.
func (c *Console) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Streams.Err, format+"\n", args...) // closed: nothing is lost
}

// NotePart writes to standard error what the person goes on after.
func (c *Console) NotePart(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Streams.Err, format, args...) // closed: nothing is lost
}

// ErrOf is standard error for what a server writes on its own: escaped at a terminal, as Print does.
func (c *Console) ErrOf() io.Writer {
	if c.Streams.ErrTerminal {
		return &escaping{w: c.Streams.Err, escape: host.Escape}
	}
	return c.Streams.Err
}

// JSONOut is standard output for lines of JSON: escaped at a terminal, as PrintJSONLines does.
func (c *Console) JSONOut() io.Writer {
	if c.Streams.OutTerminal {
		return &escaping{w: c.Streams.Out, escape: EscapeJSON}
	}
	return c.Streams.Out
}

// An escaping writer escapes control characters of what is written. It has one caller at a time.
type escaping struct {
	w      io.Writer
	escape func(string) string
	part   []byte // the beginning of a letter whose other bytes come with the next Write
}

// Write writes p, but for a letter at its end that is not complete.
func (e *escaping) Write(p []byte) (int, error) {
	text := append(e.part, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= n
			}
			break
		}
	}
	e.part = slices.Clone(text[whole:])
	if _, err := io.WriteString(e.w, e.escape(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Logger takes what is no result and no error. Without --verbose a command that
// uses servers shows none of it.
func (c *Console) Logger() *slog.Logger {
	if !c.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return c.LogFrom(slog.LevelDebug)
}

// ServerLogger is the logger of a command that is a server: what goes wrong
// there they go nowhere else. Without --verbose it begins at warnings.
func (c *Console) ServerLogger() *slog.Logger { return c.LogFrom(slog.LevelWarn) }

// LogFrom returns a logger that begins at a level, and with --verbose at debug messages.
func (c *Console) LogFrom(level slog.Level) *slog.Logger {
	if c.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(c.Streams.Err, &slog.HandlerOptions{Level: level}))
}

// AskSecret asks the person for a line that is not shown.
func (c *Console) AskSecret(ctx context.Context, prompt string) (string, error) {
	_, _ = fmt.Fprint(c.Streams.Err, prompt)
	text, err := c.Streams.Secret(ctx)
	_, _ = fmt.Fprintln(c.Streams.Err)
	if err != nil {
		return "", fmt.Errorf("reading what is not shown: %w", err)
	}
	return text, nil
}
