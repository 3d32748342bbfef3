package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A frame is what faults are applied to, with what ends it. It is never written to: what changes
// it makes another one.
type frame struct {
	bytes    []byte
	from, to int // the message, or the part of it that can be changed, in bytes
}

// lineFrame is a line with its end, or without one at the end of the stream.
func lineFrame(line []byte) frame {
	return frame{line, 0, len(bytes.TrimRight(line, " \t\r\n"))}
}

// eventFrame is an event of an event stream, with the blank line behind it. What can be changed is
// its first line of data.
func eventFrame(event []byte) frame {
	at := 0
	for line := range bytes.Lines(event) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			from := at + len(line) - len(bytes.TrimLeft(data, " "))
			return frame{event, from, from + len(bytes.TrimSpace(data))}
		}
		at += len(line)
	}
	return frame{event, 0, 0}
}

// bodyFrame is a body of HTTP.
func bodyFrame(body []byte) frame {
	return frame{body, 0, len(bytes.TrimRight(body, " \t\r\n"))}
}

// message is what can be changed.
func (f frame) message() []byte { return f.bytes[f.from:f.to] }

// with is the frame with another message.
func (f frame) with(message []byte) frame {
	all := slices.Concat(f.bytes[:f.from], message, f.bytes[f.to:])
	return frame{all, f.from, f.from + len(message)}
}

// takes says whether a fault can be applied to the frame.
func (f frame) takes(fault Fault) bool {
	switch fault {
	case Truncate, BadJSON:
		return f.to-f.from > 1
	case WrongID:
		_, _, ok := idOf(f.message())
		return ok
	case Drop, Slow:
		return len(f.bytes) > 1
	default:
		return len(f.bytes) > 0
	}
}

// changed applies a fault that changes the bytes of a frame alone.
func (f frame) changed(d *decision) (frame, string) {
	m := f.message()
	switch d.fault {
	case Truncate:
		n := 1 + d.rand.IntN(len(m)-1)
		return f.with(m[:n]), fmt.Sprintf("%d of %d bytes are left", n, len(m))
	case BadJSON:
		at := d.rand.IntN(len(m))
		broken := slices.Clone(m)
		broken[at] = 1
		return f.with(broken), fmt.Sprintf("byte %d of %d", at, len(m))
	case WrongID:
		from, to, _ := idOf(m)
		return f.with(slices.Concat(m[:from], otherID(m[from:to], d.rand), m[to:])), ""
	default:
		panic(fmt.Sprintf("the fault %s changes no bytes", d.fault)) // the table of faults says so
	}
}

// otherID is an id of the same kind that no client comes to by counting.
func otherID(id []byte, random *rand.Rand) []byte {
	n := 1<<40 + random.Uint64N(1<<40)
	if len(id) > 0 && id[0] == '"' {
		return fmt.Appendf(nil, `"other-%d"`, n)
	}
	return fmt.Appendf(nil, "%d", n)
}

// idOf finds the value of the member "id" of an object.
func idOf(message []byte) (from, to int, ok bool) {
	d := json.NewDecoder(bytes.NewReader(message))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, 0, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return 0, 0, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return 0, 0, false
		}
		if name == "id" {
			to = int(d.InputOffset())
			return to - len(value), to, true
		}
	}
	return 0, 0, false
}
