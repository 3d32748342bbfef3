package chaos_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
)

// An upstream is a server that answers each request with a body, and keeps what it got.
type upstream struct {
	kind string // of content
	body string

	mu   sync.Mutex
	got  []string
	seen []*http.Request
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // there is nothing to close
	u.mu.Lock()
	defer u.mu.Unlock()
	u.got, u.seen = append(u.got, string(body)), append(u.seen, r)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {u.kind}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "X-Kept": {"1"}},
		Body: io.NopCloser(strings.NewReader(u.body)), Request: r,
	}, nil
}

// A response is what a client gets.
type response struct {
	status  int
	header  http.Header
	body    string
	aborted bool
}

// ask sends one request to a handler.
func ask(t *testing.T, h http.Handler, method, body string, header ...string) (got response) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:8080/mcp?x=1", strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != nil {
				if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
					panic(v)
				}
				got.aborted = true
			}
		}()
		h.ServeHTTP(w, r)
	}()
	got.status, got.header, got.body = w.Code, w.Header(), w.Body.String()
	return got
}

func handler(t *testing.T, o chaos.Options, up *upstream) (h http.Handler, events func() []chaos.Event) {
	t.Helper()
	var list []chaos.Event
	o.Log = func(e chaos.Event) { list = append(list, e) }
	if o.Sleep == nil {
		o.Sleep = noSleep
	}
	target, err := url.Parse("http://server.example:1/other")
	if err != nil {
		t.Fatal(err)
	}
	return chaos.New(o).Handler(target, up), func() []chaos.Event { return list }
}

