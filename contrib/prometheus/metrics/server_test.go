package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/contrib/prometheus/metrics"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// parse reads the page with Prometheus' own parser. Names are without the prefix
// mcp_server_.
func parse(t *testing.T, m *metrics.Metrics) []*model.Sample {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if format := expfmt.ResponseFormat(w.Header()); format.FormatType() != expfmt.TypeTextPlain {
		t.Errorf("Content-Type %q is %v", w.Header().Get("Content-Type"), format)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatalf("the page cannot be read: %v", err)
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, slices.Collect(maps.Values(families))...)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// values are the samples of one name by their other labels, in words.
func values(samples []*model.Sample, name string) map[string]float64 {
	out := make(map[string]float64)
	for _, s := range samples {
		if string(s.Metric[model.MetricNameLabel]) != name {
			continue
		}
		var words []string
		for l, v := range s.Metric {
			if l != model.MetricNameLabel {
				words = append(words, string(l)+"="+string(v))
			}
		}
		slices.Sort(words)
		out[strings.Join(words, " ")] = float64(s.Value)
	}
	return out
}

func newServer(m *metrics.Metrics, features ...server.Feature) *server.Server {
	s := server.New("test", "1", &server.Options{
		Logger: slog.New(slog.DiscardHandler),
		Limits: server.Limits{ToolRate: server.Unlimited, ListRate: server.Unlimited},
	})
	s.Use(m.Server())
	s.Observe(m.ServerObserver())
	s.Add(features...)
	return s
}

type none struct{}

func tool(name string, err error) server.Feature {
	return server.Tool(name, "", func(context.Context, none) (string, error) { return "", err })
}

const (
	durations = "mcp_server_request_duration_seconds"
	inFlight  = "mcp_server_requests_in_flight"
	refused   = "mcp_server_requests_refused_total"
	sessions  = "mcp_server_sessions"
	lasted    = "mcp_server_session_duration_seconds"
)

// Each outcome has its name, a question is none of the failures, and a panic is
// counted.
func TestOutcomes(t *testing.T) {
	type form struct {
		OK bool `json:"ok"`
	}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			m := metrics.New(nil)
			s := newServer(
				m, tool("fine", nil), tool("wrong", mcp.Errorf("told")), tool("hidden", errors.New("hidden")),
				server.Tool("panics", "", func(context.Context, none) (string, error) { panic("oh") }),
				server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
					_, err := server.Elicit[form](ctx, "well?")
					return "", err
				}),
				server.Prompt("prompt", "", func(context.Context, mcp.None) (string, error) { return "", nil }),
			)
			c := mcptest.Client(t, s, &client.Options{
				Versions: []string{version},
				OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					return client.Accept(form{true})
				},
			})
			for _, name := range []string{"fine", "fine", "wrong", "hidden", "panics", "asks", "absent"} {
				_, _ = c.CallTool(t.Context(), name, nil, nil) // the counts tell
			}
			_, _ = c.GetPrompt(t.Context(), "prompt", nil, nil)
			_, _ = c.GetPrompt(t.Context(), "fine", nil, nil)
			got := values(parse(t, m), durations+"_count")
			want := map[string]float64{}
			for _, line := range []string{"fine ok 2", "wrong tool_error 1", "hidden failed 1", "panics failed 1", "asks ok 1", "other refused 1"} {
				var target, outcome string
				var n float64
				if _, err := fmt.Sscan(line, &target, &outcome, &n); err != nil {
					t.Fatal(err)
				}
				want["method=tools/call outcome="+outcome+" revision="+version+" target="+target] = n
			}
			if version == "2026-07-28" {
				want["method=tools/call outcome=input_required revision=2026-07-28 target=asks"] = 1
			} else {
				want["method=initialize outcome=ok revision="+version+" target="] = 1
			}
			want["method=prompts/get outcome=ok revision="+version+" target=prompt"] = 1
			want["method=prompts/get outcome=refused revision="+version+" target=other"] = 1
			maps.DeleteFunc(got, func(k string, _ float64) bool { return strings.HasPrefix(k, "method=server/discover") })
			if !maps.Equal(got, want) {
				t.Errorf("counted %v\nwant %v", got, want)
			}
		})
	}
}

