package websocket_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coder "github.com/coder/websocket"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/websocket"
)

// endpoint serves an endpoint in memory until the test ends.
func endpoint(t *testing.T, h http.Handler, shutdown func(context.Context) error) *webtest.Memory {
	t.Helper()
	m := webtest.ServeMemory(t, h)
	webtest.ShutDown(t, shutdown)
	return m
}

// raw makes a WebSocket without any library, and returns what is beneath.
func raw(t *testing.T, m *webtest.Memory) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := m.Conn()
	if err := handshake(t, "ws://localhost/ws").Write(conn); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answer %v, error %v, want 101", answer, err)
	}
	defer answer.Body.Close()
	return conn, r
}

// Proves: SEC-DOS-1, FLOW-SHUTDOWN. A body that is announced and never sent is
// not waited for, and does not keep the endpoint from ending.
func TestBodyNeverComes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"WebSocket":    {func(*http.Request) {}, http.StatusBadRequest},
		"foreign name": {func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := websocket.NewHandler(mcptest.TransportPeer(), nil)
				conn := endpoint(t, h, h.Shutdown).Conn()
				r := handshake(t, "ws://localhost/ws")
				test.change(r)
				never, w := io.Pipe()
				r.Body, r.ContentLength = never, 10
				go func() { _ = r.Write(conn) }() // ends with the body
				if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				if want := fmt.Sprintf("HTTP/1.1 %d ", test.want); err != nil || !strings.HasPrefix(string(answer), want) {
					t.Errorf("the answer is %q, error %v, want %q and the end of the connection", answer, err, want)
				}
				_ = w.Close()
				if err := h.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
			})
		})
	}
}

// Proves: SEC-DOS-1. A client that reads, but says nothing any more, is let go.
func TestDeadClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := websocket.NewHandler(mcptest.TransportPeer(), nil)
		_, r := raw(t, endpoint(t, h, h.Shutdown))
		start := time.Now()
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("reading until the server closes: %v", err)
		}
		if got, want := time.Since(start), websocket.DefaultKeepAlive+30*time.Second; got != want {
			t.Errorf("the connection was ended after %v, want %v: a ping and the time to reply", got, want)
		}
	})
}

// dialer returns a dialer for what listens in memory.
func dialer(m *webtest.Memory) *websocket.Dialer {
	d := websocket.URL("ws://localhost/ws")
	d.Client = m.Client()
	return d
}

// Proves: SEC-DOS-1. A server that has gone without a word is noticed, and who
// waits for an answer is told.
func TestDeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := coder.Accept(w, r, &coder.AcceptOptions{Subprotocols: []string{"mcp"}})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.CloseNow() }()
			// net.Pipe holds nothing: one message is taken, the ping is not.
			if _, _, err := c.Read(t.Context()); err != nil {
				t.Error(err)
			}
			<-release
		}), func(context.Context) error { close(release); return nil })
		d := dialer(m)
		d.WriteStall = 3 * time.Second
		in := linktest.NewInbox()
		link, err := d.Dial(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = link.Do(t.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "x"}, transport.Route{})
		if !errors.Is(err, transport.ErrInterrupted) || !errors.Is(err, transport.ErrStalled) {
			t.Errorf("the request ended with %v, want ErrInterrupted by ErrStalled", err)
		}
		if got, want := time.Since(start), websocket.DefaultKeepAlive+3*time.Second; got != want {
			t.Errorf("that took %v, want %v", got, want)
		}
		if err := <-in.Ended; !errors.Is(err, transport.ErrStalled) {
			t.Errorf("the inbox was told %v, want ErrStalled", err)
		}
		if err := link.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Nobody says anything for a day, but both are there. One side pings at a time:
// net.Pipe holds nothing, so that two pongs that cross would wait for each other.
func TestQuiet(t *testing.T) {
	for name, test := range map[string]struct{ server, client time.Duration }{
		"the server pings": {0, -1},
		"the client pings": {-1, 0},
		"nobody pings":     {-1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := websocket.NewHandler(mcptest.TransportPeer(), &websocket.Options{KeepAlive: test.server})
				d := dialer(endpoint(t, h, h.Shutdown))
				d.KeepAlive = test.client
				link, err := d.Dial(t.Context(), linktest.NewInbox())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(24 * time.Hour) // of the bubble
				m, err := link.Do(t.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "kit/echo"}, transport.Route{})
				if err != nil || m.Error != nil {
					t.Errorf("a request after a quiet day: %v, error %v", m, err)
				}
				if err := link.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A client whose inbox is full does not read; that is back-pressure and no
// reason to give the server up.
func TestBusyReaderIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := websocket.NewHandler(mcptest.TransportPeer(), &websocket.Options{KeepAlive: -1})
		d := dialer(endpoint(t, h, h.Shutdown))
		in, entered, release := linktest.NewInbox(), make(chan struct{}, 1), make(chan struct{})
		in.OnReceive = func(*jsonrpc.Incoming) {
			entered <- struct{}{}
			<-release
		}
		link, err := d.Dial(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := link.Do(t.Context(), &jsonrpc.Outgoing{
				ID: jsonrpc.IntID(1), Method: "kit/notify", Params: jsonrpc.JSON(map[string]int{"count": 1, "size": 1}),
			}, transport.Route{})
			done <- err
		}()
		<-entered
		time.Sleep(20 * time.Second) // of the bubble: less than WriteStall
		select {
		case err := <-in.Ended:
			t.Errorf("the link ended: %v", err)
		default:
		}
		close(release)
		if err := <-done; err != nil {
			t.Errorf("the request ended with %v", err)
		}
		if err := link.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Proves: SEC-DOS-1. A client that does not take its answers is given up.
func TestWriteStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := websocket.NewHandler(mcptest.TransportPeer(), &websocket.Options{WriteStall: 7 * time.Second})
		conn, _ := raw(t, endpoint(t, h, h.Shutdown))
		start := time.Now()
		if _, err := conn.Write(frame(0x81, `{"jsonrpc":"2.0","id":1,"method":"kit/echo"}`)); err != nil {
			t.Fatal(err)
		}
		// Writing on tells when the server closes: it reads, until then.
		for {
			if _, err := conn.Write(frame(0x81, " ")); err != nil {
				break
			}
			time.Sleep(time.Second) // of the bubble
		}
		if got, want := time.Since(start), 8*time.Second; got > want {
			t.Errorf("the connection was ended after %v, want %v at most", got, want)
		}
	})
}

