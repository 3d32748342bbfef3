package streamable_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A benchWire sends prepared requests on one connection and reads the responses,
// almost without memory of its own, so that what is measured is the server.
type benchWire struct {
	testing.TB
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

func dialBench(b testing.TB, h http.Handler) *benchWire {
	b.Helper()
	srv := httptest.NewServer(h)
	b.Cleanup(srv.Close)
	return newBenchWire(b, srv.Listener.Addr().String())
}

func newBenchWire(b testing.TB, addr string) *benchWire {
	b.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &benchWire{TB: b, conn: conn, in: bufio.NewReader(conn), body: make([]byte, 64<<10)}
}

// another is one more connection to the same server.
func (w *benchWire) another() *benchWire { return newBenchWire(w.TB, w.conn.RemoteAddr().String()) }

// benchRequest is the text of a POST.
func benchRequest(body string, header ...string) []byte {
	var text strings.Builder
	text.WriteString("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n")
	for _, line := range header {
		text.WriteString(line + "\r\n")
	}
	fmt.Fprintf(&text, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return []byte(text.String())
}

// round sends a request and reads the response, which has a length. head is
// the status line unless it is 200, or the id of a session that was opened.
func (w *benchWire) round(request []byte) (head string, body []byte) {
	if _, err := w.conn.Write(request); err != nil {
		w.Fatal(err)
	}
	length := 0
	for first := true; ; first = false {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			w.Fatal(err)
		}
		if first && !bytes.Equal(line, []byte("HTTP/1.1 200 OK\r\n")) {
			head = string(line)
		}
		if len(line) == 2 {
			break
		}
		if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			for _, c := range bytes.TrimSpace(digits) {
				length = 10*length + int(c-'0')
			}
		}
		if id, ok := bytes.CutPrefix(line, []byte("Mcp-Session-Id: ")); ok {
			head = string(bytes.TrimSpace(id))
		}
	}
	body = w.body[:length]
	if _, err := io.ReadFull(w.in, body); err != nil {
		w.Fatal(err)
	}
	return head, body
}

// run sends requests one after the other on one connection, and then on many at
// once, each with an id of its own.
func (w *benchWire) run(b *testing.B, request func(id int) []byte) {
	b.Helper()
	b.Run("1", func(b *testing.B) {
		b.ReportAllocs()
		request := request(100)
		for b.Loop() {
			if head, body := w.round(request); head != "" {
				b.Fatalf("%s %s", head, body)
			}
		}
	})
	b.Run("32", func(b *testing.B) {
		const connections = 32
		turns := make(chan struct{}, connections)
		done := make(chan struct{})
		for i := range connections {
			c, request := w.another(), request(100+i)
			go func() {
				defer func() { done <- struct{}{} }()
				for range turns {
					if head, body := c.round(request); head != "" {
						b.Errorf("%s %s", head, body)
					}
				}
			}()
		}
		for b.Loop() {
			turns <- struct{}{}
		}
		close(turns)
		for range connections {
			<-done
		}
	})
}

const benchText = `"name":"echo","arguments":{"text":"the quick brown fox jumps over the lazy dog"}`

// BenchmarkBare is what net/http takes for a body of the same size.
func BenchmarkBare(b *testing.B) {
	w := dialBench(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
	}))
	w.run(b, func(id int) []byte {
		return benchRequest(modernBody(id, "tools/call", benchText), "MCP-Protocol-Version: "+v2607, "Mcp-Method: tools/call", "Mcp-Name: echo")
	})
}

// BenchmarkModern is the transport alone.
func BenchmarkModern(b *testing.B) {
	h := streamable.NewHandler(newPeer(nil), nil)
	w := dialBench(b, h)
	w.run(b, func(id int) []byte {
		return benchRequest(modernBody(id, "echo", benchText), "MCP-Protocol-Version: "+v2607, "Mcp-Method: echo")
	})
}