// Ten thousand names that a stranger makes up, and many tools of the server's
// own, stay under 200 label values.
func TestHostileNames(t *testing.T) {
	m := metrics.New(nil)
	var many []server.Feature
	for i := range 300 {
		many = append(many, tool(fmt.Sprintf("tool%d", i), nil))
	}
	s := newServer(m, many...)
	c := mcptest.Client(t, s, nil)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 2500 {
				name := fmt.Sprintf("%d-%d\n\"}\\ \x00", worker, i)
				if _, err := c.CallTool(t.Context(), name, nil, nil); err == nil {
					t.Errorf("%q is answered", name)
					return
				}
				if err := c.Request(t.Context(), name, nil, nil, nil); err == nil {
					t.Errorf("the method %q is answered", name)
					return
				}
				// As a transport in front of several servers might.
				s.Refused(t.Context(), transport.Refusal{Err: &jsonrpc.Error{Code: int64(i), Limit: name}, Method: name})
			}
		})
	}
	wg.Wait()
	for i := range 300 {
		if _, err := c.CallTool(t.Context(), fmt.Sprintf("tool%d", i), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	distinct := make(map[string]struct{})
	var other, refusals float64
	for _, sample := range parse(t, m) {
		for l, v := range sample.Metric {
			if l != model.MetricNameLabel && l != model.BucketLabel {
				distinct[string(l)+"="+string(v)] = struct{}{}
			}
		}
		if sample.Metric[model.MetricNameLabel] == durations+"_count" && sample.Metric["target"] == "other" {
			other += float64(sample.Value)
		}
		if sample.Metric[model.MetricNameLabel] == refused {
			refusals += float64(sample.Value)
		}
	}
	if len(distinct) >= 200 || len(distinct) < 100 || other != 10_200 || refusals != 20_000 {
		t.Errorf("%d label values, %v requests of others, %v refusals; want at least 100 and less than 200, 10,200 and 20,000", len(distinct), other, refusals)
	}
}

// Requests under way are a gauge; durations fall into their buckets; a cancelled
// request and one that takes too long have their outcomes.
func TestFlightAndDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(&metrics.Options{Buckets: []float64{1, 5}})
		s := newServer(m, server.Tool("slow", "", func(ctx context.Context, _ none) (string, error) {
			select {
			case <-time.After(3 * time.Second):
				return "", nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}))
		c := mcptest.Client(t, s, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, ctx := range []context.Context{t.Context(), ctx} {
			wg.Go(func() { _, _ = c.CallTool(ctx, "slow", nil, nil) })
		}
		synctest.Wait()
		if got := values(parse(t, m), inFlight)["method=tools/call"]; got != 2 {
			t.Errorf("%v under way, want 2", got)
		}
		time.Sleep(time.Second) // of the test's own clock
		cancel()
		wg.Wait()
		synctest.Wait()
		samples := parse(t, m)
		if got, ok := values(samples, inFlight)["method=tools/call"]; got != 0 || !ok {
			t.Errorf("%v under way at the end", got)
		}
		var got []string
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			for labels, value := range values(samples, durations+suffix) {
				if strings.Contains(labels, "method=tools/call") {
					got = append(got, fmt.Sprint(suffix, " ", strings.ReplaceAll(labels, " method=tools/call", ""), " ", value))
				}
			}
		}
		slices.Sort(got)
		const rest = " revision=2026-07-28 target=slow "
		want := []string{
			"_bucket le=+Inf outcome=cancelled" + rest + "1", "_bucket le=+Inf outcome=ok" + rest + "1",
			"_bucket le=1 outcome=cancelled" + rest + "1", "_bucket le=1 outcome=ok" + rest + "0",
			"_bucket le=5 outcome=cancelled" + rest + "1", "_bucket le=5 outcome=ok" + rest + "1",
			"_count method=tools/call outcome=cancelled" + rest + "1", "_count method=tools/call outcome=ok" + rest + "1",
			"_sum method=tools/call outcome=cancelled" + rest + "1", "_sum method=tools/call outcome=ok" + rest + "3",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// What middleware does not see is counted by code, limit and method.
func TestRefusals(t *testing.T) {
	m := metrics.New(nil)
	s := server.New("test", "1", &server.Options{
		Logger: slog.New(slog.DiscardHandler), Limits: server.Limits{ListRate: 1},
	})
	s.Use(m.Server())
	s.Observe(m.ServerObserver())
	s.Add(tool("fine", nil))
	h := streamable.NewHandler(s, nil)
	post := func(method, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", method)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	const form = `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	ask := func(method string) { post(method, fmt.Sprintf(form, method)) }
	post("", "{")
	post("", "[")
	ask("made/up")
	ask("prompts/list")
	before := values(parse(t, m), refused)
	want := map[string]float64{
		"code=-32700 limit= method=": 1, "code=-32600 limit= method=": 1, "code=-32601 limit= method=other": 1, "code=-32601 limit= method=prompts/list": 1,
	}
	if !maps.Equal(before, want) {
		t.Errorf("counted %v, want %v", before, want)
	}
	var wg sync.WaitGroup
	for range 80 { // 50 of an anonymous caller at once, and 10 that wait
		wg.Go(func() { ask("tools/list") })
	}
	wg.Wait()
	if got := values(parse(t, m), refused)["code=-31001 limit=Limits.ListRate method=tools/list"]; got == 0 {
		t.Errorf("no refusal names the rate: %v", values(parse(t, m), refused))
	}
}

// Sessions are counted over pipes too, for servers and clients.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(nil)
		s := newServer(m, tool("fine", nil))
		o := &client.Options{Versions: []string{"2025-11-25"}, Observers: []client.Observer{m.ClientObserver()}}
		c := mcptest.Client(t, s, o)
		other := mcptest.Client(t, s, o)
		check := func(open float64, ended map[string]float64) {
			t.Helper()
			page := parse(t, m)
			if got := values(page, sessions)["revision=2025-11-25 transport=memory"]; got != open {
				t.Errorf("%v sessions, want %v", got, open)
			}
			if got := values(page, "mcp_client_sessions")["revision=2025-11-25 transport="]; got != open {
				t.Errorf("%v sessions of clients, want %v", got, open)
			}
			if got := values(page, lasted+"_sum"); !maps.Equal(got, ended) {
				t.Errorf("lasted %v, want %v", got, ended)
			}
		}
		check(2, map[string]float64{})
		time.Sleep(time.Minute) // of the test's own clock
		_ = other.Close()
		synctest.Wait()
		ended := map[string]float64{"outcome=ok revision=2025-11-25 transport=memory": 60}
		check(1, ended)
		_ = c.Close()
		synctest.Wait()
		ended["outcome=ok revision=2025-11-25 transport=memory"] = 120
		check(0, ended)
		if got := values(parse(t, m), "mcp_client_session_duration_seconds_sum"); got["outcome=ok revision=2025-11-25 transport="] != 120 {
			t.Errorf("clients' sessions lasted %v", got)
		}
		m.ServerObserver().SessionOpened(server.SessionInfo{Transport: "stdio", Version: "2025-11-25"})
		m.ServerObserver().SessionEnded(server.SessionInfo{Transport: "stdio", Version: "2025-11-25"}, errors.New("broken pipe"))
		if got := values(parse(t, m), lasted+"_count"); got["outcome=failed revision=2025-11-25 transport=stdio"] != 1 {
			t.Errorf("ended %v", got)
		}
	})
}

// A program counts on the same page what else it does.
func TestOwnMetrics(t *testing.T) {
	signIns := metrics.NewCounter("logins_total", "Sign-ins.", "outcome")
	took := metrics.NewHistogram("page_seconds", "Pages.", []float64{1, 2}, "page", "status")
	signIns.Add(2, "ok")
	signIns.Add(1, "denied")
	took.Observe(1.5, "/", "200")
	w := httptest.NewRecorder()
	metrics.Page{signIns, took}.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	want := `# HELP logins_total Sign-ins.
# TYPE logins_total counter
logins_total{outcome="denied"} 1
logins_total{outcome="ok"} 2
# HELP page_seconds Pages.
# TYPE page_seconds histogram
page_seconds_bucket{page="/",status="200",le="1"} 0
page_seconds_bucket{page="/",status="200",le="2"} 1
page_seconds_bucket{page="/",status="200",le="+Inf"} 1
page_seconds_sum{page="/",status="200"} 1.5
page_seconds_count{page="/",status="200"} 1
`
	if got := w.Body.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for name, f := range map[string]func(){
		"no labels":       func() { metrics.NewCounter("x", "") },
		"too many labels": func() { metrics.NewGauge("x", "", "1", "2", "3", "4", "5") },
		"wrong labels":    func() { signIns.Add(1, "ok", "more") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestPageIsReadOnly(t *testing.T) {
	w := httptest.NewRecorder()
	metrics.New(nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
}

func TestBadBuckets(t *testing.T) {
	for _, buckets := range [][]float64{{1, 1}, {2, 1}, {math.NaN()}, {1, math.Inf(1)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v are taken", buckets)
				}
			}()
			metrics.New(&metrics.Options{Buckets: buckets})
		}()
	}
}

func ExampleMetrics() {
	m := metrics.New(nil)
	s := server.New("hello", "1.0.0", nil)
	s.Use(m.Server())
	s.Add(server.Tool("greet", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))

	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for range 3 {
		if _, err := c.CallTool(ctx, "greet", nil, nil); err != nil {
			fmt.Println(err)
		}
	}
	var page bytes.Buffer
	if _, err := m.WriteTo(&page); err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(page.String()) {
		if strings.Contains(line, "_count") && strings.Contains(line, "greet") {
			fmt.Print(line)
		}
	}
	// Output:
	// mcp_server_request_duration_seconds_count{method="tools/call",target="greet",outcome="ok",revision="2026-07-28"} 3
}
