package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// ReceiverOptions adjust a Receiver. The zero value, and nil, work.
type ReceiverOptions struct {
	// Host is what the redirect URI names: "127.0.0.1" or "localhost", for servers that insist on
	// that. Default "127.0.0.1", which nothing can be put in the place of (RFC 8252, section 8.3).
	Host string
	// Port is where to listen, and Ports those to try if it is taken. Default: a random one.
	Port  int
	Ports []int
	// Path is that of the redirect URI. Default "/callback".
	Path string
	// Open opens the browser. It must return when its context ends. Default: the function Open.
	Open func(ctx context.Context, authorizationURL *url.URL) error
	// Show shows the person the URL, before the browser is opened. With it a browser that does not
	// open is no error. Default none.
	Show func(authorizationURL string)
	// Read returns what the person pastes, as in [ManualOptions], for a browser on another machine,
	// where the redirect leads nowhere. It must return when its context ends; an error of its own
	// ends the reading but not the wait. Default none.
	Read func(ctx context.Context) (string, error)
	// Refused is as in ManualOptions. Default: a bad text ends the visit.
	Refused func(err error)
	// Timeout is how long the person has. Default 5 min.
	Timeout time.Duration
}

// A Receiver opens the browser on this machine and receives the response at a loopback address (RFC
// 8252, section 7.3). It may be used by many goroutines at once if its callbacks may.
type Receiver struct{ o ReceiverOptions }

// NewReceiver makes a Receiver. The options are copied.
func NewReceiver(o *ReceiverOptions) *Receiver {
	r := &Receiver{}
	if o != nil {
		r.o = *o
	}
	r.o.Host = cmp.Or(r.o.Host, "127.0.0.1")
	r.o.Path = cmp.Or(r.o.Path, "/callback")
	r.o.Timeout = cmp.Or(r.o.Timeout, visitTimeout)
	if r.o.Open == nil {
		r.o.Open = Open
	}
	return r
}

// Begin makes ready for one response. It listens at once: at a registered redirect URI's port if
// one can be had, else as the options say, on 127.0.0.1 and [::1] alone.
func (r *Receiver) Begin(ctx context.Context, registered []string) (Visit, error) {
	places, err := r.o.addresses(registered)
	if err != nil {
		return nil, fmt.Errorf("waiting for the browser: %w", err)
	}
	var last error
	for _, p := range places {
		listeners, port, err := listenLoopback(ctx, p.port)
		if err != nil {
			last = err
			continue
		}
		life, end := context.WithCancelCause(context.Background())
		return &loopbackVisit{
			o: &r.o, listeners: listeners, redirect: p.redirect(port),
			page: &callbackPage{hosts: loopbackHosts(port), path: p.path},
			life: life, end: end, ended: make(chan struct{}),
		}, nil
	}
	return nil, fmt.Errorf("waiting for the browser: %w", last)
}

// A loopbackVisit is a listener for one response.
type loopbackVisit struct {
	o         *ReceiverOptions
	listeners []net.Listener
	redirect  string
	page      *callbackPage

	mu    sync.Mutex
	phase phase
	life  context.Context //nolint:containedctx // it ends with Close
	end   context.CancelCauseFunc
	ended chan struct{} // closed when nothing listens any more
}

// A phase is how far a visit is:
//
//	listening --Wait--> waiting --Close--> closed
//	listening --Close-> closed
type phase int

const (
	listening phase = iota
	waiting
	closed
)

func (v *loopbackVisit) RedirectURI() string { return v.redirect }

// Wait implements [Visit]. It can be called once, and leaves nothing running.
func (v *loopbackVisit) Wait(ctx context.Context, authorizationURL *url.URL, accept func(url.Values) bool) (url.Values, error) {
	if err := v.begin(); err != nil {
		return nil, err
	}
	defer close(v.ended)
	ctx, cancel := visitContext(ctx, v.life, v.o.Timeout)
	// The context ends before the server does, which waits for both.
	received := make(chan url.Values, 1)
	stop := v.serve(accept, received)
	defer stop()
	defer cancel()
	checked, err := checkURL(authorizationURL)
	if err != nil {
		return nil, err
	}
	values, err := v.await(ctx, checked, accept, received)
	if err != nil {
		return nil, fmt.Errorf("waiting for the browser: %w", err)
	}
	return values, nil
}

// await opens the browser and waits for whatever ends the visit.
func (v *loopbackVisit) await(ctx context.Context, u *url.URL, accept func(url.Values) bool, received <-chan url.Values) (url.Values, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if v.o.Show != nil {
		v.o.Show(u.String())
	}
	opened := inBackground(ctx, &running, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, v.o.Open(ctx, new(*u))
	})
	var pasted <-chan callbackResult[url.Values]
	if v.o.Read != nil {
		in := &pasteReader{redirect: v.redirect, read: v.o.Read, refused: v.o.Refused}
		pasted = inBackground(ctx, &running, func(ctx context.Context) (url.Values, error) {
			return in.wait(ctx, &v.page.once, accept)
		})
	}
	for {
		select {
		case values := <-received:
			return values, nil
		case o := <-opened:
			opened = nil
			if o.err != nil && v.o.Show == nil && ctx.Err() == nil { // else the end of ctx is the reason
				return orReceived(received, o.err)
			}
		case a := <-pasted:
			pasted = nil
			switch _, bad := errors.AsType[*pasteError](a.err); {
			case a.err == nil:
				return a.value, nil
			case bad:
				return orReceived(received, a.err)
			}
		case <-ctx.Done():
			return orReceived(received, context.Cause(ctx))
		}
	}
}

// orReceived returns the response if it came at the same time as an error: its page says that it did.
func orReceived(received <-chan url.Values, err error) (url.Values, error) {
	select {
	case values := <-received:
		return values, nil
	default:
		return nil, err
	}
}

func (v *loopbackVisit) begin() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch v.phase {
	case closed:
		return fmt.Errorf("waiting for the browser: %w", errClosed)
	case waiting:
		return errors.New("waiting for the browser: a visit is for one response")
	default:
		v.phase = waiting
	}
	return nil
}

// Close implements [Visit].
func (v *loopbackVisit) Close() error {
	v.mu.Lock()
	was := v.phase
	v.phase = closed
	v.mu.Unlock()
	if was == listening {
		closeAll(v.listeners)
		close(v.ended)
	}
	v.end(errClosed)
	<-v.ended
	return nil
}

// serve answers requests until stop is called, which returns when all connections are gone.
func (v *loopbackVisit) serve(accept func(url.Values) bool, received chan<- url.Values) (stop func()) {
	const limit = 5 * time.Second
	var conns sync.WaitGroup
	var open atomic.Int32
	v.page.accept, v.page.received = accept, received
	srv := &http.Server{
		Handler: v.page, MaxHeaderBytes: maxCallbackHeader, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ReadHeaderTimeout: limit, ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: limit,
		ConnState: func(c net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				conns.Add(1)
				if open.Add(1) > maxCallbackConns {
					_ = c.Close()
				}
			case http.StateClosed:
				open.Add(-1)
				conns.Done()
			default:
			}
		},
	}
	srv.SetKeepAlivesEnabled(false)
	for _, l := range v.listeners {
		// Counted among conns, so that none is added once they are waited for.
		conns.Go(func() { _ = srv.Serve(l) })
	}
	return func() {
		_ = srv.Close()
		conns.Wait()
	}
}
