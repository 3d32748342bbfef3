package transport_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
	"github.com/parley-mcp/parley/transport/websocket"
)

// roleVar makes the test binary a server on its standard streams.
const roleVar = "PARLEY_TRANSPORT_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		fmt.Fprintln(os.Stderr, "the server is ready")
		if err := stdio.Serve(context.Background(), greeter()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// greeter is a server with one tool, which reports progress.
func greeter() *server.Server {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(ctx context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", server.Progress(ctx, 1, 2, "half")
	}))
	return s
}

// A record keeps what a tap is shown.
type record struct {
	mu     sync.Mutex
	events []transport.TapEvent
	said   bytes.Buffer // standard error
	bodies map[uint64]string
}

func (r *record) take(e transport.TapEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Data, e.Header = bytes.Clone(e.Data), e.Header.Clone()
	if e.Kind == transport.TapStderr {
		r.said.Write(e.Data)
	}
	if e.Kind == transport.TapBody {
		if r.bodies == nil {
			r.bodies = make(map[uint64]string)
		}
		r.bodies[e.Exchange] += string(e.Data)
	}
	r.events = append(r.events, e)
}

// of are the events of a kind.
func (r *record) of(kind transport.TapKind) []transport.TapEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(func(yield func(transport.TapEvent) bool) {
		for _, e := range r.events {
			if e.Kind == kind && !yield(e) {
				return
			}
		}
	})
}

// count is how many events of a kind have Data that contains text.
func (r *record) count(kind transport.TapKind, text string) int {
	n := 0
	for _, e := range r.of(kind) {
		if strings.Contains(string(e.Data), text) {
			n++
		}
	}
	return n
}

// tapped are the dialers that have a tap, by name, for one server each.
func tapped(t *testing.T, tap transport.Tap) map[string]transport.Dialer {
	t.Helper()
	serve := func(h http.Handler, shutdown func(context.Context) error) string {
		far := httptest.NewServer(h)
		t.Cleanup(func() {
			if err := shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			far.Close()
		})
		return far.URL
	}
	modern, old, socket := streamable.NewHandler(greeter(), nil), sse.NewHandler(greeter(), nil), websocket.NewHandler(greeter(), nil)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]transport.Dialer{
		"memory":    mem.New(greeter(), &mem.Options{Tap: tap}),
		"stdio":     &stdio.CommandDialer{Name: exe, ExtraEnv: []string{roleVar + "=1", "GOCOVERDIR=" + t.TempDir()}, Tap: tap},
		"http":      &streamable.Dialer{URL: serve(modern, modern.Shutdown), Tap: tap},
		"sse":       &sse.Dialer{URL: serve(old, old.Shutdown), Tap: tap},
		"websocket": &websocket.Dialer{URL: "ws" + strings.TrimPrefix(serve(socket, socket.Shutdown), "http"), Tap: tap},
	}
}

