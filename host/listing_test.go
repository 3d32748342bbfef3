package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A rawServer writes its answers by hand, over a pipe in this process.
type rawServer struct {
	// list answers request n, from 1, for the tools: with the members of the result,
	// or not at all if it returns "".
	list func(w io.Writer, n int, cursor string) string

	mu    sync.Mutex
	lists int
	wg    sync.WaitGroup
}

func (s *rawServer) Key() string { return "" }

func (s *rawServer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	near, far := net.Pipe()
	s.wg.Go(func() { s.serve(far) })
	return stdio.Conn(near).Dial(ctx, in)
}

// listed counts the requests for tools.
func (s *rawServer) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func (s *rawServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	w := &lineWriter{w: conn}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.ID == nil {
			continue
		}
		var result string
		switch m.Method {
		case mcp.MethodInitialize:
			result = `"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"raw","version":"1"}`
		case mcp.MethodToolsList:
			s.mu.Lock()
			s.lists++
			n := s.lists
			s.mu.Unlock()
			if result = s.list(w, n, m.Params.Cursor); result == "" {
				continue
			}
		case mcp.MethodToolsCall:
			result = `"content":[{"type":"text","text":"called"}]`
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{%s}}`+"\n", m.ID, result)
	}
}

// A lineWriter is written to by several goroutines.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// tools are the members of a result with tools of these names.
func tools(names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	return `"tools":[` + strings.Join(list, ",") + `]`
}

const (
	changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"
	logged  = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"flood"}}` + "\n"
)

// raw is a host with one such server.
func raw(t *testing.T, s *rawServer) *host.Host {
	t.Helper()
	h := host.New(&host.Options{ListTimeout: 10 * time.Second, OnLog: func(string, *mcp.LogParams) {}})
	t.Cleanup(func() {
		closing(t, h)
		s.wg.Wait()
	})
	if err := h.Add(host.Server{Name: "one", Dialer: s, Versions: []string{"2025-11-25"}}); err != nil {
		t.Fatal(err)
	}
	return h
}

// calls proves that the connection works.
func calls(t *testing.T, h *host.Host) {
	t.Helper()
	c, err := h.Client(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), "first", nil, nil); err != nil {
		t.Errorf("a call: %v", err)
	}
}

// A list that cannot be read leaves the connection as it is, and what was listed
// before, and says why. It is read again after a pause, and when it changes.
func TestListInVain(t *testing.T) {
	for name, test := range map[string]struct {
		bad  func(w io.Writer, n int, cursor string) string
		want string
	}{
		"silent": {func(io.Writer, int, string) string { return "" }, "did not list its tools in time"},
		"half a line": {func(w io.Writer, _ int, _ string) string {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id"`)
			return ""
		}, "did not list its tools in time"},
		"without end": {func(_ io.Writer, n int, _ string) string {
			var page []string
			for i := range 500 {
				page = append(page, fmt.Sprintf("t%d-%d", n, i))
			}
			return tools(page...) + fmt.Sprintf(`,"nextCursor":"%d"`, n)
		}, "more than 10000 items"},
		"too large": {func(_ io.Writer, n int, _ string) string {
			return fmt.Sprintf(`"tools":[{"name":"t%d","description":%q,"inputSchema":{"type":"object"}}],"nextCursor":"%d"`, n, strings.Repeat("x", 1<<20), n)
		}, "more than 16777216 bytes"},
		"an error": {func(io.Writer, int, string) string { return `"tools":"none"` }, "listing its tools"},
	} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, first %t", name, early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &rawServer{}
					var mu sync.Mutex
					bad := early
					s.list = func(w io.Writer, n int, cursor string) string {
						mu.Lock()
						defer mu.Unlock()
						if bad {
							return test.bad(w, n, cursor)
						}
						return tools("first")
					}
					set := func(b bool) {
						mu.Lock()
						bad = b
						mu.Unlock()
					}
					h := raw(t, s)
					c := h.Settle(t.Context(), time.Minute)
					if !early {
						if len(c.Tools) != 1 {
							t.Fatalf("the first list: %+v", c.Servers)
						}
						set(true)
						if err := h.Retry("one"); err != nil {
							t.Fatal(err)
						}
						for range 12 {
							if time.Sleep(time.Second); status(t, h, "one").Err != nil {
								break
							}
						}
						c = h.Catalog()
					}
					st := c.Servers[0]
					if st.State != host.StateReady || !st.Stale || st.Err == nil || !strings.Contains(st.Err.Error(), test.want) || st.Starts != 1 {
						t.Errorf("the status is %+v, want one that says %q", st, test.want)
					}
					if early && (len(c.Down) != 1 || len(c.Tools) != 0) || !early && (len(c.Down) != 0 || len(c.Tools) != 1) {
						t.Errorf("%d tools, down %v", len(c.Tools), c.Down)
					}
					if name == "half a line" {
						return // the line is still open
					}
					calls(t, h)
					set(false)
					time.Sleep(2 * time.Minute)
					st = status(t, h, "one")
					if st.State != host.StateReady || st.Stale || st.Err != nil || st.Tools != 1 || st.Starts != 1 {
						t.Errorf("in the end: %+v", st)
					}
				})
			})
		}
	}
}

