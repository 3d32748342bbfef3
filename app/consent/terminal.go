// Package consent is the host's face to a person at a terminal: it shows what
// the model wants to call and what servers want to know, and reads the answers.
//
// Everything that a server or the model says is shown escaped and marked as
// untrusted: no control character, no hidden or reversing character of theirs
// reaches the terminal as such.
package consent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// Bounds of what is read and shown.
const (
	maxLine   = 64 << 10 // bytes of one answer
	maxShown  = 16 << 10 // bytes of arguments or messages
	maxClaim  = 600      // bytes of a title or description
	maxUnread = 3        // answers that are not understood
)

// A Terminal asks a person. It implements host.Consent and host.Elicitor.
// Questions must come one at a time, as a host sends them.
type Terminal struct {
	out   io.Writer
	lines lines
}

// New makes a face of a terminal's input and output. The caller makes sure
// that a person is there: that the input is a terminal.
func New(in io.Reader, out io.Writer) *Terminal {
	return &Terminal{out: out, lines: lines{in: bufio.NewReader(in)}}
}

// errGone says that the person cannot answer any more.
var errGone = fmt.Errorf("%w: the input ended before the question was answered", host.ErrConsent)

// Ask shows what is to be done, and reads yes, always or no. What follows a
// "no" is the reason that the model is told. An answer that is not understood
// is asked again, and refuses in the end.
func (t *Terminal) Ask(ctx context.Context, q *host.Question) (host.Decision, error) {
	t.question(q)
	prompt := "Run it? [y]es, once / [a]lways, until this program ends / [n]o, and why: "
	if q.Kind == host.KindSampling {
		prompt = "Do it? [y]es, once / [a]lways, until this program ends / [n]o: "
	}
	for range maxUnread {
		t.printf("%s", prompt)
		line, err := t.lines.read(ctx)
		if err != nil {
			return host.Decision{}, err
		}
		first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch strings.ToLower(strings.TrimRight(first, ",.:;")) {
		case "y", "yes":
			return host.Decision{Grant: host.Once}, nil
		case "a", "always":
			return host.Decision{Grant: host.Always}, nil
		case "n", "no":
			return host.Decision{Reason: strings.TrimSpace(rest)}, nil
		}
		t.printf("Please answer y, a or n.\n")
	}
	return host.Decision{Reason: "no answer was understood"}, nil
}

// question shows a question of the host.
func (t *Terminal) question(q *host.Question) {
	t.printf("\n")
	switch {
	case q.Kind == host.KindTool:
		t.printf("The model wants to call a tool.\n")
	case q.Name == "answer":
		t.printf("The model's answer would go to the server.\n")
	default:
		t.printf("A server wants to use the model.\n")
	}
	t.server(q.Server, q.Origin)
	if q.Kind == host.KindTool {
		t.tool(q)
		t.printf("  arguments:\n%s", block(host.Indent(q.Arguments)))
	} else {
		t.printf("  text (untrusted):\n%s", block(host.Escape(q.Text)))
	}
	for _, s := range q.Secrets {
		where := "the text"
		if s.Pointer != "" {
			where = host.EscapeLine(s.Pointer)
		}
		t.printf("  WARNING: %s may hold a secret: %s\n", where, s.Why)
	}
	if q.Changed {
		t.printf("  WARNING: the definition of this tool has changed since you agreed to it\n")
	}
	t.printf("  asked because: %s\n", host.EscapeLine(q.Why))
}

// tool shows what is called, and what the server claims about it.
func (t *Terminal) tool(q *host.Question) {
	t.printf("  tool:      %s\n", host.EscapeLine(q.Name))
	if q.Tool == nil {
		return
	}
	if q.Tool.Title != "" {
		t.printf("  title, in the server's words (untrusted):       %s\n", claim(q.Tool.Title))
	}
	if q.Tool.Description != "" {
		t.printf("  description, in the server's words (untrusted): %s\n", claim(q.Tool.Description))
	}
}

func (t *Terminal) server(name, origin string) {
	t.printf("  server:    %s", host.EscapeLine(name))
	if origin != "" {
		t.printf(" (%s)", host.EscapeLine(origin))
	}
	t.printf("\n")
}

// printf writes to the terminal. Who cannot see the question cannot answer it
// either, so that an error needs no other notice than that of reading.
func (t *Terminal) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format, args...)
}

// claim shortens and escapes one line of a stranger.
func claim(s string) string {
	return host.EscapeLine(shorten(strings.TrimSpace(s), maxClaim))
}

// block indents lines, and says so when not all of them are shown.
func block(s string) string {
	cut := len(s) - maxShown
	s = shorten(s, maxShown)
	s = "    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n"
	if cut > 0 {
		s += fmt.Sprintf("    WARNING: %d more bytes are not shown\n", cut)
	}
	return s
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// lines reads answers. A read cannot be taken back: when a question is
// withdrawn, the read goes on, and the next question takes it over.
type lines struct {
	in      *bufio.Reader
	pending chan line
}

type line struct {
	text string
	err  error
}

// read returns the next line. What was typed to the end before read was called
// in answer to a withdrawn question is thrown away.
func (l *lines) read(ctx context.Context) (string, error) {
	if l.pending != nil {
		select {
		case old := <-l.pending:
			l.pending = nil
			if old.err != nil {
				return "", old.err
			}
		default:
		}
	}
	if l.pending == nil {
		pending := make(chan line, 1)
		l.pending = pending
		go func() { // ends with the line or with the input
			text, err := l.one()
			pending <- line{text, err}
		}()
	}
	select {
	case got := <-l.pending:
		l.pending = nil
		return got.text, got.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// one reads one line, of which at most maxLine bytes are kept.
func (l *lines) one() (string, error) {
	var kept []byte
	for {
		part, err := l.in.ReadSlice('\n')
		kept = append(kept, part[:min(len(part), maxLine-len(kept))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil:
			return strings.TrimRight(string(kept), "\r\n"), nil
		case errors.Is(err, io.EOF) && len(kept) > 0:
			return string(kept), nil
		case errors.Is(err, io.EOF):
			return "", errGone
		default:
			return "", fmt.Errorf("reading the answer: %w", err)
		}
	}
}
