package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/bridge"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A pipeListener accepts connections in memory, in the time of a bubble.
type pipeListener struct {
	conns chan net.Conn
	ended chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.ended); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// A client that reads one byte of its stream in a second is ended after WriteStall, with its call at the
// server behind. Until then it takes little memory, and other clients go on.
func TestSlowReader(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		t.Run("server "+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(farm)
				b := begin(t, f, version, bridge.Options{})
				o := &streamable.Options{WriteStall: 20 * time.Second, Logger: quiet}
				o.Access.Principal = func(*http.Request) *principal.Principal { return person("slow") }
				endpoint := streamable.NewHandler(b, o)
				l := &pipeListener{make(chan net.Conn), make(chan struct{})}
				site := &http.Server{Handler: endpoint, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
				served := make(chan error, 1)
				go func() { served <- site.Serve(l) }()
				conn, far := net.Pipe()
				l.conns <- far
				if _, err := io.WriteString(conn, floodRequest()); err != nil {
					t.Fatal(err)
				}
				readSlowly(t, conn, f, func() { which(t, join(t, b, person("other"))) })
				_ = conn.Close()
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				_ = endpoint.Shutdown(ended) // the error is that of its context
				_ = site.Close()
				if err := <-served; !errors.Is(err, http.ErrServerClosed) {
					t.Error(err)
				}
			})
		})
	}
}

// floodRequest is a call of flood of the newest revision, as it is on the wire.
func floodRequest() string {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood","_meta":{"progressToken":1,` +
		`"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	return "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"MCP-Protocol-Version: " + modern + "\r\nMcp-Method: tools/call\r\nMcp-Name: flood\r\n" +
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// readSlowly reads one byte a second until the connection ends, and checks what that costs.
func readSlowly(t *testing.T, conn net.Conn, f *farm, others func()) {
	t.Helper()
	before, most, began, seen := heapInUse(), uint64(0), time.Now(), false
	var err error
	for err == nil && time.Since(began) < time.Hour {
		time.Sleep(time.Second) // of fake time
		_, err = conn.Read(make([]byte, 1))
		seen = seen || f.asking.Load() == 1
		others()
		most = max(most, heapInUse())
	}
	if err == nil || time.Since(began) > 2*time.Minute {
		t.Errorf("after %v it is there: %v", time.Since(began), err)
	}
	if !seen {
		t.Error("the call did not reach the server")
	}
	if most > before+16<<20 {
		t.Errorf("the heap has %d bytes, before %d", most, before)
	}
	time.Sleep(time.Second) // of fake time
	synctest.Wait()
	if n := f.asking.Load(); n != 0 {
		t.Errorf("%d calls are left at the server", n)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
