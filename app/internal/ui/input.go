package ui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
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
	// again says that the line before was stale for the same reason.
	again bool
	// pasted says that the line begins within what a terminal marked as pasted.
	pasted bool
	at     time.Time
	err    error
}

// Burst is how soon after a question, and after one another, lines are too soon for a
// person to have read it: the rest of a paste, of which a terminal sends a part at a time.
const Burst = 100 * time.Millisecond

// Marks of what is pasted, from terminals that are asked to tell.
const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

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
	now     func() time.Time
	// quietSince is when a question was shown, or the last line that came too soon after it;
	// zero once a line has come in time.
	quietSince time.Time
	early      bool // a line came too soon
	pasting    bool // a paste has not ended yet
}

func newInput(in io.Reader, discard func(), now func() time.Time) *input {
	return &input{in: bufio.NewReader(in), discard: discard, lines: make(chan typed, 1), now: now}
}

// begin begins to read a line, unless a read is under way.
func (i *input) begin() {
	if i.pending {
		return
	}
	i.pending, i.stale = true, false
	go func() { // ends with the line or with the input
		text, err := i.one()
		i.lines <- typed{text: text, at: i.now(), err: err}
	}()
}

// got notes a line from lines.
func (i *input) got(t typed) typed {
	t.stale = i.stale && t.err == nil
	i.pending, i.stale = false, false
	if t.err == nil {
		i.hasten(&t)
		t.text, t.pasted, i.pasting = unpaste(t.text, i.pasting)
	}
	return t
}

// hasten notes whether a line came too soon after the question to answer it.
func (i *input) hasten(t *typed) {
	if i.quietSince.IsZero() {
		return
	}
	if t.at.Sub(i.quietSince) < Burst {
		t.stale, t.again = true, i.early
		i.quietSince, i.early = t.at, true
		return
	}
	i.quietSince, i.early = time.Time{}, false
}

// unpaste takes the marks of a paste out of a line. It reports whether the line begins
// within one, and whether one goes on after it.
func unpaste(text string, pasting bool) (rest string, pasted, goesOn bool) {
	if !strings.Contains(text, pasteBegins) && !strings.Contains(text, pasteEnds) {
		return text, pasting, pasting
	}
	pasted = pasting || strings.HasPrefix(strings.TrimSpace(text), pasteBegins)
	goesOn = strings.LastIndex(text, pasteBegins) > strings.LastIndex(text, pasteEnds)
	return strings.NewReplacer(pasteBegins, "", pasteEnds, "").Replace(text), pasted, goesOn
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
	i.quietSince, i.early = i.now(), false
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
