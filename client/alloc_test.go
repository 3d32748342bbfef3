//go:build !race

package client_test

import (
	"bytes"
	"math"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A bareServer answers POSTs over HTTP/1.1 and allocates nothing for it, so that
// what the process allocates is the client's.
func bareServer(t *testing.T) (url string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answerBare(conn)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

var (
	bareDiscovered = []byte(`{"supportedVersions":["` + modern + `"],"capabilities":{"tools":{}}}`)
	bareResult     = []byte(`{"resultType":"complete","content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"1"}}}`)
)

// answerBare answers the requests of one connection, until it ends.
func answerBare(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in, out, n := make([]byte, 8<<10), make([]byte, 0, 8<<10), 0
	for {
		more, err := conn.Read(in[n:])
		if err != nil {
			return
		}
		n += more
		head, body, ok := bytes.Cut(in[:n], []byte("\r\n\r\n"))
		if !ok || len(body) < int(bareNumber(head, "Content-Length: ")) {
			continue
		}
		result := bareResult
		if bytes.Contains(body, []byte(`"server/discover"`)) {
			result = bareDiscovered
		}
		id := strconv.AppendInt(in[len(in)-20:len(in)-20], bareNumber(body, `"id":`), 10)
		out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(`{"jsonrpc":"2.0","id":,"result":}`)+len(id)+len(result)), 10)
		out = append(append(out, "\r\n\r\n"+`{"jsonrpc":"2.0","id":`...), id...)
		out = append(append(append(out, `,"result":`...), result...), '}')
		if _, err := conn.Write(out); err != nil {
			return
		}
		n = 0
	}
}

// bareNumber reads the number after name.
func bareNumber(text []byte, name string) (n int64) {
	for _, c := range text[bytes.Index(text, []byte(name))+len(name):] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// TestAllocations bounds what a call allocates, all that the process does for it
// included: over HTTP net/http is most of it, and in memory half of it is the
// script's.
func TestAllocations(t *testing.T) {
	s := &script{versions: []string{modern}, on: tool(func(*req) (any, error) { return raw(done), nil })}
	for _, test := range []struct {
		name          string
		dialer        transport.Dialer
		allocs, bytes float64
	}{
		{"HTTP", streamable.URL(bareServer(t)), 88, 8200},
		// 31 of 3007 bytes; on a busy machine, where answers come late, 35 of 3460.
		{"memory", mem.New(s, nil), 36, 3600},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := client.Connect(t.Context(), test.dialer, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			args := mcp.RawValue(`{"a":1}`)
			call := func() {
				if r, err := c.CallTool(t.Context(), "t", args, nil); err != nil || len(r.Content) != 1 {
					t.Fatalf("the tool gave %+v, %v", r, err)
				}
			}
			for range 100 {
				call()
			}
			allocs, each := leastCost(call)
			if allocs > test.allocs || each > test.bytes {
				t.Errorf("a call makes %.1f allocations of %.0f bytes in all, want at most %.0f of %.0f", allocs, each, test.allocs, test.bytes)
			}
		})
	}
}

// leastCost returns the allocations of a call and their bytes: the least of some
// measurements, since what else the process does, such as filling pools again
// after a collection, only adds to them.
func leastCost(call func()) (allocs, size float64) {
	const runs = 500
	allocs, size = math.Inf(1), math.Inf(1)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocs = min(allocs, testing.AllocsPerRun(runs, call))
		runtime.ReadMemStats(&after)
		size = min(size, float64(after.TotalAlloc-before.TotalAlloc)/(runs+1))
	}
	return allocs, size
}
