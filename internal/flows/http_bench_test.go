package flows_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// These benchmarks measure a server in a process of its own, beside a bare
// net/http handler, the floor, in the same run: what counts is the ratio. The
// load generator is as cheap as it can be and shares the processors.

const (
	benchServing = "PARLEY_BENCH_SERVING" // makes the test binary the server
	connections  = 32
	perRound     = 20_000
)

func TestMain(m *testing.M) {
	if os.Getenv(benchServing) != "" {
		if err := serveBench(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveBench serves until its input ends: the endpoint at /mcp, the floor at
// /floor, and what the process has used so far at /used.
func serveBench() error {
	o := quiet()
	o.Limits = server.Limits{ToolRate: server.Unlimited, ListRate: server.Unlimited, PageSize: 1000, MaxInFlight: 2 * connections}
	s := server.New("bench", "1", o)
	s.Add(
		server.Tool("echo", "Echoes a text.", func(_ context.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			return in.Text, nil
		}),
		server.Resource("bench://blob", "blob", blob()),
	)
	for i := range 999 {
		s.Add(server.Tool(fmt.Sprintf("tool-%d", i), "Does what the tool before it does, a little later and a little better.", manyArguments))
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", streamable.NewHandler(s, nil))
	mux.HandleFunc("/floor", floor)
	mux.HandleFunc("/used", used)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	web := &http.Server{Handler: mux} //nolint:gosec // a measurement on the loopback interface
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = web.Close()
	}()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func manyArguments(_ context.Context, _ struct {
	Path      string   `json:"path" doc:"Where to begin."`
	Recursive bool     `json:"recursive,omitzero" doc:"Whether to go into folders."`
	Limit     int      `json:"limit,omitzero" doc:"The most results to give." min:"1" max:"1000"`
	Kinds     []string `json:"kinds,omitzero" doc:"What to look for."`
},
) (string, error) {
	return "", nil
}

func blob() func(ctx context.Context) ([]byte, error) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	return func(context.Context) ([]byte, error) { return data, nil }
}

// floor is the least that a server can do: read the body, look at it, answer.
func floor(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || bytes.IndexByte(body, '{') < 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	const reply = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the quick brown fox jumps over the lazy dog and back"}]}}`
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	_, _ = io.WriteString(w, reply)
}

// used tells what the process has used: processor time in microseconds,
// allocations, bytes allocated, and the most memory it had, in KiB.
func used(w http.ResponseWriter, _ *http.Request) {
	var usage syscall.Rusage
	var mem runtime.MemStats
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	runtime.ReadMemStats(&mem)
	cpu := (usage.Utime.Nano() + usage.Stime.Nano()) / 1000
	_, _ = fmt.Fprintf(w, "%d %d %d %d", cpu, mem.Mallocs, mem.TotalAlloc, usage.Maxrss)
}

// A benched is a running bench server.
type benched struct {
	b    *testing.B
	addr string
}

func startBench(b *testing.B) *benched {
	b.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0]) // it ends with its input
	cmd.Env = append(os.Environ(), benchServing+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("the bench server: %v", err)
		}
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return &benched{b, strings.TrimSpace(addr)}
}

// A usage is what a server process has used.
type usage struct{ cpu, allocs, bytes, peak float64 }

func (s *benched) used() (u usage) {
	s.b.Helper()
	c := s.dial()
	defer c.close()
	body := c.exchange([]byte("GET /used HTTP/1.1\r\nHost: localhost\r\n\r\n"), true)
	if _, err := fmt.Sscan(string(body), &u.cpu, &u.allocs, &u.bytes, &u.peak); err != nil {
		s.b.Fatal(err)
	}
	return u
}

// A keptConn is one connection of the load generator.
type keptConn struct {
	b    *testing.B
	conn net.Conn
	r    *bufio.Reader
	head http.Header
}

func (s *benched) dial() *keptConn {
	s.b.Helper()
	var d net.Dialer
	conn, err := d.DialContext(s.b.Context(), "tcp", s.addr)
	if err != nil {
		s.b.Fatal(err)
	}
	return &keptConn{b: s.b, conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
}

func (c *keptConn) close() { _ = c.conn.Close() }

// exchange sends a request and reads its response, which has a length or
// chunks. The body is returned if it is kept, else dropped.
func (c *keptConn) exchange(request []byte, keep bool) []byte {
	if _, err := c.conn.Write(request); err != nil {
		c.b.Error(err)
		return nil
	}
	if keep {
		res, err := http.ReadResponse(c.r, nil)
		if err != nil {
			c.b.Error(err)
			return nil
		}
		defer res.Body.Close()
		c.head = res.Header
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			c.b.Errorf("%s, %v: %.200s", res.Status, err, body)
		}
		return body
	}
	length, status := -1, true
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			c.b.Error(err)
			return nil
		}
		if len(line) == 2 {
			break
		}
		if status {
			if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
				c.b.Errorf("%s", line)
			}
			status = false
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if length < 0 {
		c.b.Error("a response without length")
		return nil
	}
	if _, err := c.r.Discard(length); err != nil {
		c.b.Error(err)
	}
	return nil
}

