package sse

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/frame"
)

// sessionParam is the member of the query that names the session.
const sessionParam = "sessionId"

// maxBodies is how many bodies of one session are read, or wait for the reader
// of messages, at once. Further ones are left on the wire.
const maxBodies = 8

// A session is one client: what it posts goes in, its stream goes out.
type session struct {
	id        string
	principal *principal.Principal
	ctx       context.Context         //nolint:containedctx // of the GET, whose POSTs are other requests
	cancel    context.CancelCauseFunc // ends ctx, and with it the session at once
	finish    func()                  // lets it finish what is under way
	out       *stream

	in     chan []byte   // from POSTs to Read
	bodies chan struct{} // has room for as many as may be read at once
	ending chan struct{} // closed by finish
	done   chan struct{} // closed by Close
	close  func()
}

var _ frame.Pipe = (*session)(nil)

// newSession makes the session that the GET r opens. It does not end by itself:
// its cancel has to be called.
func newSession(r *http.Request, who *principal.Principal) *session {
	s := &session{
		id:        rand.Text(),
		principal: who,
		in:        make(chan []byte),
		bodies:    make(chan struct{}, maxBodies),
		ending:    make(chan struct{}),
		done:      make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(r.Context()))
	s.out = &stream{fail: s.cancel}
	s.out.first = eventstream.Append(nil, &eventstream.Event{Type: endpointEvent, Data: []byte(endpoint(r, s.id))})
	s.finish = sync.OnceFunc(func() { close(s.ending) })
	s.close = sync.OnceFunc(func() { close(s.done) })
	return s
}

// endpoint is the address for messages: the one of the stream, as the client
// sees it, with the session in the query. A path is all there is to say, since
// the server does not know which names lead to it.
func endpoint(r *http.Request, id string) string {
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		u = r.URL
	}
	q := u.Query()
	q.Set(sessionParam, id)
	// Two slashes at the beginning would name a host.
	return "/" + strings.TrimLeft(u.EscapedPath(), "/") + "?" + q.Encode()
}

// Read returns the next message that the client has posted. The first call
// begins the stream: only now has the handler agreed to serve it.
func (s *session) Read() ([]byte, error) {
	if err := s.out.begin(); err != nil {
		return nil, err
	}
	select {
	case m := <-s.in:
		return m, nil
	case <-s.ending:
		return nil, io.EOF
	case <-s.done:
		return nil, os.ErrClosed
	}
}

// Write sends messages as events.
func (s *session) Write(messages [][]byte) error { return s.out.write(messages) }

// Close ends reading and writing. The response ends when its handler returns.
func (s *session) Close() error {
	s.end()
	return nil
}

func (s *session) end() {
	s.close()
	s.out.close()
}
