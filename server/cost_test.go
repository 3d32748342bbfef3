package server_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// A sink is a transport that encodes into one buffer, and sends nothing.
type sink struct {
	buffer []byte
	sent   int
}

func (s *sink) Send(_ context.Context, m *jsonrpc.Outgoing) (err error) {
	s.sent++
	s.buffer, err = m.AppendJSON(s.buffer[:0])
	return err
}

func (s *sink) Answer(ctx context.Context, m *jsonrpc.Outgoing) error { return s.Send(ctx, m) }
func (s *sink) Principal() *principal.Principal                       { return principal.Local }
func (s *sink) Shared() bool                                          { return true }
func (s *sink) Close(error) error                                     { return nil }

// exchange is a message on its way to the sink, read by the strict parser.
func (s *sink) exchange(tb testing.TB, text []byte) *transport.Exchange {
	in, err := jsonrpc.Parse(text, jsonrpc.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return &transport.Exchange{In: in, Principal: principal.Local, Out: s}
}

// cost is what f allocates each time, in objects and bytes.
func cost(f func()) (objects, size float64) { return costOf(200, f) }

// costOf is cost, measured over a number of rounds: the least of three
// measurements, since what else the process does, such as filling pools again
// after a collection, only adds to them.
//
// With the race detector it is none: what is allocated means nothing then.
func costOf(rounds int, f func()) (objects, size float64) {
	f()
	if racetest.Enabled {
		return 0, 0
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	objects, size = math.Inf(1), math.Inf(1)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			f()
		}
		runtime.ReadMemStats(&after)
		objects = min(objects, float64(after.Mallocs-before.Mallocs)/float64(rounds))
		size = min(size, float64(after.TotalAlloc-before.TotalAlloc)/float64(rounds))
	}
	return objects, size
}

func checkCost(t *testing.T, what string, objects, size float64, f func()) {
	t.Helper()
	gotObjects, gotSize := cost(f)
	t.Logf("%s: %.1f allocations, %.0f bytes", what, gotObjects, gotSize)
	if gotObjects > objects || gotSize > size {
		t.Errorf("%s: %.1f allocations, %.0f bytes; want at most %.1f and %.0f", what, gotObjects, gotSize, objects, size)
	}
}

const handshakeText = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"elicitation":{}},"clientInfo":{"name":"b","version":"1"}}}`

// open opens a session with a handshake.
func (s *sink) open(tb testing.TB, srv *server.Server) transport.Session {
	session, err := srv.Open(s)
	if err != nil {
		tb.Fatal(err)
	}
	session.Begin(tb.Context(), s.exchange(tb, []byte(handshakeText)))()
	return session
}

// generous is a server for many requests of a caller.
func generous(features ...server.Feature) *server.Server {
	l := server.Limits{ToolRate: server.Unlimited, ListRate: server.Unlimited, PageSize: server.Unlimited}
	return newServer(&server.Options{Limits: l}, features...)
}

func TestCostOfCalls(t *testing.T) {
	srv, s := generous(echo()), new(sink)
	texts := make(map[string][]byte)
	for _, version := range bothEras {
		l := &line{version: version, caps: emptyBody}
		texts[version] = []byte(l.request("123456", "tools/call", toolParams("echo", `{"text":"the quick brown fox"}`)))
	}
	// The exchange and the message; the call, and whom its limits count for;
	// arguments and result; the text.
	checkCost(t, "a stateless call", 6.1, 1250, func() {
		srv.Serve(t.Context(), s.exchange(t, texts[v2607]))
	})
	session := s.open(t, srv)
	defer session.Close(nil)
	for _, version := range bothEras { // and the function that runs it
		checkCost(t, "a call in a session, "+version, 6.1, 1350, func() {
			session.Begin(t.Context(), s.exchange(t, texts[version]))()
		})
	}
	if !bytes.Contains(s.buffer, []byte(`"id":123456`)) || !bytes.Contains(s.buffer, []byte("quick brown")) {
		t.Errorf("answered %s", s.buffer)
	}
}

func TestCostOfLargeCalls(t *testing.T) {
	srv, s := generous(echo()), new(sink)
	l := &line{version: v2607, caps: emptyBody}
	text := []byte(l.request("1", "tools/call", toolParams("echo", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)))
	checkCost(t, "a call with 1 MiB", 8, 1<<20+16<<10, func() {
		srv.Serve(t.Context(), s.exchange(t, text))
	})
}

func TestCostOfLists(t *testing.T) {
	features := make([]server.Feature, 1000)
	for i := range features {
		features[i] = server.Tool(fmt.Sprintf("tool%d", i), strings.Repeat("what it does ", 20), func(context.Context, struct{}) (string, error) { return "", nil })
	}
	srv, s := generous(features...), new(sink)
	l := &line{version: v2607, caps: emptyBody}
	text := []byte(l.request("1", "tools/list", "{}"))
	checkCost(t, "a list of 1,000 tools", 20, 3<<10, func() {
		srv.Serve(t.Context(), s.exchange(t, text))
	})
	if n := bytes.Count(s.buffer, []byte(`"name":"tool`)); n != 1000 {
		t.Errorf("%d tools were listed", n)
	}
}

func TestCostOfProgress(t *testing.T) {
	const steps = 1000
	work := server.Tool("work", "Works.", func(ctx context.Context, _ struct{}) (string, error) {
		for i := range steps {
			if err := server.Progress(ctx, float64(i+1), steps, "working"); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	srv, s := generous(work), new(sink)
	l := &line{version: v2607, caps: emptyBody}
	text := []byte(strings.Replace(l.request("1", "tools/call", toolParams("work", `{}`)), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1))
	objects, size := cost(func() {
		s.sent = 0
		srv.Serve(t.Context(), s.exchange(t, text))
	})
	if s.sent != steps+1 {
		t.Fatalf("%d messages were sent", s.sent)
	}
	t.Logf("a notification: %.2f allocations, %.0f bytes", objects/steps, size/steps)
	if objects/steps > 1.1 || size/steps > 260 {
		t.Errorf("a notification of progress costs %.2f allocations and %.0f bytes", objects/steps, size/steps)
	}
}

func TestCostOfIdleSessions(t *testing.T) {
	srv := generous(echo())
	const many = 2000
	sessions := make([]transport.Session, many)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	l := &line{version: "2025-11-25", caps: emptyBody}
	call := []byte(l.request("1", "tools/call", toolParams("echo", `{"text":"a"}`)))
	s := new(sink)
	before, goroutines := heap(), runtime.NumGoroutine()
	for i := range sessions {
		sessions[i] = s.open(t, srv)
		sessions[i].Begin(t.Context(), s.exchange(t, call))()
	}
	each := (int64(heap()) - int64(before)) / many
	t.Logf("an idle session: %d bytes", each)
	if !racetest.Enabled && each > 700 {
		t.Errorf("an idle session holds %d bytes", each)
	}
	if n := runtime.NumGoroutine(); n > goroutines+2 {
		t.Errorf("%d goroutines for %d idle sessions", n-goroutines, many)
	}
	for _, session := range sessions {
		session.Close(nil)
	}
}
