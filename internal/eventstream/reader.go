package eventstream

import (
	"bytes"
	"io"
	"time"
)

// Sizes of a reader's buffer: what it begins with, and the most that it keeps
// once a longer line has been read.
const (
	firstBuffer = 4 << 10
	keepBuffer  = 64 << 10
)

// maxRetry is the longest reconnection time that a reader reports.
const maxRetry = 24 * time.Hour

// maxEmptyReads is how often in a row a source may give nothing and no error.
const maxEmptyReads = 100

// A Reader reads events. It has one caller at a time.
type Reader struct {
	// Parts, if not nil, is told by Next whenever more of an event has arrived, and the rest has
	// not. Comments are no part of an event.
	Parts interface{ PartArrived() }

	src   io.Reader
	limit int

	buf     []byte // what was read; buf[start:] is not taken yet
	start   int
	scanned int   // so much of buf[start:] has no line end
	err     error // met once what is in buf has been taken

	begun  bool // the first line has been read
	skipLF bool // a \n that comes next belongs to the \r before it
	size   int  // of the event so far
	told   int  // how much of it Parts was told of
}

// NewReader returns a reader of r that refuses events of more than limit
// bytes. All that stands on the lines of an event counts, names of fields
// included and line ends not; a comment must keep to what is left, but counts
// only while it is read, so that signs of life may go on for ever.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{src: r, limit: limit}
}

// Next returns the next event that has data, an id or a retry: unlike a
// browser it also reports events with empty data, since they carry an id. The
// end of the stream is io.EOF, also in the middle of an event, which is
// dropped as the standard says; an event over the limit is ErrTooLong, after
// which the reader is of no more use. Text is passed on as it is, valid UTF-8
// or not.
func (r *Reader) Next() (Event, error) {
	var e Event
	r.size, r.told = 0, 0
	for {
		line, err := r.line()
		switch {
		case err != nil:
			return Event{}, err
		case len(line) == 0:
			if e.Data != nil || e.HasID || e.HasRetry {
				return e, nil
			}
			e = Event{} // an event of a type alone is none
			r.size, r.told = 0, 0
		case line[0] == ':':
			// a comment
		default:
			r.size += len(line)
			e.field(line)
		}
	}
}

// field takes one line that is neither blank nor a comment.
func (e *Event) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if e.Data == nil {
			e.Data = append(make([]byte, 0, len(value)), value...)
			return
		}
		e.Data = append(append(e.Data, '\n'), value...)
	case "event":
		if e.Type = message; string(value) != message { // the usual one costs nothing
			e.Type = string(value)
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.ID, e.HasID = string(value), true
		}
	case "retry":
		if d, ok := milliseconds(value); ok {
			e.Retry, e.HasRetry = d, true
		}
	}
}

// milliseconds reads a number of ASCII digits alone, and clips it.
func milliseconds(digits []byte) (d time.Duration, ok bool) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		d = min(10*d+time.Duration(c-'0')*time.Millisecond, maxRetry)
	}
	return d, len(digits) > 0
}

// line returns the next line without its end. It is void at the next call.
func (r *Reader) line() ([]byte, error) {
	for {
		if r.skipLF && r.start < len(r.buf) {
			r.skipLF = false
			if r.buf[r.start] == '\n' {
				r.start++
			}
		}
		rest := r.buf[r.start:]
		end := lineEnd(rest[r.scanned:])
		if end >= 0 {
			end += r.scanned
			r.scanned = 0
			r.skipLF = rest[end] == '\r' // waiting for a \n could last for ever
			r.start += end + 1
			rest = rest[:end]
		}
		switch {
		case r.size+len(rest) > r.limit && len(rest) > 0:
			r.buf, r.start, r.scanned, r.err = nil, 0, 0, ErrTooLong
			return nil, ErrTooLong
		case end >= 0:
			return r.first(rest), nil
		}
		r.scanned = len(rest)
		r.tell(rest)
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// tell tells Parts if more of the event has arrived. The rest is the beginning of its next line.
func (r *Reader) tell(rest []byte) {
	size := r.size
	if len(rest) > 0 && rest[0] != ':' {
		size += len(rest)
	}
	if r.Parts != nil && size > r.told {
		r.told = size
		r.Parts.PartArrived()
	}
}

// first takes the byte order mark off the first line of the stream.
func (r *Reader) first(line []byte) []byte {
	if r.begun {
		return line
	}
	r.begun = true
	return bytes.TrimPrefix(line, []byte("\ufeff"))
}

// fill reads more into the buffer, of which everything but the rest of a line
// has been taken.
func (r *Reader) fill() error {
	if r.err != nil {
		return r.err
	}
	r.room()
	for range maxEmptyReads {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		r.err = err
		if n > 0 {
			return nil // err is for later
		}
		if err != nil {
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// room moves the rest to the front of a buffer that has room behind it.
func (r *Reader) room() {
	rest := r.buf[r.start:]
	size := cap(r.buf)
	switch {
	case len(rest) == size:
		size = max(2*size, firstBuffer)
	case size > keepBuffer && len(rest) < keepBuffer/2:
		size = keepBuffer
	case r.start == 0:
		return
	default:
		r.buf = r.buf[:copy(r.buf, rest)]
		r.start = 0
		return
	}
	r.buf = append(make([]byte, 0, size), rest...)
	r.start = 0
}
