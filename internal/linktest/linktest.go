// Package linktest has what tests put at the two ends of a transport.
package linktest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// An Inbox keeps what arrives.
type Inbox struct {
	Messages chan *jsonrpc.Incoming
	Ended    chan error // gets what Closed was told

	// OnReceive takes the messages instead, if it is not nil.
	OnReceive func(m *jsonrpc.Incoming)

	closed atomic.Bool
}

// NewInbox returns an inbox with more room than tests need.
func NewInbox() *Inbox { return NewInboxOf(1024) }

// NewInboxOf returns an inbox for so many messages; Receive waits for room.
func NewInboxOf(room int) *Inbox {
	return &Inbox{Messages: make(chan *jsonrpc.Incoming, room), Ended: make(chan error, 1)}
}

// Receive keeps a message.
func (i *Inbox) Receive(m *jsonrpc.Incoming) {
	if i.OnReceive != nil {
		i.OnReceive(m)
		return
	}
	i.Messages <- m
}

// Closed keeps why the link ended. It panics when it is called again.
func (i *Inbox) Closed(err error) {
	if i.closed.Swap(true) {
		panic(fmt.Sprintf("linktest: Inbox.Closed was called twice, now with %v", err))
	}
	i.Ended <- err
}

// IsClosed reports whether Closed was called.
func (i *Inbox) IsClosed() bool { return i.closed.Load() }

// A Handler passes all on to another handler. Its functions, where there are some, come in between.
type Handler struct {
	transport.Handler

	OnOpen   func(c transport.Conn) error // before a session opens; an error refuses it
	OnBegin  func(ctx context.Context, x *transport.Exchange, s transport.Session) func()
	OnAccept func(m *jsonrpc.Incoming, s transport.Session)
	OnOpened func()                    // after a session has opened
	OnEnding func(s transport.Session) // after the session was told
	OnClose  func(cause error)         // after the session has closed
}

// Open opens a session with the functions of h.
func (h *Handler) Open(c transport.Conn) (transport.Session, error) {
	if h.OnOpen != nil {
		if err := h.OnOpen(c); err != nil {
			return nil, err
		}
	}
	s, err := h.Handler.Open(c)
	if err != nil {
		return nil, err
	}
	if h.OnOpened != nil {
		h.OnOpened()
	}
	return &session{s, h}, nil
}

type session struct {
	transport.Session
	h *Handler
}

func (s *session) Begin(ctx context.Context, x *transport.Exchange) func() {
	if s.h.OnBegin != nil {
		return s.h.OnBegin(ctx, x, s.Session)
	}
	return s.Session.Begin(ctx, x)
}

func (s *session) Accept(m *jsonrpc.Incoming) {
	if s.h.OnAccept != nil {
		s.h.OnAccept(m, s.Session)
		return
	}
	s.Session.Accept(m)
}

func (s *session) Ending() {
	s.Session.Ending()
	if s.h.OnEnding != nil {
		s.h.OnEnding(s.Session)
	}
}

func (s *session) Close(cause error) {
	s.Session.Close(cause)
	if s.h.OnClose != nil {
		s.h.OnClose(cause)
	}
}

// A Message is what tests look at of the message in an HTTP request.
type Message struct {
	ID     string // as JSON; empty in a notification
	Method string
	Params wire.Object
	Text   string // the body
}

// Read reads the message of a request. What is none has no method and no ID.
func Read(r *http.Request) (Message, error) {
	if r.Body == nil {
		return Message{}, nil
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	m := Message{Text: string(text)}
	if in, bad := jsonrpc.Parse(text, jsonrpc.Limits{}); err == nil && bad == nil {
		m.Method, m.Params = in.Method, in.Params
		if !in.ID.IsZero() {
			id, _ := in.ID.AppendJSON(nil)
			m.ID = string(id)
		}
	}
	return m, err
}
