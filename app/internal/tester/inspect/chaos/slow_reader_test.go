package chaos_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
)

// A client that reads one byte of its stream in a second is ended after WriteStall, and what the server
// says for it waits there until then; other clients go on.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	target, err := url.Parse("http://127.0.0.1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		event := "data: " + strings.Repeat("x", 16<<10) + "\n\n"
		var said atomic.Int64 // bytes of the stream
		over := make(chan struct{})
		upstream := newSite(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/stream" {
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
				return
			}
			defer close(over)
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				n, err := io.WriteString(w, event)
				if err != nil || http.NewResponseController(w).Flush() != nil {
					return
				}
				said.Add(int64(n))
			}
		}))
		toServer := upstream.transport()
		front := newSite(chaos.New(chaos.Options{Rates: chaos.Rates{}, WriteStall: 10 * time.Second}).Handler(target, toServer))
		toFront := front.transport()
		conn, err := toFront.DialContext(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began, others := time.Now(), 0
		for err == nil && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
			_, err = conn.Read(make([]byte, 1))
			others += other(t, toFront)
		}
		if err == nil || time.Since(began) > time.Minute {
			t.Errorf("after %v it is there: %v", time.Since(began), err)
		}
		if others < 10 {
			t.Errorf("other clients had %d answers meanwhile", others)
		}
		<-over // the server is told
		if n := said.Load(); n > 1<<20 {
			t.Errorf("the server has said %d bytes that nobody has read", n)
		}
		_ = conn.Close()
		toFront.CloseIdleConnections()
		front.close()
		toServer.CloseIdleConnections()
		upstream.close()
	})
}

// other is a request of another client, and counts its answer.
func other(t *testing.T, rt http.RoundTripper) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(r)
	if err != nil {
		t.Errorf("another client: %v", err)
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(text), "result") {
		t.Errorf("another client: %s, %v", text, err)
		return 0
	}
	return 1
}
