package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/web"
)

// stream writes text as an event stream and, with hold, keeps it open.
func stream(w http.ResponseWriter, r *http.Request, hold bool, text string) {
	w.Header().Set("Content-Type", eventstream.ContentType)
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
	if hold {
		<-r.Context().Done()
	}
}

// fails dials, which has to fail, and gives the error.
func fails(t *testing.T, ctx context.Context, d *sse.Dialer) error {
	t.Helper()
	link, err := d.Dial(ctx, linktest.NewInbox())
	if err == nil {
		_ = link.Close(ctx)
		t.Fatal("Dial gave a link, want an error")
	}
	return err
}

// Proves: SEC-HTTP-1 (a hostile server cannot choose where messages go).
func TestJunkEndpoint(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, test := range []struct {
		name, text string
		hold       bool
		want       string
	}{
		{"other host", "event: endpoint\ndata: https://evil.example/m\n\n", true, "another origin"},
		{"other port", "event: endpoint\ndata: http://127.0.0.1:1/m\n\n", true, "another origin"},
		{"other scheme", "event: endpoint\ndata: https://HOST/m\n\n", true, "another origin"},
		{"host without scheme", "event: endpoint\ndata: //evil.example/m\n\n", true, "another origin"},
		{"user", "event: endpoint\ndata: http://user:secret@HOST/m\n\n", true, "another origin"},
		{"script", "event: endpoint\ndata: javascript:alert(1)\n\n", true, "another origin"},
		{"file", "event: endpoint\ndata: file:///etc/passwd\n\n", true, "another origin"},
		{"opaque", "event: endpoint\ndata: http:m\n\n", true, "another origin"},
		{"no URL", "event: endpoint\ndata: http://[::1/%zz\n\n", true, "cannot be read"},
		{"two lines", "event: endpoint\ndata: /a\ndata: /b\n\n", true, "cannot be read"},
		{"empty", "event: endpoint\ndata:\n\n", true, "of 0 bytes"},
		{"too long", "event: endpoint\ndata: /" + strings.Repeat("x", 9000) + "\n\n", true, "of 9001 bytes"},
		{"other event first", "data: {}\n\nevent: endpoint\ndata: /m\n\n", true, "before the first message"},
		{"events without data", strings.Repeat("retry: 1\n\n", 100), true, "no event names"},
		{"end", "", false, "ended before"},
		{"end in the event", "event: endpoint\ndata: /m\n", false, "ended before"},
		{"endless event", "event: endpoint\ndata: /" + strings.Repeat("x", 20_000), true, "limit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					t.Errorf("%s %s was sent, want nothing", r.Method, r.URL)
				}
				stream(w, r, test.hold, strings.ReplaceAll(test.text, "HOST", r.Host))
			}))
			d := sse.URL(s.URL)
			d.MaxResponse = 10_000
			err := fails(t, t.Context(), d)
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %q, want one that says %q, and no secret", err, test.want)
			}
		})
	}
}

// Where messages go when the server says it in one of the legal ways.
func TestEndpoint(t *testing.T) {
	for _, test := range []struct{ event, want string }{
		{"/m?sessionId=1", "/m?sessionId=1"},
		{"m?sessionId=1", "/deep/m?sessionId=1"},
		{"?sessionId=1", "/deep/sse?sessionId=1"},
		{"http://HOST/m", "/m"},
		{"HTTP://HOST/m#part", "/m"},
	} {
		t.Run(test.event, func(t *testing.T) {
			got := make(chan string, 1)
			s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					got <- r.RequestURI
					return
				}
				stream(w, r, true, "retry: 10\n\nevent: endpoint\ndata: "+strings.ReplaceAll(test.event, "HOST", r.Host)+"\n\n")
			}))
			link, err := sse.URL(s.URL+"/deep/sse?x=1").Dial(t.Context(), linktest.NewInbox())
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close(t.Context())
			if err := link.Post(t.Context(), notice(), transport.Route{}); err != nil {
				t.Fatal(err)
			}
			if uri := <-got; uri != test.want {
				t.Errorf("the message went to %s, want %s", uri, test.want)
			}
		})
	}
}

