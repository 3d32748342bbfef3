package kit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/ui"
)

// maxTyped is the maximum length of a line in bytes, enough for a pasted address.
const maxTyped = 64 << 10

// A Keyboard reads lines of input for several callers. A read cannot be taken back, so a line that
// arrives after its caller gave up goes to the next caller, and nothing that was typed is lost. Callers
// of Line, which asked a question, come before callers of Read. It never reads beyond the line that a
// caller wants. It is safe for concurrent use.
type Keyboard struct {
	in *bufio.Reader

	mu      sync.Mutex
	reading bool            // a goroutine reads a line
	ready   *readLine       // was read, and nobody waited
	askers  []chan readLine // each has asked a question
	readers []chan readLine
	rest    []byte   // of a line that did not fit into the buffer of Read
	left    [][]byte // lines that were no answers, for readers
}

type readLine struct {
	text []byte
	err  error
}

// NewKeyboard returns a Keyboard that reads in.
func NewKeyboard(in io.Reader) *Keyboard {
	return &Keyboard{in: bufio.NewReaderSize(in, maxTyped)}
}

// Line waits for the line that answers a question, or until ctx ends. It returns the line without
// its line ending.
func (t *Keyboard) Line(ctx context.Context) (string, error) {
	t.mu.Lock()
	if len(t.rest) > 0 {
		text := string(t.rest)
		t.rest = nil
		t.mu.Unlock()
		return strings.TrimRight(text, "\r\n"), nil
	}
	got, err := t.wait(ctx, &t.askers)
	if err != nil && len(got) == 0 {
		return "", err
	}
	return strings.TrimRight(string(got), "\r\n"), nil
}

// Discard discards typed input that has not been read yet.
func (t *Keyboard) Discard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest, t.left = nil, nil
	if t.ready != nil && t.ready.err == nil {
		t.ready = nil
	}
	if !t.reading {
		_, _ = t.in.Discard(t.in.Buffered()) // what is buffered can be discarded
	}
}

// Leave passes a line that was not an answer to callers of Read.
func (t *Keyboard) Leave(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := []byte(line + "\n")
	if len(t.readers) == 0 {
		t.left = append(t.left, text)
		return
	}
	t.readers[0] <- readLine{text: text} // has room
	t.readers = t.readers[1:]
}

// Read implements io.Reader. It returns at most one line.
func (t *Keyboard) Read(p []byte) (int, error) {
	t.mu.Lock()
	if len(t.rest) == 0 && len(t.left) > 0 {
		t.rest, t.left = t.left[0], t.left[1:]
	}
	if len(t.rest) == 0 {
		got, err := t.wait(context.Background(), &t.readers)
		if err != nil && len(got) == 0 {
			return 0, err
		}
		t.mu.Lock()
		t.rest = got
	}
	defer t.mu.Unlock()
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// wait queues the caller in list and waits for a line. The caller holds t.mu; wait releases it.
func (t *Keyboard) wait(ctx context.Context, list *[]chan readLine) ([]byte, error) {
	if got := t.ready; got != nil {
		if got.err == nil { // the end of the input stays its end
			t.ready = nil
		}
		t.mu.Unlock()
		return got.text, got.err
	}
	mine := make(chan readLine, 1)
	*list = append(*list, mine)
	t.begin()
	t.mu.Unlock()
	select {
	case got := <-mine:
		return got.text, got.err
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	*list = slices.DeleteFunc(*list, func(other chan readLine) bool { return other == mine })
	select {
	case got := <-mine: // came just now: it is for the next one, before what came after it
		if later := t.ready; later != nil && later.err == nil {
			got.text = append(got.text, later.text...)
		}
		t.ready = nil
		t.deliver(got)
	default:
	}
	return nil, context.Cause(ctx)
}

// begin starts to read a line, unless a read is in progress. The caller holds t.mu.
func (t *Keyboard) begin() {
	if t.reading {
		return
	}
	t.reading = true
	go func() { // ends with the line or with the input
		text, err := t.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		got := readLine{append([]byte(nil), text...), err}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reading = false
		t.deliver(got)
	}()
}

// deliver passes a line to the first waiting caller. The caller holds t.mu.
func (t *Keyboard) deliver(got readLine) {
	for _, list := range []*[]chan readLine{&t.askers, &t.readers} {
		if len(*list) == 0 {
			continue
		}
		(*list)[0] <- got // has room
		*list = (*list)[1:]
		if got.err != nil {
			t.deliver(readLine{err: got.err}) // the input has ended for all
			return
		}
		if len(t.askers)+len(t.readers) > 0 {
			t.begin()
		}
		return
	}
	t.ready = &got
}

// Keyboard returns the reader of s.In, which all callers share.
func (s *Streams) Keyboard() *Keyboard {
	s.typing.Do(func() { s.keyboard = NewKeyboard(s.In) })
	return s.keyboard
}

// Discard returns a function that discards input typed before a question, or nil if In is not a terminal.
func (s *Streams) Discard() func() {
	if !s.InTerminal || s.Flush == nil {
		return nil
	}
	return func() {
		s.Flush()
		s.Keyboard().Discard()
	}
}

// AskLine asks a question at the terminal and returns the line that answers it. Lines that were typed
// before, or arrive too soon to be an answer, are discarded.
func (c *Console) AskLine(ctx context.Context, question string) (string, error) {
	c.NotePart("%s", question)
	discard := c.Streams.Discard()
	if discard == nil {
		return c.Streams.Keyboard().Line(ctx)
	}
	discard()
	for since := time.Now(); ; since = time.Now() {
		line, err := c.Streams.Keyboard().Line(ctx)
		if err != nil || time.Since(since) >= ui.Burst {
			return line, err
		}
	}
}

// AskYes asks a question and reports whether the answer is yes.
func (c *Console) AskYes(ctx context.Context, question string) (bool, error) {
	line, err := c.AskLine(ctx, question)
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes"), err
}
