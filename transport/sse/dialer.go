package sse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
	"github.com/parley-mcp/parley/transport/web"
)

// maxEndpoint is the most bytes of an address for messages.
const maxEndpoint = 8 << 10

// maxPreludes is how many events without data may come before the first one.
const maxPreludes = 16

// fields is what an event may have beside its message: names of fields, an id.
const fields = 4 << 10

// A Dialer connects to one endpoint. Its fields may be set before the first
// Dial.
//
// Deprecated: use streamable.Dialer, and this one after it, with
// transport.First, if the server may be old.
type Dialer struct {
	// URL is the address of the stream; http or https, without user.
	URL string
	// Client makes the requests: proxies, TLS and authorization are its
	// affair. Default: one of each link's own, with the settings of
	// http.DefaultTransport. Redirects follow the rules of web.Client in any
	// case; a Timeout holds for the messages sent, not for the stream.
	Client *http.Client
	// Header gives further headers for each request. Those of the protocol
	// win over it. Its context carries the values of Dial's and ends with the
	// link. Default: none.
	Header func(ctx context.Context) (http.Header, error)
	// MaxResponse is the size in bytes of the largest message that is read.
	// Default 64 MiB.
	MaxResponse int
	// MaxDepth is how deep JSON may be nested. Default 64.
	MaxDepth int
	// Tap is shown what each link carries, and the HTTP requests where Client
	// is nil; otherwise wrap the transport of Client by [web.TapTransport], too.
	// Default: none, which costs nothing.
	Tap transport.Tap
	// Logger is told what the server does wrong. Default: none.
	Logger *slog.Logger
}

var _ transport.Dialer = (*Dialer)(nil)

// URL returns a dialer for the stream at url.
//
// Deprecated: use streamable.URL, and this one after it, with transport.First,
// if the server may be old.
func URL(url string) *Dialer { return &Dialer{URL: url} }

// Key is the URL as [web.Key] writes it, or empty if it is none.
func (d *Dialer) Key() string { return web.Key(d.URL, "http", "https") }

// Dial opens the stream and waits until the server has named the address for
// messages. An answer that is no event stream is a *web.StatusError, and
// transport.ErrOtherTransport if the server seems not to know this transport.
func (d *Dialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	u, err := web.ParseURL(d.URL, "http", "https")
	if err != nil {
		return nil, err
	}
	p := d.newPipe(ctx)
	stop := context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
	err = p.open(u, limit(d.MaxResponse, frame.DefaultMaxResponse)+fields)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.release()
		return nil, fmt.Errorf("opening the stream at %s: %w", web.RedactURL(u), err)
	}
	return &link{pipe: p, Link: frame.Dial(p, in, &frame.Options{
		MaxMessage: limit(d.MaxResponse, frame.DefaultMaxResponse),
		MaxDepth:   limit(d.MaxDepth, frame.DefaultMaxDepth),
		Tap:        p.tap,
		Logger:     d.Logger,

		NoteUnreadable: true,
	})}, nil
}

// newPipe prepares a connection that lives on after ctx.
func (d *Dialer) newPipe(ctx context.Context) *pipe {
	p := &pipe{
		header: d.Header,
		log:    cmp.Or(d.Logger, slog.New(slog.DiscardHandler)),
		body:   http.NoBody,
		tap:    tap.Link(d.Tap),
	}
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	client := d.Client
	if client == nil {
		client = new(http.Client)
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			client.Transport, p.idle = own, own.CloseIdleConnections
		}
		if d.Tap != nil {
			client.Transport = web.TapTransport(client.Transport, d.Tap)
		}
	}
	p.client = web.Client(client)
	return p
}

// open sends the GET and reads the first event.
func (p *pipe) open(u *url.URL, maxEvent int) error {
	endless := *p.client
	endless.Timeout = 0
	r, err := p.request(http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", eventstream.ContentType)
	r.Header.Set("Accept-Encoding", "identity") // nothing should gather events
	r.Header.Set("Cache-Control", "no-store")
	resp, err := endless.Do(r) //nolint:bodyclose // release closes it
	if err != nil {
		return withoutURL(err)
	}
	p.body = resp.Body
	if err := isStream(resp); err != nil {
		return err
	}
	p.events = eventstream.NewReader(resp.Body, maxEvent)
	said, err := p.readEndpoint()
	if err != nil {
		return err
	}
	p.endpoint, err = resolve(resp.Request.URL, said)
	return err
}

// isStream checks the answer to the GET.
func isStream(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an error leaves it empty
	if resp.StatusCode == http.StatusOK && kind == eventstream.ContentType {
		return nil
	}
	failed := web.NewStatusError(resp)
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone:
		return fmt.Errorf("%w: %w", transport.ErrOtherTransport, failed)
	}
	if resp.StatusCode/100 == 2 {
		return fmt.Errorf("%w: no event stream: %w", transport.ErrOtherTransport, failed)
	}
	return failed
}

// readEndpoint reads the first event (spec 2024-11-05, basic/transports: "When a
// client connects, the server MUST send an endpoint event").
func (p *pipe) readEndpoint() (string, error) {
	for range maxPreludes {
		e, err := p.events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return "", fmt.Errorf("%w: the stream ended before it named the address for messages", transport.ErrOtherTransport)
		case err != nil:
			return "", fmt.Errorf("reading the first event: %w", err)
		case e.Data == nil || e.Type != endpointEvent && !e.IsMessage(): // a retry time, perhaps, or a ping
			continue
		case e.Type != endpointEvent:
			return "", fmt.Errorf("%w: an event must name the address for messages (%q) before the first message", transport.ErrOtherTransport, endpointEvent)
		}
		return strings.Trim(string(e.Data), `" `), nil // some quote it
	}
	return "", fmt.Errorf("%w: no event names the address for messages", transport.ErrOtherTransport)
}

// resolve makes the address for messages of what the server says. It must be
// of the stream's origin: the server of another one would get messages, and
// credentials, that are not for it.
func resolve(stream *url.URL, said string) (string, error) {
	if said == "" || len(said) > maxEndpoint {
		return "", fmt.Errorf("the server names an address for messages of %d bytes, want 1 to %d", len(said), maxEndpoint)
	}
	u, err := stream.Parse(said)
	if err != nil {
		return "", errors.New("the server names an address for messages that cannot be read")
	}
	if u.Opaque != "" || u.User != nil || !web.SameOrigin(u, stream) {
		return "", fmt.Errorf("the server wants messages sent to another origin, %.100q; it must be %s", web.RedactURL(u), stream.Scheme+"://"+stream.Host)
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), nil
}

// withoutURL takes the URL, in which secrets may be, out of an error of net/http.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
