package websocket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
	"github.com/parley-mcp/parley/transport/web"
)

// A Dialer connects to one endpoint. Its fields may be set before the first
// Dial.
type Dialer struct {
	// URL is the address of the endpoint, a ws or wss URL without user.
	URL string
	// Client opens the connection: proxies, TLS and authorization are its
	// affair. Default: one with http.DefaultTransport. Redirects are not
	// followed in any case: headers may carry credentials.
	Client *http.Client
	// Header gives further headers for the request that opens the connection.
	// Those of the protocol win over it. Default: none.
	Header func(ctx context.Context) (http.Header, error)
	// MaxResponse is the size in bytes of the largest message that is read.
	// Negative is no limit. Default: 64 MiB.
	MaxResponse int
	// MaxDepth is how deep JSON may be nested. Default: 64.
	MaxDepth int
	// KeepAlive is how long the server may be silent before it is pinged.
	// Negative is never. Default: 30 s.
	KeepAlive time.Duration
	// WriteStall is how long one write may take, and a second more for each
	// 64 KiB of it, or the server to reply to a ping, before the connection is
	// closed. Default: 30 s.
	WriteStall time.Duration
	// Tap is shown what each link carries, and the HTTP requests where Client
	// is nil; otherwise wrap the transport of Client by [web.TapTransport], too.
	// Default: none, which costs nothing.
	Tap transport.Tap
	// Logger is told what the server does wrong. Default: none.
	Logger *slog.Logger
}

var _ transport.Dialer = (*Dialer)(nil)

// URL returns a dialer for the endpoint at url, as in "wss://mcp.example/ws".
func URL(url string) *Dialer { return &Dialer{URL: url} }

// Key is the URL as [web.Key] writes it, or empty if it is none.
func (d *Dialer) Key() string { return web.Key(d.URL, "ws", "wss") }

// Dial connects. A server that refuses gives a *web.StatusError.
func (d *Dialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	u, err := web.ParseURL(d.URL, "ws", "wss")
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if d.Header != nil {
		more, err := d.Header(ctx)
		if err != nil {
			return nil, fmt.Errorf("making headers for the WebSocket at %s: %w", u.Host, err)
		}
		for name, values := range more {
			name = http.CanonicalHeaderKey(name)
			header[name] = append(header[name], values...)
		}
	}
	// Compression: see NewHandler.
	header.Del("Sec-WebSocket-Extensions")
	show := tap.Link(d.Tap)
	if show != nil {
		ctx = tap.Begin(ctx, show)
	}
	conn, l, err := d.connect(ctx, u, header)
	if err != nil {
		return nil, fmt.Errorf("connecting to the WebSocket at %s: %w", u.Host, err)
	}
	limit := size(d.MaxResponse, frame.DefaultMaxResponse)
	stall := writeStall(d.WriteStall)
	p := newPipe(conn, l, limit, cmp.Or(d.KeepAlive, DefaultKeepAlive), stall)
	if got := conn.Subprotocol(); got != Subprotocol {
		p.setClose(websocket.StatusProtocolError, "the subprotocol must be "+Subprotocol)
		_ = p.Close() // what is wrong is known
		<-p.keepAliveDone
		return nil, fmt.Errorf("connecting to the WebSocket at %s: the server did not choose the subprotocol %q, so that it may speak something else than MCP",
			u.Host, Subprotocol)
	}
	return &link{frame.Dial(p, in, &frame.Options{
		MaxMessage: limit,
		MaxDepth:   d.MaxDepth,
		WriteStall: stall,
		Tap:        show,
		Logger:     d.Logger,
	}), p}, nil
}

// connect opens a WebSocket.
func (d *Dialer) connect(ctx context.Context, u *url.URL, header http.Header) (*websocket.Conn, *trackedConn, error) {
	var client http.Client
	if d.Client != nil {
		client = *d.Client
	}
	t := &connRecorder{next: client.Transport}
	if d.Client == nil {
		t.next = web.TapTransport(nil, d.Tap)
	} else if t.next == nil {
		t.next = http.DefaultTransport
	}
	client.Transport = t
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	conn, answer, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{ //nolint:bodyclose // Dial closes it, or makes it the connection
		HTTPClient:      &client,
		HTTPHeader:      header,
		Subprotocols:    []string{Subprotocol},
		CompressionMode: websocket.CompressionDisabled,
		OnPingReceived:  func(ctx context.Context, p []byte) bool { return t.conn.pong(ctx, p) },
	})
	switch {
	case err == nil:
		return conn, t.conn, nil
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case answer != nil && answer.StatusCode != http.StatusSwitchingProtocols:
		return nil, nil, web.NewStatusError(answer)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // the rest repeats the URL, which may hold a secret
	}
	return nil, nil, err
}

// A connRecorder is a RoundTripper that records the connection that a response
// becomes.
type connRecorder struct {
	next http.RoundTripper
	conn *trackedConn
}

// RoundTrip sends the request.
func (t *connRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if rwc, ok := answer.Body.(io.ReadWriteCloser); ok && answer.StatusCode == http.StatusSwitchingProtocols {
		t.conn = newTrackedConn(rwc)
		answer.Body = t.conn
	}
	return answer, nil
}

// A link is a frame's link whose Close waits for keepAlive too.
type link struct {
	transport.Link
	pipe *pipe
}

// Close ends the link; see transport.Link.
func (l *link) Close(ctx context.Context) error {
	err := l.Link.Close(ctx)
	<-l.pipe.keepAliveDone
	return err
}
