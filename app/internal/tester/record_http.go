package tester

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/parley-mcp/parley/app/internal/bridge"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/cassette"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// localAddress refuses an address to listen on that other machines reach: who calls acts with the
// person's sign-ins.
func localAddress(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return kit.Usagef("--http %q: must be HOST:PORT or :PORT", address)
	}
	if kit.ListensEverywhere(address) {
		return kit.Usagef("--http %q is reachable from other machines, and clients are not authenticated; omit the host", address)
	}
	return nil
}

// recordHTTP stands in front of a server for clients over HTTP.
func (g *group) recordHTTP(ctx context.Context, t connect.Target, s *host.Server, m *mask.Masker, recorder *cassette.Recorder, address string) error {
	if d, ok := s.Dialer.(*stdio.CommandDialer); ok && !g.Verbose {
		d.Stderr = noting{g, m}
	}
	u, err := directURL(t)
	if err != nil {
		return err
	}
	if u == nil {
		return g.serveBridged(ctx, s, address, "recording", g.ServerLogger(), recorder.HTTP)
	}
	header, err := g.Header(u)
	if err != nil {
		return kit.Usagef("%w", err)
	}
	through := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			rewriteTo(r, u)
			if header == nil {
				return
			}
			if given, err := header(r.In.Context()); err == nil { // it cannot fail
				for name, values := range given {
					r.Out.Header[name] = values
				}
			}
		},
		Transport:     g.SignIns.Client(ctx, u).Transport,
		FlushInterval: -1,                                                             // at once: a client waits for each message
		ErrorLog:      slog.NewLogLogger(g.ServerLogger().Handler(), slog.LevelDebug), // of responses that break off
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "the server did not respond: "+m.Text(err.Error()), http.StatusBadGateway)
		},
	}
	recording := recorder.HTTP(through)
	access := &web.Access{}
	door := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := access.Admit(w, r, &web.CORS{}); !ok {
			return
		}
		if r.Header.Get("Upgrade") != "" {
			http.Error(w, "protocol upgrades, such as to WebSocket, cannot be recorded", http.StatusNotImplemented)
			return
		}
		recording.ServeHTTP(w, r)
	})
	listening := false
	err = web.Serve(ctx, address, door, &web.ServeOptions{
		Grace: kit.ShutdownTime, Logger: g.ServerLogger(),
		Listening: func(addr net.Addr) {
			listening = true
			g.Note("parley: recording %q at http://%s%s; Ctrl-C ends it", s.Name, front.Reachable(addr), u.EscapedPath())
		},
	})
	if err != nil && !listening {
		return kit.Usagef("--http: %w", err)
	}
	return err
}

// directURL is the URL of a server whose HTTP can be passed on as it is; nil for any other.
func directURL(t connect.Target) (*url.URL, error) {
	if t.Command || len(t.Words) != 1 || !kit.IsURL(t.Words[0]) {
		return nil, nil
	}
	u, err := url.Parse(t.Words[0])
	if err != nil {
		return nil, kit.Usagef("%w", connect.NoURL(t.Words[0], err))
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil
	}
	return u, nil
}

// rewriteTo sends a request to the server of a URL. Its path is that of the client, and the query of
// the URL goes with requests to the URL's own path.
func rewriteTo(r *httputil.ProxyRequest, u *url.URL) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = u.Scheme, u.Host, u.Host
	r.Out.URL.Opaque = "" // of a request for "http:example.com/x", which would be sent as it is
	if u.RawQuery != "" && r.Out.URL.Path == u.Path {
		if r.Out.URL.RawQuery != "" {
			r.Out.URL.RawQuery += "&"
		}
		r.Out.URL.RawQuery += u.RawQuery
	}
	r.Out.Header.Del("Accept-Encoding") // what is compressed cannot be recorded
}

// serveBridged serves one server over HTTP as the command bridge does, for callers of this machine. What
// goes through the endpoint is shown to what around makes of it, if it is not nil.
func (g *group) serveBridged(ctx context.Context, s *host.Server, address, what string, log *slog.Logger, around func(http.Handler) *cassette.HTTPRecorder) error {
	endpoints := &bridge.Endpoints{Connections: 32, SingleUser: true}
	options := bridge.ProxyOptions(g.Console, s, nil)
	options.Client.Logger = log
	b := bridge.New(s.Dialer, &bridge.Options{Proxy: options, Logger: log})
	if err := b.Start(ctx); err != nil {
		return g.SignIns.Named(&host.ServerError{Server: s.Name, State: host.StateStarting, Err: err})
	}
	return front.Serve(ctx, g.Console, &front.Flags{HTTP: address}, &front.Service{
		Name: s.Name, What: what, Start: func() {}, Shutdown: b.Shutdown,
		Mount: func(access web.Access) front.Endpoints {
			made := bridge.Mount(g.Console, b, access, endpoints, false)
			if around != nil {
				made.Handlers[streamable.Path] = around(made.Handlers[streamable.Path])
			}
			return made
		},
	})
}

// A cassetteDialer makes connections to a cassette, each of which begins at its beginning.
type cassetteDialer struct{ file string }

// Key names the file.
func (d *cassetteDialer) Key() string { return "cassette " + d.file }

// Dial opens the file and serves it at the other end of a pipe.
func (d *cassetteDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	file, err := os.Open(d.file)
	if err != nil {
		return nil, err
	}
	c, err := cassette.Open(file)
	if err != nil {
		_ = file.Close() // it was only read
		return nil, err
	}
	near, far := net.Pipe()
	served := &servedCassette{near, make(chan struct{})}
	go func() { // ends when the pipe is closed, and Close waits for it
		defer close(served.done)
		_ = c.Serve(context.WithoutCancel(ctx), far) // the client's link tells of its end
		_ = file.Close()                             // it was only read
	}()
	return stdio.Conn(served).Dial(ctx, in)
}

// A servedCassette is the end of a cassette's client.
type servedCassette struct {
	io.ReadWriteCloser

	done chan struct{}
}

// Close ends the connection, and returns when the cassette is closed.
func (s *servedCassette) Close() error {
	err := s.ReadWriteCloser.Close()
	<-s.done
	return err
}

// replayHTTP serves a cassette over HTTP.
func (g *group) replayHTTP(ctx context.Context, file, address string) error {
	if err := localAddress(address); err != nil {
		return err
	}
	s := &host.Server{Name: "replay", Origin: file, Dialer: &cassetteDialer{file}}
	return g.serveBridged(ctx, s, address, "serving", g.Logger(), nil) // what a recording does not have is no news
}
