package streamable

import (
	"context"
	"errors"
)

// ErrEventsGone says that an EventStore no longer has all the events asked for.
var ErrEventsGone = errors.New("events are no longer kept")

// An EventStore keeps the events of resumable streams, so that a client whose
// connection broke gets what it missed. Its methods may be called by many
// goroutines at once, but Append by one at a time for each stream. Their
// contexts end after WriteStall.
type EventStore interface {
	// Append adds an event. Sequence numbers of a stream begin with 1 and
	// have no gaps. The store keeps its own copy of the data, if any.
	Append(ctx context.Context, e Event) error
	// After returns the events of a stream that follow the one with number
	// seq, in order. ErrEventsGone says that some of them are no longer kept.
	After(ctx context.Context, session, stream string, seq uint64) ([]Event, error)
	// Forget drops a stream; with an empty stream the whole session.
	Forget(ctx context.Context, session, stream string) error
}

// An Event is one message on a stream.
type Event struct {
	// Session and Stream name the stream.
	Session, Stream string
	// Seq is the place of the event in its stream.
	Seq uint64
	// Data is the message, as JSON. Nobody may write to it.
	Data []byte

	owner string // the limit key of the session, for the store in memory
}

// storing bounds what a store of somebody else's may take.
func (h *Handler) storing(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.memory != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, h.opts.WriteStall)
}
