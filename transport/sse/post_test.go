package sse_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
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
