package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
)

// maxTyped is how many bytes of one line are taken: a pasted address.
const maxTyped = 64 << 10

// A lineReader is the person at the keyboard, whose lines several parts of the
// program wait for. A read of the input cannot be taken back: what one part
// began to wait for and gave up goes to the next one, so that nothing that was
// typed is lost. Who has asked a question comes before who reads whatever is typed. It
// never reads further than the line that a caller wants. It may be used by many
// goroutines at once.
type lineReader struct {
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

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, maxTyped)}
}

// line waits for the answer to a question, or the end of ctx, and returns it without
// the end of its line.
func (t *lineReader) line(ctx context.Context) (string, error) {
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

// discard throws away what was typed and not read yet.
func (t *lineReader) discard() {
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

// leave gives a line that was no answer to those that read whatever is typed.
func (t *lineReader) leave(line string) {
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

// Read implements io.Reader. It gives one line at most.
func (t *lineReader) Read(p []byte) (int, error) {
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

// wait waits for a line among those in a list. t.mu is held, and is not any more when
// it returns.
func (t *lineReader) wait(ctx context.Context, list *[]chan readLine) ([]byte, error) {
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

// begin begins to read a line, unless one is being read. t.mu is held.
func (t *lineReader) begin() {
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

// deliver gives a line to who waits. t.mu is held.
func (t *lineReader) deliver(got readLine) {
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