// The endpoint event never comes: the context decides.
func TestEndpointNeverComes(t *testing.T) {
	mcptest.NoLeaks(t)
	for name, text := range map[string]string{"no event": ":\n\n", "comments": strings.Repeat(":\n\n", 1000)} {
		begun := make(chan struct{}, 1)
		s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			stream(w, r, true, text)
		}))
		reason := errors.New("no patience")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-begun
			cancel(reason)
		}()
		if err := fails(t, ctx, sse.URL(s.URL)); !errors.Is(err, reason) {
			t.Errorf("%s: Dial ended with %v, want the cause of its context's end", name, err)
		}
	}
}

// Not even headers come.
func TestNoAnswer(t *testing.T) {
	mcptest.NoLeaks(t)
	begun := make(chan struct{})
	s := webtest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if err := fails(t, ctx, sse.URL(s.URL)); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial ended with %v, want context.Canceled", err)
	}
}

func TestNoStream(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, test := range []struct {
		name   string
		status int
		kind   string
		other  bool // another transport may do
	}{
		{"not found", http.StatusNotFound, "text/plain", true},
		{"no GET", http.StatusMethodNotAllowed, "text/plain", true},
		{"bad request", http.StatusBadRequest, "application/json", true},
		{"a page", http.StatusOK, "text/html", true},
		{"accepted", http.StatusAccepted, eventstream.ContentType, true},
		{"no type", http.StatusOK, "", true},
		{"unauthorized", http.StatusUnauthorized, "text/plain", false},
		{"forbidden", http.StatusForbidden, "text/plain", false},
		{"too many", http.StatusTooManyRequests, "text/plain", false},
		{"broken", http.StatusInternalServerError, "text/plain", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{test.kind}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, "event: endpoint\ndata: /m\n\n")
			}))
			err := fails(t, t.Context(), sse.URL(s.URL))
			var failed *web.StatusError
			if !errors.As(err, &failed) || failed.Status != test.status {
				t.Errorf("the error is %v, want a StatusError with %d", err, test.status)
			}
			if got := errors.Is(err, transport.ErrOtherTransport); got != test.other {
				t.Errorf("the error is %v; ErrOtherTransport: %v, want %v", err, got, test.other)
			}
		})
	}
}

func TestBadURL(t *testing.T) {
	for _, address := range []string{
		"", "sse", "ftp://server.example/sse", "http:///sse", "javascript:alert(1)",
		"https://user:secret@server.example/sse", "https://server.example/%zz?secret", "http://127.0.0.1:1/?secret",
	} {
		err := fails(t, t.Context(), sse.URL(address))
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error for %q is %q, and gives a secret away", address, err)
		}
	}
}

func TestKey(t *testing.T) {
	for address, want := range map[string]string{
		"https://server.example/a%2Fb#y":  "https://server.example/a%2Fb",
		"https://user@server.example/sse": "",
		"ftp://server.example/sse":        "",
	} {
		if got := sse.URL(address).Key(); got != want {
			t.Errorf("the key of %s is %q, want %q", address, got, want)
		}
	}
	// A query may say which server is meant, or be a secret.
	one, two := sse.URL("http://localhost/sse?server=secret1").Key(), sse.URL("http://localhost/sse?server=secret2").Key()
	if one == two || strings.Contains(one, "secret") {
		t.Errorf("the keys of two servers are %q and %q, want two without what the query says", one, two)
	}
}

