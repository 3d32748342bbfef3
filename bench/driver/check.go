package driver

import (
	"bytes"
	"fmt"
)

// A Check decides whether a body, or a line, is the answer that was wanted, and
// counts the notifications before it. A fast error must not count as work.
type Check func(body []byte) (notifications int, err error)

// edge is how much of a large body is looked at, at either end.
const edge = 4 << 10

// Result wants a result that holds a text, and at least so many bytes.
func Result(text string, size int) Check {
	want := []byte(text)
	return func(body []byte) (int, error) {
		if len(body) < size {
			return 0, fmt.Errorf("%d bytes, want at least %d: %.300q", len(body), size, body)
		}
		if len(body) <= 2*edge {
			return 0, check(want, body)
		}
		return 0, check(want, body[:edge], body[len(body)-edge:])
	}
}

// Line wants a line that holds a text, of the floor, which has no results.
func Line(text string) Check {
	want := []byte(text)
	return func(body []byte) (int, error) {
		if !bytes.Contains(body, want) {
			return 0, fmt.Errorf("no %q: %.300q", text, body)
		}
		return 0, nil
	}
}

// Stream wants an event stream that ends with a result that holds a text.
func Stream(text string) Check {
	want := []byte(text)
	return func(body []byte) (int, error) {
		events := bytes.Count(body, []byte("\ndata:"))
		if bytes.HasPrefix(body, []byte("data:")) {
			events++
		}
		last := body[bytes.LastIndex(body, []byte("data:"))+1:]
		if events == 0 {
			return 0, fmt.Errorf("no event: %.300q", body)
		}
		notifications := bytes.Count(body, []byte(`"method":"notifications/progress"`))
		return notifications, check(want, last)
	}
}

// check looks for a result in the parts of a body, and for the text.
func check(text []byte, parts ...[]byte) error {
	switch {
	case !contain(parts, []byte(`"result":`)):
		return fmt.Errorf("no result: %.300q", parts[0])
	case contain(parts, []byte(`"isError":true`)):
		return fmt.Errorf("the tool failed: %.300q", bytes.Join(parts, []byte(" ... ")))
	case !contain(parts, text):
		return fmt.Errorf("no %q: %.300q", text, parts[0])
	}
	return nil
}

// contain reports whether one of the parts contains a text.
func contain(parts [][]byte, text []byte) bool {
	for _, part := range parts {
		if bytes.Contains(part, text) {
			return true
		}
	}
	return false
}
