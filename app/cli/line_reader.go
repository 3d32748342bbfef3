package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// maxTyped is how many bytes of one line are taken: a pasted address.
const maxTyped = 64 << 10

// A lineReader is the person at the keyboard, whose lines several parts of the
// program wait for. A read of the input cannot be taken back: what one part
// began to wait for and gave up goes to the next one, so that nothing that was
// typed is lost. It never reads further than the line that a caller wants. It
// may be used by many goroutines at once.
type lineReader struct {
	in      *bufio.Reader
	turn    chan struct{} // holds a token while a caller waits
	pending chan readLine // the read in progress, or nil; belongs to the token's holder
	rest    []byte        // of a line that did not fit into the buffer of Read
}

type readLine struct {
	text []byte
	err  error
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, maxTyped), turn: make(chan struct{}, 1)}
}

// line waits for a line, or the end of ctx, and returns it without its end.
func (t *lineReader) line(ctx context.Context) (string, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if len(t.rest) > 0 {
		text := string(t.rest)
		t.rest = nil
		return strings.TrimRight(text, "\r\n"), nil
	}
	got, err := t.next(ctx)
	if err != nil && len(got) == 0 {
		return "", err
	}
	return strings.TrimRight(string(got), "\r\n"), nil
}

// discard throws away what was typed and not asked for yet, as far as no caller waits
// for it.
func (t *lineReader) discard() {
	select {
	case t.turn <- struct{}{}:
	default:
		return // a caller waits: what comes is for it
	}
	defer func() { <-t.turn }()
	t.rest = nil
	if t.pending == nil {
		_, _ = t.in.Discard(t.in.Buffered()) // what is buffered can be discarded
		return
	}
	select {
	case got := <-t.pending:
		if got.err != nil {
			t.pending <- got // the end of the input stays its end
			return
		}
		t.pending = nil
	default:
	}
}

// Read implements io.Reader. It gives one line at most.
func (t *lineReader) Read(p []byte) (int, error) {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if len(t.rest) == 0 {
		got, err := t.next(context.Background())
		if err != nil && len(got) == 0 {
			return 0, err
		}
		t.rest = got
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// next returns the line that is being read, and begins to read one if none is.
func (t *lineReader) next(ctx context.Context) ([]byte, error) {
	if t.pending == nil {
		pending := make(chan readLine, 1)
		t.pending = pending
		go func() { // ends with the line or with the input
			text, err := t.in.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				err = nil
			}
			pending <- readLine{append([]byte(nil), text...), err}
		}()
	}
	select {
	case got := <-t.pending:
		t.pending = nil
		return got.text, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