// Every message of a call is shown, both ways and once, on each transport.
func TestTap(t *testing.T) {
	shown := new(record)
	for name, d := range tapped(t, func(e transport.TapEvent) { shown.take(e) }) {
		t.Run(name, func(t *testing.T) {
			*shown = record{}
			c, err := client.Connect(t.Context(), d, nil)
			if err != nil {
				t.Fatal(err)
			}
			var progress []string
			text, err := client.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"},
				&client.CallOptions{OnProgress: func(_, _ float64, message string) { progress = append(progress, message) }})
			if err != nil || text != "Hello, Ada!" || !slices.Equal(progress, []string{"half"}) {
				t.Fatal(text, progress, err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			for text, kind := range map[string]transport.TapKind{
				`"tools/call"`: transport.TapSent, `{"name":"Ada"}`: transport.TapSent,
				"Hello, Ada!": transport.TapReceived, `"half"`: transport.TapReceived,
			} {
				if n := shown.count(kind, text); n != 1 {
					t.Errorf("%d messages %s have %s, want one", n, kind, text)
				}
			}
			for _, e := range append(shown.of(transport.TapSent), shown.of(transport.TapReceived)...) {
				if _, err := jsonrpc.Parse(e.Data, jsonrpc.Limits{}); err != nil && len(e.Data) > 0 {
					t.Errorf("%s %q: %v", e.Kind, e.Data, err)
				}
				if e.Link == 0 || e.Time.IsZero() || (name == "http") != (e.Exchange != 0) {
					t.Errorf("%s has link %d, exchange %d, time %v", e.Kind, e.Link, e.Exchange, e.Time)
				}
			}
			if ends := shown.of(transport.TapClosed); len(ends) != 1 || ends[0].Err != nil {
				t.Errorf("ends: %v", ends)
			}
			if got := shown.of(transport.TapRefused); len(got) > 0 {
				t.Errorf("refused: %v", got)
			}
			steps := map[string]int{}
			for _, e := range shown.of(transport.TapStep) {
				steps[e.Name]++
			}
			switch name {
			case "memory":
				if len(steps) > 0 {
					t.Error(steps)
				}
			case "stdio":
				if steps[transport.StepProcess] != 1 || steps[transport.StepExit] != 1 {
					t.Error(steps)
				}
				if got := shown.said.String(); got != "the server is ready\n" {
					t.Errorf("standard error: %q", got)
				}
			default:
				if steps[transport.StepTCP] == 0 {
					t.Error(steps)
				}
			}
		})
	}
}

// The heads and bodies of HTTP are those that the server sees, and what
// authorization adds is among them; all that belongs to one message has one number.
func TestTapHTTP(t *testing.T) {
	h := streamable.NewHandler(greeter(), nil)
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-the-test" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer far.Close()
	shown := new(record)
	tap := func(e transport.TapEvent) { shown.take(e) }
	hc := far.Client()
	hc.Transport = authorizing{web.TapTransport(hc.Transport, tap)}
	c, err := client.Connect(t.Context(), &streamable.Dialer{URL: far.URL, Client: hc, Tap: tap},
		&client.Options{DiscoverProbe: time.Minute}) // a server that is slow is not an old one, with a session
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), h.Shutdown(t.Context())); err != nil {
		t.Fatal(err)
	}
	var call uint64
	for _, e := range shown.of(transport.TapSent) {
		if strings.Contains(string(e.Data), "tools/call") {
			call = e.Exchange
		}
	}
	var requests, statuses, got []string
	for _, e := range shown.events {
		switch {
		case e.Exchange != call:
		case e.Kind == transport.TapRequest:
			requests = append(requests, e.Method+" "+e.Header.Get("Authorization"))
			if !strings.Contains(string(e.Data), "tools/call") || e.URL != far.URL || e.Header.Get("Mcp-Method") != "tools/call" || e.Header.Get("Host") == "" {
				t.Errorf("request: %s %s %v", e.URL, e.Data, e.Header)
			}
		case e.Kind == transport.TapResponse:
			statuses = append(statuses, fmt.Sprint(e.Status, e.Header.Get("WWW-Authenticate")))
		case e.Kind == transport.TapReceived:
			got = append(got, string(e.Data))
		}
	}
	if want := []string{"POST ", "POST Bearer of-the-test"}; !slices.Equal(requests, want) {
		t.Errorf("requests %q, want %q", requests, want)
	}
	if want := []string{"401Bearer", "200"}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %q, want %q", statuses, want)
	}
	if len(got) != 2 || !strings.Contains(got[0], "notifications/progress") || !strings.Contains(shown.bodies[call], got[1]) || !strings.HasPrefix(shown.bodies[call], "who are you?\n") {
		t.Errorf("received %q in the bodies %q", got, shown.bodies[call])
	}
	steps := map[string]int{}
	for _, e := range shown.of(transport.TapStep) {
		if e.Err != nil || e.Name != transport.StepReused && e.Took <= 0 {
			t.Errorf("step %s took %v: %v", e.Name, e.Took, e.Err)
		}
		steps[e.Name]++
	}
	if steps[transport.StepTCP] == 0 || steps[transport.StepTLS] == 0 || steps[transport.StepReused] == 0 {
		t.Error(steps)
	}
}

// An authorizing transport tries each request without a token first.
type authorizing struct{ next http.RoundTripper }

func (a authorizing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	again := r.Clone(r.Context())
	again.Header.Set("Authorization", "Bearer of-the-test")
	if again.Body, err = r.GetBody(); err != nil {
		return nil, err
	}
	return a.next.RoundTrip(again)
}

// What the codec refuses is shown as it came, with the reason.
func TestTapRefused(t *testing.T) {
	const junk = `{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, err := base64.URLEncoding.DecodeString(r.URL.Query().Get("kind"))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", string(kind))
		if string(kind) == "text/event-stream" {
			_, err = io.WriteString(w, "id: 7\ndata: "+junk+"\n\n")
		} else {
			_, err = io.WriteString(w, junk)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer far.Close()
	for _, kind := range []string{"application/json", "text/event-stream", "line"} {
		t.Run(kind, func(t *testing.T) {
			shown := new(record)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			tap := func(e transport.TapEvent) {
				shown.take(e)
				if e.Kind == transport.TapRefused {
					stop() // nothing else comes
				}
			}
			var d transport.Dialer = &streamable.Dialer{URL: far.URL + "?kind=" + base64.URLEncoding.EncodeToString([]byte(kind)), Tap: tap}
			if kind == "line" {
				near, other := net.Pipe()
				lines := stdio.Conn(near)
				lines.Tap = tap
				d = lines
				go func() {
					_, _ = io.WriteString(other, junk+"\n") // the test fails if it does not arrive
					_, _ = io.Copy(io.Discard, other)
				}()
			}
			if _, err := client.Connect(ctx, d, nil); err == nil {
				t.Fatal("connected to a server that sends no message")
			}
			refused := shown.of(transport.TapRefused)
			if len(refused) == 0 || string(refused[0].Data) != junk || refused[0].Err == nil {
				t.Errorf("refused: %v", refused)
			}
			if kind == "text/event-stream" && shown.of(transport.TapReceived)[0].EventID != "7" {
				t.Errorf("received: %v", shown.of(transport.TapReceived))
			}
		})
	}
}
