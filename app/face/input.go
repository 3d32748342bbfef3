package face

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds a line that is typed, in bytes; the rest of it is lost, and the
// person is told.
const maxLine = 256 << 10

// A typed is a line that was read.
type typed struct {
	text string
	// stale says that the line was perhaps begun before the question was shown which
	// it would answer, or for one that is settled.
	stale bool
	err   error
}

// errLong says that a line is longer than maxLine.
var errLong = errors.New("the line is too long")

// An input reads lines, one at a time. A read cannot be taken back: when a question is
// shown while one is under way, the line that it brings is stale, for a server must not
// be able to put a question under the fingers of a person who is about to press Enter.
type input struct {
	in *bufio.Reader
	// discard throws away what was typed and not read, or is nil.
	discard func()
	lines   chan typed // has room for one
	pending bool       // a read is under way, or its line is in lines
	stale   bool       // of the line that is pending
}

func newInput(in io.Reader, discard func()) *input {
	return &input{in: bufio.NewReader(in), discard: discard, lines: make(chan typed, 1)}
}

// begin begins to read a line, unless a read is under way.
func (i *input) begin() {
	if i.pending {
		return
	}
	i.pending, i.stale = true, false
	go func() { // ends with the line or with the input
		text, err := i.one()
		i.lines <- typed{text: text, err: err}
	}()
}

// got notes a line from lines.
func (i *input) got(t typed) typed {
	t.stale = i.stale && t.err == nil
	i.pending, i.stale = false, false
	return t
}

// shown notes that a question is shown from now on. A terminal has then lost what was
// typed before. Without a way to do that, the line that is pending is stale. The end of
// the input is kept.
func (i *input) shown() {
	if i.discard == nil {
		i.stale = i.pending
		return
	}
	i.discard()
	i.stale = false
	if !i.pending {
		_, _ = i.in.Discard(i.in.Buffered()) // what is buffered can be discarded
		return
	}
	select {
	case t := <-i.lines:
		if t.err != nil {
			i.lines <- t
			return
		}
		i.pending = false
	default:
	}
}

// settled notes that the question which was shown needs no answer any more: the line
// that is pending was perhaps begun for it.
func (i *input) settled() { i.stale = i.pending }

// one reads one line.
func (i *input) one() (string, error) {
	var kept []byte
	long := false
	for {
		part, err := i.in.ReadSlice('\n')
		room := min(len(part), maxLine-len(kept))
		kept, long = append(kept, part[:room]...), long || room < len(part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF) && len(kept) > 0:
			if long {
				return "", errLong
			}
			return strings.TrimRight(string(kept), "\r\n"), nil
		case errors.Is(err, io.EOF):
			return "", io.EOF
		default:
			return "", fmt.Errorf("reading a line: %w", err)
		}
	}
}
