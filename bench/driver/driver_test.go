package driver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/bench/driver"
	"github.com/parley-mcp/parley/bench/fixture"
)

const moment = 20 * time.Millisecond

func TestCheck(t *testing.T) {
	result := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`
	failed := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}],"isError":true}}`
	refused := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"hello"}}`
	notice := "data: {\"method\":\"notifications/progress\"}\n\n"
	pad := strings.Repeat("x", 20_000)
	for name, test := range map[string]struct {
		check driver.Check
		body  string
		count int
		ok    bool
	}{
		"result":               {driver.Result("hello", 0), result, 0, true},
		"another text":         {driver.Result("goodbye", 0), result, 0, false},
		"a tool that failed":   {driver.Result("hello", 0), failed, 0, false},
		"error":                {driver.Result("hello", 0), refused, 0, false},
		"too short":            {driver.Result("hello", 1000), result, 0, false},
		"empty":                {driver.Result("hello", 0), "", 0, false},
		"large":                {driver.Result("hello", 1000), `{"result":{"text":"` + pad + `hello"}}`, 0, true},
		"large, another end":   {driver.Result("hello", 1000), `{"result":{"text":"` + pad + `"}}`, 0, false},
		"large, failed":        {driver.Result("hello", 1000), `{"result":{"text":"` + pad + `hello","isError":true}}`, 0, false},
		"line":                 {driver.Line("hello"), `{"text":"hello"}`, 0, true},
		"another line":         {driver.Line("hello"), `{"text":""}`, 0, false},
		"stream":               {driver.Stream("hello"), notice + notice + "data: " + result + "\n\n", 2, true},
		"stream with names":    {driver.Stream("hello"), "event: message\nid: 1\n" + notice + "event: message\ndata: " + result + "\n\n", 1, true},
		"stream without end":   {driver.Stream("hello"), notice + notice, 2, false},
		"stream with an error": {driver.Stream("hello"), notice + "data: " + refused + "\n\n", 1, false},
		"no stream":            {driver.Stream("hello"), result, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := test.check([]byte(test.body))
			if n != test.count || (err == nil) != test.ok {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
}

const answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + fixture.Text + `"}]}}`

// serve answers with what it is given, and remembers the bodies it got.
func serve(t *testing.T, h http.HandlerFunc) (addr string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func load(t *testing.T, l driver.Load) (driver.Measured, error) {
	t.Helper()
	w, err := l.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.Run(moment)
}

func TestWeb(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	versions := map[string]bool{}
	var served atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		served.Add(1)
		mu.Lock()
		seen[string(body)]++
		versions[r.Header.Get("MCP-Protocol-Version")+" "+r.Header.Get("Mcp-Method")+" "+r.Header.Get("Mcp-Name")] = true
		mu.Unlock()
		_, _ = io.WriteString(w, answer)
	})
	m, err := load(t, driver.Load{Addr: addr, Conns: 3, Call: driver.Echo(fixture.Text), Check: driver.Result(fixture.Text, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if m.Requests < 3 || int64(m.Requests) != served.Load() || m.Elapsed < moment || m.Size != len(answer) || m.P50 <= 0 || m.P99 < m.P50 {
		t.Errorf("%+v, served %d", m, served.Load())
	}
	for body, n := range seen {
		if n != 1 {
			t.Errorf("%d times the same id: %s", n, body)
		}
		if !strings.Contains(body, fixture.Modern) || !strings.Contains(body, `"id":1`) {
			t.Errorf("not a request of the newest revision: %s", body)
		}
	}
	if !versions[fixture.Modern+" tools/call echo"] || len(versions) != 1 {
		t.Errorf("headers: %v", versions)
	}
}

// A number in the parameters is that of the request, so that it is another one in each.
func TestNumber(t *testing.T) {
	var names []string
	in, out := server(t, func(line string, _ bool, w io.Writer) {
		_, rest, _ := strings.Cut(line, `"name":"thing `)
		name, _, _ := strings.Cut(rest, `"`)
		names = append(names, name)
		_, _ = io.WriteString(w, answerTo(line))
	})
	call := driver.Call{Method: "tools/call", Name: "make", Params: `"name":"thing ` + driver.Number + `"`}
	if _, err := driver.OpenPipe(in, out, 2, call, driver.Stateless, driver.Result(fixture.Text, 0)).Times(6); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if len(names) != 6 || len(slices.Compact(names)) != 6 || len(names[0]) != len(driver.Number) {
		t.Errorf("%q", names)
	}
}

func TestWebRefuses(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a status":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, answer, http.StatusTooManyRequests) },
		"an error":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"error":{"code":-32603}}`) },
		"another text": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"result":{}}`) },
		"the end":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"the second": func() http.HandlerFunc {
			var n atomic.Int64
			return func(w http.ResponseWriter, _ *http.Request) {
				if n.Add(1) == 1 {
					_, _ = io.WriteString(w, answer)
				}
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			w, err := driver.Load{Addr: serve(t, h), Conns: 1, Call: driver.Echo(fixture.Text), Check: driver.Result(fixture.Text, 0)}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if m, err := w.Times(2); err == nil {
				t.Errorf("counted as work: %+v", m)
			}
		})
	}
}

// sessions is a server of sessions that only opens them.
func sessions(t *testing.T) (addr string, opened, listening *atomic.Int64) {
	t.Helper()
	opened, listening = new(atomic.Int64), new(atomic.Int64)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		session := r.Header.Get("Mcp-Session-Id")
		switch {
		case r.Method == http.MethodGet:
			listening.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case strings.Contains(string(body), `"initialize"`):
			w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", opened.Add(1)))
			_, _ = io.WriteString(w, answer)
		case session == "":
			http.Error(w, "no session", http.StatusBadRequest)
		case strings.Contains(string(body), `"notifications/initialized"`):
			w.WriteHeader(http.StatusAccepted)
		default:
			_, _ = io.WriteString(w, strings.Replace(answer, fixture.Text, fixture.Text+" in "+session, 1))
		}
	}), opened, listening
}

