package frame

import (
	"bytes"
	"errors"
	"slices"

	"github.com/parley-mcp/parley/jsonrpc"
)

// A head is what the beginning of a message tells of it.
type head struct {
	id jsonrpc.ID // zero if it could not be read
	// response says that the message answers one of the reader's requests, so
	// that id is of the reader's making.
	response bool
}

// readHead reads the beginning of a message that was too long to be kept, or
// that is invalid, so that the request it answers can fail. It reads no further
// than the first object or array inside the message.
func readHead(data []byte) head {
	var h head
	rest, ok := bytes.CutPrefix(skipSpace(data), []byte{'{'})
	for ok {
		var name, value []byte
		if name, rest = scalar(rest); name == nil {
			break
		}
		switch string(name) {
		case `"result"`, `"error"`:
			h.response = true
		}
		if rest, ok = bytes.CutPrefix(skipSpace(rest), []byte{':'}); !ok {
			break
		}
		if value, rest = scalar(rest); value == nil {
			break
		}
		if string(name) == `"id"` {
			if !h.id.IsZero() {
				return head{response: h.response} // two ids are none
			}
			h.id = parseID(value)
		}
		rest, ok = bytes.CutPrefix(skipSpace(rest), []byte{','})
	}
	return h
}

// headOf says what is known of a message that jsonrpc refused with err. Text
// that is not strict JSON may still tell its id at the beginning.
func headOf(data []byte, err error) head {
	var bad *jsonrpc.ParseError
	if !errors.As(err, &bad) {
		return head{}
	}
	if bad.ID.IsZero() && !bad.Response && !bad.Notification {
		return readHead(data)
	}
	return head{id: bad.ID, response: bad.Response}
}

// parseID reads an id by the rules for whole messages, by making one.
func parseID(value []byte) jsonrpc.ID {
	m, err := jsonrpc.Parse(slices.Concat([]byte(`{"jsonrpc":"2.0","method":"x","id":`), value, []byte{'}'}), jsonrpc.Limits{})
	if err != nil {
		return jsonrpc.ID{}
	}
	return m.ID
}

func skipSpace(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n") }

// scalar splits the string, number or literal off that data begins with. It
// gives nil for anything else, and for one that does not end within data.
func scalar(data []byte) (value, rest []byte) {
	data = skipSpace(data)
	if len(data) == 0 || data[0] == '{' || data[0] == '[' {
		return nil, nil
	}
	if data[0] != '"' {
		end := bytes.IndexAny(data, ",:}] \t\r\n")
		if end <= 0 {
			return nil, nil
		}
		return data[:end], data[end:]
	}
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return data[:i+1], data[i+1:]
		}
	}
	return nil, nil
}
