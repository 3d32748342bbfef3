// Package eventstream reads and writes text/event-stream, the format of
// server-sent events (HTML standard, section 9.2).
package eventstream

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

// ErrTooLong says that an event exceeds the reader's limit.
var ErrTooLong = errors.New("event exceeds the limit")

// message is the type of an event that names none.
const message = "message"

// An Event is one event of a stream.
type Event struct {
	// Type is the name of the event; empty means "message".
	Type string
	// ID is the value of the id field, if HasID.
	ID    string
	HasID bool
	// Data is the text of the event; lines are separated by \n. On reading
	// it is memory of its own, and nil if the event had no data line.
	Data []byte
	// Retry is the reconnection time that the event sets, if HasRetry. It is
	// written in whole milliseconds; on reading it is at most a day.
	Retry    time.Duration
	HasRetry bool
}

// IsMessage reports whether the event is of the type "message", be it by name
// or because it names none.
func (e *Event) IsMessage() bool { return e.Type == "" || e.Type == message }

// Append appends the event in its wire form. Line breaks of any kind in the
// data begin a new data line; in the other fields they would end the field, so
// that such a field is left out, as is an id with a NUL, which readers ignore.
// An event without data has an empty data line, so that readers dispatch it.
func Append(dst []byte, e *Event) []byte {
	if e.Type != "" && !strings.ContainsAny(e.Type, "\r\n") {
		dst = append(append(append(dst, "event: "...), e.Type...), '\n')
	}
	if e.HasID && !strings.ContainsAny(e.ID, "\r\n\x00") {
		dst = append(append(append(dst, "id: "...), e.ID...), '\n')
	}
	if e.HasRetry {
		dst = append(dst, "retry: "...)
		dst = strconv.AppendInt(dst, max(e.Retry.Milliseconds(), 0), 10)
		dst = append(dst, '\n')
	}
	for line, rest, more := []byte(nil), e.Data, true; more; {
		line, rest, more = cutLine(rest)
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}

// AppendComment appends a comment line, which readers ignore: a sign of life.
func AppendComment(dst []byte) []byte { return append(dst, ":\n\n"...) }

// cutLine splits data at its first line break: \r\n, \n or \r.
func cutLine(data []byte) (line, rest []byte, found bool) {
	i := lineEnd(data)
	if i < 0 {
		return data, nil, false
	}
	line, rest = data[:i], data[i+1:]
	if data[i] == '\r' {
		rest = bytes.TrimPrefix(rest, []byte{'\n'})
	}
	return line, rest, true
}

// window is how far lineEnd looks for one kind of line end before it looks for
// the other, so that text with only one of them is not searched to its end
// again for every line.
const window = 1 << 10

// lineEnd returns the place of the first \n or \r in data, or -1.
func lineEnd(data []byte) int {
	for begin := 0; begin < len(data); begin += window {
		part := data[begin:min(begin+window, len(data))]
		lf := bytes.IndexByte(part, '\n')
		if lf >= 0 {
			part = part[:lf]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			return begin + cr
		}
		if lf >= 0 {
			return begin + lf
		}
	}
	return -1
}
