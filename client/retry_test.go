package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// failing is how a server fails at one method: with an HTTP status, with the
// code of an error, with both; with neither it cuts the connection.
type failing struct {
	method string
	status int
	code   int
	header string // Retry-After
	data   string // of the error

	mu    sync.Mutex
	times int // how often it fails still; -1: for ever
	heard int // requests of the method
}

// due reports whether the next request of a method fails.
func (f *failing) due(method string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method != f.method {
		return false
	}
	f.heard++
	if f.times == 0 {
		return false
	}
	f.times--
	return true
}

func (f *failing) set(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times, f.heard = times, 0
}

func (f *failing) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard
}

// body is the error with the code.
func (f *failing) body(id string) string {
	data := ""
	if f.data != "" {
		data = `,"data":` + f.data
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"not now"%s}}`, id, f.code, data)
}

// serve fails in front of h, or passes a request on.
func (f *failing) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	m, err := linktest.Read(r)
	if err != nil {
		return
	}
	if m.Method == "" || !f.due(m.Method) {
		r.Body = io.NopCloser(strings.NewReader(m.Text))
		h.ServeHTTP(w, r)
		return
	}
	if f.status == 0 && f.code == 0 {
		panic(http.ErrAbortHandler)
	}
	if f.header != "" {
		w.Header().Set("Retry-After", f.header)
	}
	if f.code != 0 {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(max(f.status, 200))
	if f.code != 0 {
		_, _ = io.WriteString(w, f.body(cmp.Or(m.ID, "null")))
	}
}

// plain is a server of every revision.
func plain() *server.Server {
	return server.New("plain", "1", &server.Options{})
}

// dialers gives a dialer for a server that fails so, on each transport that can.
func (f *failing) dialers(t *testing.T) map[string]transport.Dialer {
	endpoint := streamable.NewHandler(plain(), nil)
	front := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(endpoint, w, r) }))
	d := map[string]transport.Dialer{"HTTP": streamable.URL(front.URL)}
	if f.status > 0 {
		return d
	}
	s := &script{versions: []string{modern, newest}}
	whole := &script{versions: s.versions}
	s.on = map[string]func(*req) (any, error){f.method: func(r *req) (any, error) {
		switch {
		case !f.due(r.in.Method):
			return whole.handle(r)
		case f.code == 0:
			r.conn.end()
			return nil, errSilent
		}
		return nil, jsonrpc.NewError(int64(f.code), "not now")
	}}
	d["pipe"] = mem.New(s, &mem.Options{Key: "pipe"})
	return d
}

// Ruling 31: an era is remembered only when a server has answered in it, never
// after a failure that may pass.
func TestPassingFailure(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]*failing{
		"408": {status: 408}, "429": {status: 429}, "500": {status: 500}, "502": {status: 502}, "503": {status: 503}, "504": {status: 504},
		"-32603 with 500": {status: 500, code: -32603}, "503 with body": {status: 503, code: -32000}, "429 with body": {status: 429, code: -32000},
		"-31001": {code: -31001}, "-31002": {code: -31002}, "-31003": {code: -31003}, "-31004": {code: -31004}, "-32603": {code: -32603},
		"cut": {},
	} {
		for _, transportName := range []string{"HTTP", "pipe"} {
			if transportName == "pipe" && how.status > 0 {
				continue
			}
			t.Run(name+"/"+transportName, func(t *testing.T) {
				t.Parallel()
				f := &failing{method: mcp.MethodDiscover, status: how.status, code: how.code}
				d := f.dialers(t)[transportName]
				memory := client.NewEraMemory()
				version := func(times int) (version string, probes int) {
					t.Helper()
					f.set(times)
					c, err := client.Connect(t.Context(), d, &client.Options{Eras: memory})
					if err != nil {
						t.Fatal(err)
					}
					version, probes = c.Version(), f.asked()
					if err := c.Close(); err != nil {
						t.Error(err)
					}
					return version, probes
				}
				if v, n := version(-1); v != newest || n != 2 {
					t.Errorf("a server that always fails: version %s after %d probes, want the handshake after one repeat", v, n)
				}
				if v, ok := memory.Recall(d.Key()); ok {
					t.Errorf("remembered %s", v)
				}
				for range 2 {
					if v, n := version(1); v != modern || n != 2 {
						t.Errorf("a server that failed once: version %s after %d probes", v, n)
					}
				}
				if v, _ := memory.Recall(d.Key()); v != modern {
					t.Errorf("remembered %q", v)
				}
				f.set(-1)
				c, err := client.Connect(t.Context(), d, &client.Options{Eras: memory, Versions: []string{modern}, Retries: 1})
				if err == nil {
					_ = c.Close()
					t.Fatal("connected")
				}
				if errors.Is(err, client.ErrUnsupportedVersion) || f.asked() != 2 {
					t.Errorf("pinned to the newest: %d probes, error %v", f.asked(), err)
				}
				if cause, _, _ := strings.Cut(name, " "); cause != "cut" && !strings.Contains(err.Error(), cause) {
					t.Errorf("the error does not say the cause %s: %v", cause, err)
				}
			})
		}
	}
}

// What is of the handshake era by its answer is remembered so; a pin is no
// answer.
func TestEraOfPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := client.NewEraMemory()
		d := mem.New(&script{versions: []string{modern, newest}}, &mem.Options{Key: "both"})
		if c := dial(t, d, &client.Options{Eras: memory, Versions: []string{newest}}); c.Version() != newest {
			t.Errorf("version %s", c.Version())
		}
		if c := dial(t, d, &client.Options{Eras: memory}); !c.Modern() {
			t.Errorf("version %s, because another client was pinned to it", c.Version())
		}
	})
}

// front is a site whose first requests fail, inside a synctest bubble.
type front struct {
	site
	f *failing
}

func (s *front) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	passed := false
	r = r.Clone(r.Context())
	if r.Body == nil {
		return s.site.RoundTrip(r)
	}
	s.f.serve(http.HandlerFunc(func(_ http.ResponseWriter, again *http.Request) { passed, r = true, again }), w, r)
	if passed {
		return s.site.RoundTrip(r)
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// Ruling 31: a client waits as long as it is told, within bounds.
func TestToldToWait(t *testing.T) {
	const hour = `{"retryAfterMs":3600000}`
	for name, test := range map[string]struct {
		f        *failing
		times    int
		pinned   bool
		deadline time.Duration
		want     string // a version, or what the error says
		probes   int
		after    time.Duration
	}{
		"seconds":            {f: &failing{status: 429, header: "7"}, times: 1, want: modern, probes: 2, after: 7 * time.Second},
		"milliseconds":       {f: &failing{code: -31001, data: `{"retryAfterMs":1500}`}, times: 1, want: modern, probes: 2, after: 1500 * time.Millisecond},
		"both":               {f: &failing{status: 503, code: -31002, header: "1", data: `{"retryAfterMs":1500}`}, times: 1, want: modern, probes: 2, after: 1500 * time.Millisecond},
		"date":               {f: &failing{status: 503, header: "Sat, 01 Jan 2000 00:00:09 GMT"}, times: 1, want: modern, probes: 2, after: 9 * time.Second},
		"nonsense":           {f: &failing{status: 503, header: "soon"}, times: 1, want: modern, probes: 2, after: 100 * time.Millisecond},
		"negative":           {f: &failing{code: -31001, data: `{"retryAfterMs":-1}`}, times: 1, want: modern, probes: 2, after: 100 * time.Millisecond},
		"no number":          {f: &failing{code: -31001, data: `["later"]`}, times: 1, want: modern, probes: 2, after: 100 * time.Millisecond},
		"an hour":            {f: &failing{status: 429, header: "3600"}, times: -1, want: newest, probes: 1},
		"an hour, pinned":    {f: &failing{status: 429, header: "3600"}, times: -1, pinned: true, want: "(tried once; the server asks to wait 1h0m0s)", probes: 1},
		"an hour in data":    {f: &failing{code: -31001, data: hour}, times: -1, pinned: true, want: "asks to wait 1h0m0s)", probes: 1},
		"beyond all numbers": {f: &failing{code: -31001, data: `{"retryAfterMs":9223372036854775807}`}, times: -1, pinned: true, want: "asks to wait 1h0m0s)", probes: 1},
		"below all numbers":  {f: &failing{code: -31001, data: `{"retryAfterMs":-9223372036855}`}, times: 1, want: modern, probes: 2, after: 100 * time.Millisecond},
		"end of all dates":   {f: &failing{status: 429, header: "Fri, 31 Dec 9999 23:59:59 GMT"}, times: -1, pinned: true, want: "asks to wait 1h0m0s)", probes: 1},
		"0 ms for ever":      {f: &failing{code: -31001, data: `{"retryAfterMs":0}`}, times: -1, pinned: true, want: "(tried 6 times)", probes: 6, after: 500 * time.Millisecond},
		"beyond the deadline": {
			f: &failing{status: 429, header: "20"}, times: -1, pinned: true, deadline: 10 * time.Second,
			want: "(tried once; the server asks to wait 20s)", probes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its time begins with the year 2000
				f := test.f
				f.method = mcp.MethodDiscover
				f.set(test.times)
				s := &front{f: f}
				s.old = test.times < 0
				o := &client.Options{Eras: client.NewEraMemory()}
				if test.pinned {
					o.Versions = []string{modern}
				}
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(test.deadline, 2*time.Minute))
				defer cancel()
				start := time.Now()
				got := ""
				c, err := client.Connect(ctx, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: s}}, o)
				if err != nil {
					got = err.Error()
				} else {
					got = c.Version()
					defer func() { _ = c.Close() }()
				}
				if !strings.HasSuffix(got, test.want) || f.asked() != test.probes || time.Since(start) != test.after {
					t.Errorf("%s after %v and %d probes, want %s after %v and %d", got, time.Since(start), f.asked(), test.want, test.after, test.probes)
				}
			})
		})
	}
}

// A watch of lists, which goes on for as long as the client lives, is not asked
// for all the time because the server told a time that cannot be.
func TestToldToWatchLater(t *testing.T) {
	for name, f := range map[string]*failing{
		"end of all dates":   {status: 429, header: "Fri, 31 Dec 9999 23:59:59 GMT"},
		"below all numbers":  {code: -31001, data: `{"retryAfterMs":-9223372036855}`},
		"beyond all numbers": {code: -31001, data: `{"retryAfterMs":9223372036854775807}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f.method = mcp.MethodListen
				f.set(1000)
				s := &front{f: f}
				dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: s}}, &client.Options{
					Eras: client.NewEraMemory(), OnToolsChanged: func(context.Context) {},
				})
				time.Sleep(10 * time.Minute) // of fake time
				if n := f.asked(); n == 0 || n > 30 {
					t.Errorf("asked %d times in ten minutes", n)
				}
			})
		})
	}
}