func TestSessions(t *testing.T) {
	addr, opened, listening := sessions(t)
	m, err := load(t, driver.Load{
		Addr: addr, Era: driver.Session, Conns: 2, Call: driver.Echo(fixture.Text), Check: driver.Result(fixture.Text+" in s1", 0),
	})
	if err != nil || m.Requests == 0 || opened.Load() != 1 {
		t.Fatalf("%+v in %d sessions: %v", m, opened.Load(), err)
	}
	s, err := driver.OpenSessions(t.Context(), addr, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.IDs) != 5 || s.IDs[4] != "s6" {
		t.Errorf("%v", s.IDs)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.More(2); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if listening.Load() != 7 || len(s.IDs) != 7 {
		t.Errorf("%d streams of %v", listening.Load(), s.IDs)
	}
}

func TestSessionsRefused(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"without an id": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) },
		"by a status":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := driver.OpenSessions(t.Context(), serve(t, h), 1); err == nil {
				s.Close()
				t.Error("opened")
			}
		})
	}
}

// server answers lines over pipes, in the order that reply gives them; more says
// that another line is there already.
func server(t *testing.T, reply func(line string, more bool, out io.Writer)) (in, out *os.File) {
	t.Helper()
	requests, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		lines := bufio.NewReaderSize(requests, 64<<10)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			reply(line, lines.Buffered() > 0, answers)
		}
		answers.Close()
	})
	t.Cleanup(func() {
		in.Close()
		wg.Wait()
		out.Close()
		requests.Close()
	})
	return in, out
}

// answerTo is the answer to a request as the driver sends it.
func answerTo(line string) string {
	_, rest, _ := strings.Cut(line, `"id":`)
	id, _, _ := strings.Cut(rest, ",")
	return strings.Replace(answer, `"id":1`, `"id":`+id, 1) + "\n"
}

func TestPipe(t *testing.T) {
	for name, test := range map[string]struct {
		slots int
		reply func() func(string, bool, io.Writer)
	}{
		"one": {1, func() func(string, bool, io.Writer) {
			return func(line string, _ bool, out io.Writer) { _, _ = io.WriteString(out, answerTo(line)) }
		}},
		"in pieces": {4, func() func(string, bool, io.Writer) {
			return func(line string, _ bool, out io.Writer) {
				a := answerTo(line)
				_, _ = io.WriteString(out, a[:20])
				_, _ = io.WriteString(out, a[20:])
			}
		}},
		"backwards, with notifications": {64, func() func(string, bool, io.Writer) {
			var held []string
			return func(line string, more bool, out io.Writer) {
				if held = append(held, answerTo(line)); !more {
					for i := range held {
						_, _ = io.WriteString(out, held[len(held)-1-i])
					}
					_, _ = io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/message"}`+"\n")
					held = nil
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			reply := test.reply()
			in, out := server(t, func(line string, more bool, w io.Writer) {
				asked.Add(1)
				reply(line, more, w)
			})
			p := driver.OpenPipe(in, out, test.slots, driver.Echo(fixture.Text), driver.Stateless, driver.Result(fixture.Text, 0))
			total := 0
			for range 2 {
				m, err := p.Run(moment)
				if err != nil {
					t.Fatal(err)
				}
				total += m.Requests
				if m.Requests < test.slots || m.Elapsed <= 0 || m.P99 < m.P50 {
					t.Errorf("%+v", m)
				}
			}
			if int64(total) != asked.Load() {
				t.Errorf("%d answers to %d requests", total, asked.Load())
			}
		})
	}
}

func TestPipeRefuses(t *testing.T) {
	for name, reply := range map[string]func(string, bool, io.Writer){
		"an error": func(_ string, _ bool, w io.Writer) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{}}`+"\n")
		},
		"another id":          func(_ string, _ bool, w io.Writer) { _, _ = io.WriteString(w, answer+"\n") },
		"an answer two times": func(line string, _ bool, w io.Writer) { _, _ = io.WriteString(w, answerTo(line)+answerTo(line)) },
		"no JSON":             func(_ string, _ bool, w io.Writer) { _, _ = io.WriteString(w, "hello\n") },
		"the same id, failed": func(line string, _ bool, w io.Writer) {
			_, _ = io.WriteString(w, strings.Replace(answerTo(line), `"result":{`, `"result":{"isError":true,`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, out := server(t, reply)
			p := driver.OpenPipe(in, out, 1, driver.Echo(fixture.Text), driver.Stateless, driver.Result(fixture.Text, 0))
			if m, err := p.Run(moment); err == nil {
				t.Errorf("counted as work: %+v", m)
			}
		})
	}
}

func TestPipeGreets(t *testing.T) {
	var notified atomic.Bool
	in, out := server(t, func(line string, _ bool, w io.Writer) {
		switch {
		case strings.Contains(line, `"initialize"`):
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"`+fixture.Legacy+`"}}`+"\n")
		case strings.Contains(line, `"notifications/initialized"`):
			notified.Store(true)
		case notified.Load() && !strings.Contains(line, fixture.Modern):
			_, _ = io.WriteString(w, answerTo(line))
		default:
			_, _ = io.WriteString(w, "no\n")
		}
	})
	p := driver.OpenPipe(in, out, 2, driver.Echo(fixture.Text), driver.Session, driver.Result(fixture.Text, 0))
	if err := p.Greet(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(moment); err != nil {
		t.Error(err)
	}
}
