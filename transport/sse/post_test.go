package sse_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
)

// A body that is announced and never sent is not waited for, whatever the
// request is refused for, and does not keep the endpoint from ending.
//
// Proves: SEC-DOS-1, FLOW-SHUTDOWN.
func TestBodyNeverComes(t *testing.T) {
	for name, test := range map[string]struct {
		line, header string
		want         int
	}{
		"stream":          {"GET /sse", "Host: localhost", http.StatusBadRequest},
		"unknown session": {"POST /sse?sessionId=x", "Host: localhost", http.StatusNotFound},
		"foreign name":    {"POST /sse", "Host: evil.example", http.StatusForbidden},
		"method":          {"PUT /sse", "Host: localhost", http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := sse.NewHandler(mcptest.TransportPeer(), nil)
				m := webtest.ServeMemory(t, h)
				c := m.Conn()
				if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\n%s\r\nContent-Length: 10\r\n\r\n", test.line, test.header); err != nil {
					t.Fatal(err)
				}
				if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(c)
				if want := fmt.Sprintf("HTTP/1.1 %d ", test.want); err != nil || !strings.HasPrefix(string(answer), want) {
					t.Errorf("the answer is %q, error %v, want %q and the end of the connection", answer, err, want)
				}
				if err := h.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
			})
		})
	}
}

// A message whose session ends while it is read leaves no connection behind on which the next
// request would be cancelled.
func TestSessionEndsAtEndOfBody(t *testing.T) {
	h, ended := watch()
	endpoint := sse.NewHandler(h, nil)
	var atEnd func()
	s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			r.Body = &endedBody{r.Body, atEnd}
		}
		endpoint.ServeHTTP(w, r)
	}))
	for range 20 {
		p := open(t, s.Client(), s.URL, nil)
		atEnd = func() {
			p.hang()
			if err := <-ended; !errors.Is(err, transport.ErrClosed) {
				t.Errorf("the session ended with %v, want ErrClosed", err)
			}
		}
		if code := p.post(free); code != http.StatusServiceUnavailable {
			t.Errorf("a message whose session has ended is answered %d, want 503", code)
		}
	}
}

// An endedBody calls atEnd before it says that it is over.
type endedBody struct {
	io.ReadCloser
	atEnd func()
}

func (b *endedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && b.atEnd != nil {
		b.atEnd()
		b.atEnd = nil
	}
	return n, err
}