const (
	call   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`
	result = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	stream = ": hello\n\nevent: message\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: " + result + "\n\n"
)

// Without faults requests and answers are passed on, but for what belongs to one connection.
func TestHTTPWithoutFaults(t *testing.T) {
	t.Parallel()
	for kind, body := range map[string]string{"application/json": result, "text/event-stream": stream} {
		up := &upstream{kind: kind, body: body}
		h, events := handler(t, chaos.Options{Rates: chaos.Rates{}}, up)
		got := ask(t, h, http.MethodPost, call, "Accept-Encoding", "gzip", "Connection", "X-Own", "X-Own", "1", "Authorization", "Bearer x", "Mcp-Session-Id", "s")
		want := http.Header{"Content-Type": {kind}, "X-Kept": {"1"}}
		if got.status != http.StatusOK || got.body != body || got.aborted || !cmp.Equal(got.header, want) || len(events()) > 0 {
			t.Errorf("%s: %+v, %v", kind, got, events())
		}
		r := up.seen[0]
		if up.got[0] != call || r.URL.String() != "http://server.example:1/mcp?x=1" || r.Host != "server.example:1" || r.Method != http.MethodPost {
			t.Errorf("the server got %s %s %s %q", r.Method, r.Host, r.URL, up.got)
		}
		if r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Mcp-Session-Id") != "s" || r.Header.Get("X-Own") != "" || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the server got the headers %v", r.Header)
		}
	}
}

// Each fault for a response as a whole does what the table says.
func TestHTTPWholeResponses(t *testing.T) {
	t.Parallel()
	for fault, check := range map[chaos.Fault]func(r response) bool{
		chaos.Status401: func(r response) bool {
			return r.status == 401 && strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer ")
		},
		chaos.Status429: func(r response) bool { return r.status == 429 && r.header.Get("Retry-After") == "3" },
		chaos.Status503: func(r response) bool { return r.status == 503 },
		chaos.HTML: func(r response) bool {
			return r.status == 200 && strings.HasPrefix(r.header.Get("Content-Type"), "text/html") && strings.Contains(r.body, "<p>")
		},
		chaos.Expire: func(r response) bool { return r.status == 404 },
		chaos.ContentType: func(r response) bool {
			return r.status == 200 && r.body == result && r.header.Get("Content-Type") != "application/json"
		},
		chaos.HeadersOnly: func(r response) bool {
			return r.aborted && r.status == 200 && r.body == "" && r.header.Get("Content-Type") == "application/json"
		},
	} {
		up := &upstream{kind: "application/json", body: result}
		h, events := handler(t, chaos.Options{Rates: chaos.Rates{fault: 1}, RetryAfter: 2500 * time.Millisecond}, up)
		got := ask(t, h, http.MethodPost, call, "Mcp-Session-Id", "s")
		reached := fault == chaos.ContentType || fault == chaos.HeadersOnly
		if !check(got) || (len(up.got) > 0) != reached || got.aborted != (fault == chaos.HeadersOnly) {
			t.Errorf("%s: %+v, the server got %q", fault, got, up.got)
		}
		if e := events(); len(e) != 1 || e[0].Fault != fault || e[0].Direction != chaos.ToClient || e[0].Frame != 0 || e[0].Connection != 1 {
			t.Errorf("%s: told as %+v", fault, e)
		}
	}
}

// A session that was expired stays so, and a request without one has none to expire.
func TestHTTPExpire(t *testing.T) {
	t.Parallel()
	up := &upstream{kind: "application/json", body: result}
	h, events := handler(t, chaos.Options{Rates: chaos.Rates{chaos.Expire: 0.5}, Seed: 1}, up)
	gone := make(map[string]bool)
	for i := range 200 {
		session := fmt.Sprintf("s%d", i%20)
		got := ask(t, h, http.MethodPost, fmt.Sprint(i), "Mcp-Session-Id", session)
		if gone[session] && got.status != 404 {
			t.Errorf("session %s is back", session)
		}
		gone[session] = got.status == 404
		if got := ask(t, h, http.MethodPost, fmt.Sprint(i)); got.status != 200 {
			t.Errorf("without a session: %d", got.status)
		}
	}
	if len(events()) != 20 {
		t.Errorf("%d sessions of 20 were expired", len(events()))
	}
}

// Faults of events change their data, and leave the stream one of events.
func TestHTTPEvents(t *testing.T) {
	t.Parallel()
	for fault, check := range map[chaos.Fault]func(r response) bool{
		chaos.Delay: func(r response) bool { return r.body == stream },
		chaos.Slow:  func(r response) bool { return r.body == stream },
		chaos.Drop:  func(r response) bool { return r.aborted && strings.HasPrefix(stream, r.body) && len(r.body) < 9 },
		chaos.Truncate: func(r response) bool {
			return strings.HasPrefix(r.body, ": hello\n\nevent: message\nid: 7\ndata: {") && strings.HasSuffix(r.body, "\n\n") && len(r.body) < len(stream)
		},
		chaos.BadJSON: func(r response) bool { return strings.Count(r.body, "\x01") == 2 && len(r.body) == len(stream) },
		chaos.WrongID: func(r response) bool {
			return !strings.Contains(r.body, `"id":1,`) && strings.HasSuffix(r.body, `,"result":{"content":[]}}`+"\n\n")
		},
		chaos.Duplicate: func(r response) bool {
			return strings.Count(r.body, result+"\n\n") == 2 && len(r.body) == 2*len(stream)
		},
		chaos.Reorder: func(r response) bool {
			return strings.HasPrefix(r.body, "event: message") && strings.Contains(r.body, "\n\n: hello\n\ndata:") && len(r.body) == len(stream)
		},
	} {
		up := &upstream{kind: "text/event-stream; charset=utf-8", body: stream}
		h, events := handler(t, chaos.Options{Rates: chaos.Rates{fault: 1}, To: chaos.ToClient}, up)
		if got := ask(t, h, http.MethodPost, call); !check(got) || got.status != 200 || got.aborted != (fault == chaos.Drop) || len(events()) == 0 {
			t.Errorf("%s: %+v", fault, got)
		}
	}
}

// Faults of bodies, both ways.
func TestHTTPBodies(t *testing.T) {
	t.Parallel()
	for fault, check := range map[chaos.Fault]func(sent string, got []string) bool{
		chaos.Delay: func(sent string, got []string) bool { return len(got) == 1 && got[0] == sent },
		chaos.Slow:  func(sent string, got []string) bool { return len(got) == 1 && got[0] == sent },
		chaos.Drop:  func(sent string, got []string) bool { return len(got) == 1 && len(got[0]) < len(sent) },
		chaos.Truncate: func(sent string, got []string) bool {
			return len(got) == 1 && len(got[0]) < len(sent) && strings.HasPrefix(sent, got[0])
		},
		chaos.BadJSON: func(sent string, got []string) bool {
			return len(got) == 1 && strings.Count(got[0], "\x01") == 1 && len(got[0]) == len(sent)
		},
		chaos.WrongID: func(sent string, got []string) bool {
			return len(got) == 1 && len(got[0]) > len(sent) && !strings.Contains(got[0], `"id":1,`)
		},
		chaos.Duplicate: func(sent string, got []string) bool { return strings.Join(got, "") == sent+sent },
	} {
		up := &upstream{kind: "application/json", body: result}
		h, _ := handler(t, chaos.Options{Rates: chaos.Rates{fault: 1}, To: chaos.ToServer}, up)
		got := ask(t, h, http.MethodPost, call)
		if !check(call, up.got) || got.aborted != (fault == chaos.Drop) || !got.aborted && got.body != result {
			t.Errorf("%s to the server: %q, %+v", fault, up.got, got)
		}
		h, _ = handler(t, chaos.Options{Rates: chaos.Rates{fault: 1}, To: chaos.ToClient}, up)
		if got := ask(t, h, http.MethodPost, call); !check(result, []string{got.body}) || got.aborted != (fault == chaos.Drop) {
			t.Errorf("%s to the client: %+v", fault, got)
		}
	}
}

// The same requests get the same answers for the same seed, in whatever order they come; a request
// that is sent again is another one.
func TestHTTPDeterminism(t *testing.T) {
	t.Parallel()
	rates, err := chaos.ParseRates([]string{"all=0.05", "expire=0"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]bool)
	for seed := range uint64(10) {
		run := func(reverse bool) (got map[int]string) {
			up := &upstream{kind: "text/event-stream", body: strings.Repeat(stream, 5)}
			h, _ := handler(t, chaos.Options{Seed: seed, Rates: rates}, up)
			order := make([]int, 60)
			for i := range order {
				order[i] = i
			}
			if reverse {
				slices.Reverse(order)
			}
			got = make(map[int]string)
			for _, i := range order {
				r := ask(t, h, http.MethodPost, fmt.Sprintf(`{"id":%d}`, i))
				got[i] = fmt.Sprint(r.status, r.aborted, r.body, slices.Sorted(maps.Keys(r.header)))
			}
			return got
		}
		first := run(false)
		if second := run(true); !cmp.Equal(first, second) {
			t.Errorf("seed %d: %s", seed, cmp.Diff(first, second))
		}
		for _, v := range first {
			kinds[v] = true
		}
	}
	if len(kinds) < 100 {
		t.Errorf("only %d different answers of 600", len(kinds))
	}
	up := &upstream{kind: "application/json", body: result}
	h, _ := handler(t, chaos.Options{Rates: chaos.Rates{chaos.Status503: 0.5}}, up)
	statuses := make(map[int]bool)
	for range 20 {
		statuses[ask(t, h, http.MethodPost, call).status] = true
	}
	if !statuses[200] || !statuses[503] {
		t.Error("a request that is sent again is always treated the same")
	}
}

// What cannot be passed on is told to the client.
func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(nil)
	target, err := url.Parse("http://" + s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = chaos.New(chaos.Options{Rates: chaos.Rates{}}).Handler(target, refusing{})
	s.Start()
	defer s.Close()
	for _, test := range []struct {
		host, upgrade string
		status        int
		says          string
	}{
		{"", "", http.StatusBadGateway, "the server did not respond: nobody is there"},
		{"localhost:1", "", http.StatusBadGateway, "did not respond"},
		{"[::1]", "", http.StatusBadGateway, "did not respond"},
		{"evil.example", "", http.StatusForbidden, "call it as localhost"},
		{"", "websocket", http.StatusNotImplemented, "change the protocol"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp", strings.NewReader(call))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = test.host
		if test.upgrade != "" {
			r.Header.Set("Upgrade", test.upgrade)
		}
		response, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if closeErr := response.Body.Close(); err != nil || closeErr != nil || response.StatusCode != test.status || !strings.Contains(string(text), test.says) {
			t.Errorf("%q %q: %d %s, %v", test.host, test.upgrade, response.StatusCode, text, err)
		}
	}
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody is there")
}

// Bodies that are too long to be one frame are passed on as they are.
func TestHTTPLongBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", chaos.MaxFrame+1000)
	for _, kind := range []string{"application/json", "text/event-stream"} {
		up := &upstream{kind: kind, body: long}
		h, events := handler(t, chaos.Options{Rates: chaos.Rates{chaos.BadJSON: 1}}, up)
		if got := ask(t, h, http.MethodPost, long); got.body != long || up.got[0] != long || len(events()) > 0 {
			t.Errorf("%s: %d bytes, and %d to the server, of %d; %v", kind, len(got.body), len(up.got[0]), len(long), events())
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(uint64(1), []byte(stream))
	f.Add(uint64(2), []byte("data:x\r\n\r\ndata\n\n\n\ndata: \xff\n\nid: 1"))
	rates, err := chaos.ParseRates([]string{"all=0.3", "drop=0", "html=0"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, seed uint64, body []byte) {
		run := func() response {
			h, _ := handler(t, chaos.Options{Seed: seed, Rates: rates}, &upstream{kind: "text/event-stream", body: string(body)})
			return ask(t, h, http.MethodPost, call)
		}
		if first, second := run(), run(); first.body != second.body || first.status != second.status {
			t.Errorf("%q, then %q", first.body, second.body)
		}
		h, _ := handler(t, chaos.Options{Rates: chaos.Rates{}}, &upstream{kind: "text/event-stream", body: string(body)})
		if got := ask(t, h, http.MethodPost, call); got.body != string(body) {
			t.Errorf("without faults %q", got.body)
		}
	})
}