// Headers of the caller go with each request, but not to another origin.
func TestHeader(t *testing.T) {
	mcptest.NoLeaks(t)
	type key struct{}
	elsewhere := webtest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s came to another origin with %v", r.Method, r.Header)
	}))
	posted := make(chan http.Header, 1)
	var posts atomic.Int64
	s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer x":
			t.Errorf("%s came without the header", r.Method)
		case r.Method == http.MethodGet && r.URL.Path == "/":
			http.Redirect(w, r, "/sse", http.StatusFound) // within the origin: followed
		case r.Method == http.MethodGet:
			if got := r.Header["Accept"]; len(got) != 1 || got[0] != eventstream.ContentType {
				t.Errorf("Accept is %q, want that of the protocol", got)
			}
			stream(w, r, true, "event: endpoint\ndata: /m\n\n")
		case r.URL.Path == "/m":
			http.Redirect(w, r, "/n", http.StatusPermanentRedirect)
		case posts.Add(1) == 1:
			posted <- r.Header
		default:
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}
	}))
	d := sse.URL(s.URL)
	d.Header = func(ctx context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + ctx.Value(key{}).(string)}, "accept": {"nothing"}, "content-type": {"text/plain"}}, nil
	}
	in := linktest.NewInbox()
	link, err := d.Dial(context.WithValue(t.Context(), key{}, "x"), in)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close(t.Context())
	if err := link.Post(t.Context(), notice(), transport.Route{}); err != nil {
		t.Fatal(err)
	}
	if got := (<-posted)["Content-Type"]; len(got) != 1 || got[0] != "application/json" {
		t.Errorf("Content-Type is %q, want that of the protocol", got)
	}
	if err := link.Post(t.Context(), notice(), transport.Route{}); err != nil {
		t.Fatal(err)
	}
	if err := <-in.Ended; !strings.Contains(err.Error(), "another origin") {
		t.Errorf("the link ended with %v, want one that names the redirect", err)
	}
}

func TestHeaderFails(t *testing.T) {
	reason := errors.New("no token")
	d := sse.URL("http://127.0.0.1:1/sse")
	d.Header = func(context.Context) (http.Header, error) { return nil, reason }
	if err := fails(t, t.Context(), d); !errors.Is(err, reason) {
		t.Errorf("Dial ended with %v, want what Header said", err)
	}
}

// A Timeout of the caller's client is for messages; the stream outlives it.
func TestClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				return
			}
			stream(w, r, true, "event: endpoint\ndata: /m\n\n")
		}))
		d := sse.URL("http://localhost/sse")
		d.Client = m.Client()
		d.Client.Timeout = 10 * time.Second
		in := linktest.NewInbox()
		link, err := d.Dial(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close(t.Context())
		time.Sleep(time.Hour)
		select {
		case err := <-in.Ended:
			t.Fatalf("the stream ended with %v", err)
		default:
		}
		begun := time.Now()
		if err := link.Post(t.Context(), notice(), transport.Route{}); err != nil {
			t.Fatal(err)
		}
		if err := <-in.Ended; !strings.Contains(err.Error(), "posting") || time.Since(begun) != 10*time.Second {
			t.Errorf("the link ended with %v after %v, want that of the message after its timeout", err, time.Since(begun))
		}
		if d.Client.CheckRedirect != nil || d.Client.Timeout != 10*time.Second {
			t.Error("the caller's client was changed")
		}
	})
}

// A server's POST that hangs is given up by the transport's own patience.
func TestPostHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				return
			}
			stream(w, r, true, "event: endpoint\ndata: /m\n\n")
		}))
		d := sse.URL("http://localhost/sse")
		d.Client = m.Client()
		in := linktest.NewInbox()
		link, err := d.Dial(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close(t.Context())
		begun := time.Now()
		if err := link.Post(t.Context(), notice(), transport.Route{}); err != nil {
			t.Fatal(err)
		}
		if err := <-in.Ended; !errors.Is(err, transport.ErrStalled) || time.Since(begun) != 30*time.Second {
			t.Errorf("the link ended with %v after %v, want ErrStalled after 30 s", err, time.Since(begun))
		}
	})
}

func ExampleURL() {
	s := httptest.NewServer(sse.NewHandler(mcptest.TransportPeer(), nil))
	defer s.Close()
	link, err := sse.URL(s.URL).Dial(context.Background(), linktest.NewInbox())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("connected")
	_ = link.Close(context.Background())
	// Output: connected
}
