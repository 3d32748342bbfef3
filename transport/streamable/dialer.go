package streamable

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Limits of a link and their defaults.
const (
	defaultMaxResponse = 64 << 20
	defaultRetry       = time.Second
	defaultMaxRetry    = 30 * time.Second
	defaultMaxResumes  = 5
)

// What a link's own HTTP transport allows: the size in bytes of the header of
// a response, and connections that wait for the next request.
const (
	maxResponseHeader = 256 << 10
	maxIdleConns      = 64
)

// A Dialer connects to one endpoint. Its fields may be set before the first
// Dial.
type Dialer struct {
	// URL is the address of the endpoint.
	URL string
	// Client makes the requests: proxies, TLS and authorization are its
	// affair. Default: one for each link with a transport like
	// http.DefaultTransport, whose connections end with the link. Redirects
	// follow the rules of web.Client in any case; a Timeout of it would cut
	// streams. An error of its RoundTripper with a method NotRun that returns
	// true says that the request was not carried out, and may be sent again.
	Client *http.Client
	// Header gives further headers for each request. Those of the protocol
	// win over it. Default: none.
	Header func(ctx context.Context) (http.Header, error)
	// MaxResponse is the size in bytes of the largest message that is read,
	// from a body or an event, after decompression. Default 64 MiB.
	MaxResponse int
	// MaxDepth is how deep JSON may be nested. Default 64.
	MaxDepth int
	// Retry is the pause before a broken stream is asked for again, where the
	// server names none; it doubles up to MaxRetry with each failure.
	// Defaults 1 s and 30 s. A server's wish is kept within MaxRetry.
	Retry, MaxRetry time.Duration
	// MaxResumes is how often in a row the stream of an answer is asked for in
	// vain before the request counts as interrupted. Default 5; -1 means that
	// it is not asked for again. The stream for what the server sends outside
	// of answers, once it was there, is asked for until the link ends.
	MaxResumes int
	// NoStream does without the stream for what the server sends outside of
	// answers, in revisions with sessions. Default false.
	NoStream bool
	// Tap is shown what each link carries, and the HTTP requests where Client
	// is nil; otherwise wrap the transport of Client by [web.TapTransport], too.
	// Default: none, which costs nothing.
	Tap transport.Tap
	// Logger is told what the server does wrong. Default: nobody.
	Logger *slog.Logger
}

var _ transport.Dialer = (*Dialer)(nil)

// URL returns a dialer for the endpoint at url.
func URL(url string) *Dialer { return &Dialer{URL: url} }

// Key is the URL as [web.Key] writes it, or empty if it is none.
func (d *Dialer) Key() string { return web.Key(d.URL, "http", "https") }

// Dial makes a link. Nothing is sent before the first message is: the errors
// are those of the URL and of ctx.
func (d *Dialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	u, err := web.ParseURL(d.URL, "http", "https")
	if err != nil {
		return nil, err
	}
	u.Host = strings.TrimSuffix(u.Host, ":")
	l := &link{
		address:    u,
		blank:      &http.Request{Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		where:      web.RedactURL(u),
		header:     d.Header,
		in:         in,
		limits:     jsonrpc.Limits{Bytes: cmp.Or(d.MaxResponse, defaultMaxResponse), Depth: d.MaxDepth, Lenient: true},
		retry:      cmp.Or(d.Retry, defaultRetry),
		maxRetry:   cmp.Or(d.MaxRetry, defaultMaxRetry),
		maxResumes: cmp.Or(d.MaxResumes, defaultMaxResumes),
		noStream:   d.NoStream,
		log:        cmp.Or(d.Logger, slog.New(slog.DiscardHandler)),
		tap:        tap.Link(d.Tap),
		told:       milestone{done: make(chan struct{})},
		shut:       milestone{done: make(chan struct{})},
	}
	client := d.Client
	if client == nil {
		client = &http.Client{}
		if l.own = ownTransport(); l.own != nil {
			client.Transport = l.own
		}
		if d.Tap != nil {
			client.Transport = web.TapTransport(client.Transport, d.Tap)
		}
	}
	l.client = web.Client(client)
	l.life, l.end = context.WithCancelCause(context.Background())
	return l, nil
}

// ownTransport is http.DefaultTransport with connections of its own, or nil if
// the program has put something else in that place.
func ownTransport() *http.Transport {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil
	}
	own := shared.Clone()
	own.MaxResponseHeaderBytes = cmp.Or(own.MaxResponseHeaderBytes, maxResponseHeader)
	own.MaxIdleConnsPerHost = cmp.Or(own.MaxIdleConnsPerHost, maxIdleConns)
	return own
}
