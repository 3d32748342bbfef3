package web_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/web"
)

// A running server is one that Serve serves.
type running struct {
	*testing.T
	addr net.Addr
	stop context.CancelFunc
	done chan error
}

// start serves h on a free loopback port.
func start(t *testing.T, h http.Handler, o *web.ServeOptions) *running {
	t.Helper()
	mcptest.NoLeaks(t)
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), valueKey{}, "value"))
	listening := make(chan net.Addr, 1)
	o.Listening = func(addr net.Addr) { listening <- addr }
	s := &running{T: t, stop: stop, done: make(chan error, 1)}
	go func() { s.done <- web.Serve(ctx, "127.0.0.1:0", h, o) }()
	t.Cleanup(stop)
	select {
	case s.addr = <-listening:
	case err := <-s.done:
		t.Fatalf("serving: %v", err)
	}
	return s
}

type valueKey struct{}

// get sends a request on a connection of its own.
func (s *running) get(path string) (string, error) {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.addr.String()+path, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// Proves: FLOW-SHUTDOWN. What is under way at the end of the context finishes.
func TestServeFinishes(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var value any
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		select {
		case <-leave:
			value = r.Context().Value(valueKey{})
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
			_, _ = io.WriteString(w, "cut off")
		}
	})
	s := start(t, h, &web.ServeOptions{
		Shutdown: func(ctx context.Context) error {
			if ctx.Err() != nil {
				t.Error("Shutdown has no time")
			}
			close(leave)
			return nil
		},
	})
	got := make(chan string, 1)
	go func() {
		body, err := s.get("/")
		if err != nil {
			body = err.Error()
		}
		got <- body
	}()
	<-entered
	s.stop()
	if body := <-got; body != "done" {
		t.Errorf("the request under way ended with %q, want its answer", body)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve: %v, want nil after the end of its context", err)
	}
	if value != "value" {
		t.Errorf("the request's context has the value %v, want that of Serve's", value)
	}
	if _, err := s.get("/"); err == nil {
		t.Error("the server still answers")
	}
}

// Proves: FLOW-SHUTDOWN. What does not finish is cut off.
func TestServeCutsOff(t *testing.T) {
	entered := make(chan struct{})
	var left error
	gone := make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(gone)
		close(entered)
		<-r.Context().Done()
		left = r.Context().Err()
	})
	var log bytes.Buffer
	s := start(t, h, &web.ServeOptions{
		Grace:    time.Millisecond,
		Shutdown: func(ctx context.Context) error { <-ctx.Done(); return errors.New("not finished") },
		Logger:   slog.New(slog.NewTextHandler(&log, nil)),
	})
	got := make(chan error, 1)
	go func() {
		_, err := s.get("/")
		got <- err
	}()
	<-entered
	s.stop()
	if err := <-got; err == nil {
		t.Error("the request under way was answered, want it cut off")
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve: %v, want nil", err)
	}
	<-gone
	if left == nil {
		t.Error("the request's context did not end")
	}
	if !strings.Contains(log.String(), "not finished") {
		t.Errorf("the log does not tell the error of Shutdown: %s", log.String())
	}
}

// Proves: SEC-HTTP-1. Without a host only this machine is served.
func TestServeBindsLoopback(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var at net.Addr
	err := web.Serve(ctx, ":0", http.NotFoundHandler(), &web.ServeOptions{
		Listening: func(addr net.Addr) { at = addr; stop() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if tcp, ok := at.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		t.Errorf(`":0" is served at %v, want a loopback address`, at)
	}
}

// Proves: SEC-DOS-1. Neither a long header nor one that never ends is waited for.
func TestServeBoundsHeaders(t *testing.T) {
	tests := []struct {
		name, text string
		o          web.ServeOptions
		want       string
	}{
		// net/http reads a few KiB more than it is told.
		{"long", "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 16<<10), web.ServeOptions{MaxHeader: 1 << 10}, "HTTP/1.1 431 "},
		{"slow", "GET / HTTP/1.1\r\n", web.ServeOptions{HeaderTimeout: time.Millisecond}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, http.NotFoundHandler(), &test.o)
			var d net.Dialer
			c, err := d.DialContext(t.Context(), "tcp", s.addr.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, test.text); err != nil {
				t.Fatal(err)
			}
			got, _ := bufio.NewReader(c).ReadString('\n')
			if !strings.HasPrefix(got, test.want) || strings.Contains(got, "404") {
				t.Errorf("the answer is %q, want %q", got, test.want)
			}
			s.stop()
			if err := <-s.done; err != nil {
				t.Error(err)
			}
		})
	}
}

// Proves: SEC-DOS-1. Nor is a body that nobody reads: not even one for a path
// that is not there.
func TestServeBoundsBodiesLeft(t *testing.T) {
	t.Parallel() // it waits for the 5 s that a client has at most
	s := start(t, http.NotFoundHandler(), &web.ServeOptions{HeaderTimeout: time.Hour})
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", s.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil { // ends a test that hangs
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 404 ") {
		t.Errorf("the answer is %q, error %v, want 404 and the end of the connection", answer, err)
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

func TestServeTellsWhatToDo(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for addr, want := range map[string]string{
		"localhost":        "write host and port, as in 127.0.0.1:8080",
		ln.Addr().String(): "choose another port, or stop the program that has this one",
		"127.0.0.1:none":   "use an address of this machine and a free port",
	} {
		err := web.Serve(t.Context(), addr, http.NotFoundHandler(), nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), "listening on ") {
			t.Errorf("%s: %v, want an error that ends with %q", addr, err, want)
		}
	}
}

// Proves: SEC-HTTP-1. HTTP/2 without TLS is a second way in that nobody needs.
func TestServeSpeaksHTTP1(t *testing.T) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}), new(web.ServeOptions))
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &protocols}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := tr.RoundTrip(r); err == nil {
		answer.Body.Close()
		t.Errorf("HTTP/2 without TLS was answered with %s", answer.Proto)
	}
	if body, err := s.get("/"); err != nil || body != "HTTP/1.1" {
		t.Errorf("the protocol is %q, error %v", body, err)
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}
