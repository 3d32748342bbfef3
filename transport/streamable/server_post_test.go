package streamable_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/streamable"
)

// padded is a modern request of n bytes.
func padded(n int) string {
	body := modernBody(1, "echo", `"pad":"X"`)
	return strings.Replace(body, "X", strings.Repeat("x", n-len(body)+1), 1)
}

// streamed hides the length of a body, so that it is sent in chunks.
type streamed struct{ io.Reader }

// Proves: SEC-DOS-1
func TestBodySize(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, limit := range []int{1 << 10, 300 << 10} {
		s := newSite(t, newPeer(nil), &streamable.Options{MaxMessage: limit})
		for _, test := range []struct{ size, status int }{{limit / 2, 200}, {limit, 200}, {limit + 1, 413}, {3 * limit, 413}} {
			for _, chunked := range []bool{false, true} {
				body := io.Reader(strings.NewReader(padded(test.size)))
				if chunked {
					body = streamed{body}
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, body)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				res, err := s.client.Do(r)
				if err != nil {
					t.Fatalf("body of %d bytes, chunked %v: %v", test.size, chunked, err)
				}
				data, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != test.status {
					t.Errorf("body of %d bytes, chunked %v: status %d, want %d", test.size, chunked, res.StatusCode, test.status)
				}
				if test.status == 200 && len(data) < test.size/2 {
					t.Errorf("body of %d bytes, chunked %v: the echo has %d", test.size, chunked, len(data))
				}
				if test.status == 413 && !res.Close {
					t.Errorf("body of %d bytes, chunked %v: the connection stays open", test.size, chunked)
				}
			}
		}
	}
}

// A limit of -1 is none.
func TestBodyUnlimited(t *testing.T) {
	s := newSite(t, newPeer(nil), &streamable.Options{MaxMessage: -1, MaxDepth: -1})
	if r := s.send(http.MethodPost, padded(5<<20), "MCP-Protocol-Version", v2607); r.status != 200 || len(r.body) < 5<<20-100 {
		t.Errorf("status %d, %d bytes", r.status, len(r.body))
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	s.check("deep", s.modern("echo", `"deep":`+deep), 200, deep)
}

// Proves: SEC-DOS-1
func TestBodyDepth(t *testing.T) {
	s := newSite(t, newPeer(nil), &streamable.Options{MaxDepth: 5})
	s.check("shallow", s.modern("echo", `"a":[[1]]`), 200)
	s.check("deep", s.modern("echo", `"a":[[[[1]]]]`), 400, "-32700")
}

// A small body must not become a large one.
func TestCompressedBody(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(modernBody(1, "echo", ""))); err != nil {
		t.Fatal(err)
	}
	z.Close()
	s := newSite(t, newPeer(nil), nil)
	s.check("gzip", s.send(http.MethodPost, zipped.String(), "Content-Encoding", "gzip"), 415)
	s.check("gzip unnamed", s.send(http.MethodPost, zipped.String()), 400, "-32700")
}

const postHead = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

// What a header says of a body binds the body, not the server.
func TestLyingLength(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(nil), nil)
	body := modernBody(1, "echo", "")
	for name, test := range map[string]struct {
		length int
		half   bool // the client ends its half of the connection
		status int
	}{
		"too long":  {len(body) + 10, true, 400},
		"huge":      {1 << 40, false, 413},
		"too short": {len(body) - 5, false, 400},
	} {
		conn, in := webtest.Raw(t, strings.TrimPrefix(s.url, "http://"), postHead+"Content-Length: "+strconv.Itoa(test.length)+"\r\n\r\n"+body)
		if test.half {
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.Body.Close()
		if r.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d", name, r.StatusCode, test.status)
		}
		conn.Close()
	}
}

// Who sends a body slowly, or not at all, does not keep the server waiting,
// even if the request is refused for another reason. Proves: SEC-DOS-1
func TestSlowBody(t *testing.T) {
	for name, test := range map[string]struct {
		head   string
		status int
	}{
		"slow":    {postHead + "Content-Length: 1000\r\n\r\n{", 408},
		"chunked": {postHead + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", 408},
		"refused": {postHead + "Content-Length: 1000\r\nAccept: text/html\r\n\r\n{", 406},
		"foreign": {postHead + "Content-Length: 1000\r\nOrigin: https://evil.example\r\n\r\n{", 403},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newPipes(t, newPeer(nil), nil)
				conn, err := s.client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				begun := time.Now()
				go func() { _, _ = io.WriteString(conn, test.head) }()
				r, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Body.Close()
				if waited := time.Since(begun); r.StatusCode != test.status || waited > 30*time.Second {
					t.Errorf("status %d after %v, want %d within 30 s", r.StatusCode, waited, test.status)
				}
			})
		})
	}
}

// The time for a body, and one that the HTTP server has for whole requests,
// ends with the body.
func TestLongRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := newPipes(t, newPeer(map[string]method{"wait": g.wait}), &streamable.Options{ReadTimeout: time.Second, WriteStall: time.Second})
		f := s.follow(http.MethodPost, modernBody(1, "wait", ""))
		time.AfterFunc(time.Hour, func() { g.release <- struct{}{} })
		f.wants(`"result"`)
		f.ends()
	})
}

