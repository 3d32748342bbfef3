package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxEvent bounds an event of a stream, in bytes.
const MaxEvent = 16 << 20

// ErrTooLong says that an event is longer than MaxEvent.
var ErrTooLong = fmt.Errorf("an event of the stream is longer than %d MiB", MaxEvent>>20)

// An Event is one event of a stream (HTML standard, section 9.2).
type Event struct {
	// Name is its type, or empty.
	Name string
	// Data is its text; lines are separated by \n. It is memory of its own.
	Data []byte
}

// A Reader reads the events of a stream. It must not be used by two goroutines at once.
type Reader struct {
	in    *bufio.Reader
	begun bool // the first line was looked at
	cr    bool // the last line ended with \r, to which a \n belongs
}

// NewReader reads from in.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, 32<<10)} }

// Next returns the next event that has data. The error at the end is io.EOF; it is
// io.ErrUnexpectedEOF where the stream ends within a line. The last event needs no empty
// line after it: some servers end without.
func (r *Reader) Next() (Event, error) {
	var event Event
	size, lines := 0, 0
	for {
		line, err := r.line(MaxEvent - size)
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return Event{}, io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF) && lines > 0:
			return event, nil
		case err != nil:
			return Event{}, err
		}
		size += len(line)
		if len(line) == 0 {
			if lines > 0 {
				return event, nil
			}
			event, size = Event{}, 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "event":
			event.Name = string(value)
		case "data":
			if lines++; lines > 1 {
				event.Data = append(event.Data, '\n')
			}
			event.Data = append(event.Data, value...)
		}
	}
}

// line reads one line, which ends with \n, \r\n or \r, without its end. With an error it is
// what came before.
func (r *Reader) line(most int) (line []byte, err error) {
	for {
		if _, err := r.in.Peek(1); err != nil {
			return line, err
		}
		part, _ := r.in.Peek(r.in.Buffered()) // it is there
		if r.cr && part[0] == '\n' {
			_, _ = r.in.Discard(1) // as are all that follow
			r.cr = false
			continue
		}
		r.cr = false
		if !r.begun && len(line) == 0 && part[0] == bom[0] {
			if mark, _ := r.in.Peek(len(bom)); bytes.Equal(mark, bom) {
				_, _ = r.in.Discard(len(bom))
				r.begun = true
				continue
			}
			part, _ = r.in.Peek(r.in.Buffered())
		}
		r.begun = true
		end := bytes.IndexAny(part, "\r\n")
		if end < 0 {
			end = len(part)
		}
		if len(line)+end > most {
			return nil, ErrTooLong
		}
		line = append(line, part[:end]...)
		if end == len(part) {
			_, _ = r.in.Discard(end)
			continue
		}
		r.cr = part[end] == '\r'
		_, _ = r.in.Discard(end + 1)
		return line, nil
	}
}

// bom may stand at the beginning of a stream.
var bom = []byte("\ufeff")
