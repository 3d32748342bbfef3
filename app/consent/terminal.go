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
	maxName   = 64       // bytes of the name of a field next to its answer
	maxUnread = 3        // answers that are not understood
)

// A Terminal asks a person. It implements host.Consent and host.Elicitor.
// Questions must come one at a time, as a host sends them.
type Terminal struct {
	// Width tells the columns of the terminal. Default: 80.
	Width func() int

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
	prompt := "Run it? [y]es, [a]lways (any arguments), [n]o (and why): "
	if q.Kind == host.KindSampling {
		prompt = "Do it? [y]es, [a]lways (any text), [n]o: "
	}
	for range maxUnread {
		line, err := t.answer(ctx, prompt)
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
		t.printf("  arguments:\n")
		t.block(host.Indent(q.Arguments))
	} else {
		t.printf("  text (untrusted):\n")
		t.block(host.Escape(q.Text))
	}
	for _, s := range q.Secrets {
		where := "the text"
		if s.Pointer != "" {
			where = claim(s.Pointer)
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
	t.said("  tool:      ", q.Name)
	t.lookalike(q.Name)
	if q.Tool == nil {
		return
	}
	if q.Tool.Title != "" {
		t.said("  title (untrusted):       ", q.Tool.Title)
	}
	if q.Tool.Description != "" {
		t.said("  description (untrusted): ", q.Tool.Description)
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

// answer shows a prompt and reads a line. What began to be typed for a
// question that was withdrawn meanwhile is no answer to this one.
func (t *Terminal) answer(ctx context.Context, prompt string) (string, error) {
	for {
		t.printf("%s", prompt)
		line, err := t.lines.read(ctx)
		switch {
		case errors.Is(err, errStale):
			t.printf("The question before was withdrawn while you could answer it. Please answer this one.\n")
			continue
		case err != nil && ctx.Err() != nil:
			t.printf("\n(the question was withdrawn)\n")
		}
		return line, err
	}
}

// errStale says that a line may have been meant for another question.
var errStale = errors.New("an answer to a withdrawn question")

// lines reads answers. A read cannot be taken back: when a question is
// withdrawn, the read goes on, and what it brings is thrown away.
type lines struct {
	in      *bufio.Reader
	pending chan line
}

type line struct {
	text string
	err  error
}

// read returns the next line. What was typed to the end before read was called
// in answer to a withdrawn question is thrown away; what was perhaps begun
// then gives errStale: a server must not be able to put another question under
// the fingers of a person who is about to press Enter.
func (l *lines) read(ctx context.Context) (string, error) {
	stale := false
	if l.pending != nil {
		select {
		case old := <-l.pending:
			l.pending = nil
			if old.err != nil {
				return "", old.err
			}
		default:
			stale = true
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
		if stale && got.err == nil {
			return "", errStale
		}
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
