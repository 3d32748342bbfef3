package streamable

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// Restore opens a session here that was open on another endpoint of the same
// server, so that its client goes on with its id and does not notice. It makes
// the handshake again and what came after it: messages are those that
// [Options].OnSession was told of in SessionOpened and SessionChanged, in their
// order; notifications/initialized may be among them. who is who opened the
// session, and nobody else can use it here either; nil is an anonymous caller.
// Of what messages do, the client is told nothing.
//
// What moves: the id, the caller, the revision and capabilities that were
// negotiated, subscriptions, the log level. What does not: requests under way
// and their answers, requests of the server that wait for the client, changes
// that happened meanwhile, and the events kept for streams: a client that asks
// for the rest of an old stream gets 400, and may open a new one. To move
// a session, end it elsewhere first, or send no more requests there: two open
// halves of one session both work, and know nothing of each other. An answer to a
// request of the other half is dropped.
//
// Restore fails, and leaves nothing behind, if the id is not visible ASCII or
// is in use here, a message is not one of those above or is refused by the
// server, a limit of sessions is reached (a *jsonrpc.Error), or the endpoint has
// no sessions or is shut down. The end of ctx gives up.
func (h *Handler) Restore(ctx context.Context, id string, who *principal.Principal, messages [][]byte) error {
	if err := h.restore(ctx, id, who, messages); err != nil {
		return fmt.Errorf("restoring a session: %w", err)
	}
	return nil
}

// maxSessionID is the size in bytes of the longest session id that is restored.
const maxSessionID = 1 << 10

func (h *Handler) restore(ctx context.Context, id string, who *principal.Principal, messages [][]byte) error {
	if id == "" || !validSession(id, maxSessionID) {
		return fmt.Errorf("the id must be 1 to %d visible ASCII characters, as OnSession told it", maxSessionID)
	}
	if h.opts.Sessionless {
		return errors.New("this endpoint keeps no sessions (Sessionless)")
	}
	parsed, err := h.recorded(messages)
	if err != nil {
		return err
	}
	if who == nil {
		who = new(principal.Principal)
	}
	s, _, e := h.newSession(who, id)
	if e != nil {
		return e
	}
	defer s.release()
	if err := s.replay(ctx, parsed); err != nil {
		s.end(errRefused)
		return err
	}
	s.settle()
	if _, e := h.sessions.register(s); e != nil {
		s.end(errRefused)
		return e
	}
	s.report(SessionEvent{State: SessionRestored})
	return nil
}

// recorded reads the messages that made a session.
func (h *Handler) recorded(messages [][]byte) ([]*jsonrpc.Incoming, error) {
	parsed := make([]*jsonrpc.Incoming, len(messages))
	for i, data := range messages {
		m, err := jsonrpc.Parse(data, h.limits)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		request := m.Kind == jsonrpc.Request && revision.Stateful(m.Method)
		switch {
		case namesVersion(m):
			return nil, fmt.Errorf("message %d is of a revision without sessions", i+1)
		case i == 0 && (!request || m.Method != revision.Initialize):
			return nil, errors.New("the first message is not the initialize request")
		case !request && (m.Kind != jsonrpc.Notification || m.Method != revision.Initialized):
			return nil, fmt.Errorf("message %d (%.64q) changes nothing in a session; keep those that OnSession tells", i+1, m.Method)
		}
		parsed[i] = m
	}
	if len(parsed) == 0 {
		return nil, errors.New("no messages; the first one must be the initialize request")
	}
	return parsed, nil
}

// replay has messages handled as if the client had sent them.
func (s *session) replay(ctx context.Context, messages []*jsonrpc.Incoming) error {
	if err := s.start(); err != nil {
		return err
	}
	for i, m := range messages {
		if m.Kind == jsonrpc.Notification {
			s.accept(m)
			continue
		}
		answer, failed := s.perform(ctx, s.who, m)
		answer.free()
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if failed != nil {
			return fmt.Errorf("message %d (%s): %w", i+1, m.Method, failed.Error)
		}
	}
	return nil
}
