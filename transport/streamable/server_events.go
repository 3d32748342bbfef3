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
}

// store keeps what was taken of a stream.
func (h *Handler) store(s *session, stream string, out *output) error {
	if h.memory != nil {
		h.memory.add(s.key, s.id(), stream, out.first, out.last, out.buf.b[out.from:])
		return nil
	}
	for _, e := range out.messages {
		e.Session, e.Stream = s.id(), stream
		ctx, cancel := h.storing(s.ctx)
		err := h.opts.Events.Append(ctx, e)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// missed reads the events after seq up to last, as they are written. A store
// that has not all of them has none that are of use.
func (h *Handler) missed(ctx context.Context, s *session, l *eventLog, seq, last uint64) (text [][]byte, _ error) {
	if h.memory != nil {
		return h.memory.after(s.id(), l.name(), seq, last)
	}
	ctx, cancel := h.storing(ctx)
	defer cancel()
	events, err := h.opts.Events.After(ctx, s.id(), l.name(), seq)
	if err != nil {
		return nil, err
	}
	if seq+uint64(len(events)) != last {
		return nil, ErrEventsGone
	}
	for i, e := range events {
		if e.Seq != seq+uint64(i)+1 {
			return nil, ErrEventsGone
		}
		text = append(text, l.appendEvent(nil, e.Data, e.Seq))
	}
	return text, nil
}

// forget drops what is kept of a stream of a session, or of all with "".
func (h *Handler) forget(session, stream string) error {
	if h.memory != nil {
		h.memory.forget(session, stream)
		return nil
	}
	ctx, cancel := h.storing(context.Background())
	defer cancel()
	return h.opts.Events.Forget(ctx, session, stream)
}

// storing bounds what a store may take.
func (h *Handler) storing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, h.opts.WriteStall)
}