// load sends n requests over so many connections, each its own, and returns
// what the server used for each, and the time it took for all in seconds.
func (s *benched) load(conns, n int, request func(conn int) []byte) (per usage, seconds float64) {
	s.b.Helper()
	kept := make([]*keptConn, conns)
	for i := range kept {
		kept[i] = s.dial()
		kept[i].exchange(request(i), false)
	}
	defer func() {
		for _, c := range kept {
			c.close()
		}
	}()
	before := s.used()
	start := time.Now()
	var wg sync.WaitGroup
	for i, c := range kept {
		share := n / conns
		if i < n%conns {
			share++
		}
		wg.Go(func() {
			bytes := request(i)
			for range share {
				c.exchange(bytes, false)
			}
		})
	}
	wg.Wait()
	seconds = time.Since(start).Seconds()
	after := s.used()
	f := float64(n)
	return usage{(after.cpu - before.cpu) / f, (after.allocs - before.allocs) / f, (after.bytes - before.bytes) / f, after.peak}, seconds
}

// post makes the bytes of a POST.
func post(path, body string, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n", path)
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.Bytes()
}

// modernPost is a request of the stateless revision, the same on each connection.
// params lacks its braces and ends with a comma, unless it is empty.
func modernPost(path, method, name, params string) func(int) []byte {
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"` + mcp.MetaProtocolVersion + `":"` + newest + `","` + mcp.MetaClientInfo + `":{"name":"bench","version":"1"},"` + mcp.MetaClientCapabilities + `":{}}}}`
	headers := []string{"MCP-Protocol-Version: " + newest, "Mcp-Method: " + method}
	if name != "" {
		headers = append(headers, "Mcp-Name: "+name)
	}
	request := post(path, body, headers...)
	return func(int) []byte { return request }
}

const echoParams = `"name":"echo","arguments":{"text":"the quick brown fox jumps over the lazy dog and back"},`

// legacyPost opens a session and gives a call in it; ids differ between
// connections.
func (s *benched) legacyPost() func(conn int) []byte {
	s.b.Helper()
	c := s.dial()
	defer c.close()
	c.exchange(post("/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+autumn+
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`), true)
	id := c.head.Get("Mcp-Session-Id")
	if id == "" {
		s.b.Fatal("no session")
	}
	return func(conn int) []byte {
		return post("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, 10+conn, strings.TrimSuffix(echoParams, ",")),
			"MCP-Protocol-Version: "+autumn, "Mcp-Session-Id: "+id)
	}
}

// A tally adds up rounds.
type tally struct {
	usage
	seconds, rounds float64
}

func (t *tally) add(u usage, seconds float64) {
	t.cpu += u.cpu
	t.allocs += u.allocs
	t.bytes += u.bytes
	t.peak = max(t.peak, u.peak)
	t.seconds += seconds
	t.rounds++
}

// beside measures rounds of requests, each after one of the floor.
func beside(b *testing.B, request func(s *benched) func(conn int) []byte) {
	s := startBench(b)
	bare := modernPost("/floor", mcp.MethodToolsCall, "echo", echoParams)
	own := request(s)
	s.load(connections, perRound, bare)
	s.load(connections, perRound, own)
	var floor, ours tally
	for b.Loop() {
		floor.add(s.load(connections, perRound, bare))
		ours.add(s.load(connections, perRound, own))
	}
	b.ReportMetric(floor.rounds*perRound/floor.seconds, "floor-req/s")
	b.ReportMetric(ours.rounds*perRound/ours.seconds, "req/s")
	b.ReportMetric(100*floor.seconds/ours.seconds, "%floor")
	b.ReportMetric(floor.cpu/floor.rounds, "floor-cpu-µs")
	b.ReportMetric(ours.cpu/ours.rounds, "cpu-µs")
	b.ReportMetric(ours.cpu/floor.cpu, "cpu/floor")
	b.ReportMetric(floor.allocs/floor.rounds, "floor-allocs")
	b.ReportMetric(ours.allocs/ours.rounds, "allocs")
	b.ReportMetric(ours.bytes/ours.rounds, "B")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHTTP compares calls of a typed tool with the floor, in a session
// and without. Run it with -benchtime=5x.
func BenchmarkHTTP(b *testing.B) {
	b.Run("stateless", func(b *testing.B) {
		beside(b, func(*benched) func(int) []byte {
			return modernPost("/mcp", mcp.MethodToolsCall, "echo", echoParams)
		})
	})
	b.Run("session", func(b *testing.B) { beside(b, (*benched).legacyPost) })
}

// BenchmarkHTTPBig measures large answers on one connection. Run it with
// -benchtime=5x.
func BenchmarkHTTPBig(b *testing.B) {
	for name, big := range map[string]struct {
		request func(int) []byte
		n       int
	}{
		"list of 1000 tools": {modernPost("/mcp", mcp.MethodToolsList, "", ""), 200},
		"blob of 10 MiB":     {modernPost("/mcp", mcp.MethodResourcesRead, "bench://blob", `"uri":"bench://blob",`), 20},
	} {
		b.Run(name, func(b *testing.B) {
			s := startBench(b)
			var sum tally
			for b.Loop() {
				sum.add(s.load(1, big.n, big.request))
			}
			b.ReportMetric(sum.cpu/sum.rounds/1000, "cpu-ms")
			b.ReportMetric(sum.bytes/sum.rounds/1e6, "MB")
			b.ReportMetric(sum.peak/1024, "peak-MiB")
			b.ReportMetric(sum.allocs/sum.rounds, "allocs")
			b.ReportMetric(0, "ns/op")
		})
	}
}
