// Package frame is what all pipe transports share: the loop that reads whole
// messages, hands them to the core and writes what the core has to say. A
// transport that can read one message, write some and close (a [Pipe]) gets
// both halves from here: [Serve] for servers and [Dial] for clients.
//
// Writes are grouped: a sender encodes its message once and queues it; while
// one goroutine writes, the messages of all others wait and leave together with
// the next write. The queue is bounded, and a write to a peer that does not
// read times out.
package frame

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// A Pipe carries whole messages between two ends. Read has one caller at a
// time and so has Write; Close may come at any time and more than once.
type Pipe interface {
	// Read returns the next message in memory that the caller keeps. A
	// *TooLongError says that one message was skipped and that reading goes
	// on; io.EOF is the peer's clean end; any other error ends the connection.
	Read() ([]byte, error)
	// Write sends messages in order, several when they have queued up. The
	// slices are void once Write has returned; until then Write may change
	// their bytes and append to them. An error ends the connection; a
	// *WriteError among it says which messages the peer cannot have got.
	Write(messages [][]byte) error
	// Close ends the connection. It makes Read and Write return soon, but
	// does not wait for them.
	Close() error
}

// A Gauge is a Pipe that knows how far it can go without the peer. That saves
// waking goroutines, and lets answers leave in one write.
type Gauge interface {
	Pipe
	// Buffered reports whether Read would return a message or an error at
	// once; it may say false if it does not know. It is called by the reader.
	Buffered() bool
	// Room is how many messages Write would take without waiting for the peer,
	// 0 if that is not known. It is called by the writer.
	Room() int
}

// A PartReporter is a Pipe that reports the parts of a long message, so that its arrival is
// not taken for silence.
type PartReporter interface {
	Pipe
	// OnPart sets the function that Read calls when a part of a message has arrived and the
	// rest has not. It is called once, before the first Read.
	OnPart(arrived func())
}

// Limits of one connection and their defaults.
const (
	DefaultMaxMessage  = 4 << 20
	DefaultMaxResponse = 64 << 20
	DefaultMaxDepth    = 64
	DefaultMaxQueued   = 4 << 20
	DefaultWriteStall  = 30 * time.Second
)

// closeWriteTimeout is the write timeout of a connection that is ending.
const closeWriteTimeout = 2 * time.Second

// maxBatch is the most messages in one array when the session names no limit.
const maxBatch = 100

// maxReplyBatch is the most responses that a client takes in one array.
const maxReplyBatch = 100

// Options adjust a connection. The zero value, and nil, give the defaults.
type Options struct {
	// MaxMessage is the size in bytes of the largest message that is read.
	// Default: 4 MiB when serving, 64 MiB when dialling. The Pipe must keep
	// to it too, since only it can skip a message without holding it.
	MaxMessage int
	// MaxDepth is how deep JSON may be nested. Default: 64.
	MaxDepth int
	// MaxQueued is how many bytes may wait to be written before senders wait
	// for room. Default: 4 MiB. One larger message may pass when it is alone.
	MaxQueued int
	// WriteStall is how long one write may take before the connection is
	// closed with transport.ErrStalled, and a second more for each 64 KiB of
	// it. Default: 30 s.
	WriteStall time.Duration
	// Linger is how long requests in flight may go on after the peer ended
	// its input, so that "printf ... | server" gets its answers, before they
	// are cancelled. Default: 0, at once. Serving only.
	Linger time.Duration
	// Principal is the peer's principal. Default: principal.Local. Serving
	// only.
	Principal *principal.Principal
	// Tap is shown what the link carries. It numbers no links: that is up to
	// the transport. Default: none. Dialling only.
	Tap transport.Tap
	// Transport describes the connection to handlers. Default: nothing is known.
	// Serving only.
	Transport *transport.Info
	// NoteUnreadable adds to the next response, as one of its Flaws, that a message could
	// not be read. Default: it is only logged, since programs write all kinds of text to
	// their standard output. Of [Dial] only.
	NoteUnreadable bool
	// Logger logs our own errors, and at debug level those of the peer.
	// Default: slog.Default for [Serve], none for [Dial].
	Logger *slog.Logger
}

// defaults returns a copy of o, which may be nil, with its gaps filled.
func (o *Options) defaults(maxMessage int) Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.MaxMessage = cmp.Or(d.MaxMessage, maxMessage)
	d.MaxDepth = cmp.Or(d.MaxDepth, DefaultMaxDepth)
	d.MaxQueued = cmp.Or(d.MaxQueued, DefaultMaxQueued)
	d.WriteStall = cmp.Or(d.WriteStall, DefaultWriteStall)
	d.Principal = cmp.Or(d.Principal, principal.Local)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	return d
}

func (o *Options) limits() jsonrpc.Limits {
	return jsonrpc.Limits{Bytes: o.MaxMessage, Depth: o.MaxDepth}
}

// A WriteError says how far a Write came.
type WriteError struct {
	// Sent is how many of the messages, from the first, may have reached the peer.
	Sent int
	// Err is why the others did not.
	Err error
}

// Error is that of Err.
func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// A TooLongError says that a message was longer than Limit bytes and has been
// skipped.
type TooLongError struct {
	Limit int
	// Head is the beginning of the message, at most MaxHead bytes, from which
	// its id may be read.
	Head []byte
}

// MaxHead is how much of a skipped message a TooLongError keeps.
const MaxHead = 256

// Error says what the limit is.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("message exceeds the limit of %d bytes", e.Limit)
}

// NewTooLongError returns the error for a message that begins with message.
// The error keeps a copy of its head alone.
func NewTooLongError(limit int, message []byte) *TooLongError {
	return &TooLongError{Limit: limit, Head: append([]byte(nil), message[:min(len(message), MaxHead)]...)}
}

// tooLong returns err if it says that a message was skipped, or nil.
func tooLong(err error) *TooLongError {
	var long *TooLongError
	if errors.As(err, &long) {
		return long
	}
	return nil
}

// readMessage reads a message and checks its length.
func readMessage(p Pipe, limit int) ([]byte, error) {
	data, err := p.Read()
	if err == nil && len(data) > limit {
		return nil, NewTooLongError(limit, data)
	}
	return data, err
}

// isBlank reports whether data has no bytes but JSON white space: the empty
// lines that people and programs leave between messages.
func isBlank(data []byte) bool {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// isCleanEnd reports whether err is a peer's clean end.
func isCleanEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // a wrapped EOF is a reason, not a clean end
}

// isOwnClose reports whether err only says that our end of the pipe is closed.
func isOwnClose(err error) bool {
	return errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

// closed returns cause as an error that is transport.ErrClosed.
func closed(cause error) error {
	switch {
	case cause == nil:
		return transport.ErrClosed
	case errors.Is(cause, transport.ErrClosed):
		return cause
	}
	return fmt.Errorf("%w: %w", transport.ErrClosed, cause)
}
