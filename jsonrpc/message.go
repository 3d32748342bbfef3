package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-mcp/parley/internal/wire"
)

// Version is the value of the member "jsonrpc" of every message.
const Version = "2.0"

// RawValue is the text of one JSON value, known to be valid.
type RawValue = wire.RawValue

// Object is a validated JSON object with an index of its members. Its methods:
//
//	IsZero() bool                              whether it is absent
//	Raw() RawValue                             its text
//	Len() int                                  how many members it has
//	Member(name string) (RawValue, bool)       the value of a member
//	Object(name string) (Object, bool)         that of a member that is an object
//	At(i int) (name []byte, value RawValue)    the members, in the order of the text
//	All() iter.Seq2[string, RawValue]          the same, for range
//	Equal(Object) bool                         whether the values are the same
//	CheckNames(known ...string) error          refuses members that are like known ones but for case
type Object = wire.Object

// Codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// ErrEnded is returned by senders for what comes after the answer.
var ErrEnded = errors.New("the exchange has ended")

// Kind says what a message is.
type Kind uint8

// The three kinds of messages.
const (
	Request Kind = iota + 1
	Notification
	Response
)

// Incoming is a message from the peer. It owns its memory, so that it may be
// kept for as long as it is needed. It is not written to after parsing.
type Incoming struct {
	Kind Kind
	// ParamsArray says that params were a JSON array, which no MCP method takes.
	ParamsArray bool
	// ID identifies a request or the request a response answers. The zero ID
	// is for notifications, and for error responses to unreadable requests.
	ID ID
	// Method is the method of a request or notification.
	Method string
	// Params are the parameters, or the zero Object if there are none.
	Params Object
	// Result is the result of a successful response.
	Result Object
	// Error is the error of an unsuccessful response.
	Error *Error
	// Size is the number of bytes of the message.
	Size int
	// During is the id of the request of ours in whose answer a transport found
	// the message; zero if the transport cannot tell.
	During ID

	index wire.Index // of Params or Result
	flaws *[]string
}

// Flaws returns what was wrong with the message and was mended; see [Parse].
func (m *Incoming) Flaws() []string {
	if m.flaws == nil {
		return nil
	}
	return *m.flaws
}

// AddFlaw adds to Flaws, for transports that found more.
func (m *Incoming) AddFlaw(why string) {
	if m.flaws == nil {
		m.flaws = new([]string)
	}
	*m.flaws = append(*m.flaws, why)
}

// A Body is what goes into params or result of an outgoing message. It is
// encoded once, at the end of the transport's buffer.
type Body interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// A Streamer is a result that may be so large that its encoding is better not
// held as a whole.
type Streamer interface {
	Body
	// JSONSize is the exact length of the encoding, or -1 if the result is
	// small, or cannot be written in pieces.
	JSONSize() int64
	// WriteJSON writes the encoding that AppendJSON appends.
	WriteJSON(w io.Writer) error
}

// Outgoing is a message to the peer: a request (ID and Method), a
// notification (Method), a result (ID and Result) or an error (Error, and ID
// unless it could not be read).
type Outgoing struct {
	ID     ID
	Method string
	Params Body
	Result Body
	Error  *Error
	// NullID writes "id": null into an error without ID, as JSON-RPC 2.0
	// says; otherwise the member is left out.
	NullID bool
}

// A Sender sends messages. Send waits for room in the channel, until ctx ends.
// Many goroutines may call it at once.
type Sender interface {
	Send(ctx context.Context, m *Outgoing) error
}

// Error is the error of a response.
type Error struct {
	Code    int64
	Message string
	// Data is additional information, or nil.
	Data RawValue
	// Limit is the name of the option of this side whose limit the peer was
	// over, or "". It is for logs and metrics, and is not sent.
	Limit string
}

// Error returns the message with its code.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (code %d)", e.Message, e.Code)
}
