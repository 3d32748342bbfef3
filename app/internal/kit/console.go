// Package kit provides what all commands share: the standard streams, the output of results and errors,
// exit codes, and the paths of Parley's files.
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

// A Console writes the output of one command and asks the user questions. It uses the streams as the flags
// --json and --verbose require.
type Console struct {
	Streams *Streams
	JSON    bool // print results as JSON
	Verbose bool // log debug messages, too

	rewrites map[*cobra.Command]func(args []string) []string // what Rewrite set
}

// JSONFlag adds the flag --json to commands. The subcommands of a command inherit it.
func (c *Console) JSONFlag(commands ...*cobra.Command) {
	for _, cmd := range commands {
		FlagsOf(cmd).BoolVar(&c.JSON, "json", false, "print results as JSON")
	}
}

// VerboseFlag adds the flag --verbose to all commands below root.
func (c *Console) VerboseFlag(root *cobra.Command) {
	root.PersistentFlags().BoolVarP(&c.Verbose, "verbose", "v", false, "show debug messages")
}

// FlagsOf returns the flags of a command, or the flags that its subcommands inherit if it has any.
func FlagsOf(cmd *cobra.Command) *pflag.FlagSet {
	if cmd.HasSubCommands() {
		return cmd.PersistentFlags()
	}
	return cmd.Flags()
}

// Rewrite sets a function that rewrites the program's arguments before they are parsed, if they name cmd.
func (c *Console) Rewrite(cmd *cobra.Command, rewrite func(args []string) []string) {
	if c.rewrites == nil {
		c.rewrites = make(map[*cobra.Command]func([]string) []string)
	}
	c.rewrites[cmd] = rewrite
}

// Rewritten returns the program's arguments, which name cmd, after the function set by Rewrite.
func (c *Console) Rewritten(cmd *cobra.Command, args []string) []string {
	if rewrite := c.rewrites[cmd]; rewrite != nil {
		return rewrite(args)
	}
	return args
}

// Print writes a result. If standard output is a terminal, it escapes control characters, which can
// come from untrusted servers. It writes to a pipe or file without changes.
func (c *Console) Print(text string) error {
	if c.Streams.OutTerminal {
		text = host.Escape(text)
	}
	if _, err := fmt.Fprint(c.Streams.Out, text); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// Println is like Print and adds a line feed unless the text ends with one.
func (c *Console) Println(text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return c.Print(text)
}

// PrintJSON writes a value as JSON: indented on a terminal, otherwise in one line.
func (c *Console) PrintJSON(v any) error {
	raw, err := jsonrpc.JSON(v).AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return c.PrintIndented(raw)
}

// PrintIndented writes JSON: indented on a terminal, otherwise in one line.
func (c *Console) PrintIndented(raw []byte) error {
	if c.Streams.OutTerminal {
		return c.Println(host.Indent(raw))
	}
	return c.Println(string(raw))
}

// PrintJSONLines writes lines of JSON without changes; on a terminal it applies EscapeJSON.
func (c *Console) PrintJSONLines(lines string) error {
	if c.Streams.OutTerminal {
		lines = EscapeJSON(lines)
	}
	return c.Println(lines)
}

// EscapeJSON replaces the characters that host.Escape would escape by JSON escapes, so that
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

// NotePart writes to standard error without a line feed, such as a prompt.
func (c *Console) NotePart(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Streams.Err, format, args...) // closed: nothing is lost
}

// ErrOf returns a writer for a server's standard error, which escapes as Print does if it is a terminal.
func (c *Console) ErrOf() io.Writer {
	if c.Streams.ErrTerminal {
		return &escaping{w: c.Streams.Err, escape: host.Escape}
	}
	return c.Streams.Err
}

// JSONOut returns standard output for lines of JSON, which escapes as PrintJSONLines does on a terminal.
func (c *Console) JSONOut() io.Writer {
	if c.Streams.OutTerminal {
		return &escaping{w: c.Streams.Out, escape: EscapeJSON}
	}
	return c.Streams.Out
}

// An escaping writer escapes control characters. It is not safe for concurrent use.
type escaping struct {
	w      io.Writer
	escape func(string) string
	part   []byte // an incomplete character at the end of the last Write
}

// Write writes p, except for an incomplete character at its end.
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

// Logger returns the logger for everything except results and errors. Without --verbose, a command that
// uses servers logs nothing.
func (c *Console) Logger() *slog.Logger {
	if !c.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return c.LogFrom(slog.LevelDebug)
}

// ServerLogger returns the logger of a command that runs a server, whose failures appear
// only in its log. Without --verbose it logs warnings and errors.
func (c *Console) ServerLogger() *slog.Logger { return c.LogFrom(slog.LevelWarn) }

// LogFrom returns a logger for messages of at least the level, or for all with --verbose.
func (c *Console) LogFrom(level slog.Level) *slog.Logger {
	if c.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(c.Streams.Err, &slog.HandlerOptions{Level: level}))
}

// AskSecret prompts the user for a line and does not echo it.
func (c *Console) AskSecret(ctx context.Context, prompt string) (string, error) {
	_, _ = fmt.Fprint(c.Streams.Err, prompt)
	text, err := c.Streams.Secret(ctx)
	_, _ = fmt.Fprintln(c.Streams.Err)
	if err != nil {
		return "", fmt.Errorf("reading the hidden input: %w", err)
	}
	return text, nil
}