// Ruling 10: arrays are messages of one revision.
func TestPostBatch(t *testing.T) {
	mcptest.NoLeaks(t)
	p := newPeer(map[string]method{"count": count(2)})
	s := newSite(t, p, nil)
	id := s.open(v2503)
	const hello, answer = `{"jsonrpc":"2.0","method":"hello"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`
	one, two := rpc(1, "echo", `"a":1`), rpc(2, "nothing", "")
	for _, test := range []struct {
		name   string
		body   string
		status int
		parts  []string
	}{
		{"requests", "[" + one + "," + two + "," + hello + "]", 200, []string{`"result":{"a":1}`, `-32601`}},
		{"one request", " [" + one + "]", 200, []string{`[{"jsonrpc":"2.0","id":1`}},
		{"notifications", "[" + hello + "," + hello + "]", 202, nil},
		{"responses", "[" + answer + "]", 202, nil},
		{"mixed", "[" + one + "," + answer + "]", 400, []string{`{"jsonrpc":"2.0","id":null,"error"`}},
		{"mixed with notifications", "[" + hello + "," + answer + "]", 400, []string{`"id":null`}},
		{"empty", "[]", 400, []string{`{"jsonrpc":"2.0","id":null,"error"`, "-32600"}},
		{"invalid element", "[" + one + `,1,{"jsonrpc":"1.0","id":3,"method":"x"}]`, 200, []string{`"result"`, `"id":null`, `"id":3`, "-32600"}},
		{"invalid notification", "[" + one + `,{"jsonrpc":"2.0","method":"x","params":1}]`, 200, []string{`"result"`}},
		{"only invalid elements", `[1]`, 200, []string{`[{"jsonrpc":"2.0","id":null`}},
		{"broken", "[" + one, 400, []string{"-32700", `"id":null`}},
		{"too many", "[" + strings.Repeat(hello+",", 10) + hello + "]", 400, []string{"-32600"}},
		{"initialize", "[" + rpc(1, "initialize", `"protocolVersion":"2025-03-26"`) + "]", 200, []string{"-32602"}},
	} {
		r := s.send(http.MethodPost, test.body, "Mcp-Session-Id", id)
		s.check(test.name, r, test.status, test.parts...)
		if test.status == 202 && r.body != "" {
			t.Errorf("%s: 202 with body %s", test.name, r.body)
		}
	}
	if n := len(p.accepted); n != 4 {
		t.Errorf("%d messages were accepted, want 4", n)
	}
	// As events the answers come one by one, like all else.
	f := s.follow(http.MethodPost, "["+one+","+rpc(2, "count", "")+"]", "Mcp-Session-Id", id)
	var events []string
	for range 4 {
		events = append(events, string(f.next().Data))
	}
	f.ends()
	all := strings.Join(events, "\n")
	for _, part := range []string{`"result":{"a":1}`, noted(0), noted(1), `"id":2,"result":{}`} {
		if !strings.Contains(all, part) {
			t.Errorf("events %s, want %s among them", all, part)
		}
	}
	s.check("no session", s.send(http.MethodPost, "["+one+"]"), 400)
}

// A malformed response ends the request that waits for it.
func TestMalformedResponse(t *testing.T) {
	mcptest.NoLeaks(t)
	p := newPeer(nil)
	s := newSite(t, p, nil)
	id := s.open(v2511)
	s.check("malformed", s.send(http.MethodPost, `{"jsonrpc":"2.0","id":5,"result":[]}`, "Mcp-Session-Id", id), 400, "-32600")
	if m := within(t, "Accept", p.accepted); m.Kind != jsonrpc.Response || m.Error == nil || m.ID != jsonrpc.IntID(5) {
		t.Errorf("accepted %+v, want an error response for 5", m)
	}
}

// FuzzPost sends whole bodies: each gets one response that makes sense.
func FuzzPost(f *testing.F) {
	for _, body := range []string{
		modernBody(1, "echo", `"a":1`), rpc(1, "echo", ""), `{"jsonrpc":"2.0","method":"hello"}`, `[]`, `[1]`, `{`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, rpc(1, "initialize", `"protocolVersion":"2025-03-26"`), `[` + rpc(1, "count", "") + `]`,
	} {
		for _, header := range []string{"", v2607, v2503, "\x00", "1"} {
			f.Add(body, header, "application/json", true)
		}
	}
	h := streamable.NewHandler(newPeer(map[string]method{"count": count(2)}), &streamable.Options{MaxSessions: -1, MaxSessionsPerPrincipal: -1})
	f.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	init := httptest.NewRequestWithContext(f.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(rpc(0, "initialize", `"protocolVersion":"2025-03-26"`)))
	init.Header.Set("Content-Type", "application/json")
	opened := httptest.NewRecorder()
	h.ServeHTTP(opened, init)
	session := opened.Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, body, version, accept string, inSession bool) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header["Content-Type"] = []string{"application/json"}
		r.Header["Mcp-Protocol-Version"] = []string{version}
		r.Header["Accept"] = []string{accept, "text/event-stream"}
		if version == "" {
			delete(r.Header, "Mcp-Protocol-Version")
		}
		if inSession {
			r.Header["Mcp-Session-Id"] = []string{session}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case 202:
			if w.Body.Len() > 0 {
				t.Errorf("202 with body %s", w.Body)
			}
		case 200, 400, 404, 406, 413:
			if kind := w.Header().Get("Content-Type"); kind == "application/json" && !jsonrpc.IsBatch(w.Body.Bytes()) {
				if _, err := jsonrpc.Parse(w.Body.Bytes(), jsonrpc.Limits{Depth: 100}); err != nil {
					t.Errorf("status %d with body %s: %v", w.Code, w.Body, err)
				}
			}
		default:
			t.Errorf("status %d for %q", w.Code, body)
		}
	})
}