// A client that is slow to read goes on to ping, as libraries do by themselves.
// That must not end the connection before WriteStall does.
func TestPingWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := websocket.NewHandler(mcptest.TransportPeer(), nil)
		conn, r := raw(t, endpoint(t, h, h.Shutdown))
		for _, m := range [][]byte{
			frame(0x81, `{"jsonrpc":"2.0","id":1,"method":"kit/echo"}`),
			frame(0x89, "are you there?"),
			frame(0x89, "still?"),
		} {
			if _, err := conn.Write(m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the answer is being written before the first ping comes
		}
		time.Sleep(20 * time.Second) // of the bubble
		want := `{"jsonrpc":"2.0","id":1,"result":{}}`
		got := make([]byte, 2+len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got[2:]) != want {
			t.Fatalf("the answer is %q, error %v, want %s", got, err, want)
		}
		if _, err := conn.Write(frame(0x89, "now?")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, got[:6]); err != nil || string(got[:6]) != "\x8a\x04now?" {
			t.Errorf("the reply to a ping is %q, error %v", got[:6], err)
		}
	})
}

// frame makes a masked frame with a mask that changes nothing.
func frame(first byte, payload string) []byte {
	return append([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
}

// Proves: FLOW-SHUTDOWN, SEC-DOS-1. A client that stops within a message must
// not hold up the end.
func TestShutdownWithinMessage(t *testing.T) {
	for name, start := range map[string][]byte{
		"in a payload":     append([]byte{0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, `{"json`...),
		"between frames":   frame(0x01, `{"json`),
		"in a header":      {0x81, 0xff, 0, 0},
		"in a ping":        {0x89, 0x85, 0, 0, 0, 0, 'x'},
		"after a long one": append([]byte{0x81, 0xff, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0}, strings.Repeat("x", 5<<20)...),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := websocket.NewHandler(mcptest.TransportPeer(), nil)
				conn, r := raw(t, endpoint(t, h, h.Shutdown))
				go func() { _, _ = io.Copy(io.Discard, r) }() // ends with the connection
				if _, err := conn.Write(start); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				begin := time.Now()
				if err := h.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				if got, limit := time.Since(begin), 2*time.Second; got > limit {
					t.Errorf("that took %v, want at most %v", got, limit)
				}
			})
		})
	}
}

// A message that breaks off is no message, however whole it looks, and whoever
// waits for an answer learns that it may have run.
func TestBreaksOff(t *testing.T) {
	answer := `{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, sent := range map[string]string{
		"between frames":             "\x01" + string(rune(len(answer))) + answer,
		"in a frame":                 "\x81\x3c" + answer,
		"in a frame, after a buffer": "\x81\x7e\x08\x00" + answer + strings.Repeat(" ", 1024-len(answer)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := webtest.ServeMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					tap := &hijacked{ResponseWriter: w}
					c, err := coder.Accept(tap, r, &coder.AcceptOptions{Subprotocols: []string{"mcp"}})
					if err != nil {
						t.Error(err)
						return
					}
					if _, _, err = c.Read(t.Context()); err != nil {
						t.Error(err)
					}
					_, _ = io.WriteString(tap.conn, sent)
					_ = c.CloseNow()
				}))
				in := linktest.NewInbox()
				link, err := dialer(m).Dial(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				got, err := link.Do(t.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "x"}, transport.Route{})
				if !errors.Is(err, transport.ErrInterrupted) {
					t.Errorf("the request ended with %v and the error %v, want ErrInterrupted", got, err)
				}
				if err := <-in.Ended; !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("the inbox was told %v, want an unexpected end", err)
				}
				if err := link.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server that hangs up within the handshake is no server.
func TestHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.ServeMemory(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = c.Close()
		}))
		if err := dialError(t, dialer(m)); !errors.Is(err, io.EOF) {
			t.Errorf("the error is %v, want the end of the connection", err)
		}
	})
}

// hijacked keeps the connection that is taken over.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, buffered, err
}