// BenchmarkModernTool is a call of a tool from socket to socket.
func BenchmarkModernTool(b *testing.B) {
	w := dialBench(b, streamable.NewHandler(benchServer(), nil))
	w.run(b, func(id int) []byte {
		return benchRequest(modernBody(id, "tools/call", benchText), "MCP-Protocol-Version: "+v2607, "Mcp-Method: tools/call", "Mcp-Name: echo")
	})
}

// BenchmarkSession is a request of a session, with the transport alone.
func BenchmarkSession(b *testing.B) {
	benchSession(b, newPeer(nil), "echo")
}

// BenchmarkSessionTool is a call of a tool in a session.
func BenchmarkSessionTool(b *testing.B) {
	benchSession(b, benchServer(), "tools/call")
}

func benchSession(b *testing.B, p transport.Handler, method string) {
	b.Helper()
	w := dialBench(b, streamable.NewHandler(p, nil))
	id, _ := w.round(benchRequest(rpc(0, "initialize", initialize)))
	w.run(b, func(n int) []byte { return benchRequest(rpc(n, method, benchText), "Mcp-Session-Id: "+id) })
}

// BenchmarkInitialize is a handshake: while there is room, when each displaces a
// session of another address or of its own, with few addresses and with as many
// as there are sessions.
func BenchmarkInitialize(b *testing.B) {
	const sessions = 9000 // of anonymous callers, at the default limits
	for name, test := range map[string]struct {
		addresses, in int // before
		from          int // addresses of the flood
	}{
		"room":          {0, 0, 0},
		"ten addresses": {10, sessions, sessions},
		"one address":   {10, sessions, 1},
		"each its own":  {sessions, sessions, sessions},
	} {
		b.Run(name, func(b *testing.B) {
			o := &streamable.Options{}
			if test.in == 0 {
				o = &streamable.Options{MaxSessions: -1, MaxSessionsPerAddress: -1}
			}
			o.Access.Hosts = []string{"*"}
			o.Access.Principal = func(r *http.Request) *principal.Principal {
				return &principal.Principal{Remote: r.RemoteAddr}
			}
			h := streamable.NewHandler(newPeer(nil), o)
			open := func(address int) {
				r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(rpc(0, "initialize", initialize)))
				r.Header.Set("Content-Type", "application/json")
				r.RemoteAddr = fmt.Sprint("address ", address)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
			for i := range test.in {
				open(i % test.addresses)
			}
			i := 0
			for b.Loop() {
				i++
				open(sessions + i%max(test.from, 1))
			}
			if err := h.Shutdown(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkProgress is a modern request with a thousand notifications.
func BenchmarkProgress(b *testing.B) {
	s := newSite(b, newPeer(map[string]method{"count": count(1000)}), nil)
	b.ReportAllocs()
	for b.Loop() {
		r := s.modern("count", "")
		if r.status != 200 || len(r.body) < 60_000 {
			b.Fatal(r.body)
		}
	}
}

func benchServer() *server.Server {
	type input struct {
		Text string `json:"text"`
	}
	s := server.New("bench", "1.0.0", &server.Options{Limits: server.Limits{ToolRate: server.Unlimited}})
	s.Add(server.Tool("echo", "Gives the text back.", func(_ context.Context, in input) (string, error) { return in.Text, nil }))
	return s
}

// A listener is the client's end of a GET stream, made to take no memory.
type listener struct{ conn net.Conn }

// listen opens the stream of a session on a connection of its own.
func (w *benchWire) listen(id string) *listener {
	w.Helper()
	conn := w.another().conn
	if _, err := io.WriteString(conn, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: "+id+"\r\n\r\n"); err != nil {
		w.Fatal(err)
	}
	if n, err := conn.Read(w.body); err != nil || !bytes.HasPrefix(w.body[:n], []byte("HTTP/1.1 200 OK")) {
		w.Fatalf("listening: %v, %s", err, w.body[:n])
	}
	return &listener{conn}
}