// A list that is never right is not read for ever.
func TestListGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{list: func(io.Writer, int, string) string { return `"tools":7` }}
		h := raw(t, s)
		h.Catalog()
		time.Sleep(24 * time.Hour)
		if n := s.listed(); n != 8 {
			t.Errorf("listed %d times, want 8", n)
		}
		expectState(t, h, "one", host.StateReady)
		if err := h.Retry("one"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n := s.listed(); n <= 8 {
			t.Error("Retry does not list again")
		}
	})
}

// However many notices come, the tools are listed at most once a second, also while
// they are being listed; what comes last is seen.
func TestFloodOfNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds = 20
		var end time.Time
		flooding := make(chan struct{})
		s := &rawServer{}
		s.list = func(w io.Writer, n int, _ string) string {
			if n == 1 {
				end = time.Now().Add(seconds * time.Second)
				for range 100_000 / 4 { // while listing
					_, _ = io.WriteString(w, changed)
				}
				s.wg.Go(func() {
					defer close(flooding)
					for time.Now().Before(end) {
						for range 75_000 / seconds / 10 {
							_, _ = io.WriteString(w, changed)
						}
						time.Sleep(100 * time.Millisecond)
					}
				})
			}
			if time.Now().Before(end) {
				return tools("first")
			}
			return tools("first", "last")
		}
		h := raw(t, s)
		if c := h.Settle(t.Context(), time.Minute); len(c.Tools) != 1 {
			t.Errorf("the catalog is %+v", c)
		}
		calls(t, h)
		<-flooding
		time.Sleep(2 * time.Second)
		if n := s.listed(); n < 2 || n > seconds+3 {
			t.Errorf("listed %d times in %d s", n, seconds+2)
		}
		if st := status(t, h, "one"); st.Tools != 2 || st.Stale || st.State != host.StateReady {
			t.Errorf("in the end: %+v", st)
		}
	})
}

// Settle does not wait again and again for a server whose tools always change.
func TestSettleInAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{}
		s.list = func(w io.Writer, _ int, _ string) string {
			_, _ = io.WriteString(w, changed)
			return tools("first")
		}
		h := raw(t, s)
		h.Settle(t.Context(), time.Minute)
		for range 5 {
			start := time.Now()
			h.Settle(t.Context(), time.Minute)
			if took := time.Since(start); took > time.Second {
				t.Errorf("settling took %v", took)
			}
		}
	})
}

// A flood of log messages while listing delays nothing but itself.
func TestFloodOfLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{list: func(w io.Writer, _ int, _ string) string {
			for range 100_000 {
				_, _ = io.WriteString(w, logged)
			}
			return tools("first")
		}}
		h := raw(t, s)
		if c := h.Settle(t.Context(), time.Minute); len(c.Tools) != 1 {
			t.Errorf("the catalog is %+v", c)
		}
		calls(t, h)
	})
}

// What waits for a list ends with the host.
func TestCloseWhileListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{list: func(io.Writer, int, string) string { return "" }}
		h := raw(t, s)
		h.Catalog()
		synctest.Wait()
		expectState(t, h, "one", host.StateStarting)
		calls(t, h) // is connected
		closing(t, h)
		if c := h.Catalog(); len(c.Down) != 1 || !errors.Is(c.Down[0], host.ErrClosed) {
			t.Errorf("down: %v", c.Down)
		}
	})
}

// Notices do not make a server that cannot list its tools list them more often than
// once a minute.
func TestNoticesOfAListInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{list: func(w io.Writer, _ int, _ string) string {
			_, _ = io.WriteString(w, changed)
			return `"tools":7`
		}}
		h := raw(t, s)
		h.Catalog()
		time.Sleep(time.Hour)
		if n := s.listed(); n < 20 || n > 70 {
			t.Errorf("listed %d times in an hour, want about once a minute", n)
		}
		expectState(t, h, "one", host.StateReady)
	})
}
