package sse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
	"github.com/parley-mcp/parley/transport/web"
)

// thrown is how much of an answer without meaning is read, so that the
// connection can be used again.
const thrown = 4 << 10

// A link is the client's half of a connection. Everything but two things is
// the frame's.
type link struct {
	transport.Link
	pipe *pipe
}

// Do sends a request and waits for its response. If the server refuses the
// message as too large, or as one of too many, that is the end of this request
// alone.
func (l *link) Do(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if _, twice := l.pipe.calls.LoadOrStore(m.ID, cancel); !twice { // the frame refuses the second
		defer l.pipe.calls.Delete(m.ID)
	}
	return l.Link.Do(ctx, m, r)
}

// Close posts what is queued and ends the stream.
func (l *link) Close(ctx context.Context) error {
	err := l.Link.Close(ctx)
	l.pipe.release()
	return err
}

// A pipe carries messages: theirs in the events of one response, ours in one
// request each.
type pipe struct {
	client *http.Client
	header func(ctx context.Context) (http.Header, error)
	log    *slog.Logger
	tap    transport.Tap           // or nil
	idle   func()                  // closes the connections of a client of our own, if it is one
	ctx    context.Context         //nolint:containedctx // lives as long as the link
	cancel context.CancelCauseFunc // ends the stream and the message under way

	body     io.Closer
	events   *eventstream.Reader
	arrived  func() // called when a part of a message has arrived
	endpoint string
	calls    sync.Map // what ends a request that waits for its response, by jsonrpc.ID
}

var _ frame.PartReporter = (*pipe)(nil)

// release frees what the pipe holds. Nothing reads or writes any more.
func (p *pipe) release() {
	p.cancel(os.ErrClosed)
	_ = p.body.Close() // has been read as far as wanted
	if p.idle != nil {
		p.idle()
	}
}

// Close ends the stream and the message under way.
func (p *pipe) Close() error {
	p.cancel(os.ErrClosed)
	return nil
}

// OnPart sets what is called when a part of a message has arrived.
func (p *pipe) OnPart(arrived func()) { p.arrived, p.events.Parts = arrived, p }

// PartArrived is called by the reader of events.
func (p *pipe) PartArrived() { p.arrived() }

// Read returns the next message of the stream.
func (p *pipe) Read() ([]byte, error) {
	for {
		e, err := p.events.Next()
		switch {
		case p.ctx.Err() != nil:
			return nil, os.ErrClosed
		case err == io.EOF: //nolint:errorlint // a wrapped EOF is a reason, not a clean end
			return nil, io.EOF
		case err != nil:
			return nil, fmt.Errorf("reading the stream: %w", err)
		case e.IsMessage() && len(e.Data) > 0:
			return e.Data, nil
		}
	}
}

// Write posts messages, one after the other: that is how their order lasts.
func (p *pipe) Write(messages [][]byte) error {
	for i, m := range messages {
		sent, err := p.post(m)
		status, ok := errors.AsType[*web.StatusError](err)
		if ok && (status.Status == http.StatusRequestEntityTooLarge || status.Status == http.StatusTooManyRequests) {
			err = p.notTaken(m, status.Status, err)
		}
		if err != nil {
			if sent {
				i++
			}
			return &frame.WriteError{Sent: i, Err: err}
		}
	}
	return nil
}

// post sends one message. With an error it reports whether the server may have taken it.
func (p *pipe) post(message []byte) (sent bool, _ error) {
	// A copy, since net/http may go on reading after it has the answer.
	r, err := p.request(http.MethodPost, p.endpoint, bytes.NewReader(bytes.Clone(message)))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	var progress web.RequestProgress
	resp, err := p.client.Do(r.WithContext(progress.Trace(r.Context())))
	if err != nil {
		return !progress.Unsent(err), fmt.Errorf("posting a message: %w", withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }() // there is nothing in it
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode/100 == 5, fmt.Errorf("posting a message: %w", web.NewStatusError(resp))
	}
	_, _ = io.CopyN(io.Discard, resp.Body, thrown) // the status has said all
	return true, nil
}

// notTaken deals with a message that is too large for the server, or one too many
// just now, as refused says. A request ends with that, and others that are under
// way go on.
func (p *pipe) notTaken(message []byte, status int, refused error) error {
	m, err := jsonrpc.Parse(bytes.Clone(message), jsonrpc.Limits{})
	switch {
	case err != nil:
		return refused // it is our own, and whole
	case m.Kind == jsonrpc.Request:
		if cancel, ok := p.calls.Load(m.ID); ok {
			cancel.(context.CancelCauseFunc)(refused)
		}
		return nil
	case status == http.StatusTooManyRequests:
		return refused
	case m.Kind == jsonrpc.Response:
		e := jsonrpc.NewError(jsonrpc.CodeInternalError, "the answer was too large for the server")
		instead, err := (&jsonrpc.Outgoing{ID: m.ID, Error: e}).AppendJSON(nil)
		if err != nil {
			return refused
		}
		_, err = p.post(instead)
		return err
	default:
		p.log.Warn("notification dropped", "method", m.Method, "error", refused)
		return nil
	}
}

// request makes a request that ends with the link.
func (p *pipe) request(method, address string, body io.Reader) (*http.Request, error) {
	ctx := p.ctx
	if p.tap != nil {
		ctx = tap.Begin(ctx, p.tap)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", withoutURL(err))
	}
	if p.header == nil {
		return r, nil
	}
	h, err := p.header(p.ctx)
	if err != nil {
		return nil, fmt.Errorf("getting headers for a request: %w", err)
	}
	for name, values := range h {
		name = http.CanonicalHeaderKey(name) // else those of the protocol would not win
		r.Header[name] = append(r.Header[name], values...)
	}
	return r, nil
}
