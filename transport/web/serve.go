package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Defaults of [ServeOptions].
const (
	DefaultGrace         = 10 * time.Second
	DefaultHeaderTimeout = 10 * time.Second
	DefaultIdleTimeout   = 2 * time.Minute
	DefaultMaxHeader     = 64 << 10
)

// maxUnreadBodyTime is the longest that a client may take for a body that is not read.
const maxUnreadBodyTime = 5 * time.Second

// ServeOptions adjust Serve. The zero value, and nil, give the defaults.
type ServeOptions struct {
	// Listening is called with the address once requests are accepted.
	// Default: not called.
	Listening func(addr net.Addr)
	// Shutdown is called when ctx has ended, before the HTTP server stops:
	// it should end long streams and let requests finish until its ctx ends.
	// Its error goes to Logger. Default: nothing.
	Shutdown func(ctx context.Context) error
	// Grace is how long requests under way may take after the end of ctx.
	// Default: 10 s.
	Grace time.Duration
	// HeaderTimeout is how long a client may take to send its headers; and what
	// the handler has left of a body, but for that not more than 5 s.
	// Default: 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection without request is kept. Default: 2 min.
	IdleTimeout time.Duration
	// MaxHeader is the size in bytes of the largest request header. Default: 64 KiB.
	MaxHeader int
	// Logger takes what net/http complains about. Default: slog.Default.
	Logger *slog.Logger
}

// defaults returns a copy of o, which may be nil, with its gaps filled.
func (o *ServeOptions) defaults() ServeOptions {
	var d ServeOptions
	if o != nil {
		d = *o
	}
	d.Grace = cmp.Or(d.Grace, DefaultGrace)
	d.HeaderTimeout = cmp.Or(d.HeaderTimeout, DefaultHeaderTimeout)
	d.IdleTimeout = cmp.Or(d.IdleTimeout, DefaultIdleTimeout)
	d.MaxHeader = cmp.Or(d.MaxHeader, DefaultMaxHeader)
	d.Logger = cmp.Or(d.Logger, slog.Default())
	return d
}

// Serve serves h over HTTP on the TCP address addr until ctx ends, then shuts
// down in good order and returns nil; requests that outlive Grace are cut off.
// The contexts of requests carry the values of ctx but do not end with it: they
// end with their request or with Grace. There is no limit on how long a request
// or an answer may take, since streams are long; transports have their own.
//
// An address without host, such as ":8080", means the loopback interface
// alone (spec 2026-07-28, basic/transports/streamable-http: servers SHOULD
// bind only to localhost); write "0.0.0.0:8080" for all interfaces.
func Serve(ctx context.Context, addr string, h http.Handler, o *ServeOptions) error {
	opts := o.defaults()
	ln, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv := newServer(base, h, &opts)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if opts.Listening != nil {
		opts.Listening(ln.Addr())
	}
	select {
	case err := <-served:
		stop(ctx, srv, &opts)
		return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
		stop(ctx, srv, &opts)
		<-served //nolint:errcheck // it was shut down
		return nil
	}
}

// newServer makes the HTTP server whose requests live in base.
func newServer(base context.Context, h http.Handler, o *ServeOptions) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // HTTP/2 belongs to the proxy that ends TLS
	return &http.Server{
		Handler:           limitUnreadBody(h, min(o.HeaderTimeout, maxUnreadBodyTime)),
		Protocols:         &protocols,
		ReadHeaderTimeout: o.HeaderTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    o.MaxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
}

// limitUnreadBody bounds what net/http does when h has answered: it waits for the part
// of a body that h did not read, so that a client which never sends it, to a
// path that is not even there, would keep its connection for ever.
func limitUnreadBody(h http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout)) // a connection taken over may be closed
		}
	})
}

// stop ends a server within Grace: first the endpoint, which knows what may be
// interrupted, then what is left of the connections.
func stop(ctx context.Context, srv *http.Server, o *ServeOptions) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Grace)
	defer cancel()
	if o.Shutdown != nil {
		if err := o.Shutdown(grace); err != nil {
			o.Logger.Warn("shutting down the endpoint", "error", err)
		}
	}
	if err := srv.Shutdown(grace); err != nil {
		o.Logger.Warn("cutting off what is under way", "error", err)
		_ = srv.Close() // what it could say, Shutdown has said
	}
}

// listen opens the listener; without a host, on the loopback interface.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w; write host and port, as in 127.0.0.1:8080", addr, err)
	}
	addr = net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return ln, nil
	case inUse(err):
		return nil, fmt.Errorf("listening on %s: %w; choose another port, or stop the program that has this one", addr, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("listening on %s: %w; choose a port above 1023", addr, err)
	}
	return nil, fmt.Errorf("listening on %s: %w; use an address of this machine and a free port", addr, err)
}

// inUse reports whether the address belongs to another program.
func inUse(err error) bool {
	const windows = syscall.Errno(10048) // WSAEADDRINUSE, which package syscall does not translate
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windows)
}
