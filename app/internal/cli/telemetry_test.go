package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/telemetry/otlptest"
)

func get(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A served request is on the page of metrics, which is not at the endpoint, and
// its trace is at the collector when the server has ended.
func TestServeObserved(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=swordfish")
	collector := otlptest.New(t)
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	page := "http://127.0.0.1:" + port + "/metrics"
	address, stop := startHTTP(t, "--metrics", ":"+port, "--otlp", collector.URL)
	defer stop()
	for _, call := range []struct {
		args []string
		code int
	}{{[]string{"call", "echo", "message=private"}, 0}, {[]string{"call", "fail", "reason=private"}, 5}} {
		code, out, errs := command(t, append(call.args, "--server", "http://"+address+"/mcp", "--protocol", "2026-07-28")...)
		if code != call.code {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", call.args, code, call.code, out, errs)
		}
	}
	post(t, "http://"+address+"/mcp", "application/json", "{", http.Header{"Accept": {"application/json, text/event-stream"}})
	status, text := get(t, page, "")
	for _, want := range []string{
		`mcp_server_request_duration_seconds_count{method="tools/call",target="echo",outcome="ok",revision="2026-07-28"} 1`,
		`mcp_server_request_duration_seconds_count{method="tools/call",target="fail",outcome="tool_error",revision="2026-07-28"} 1`,
		`mcp_server_requests_in_flight{method="tools/call"} 0`,
		`mcp_server_requests_refused_total{code="-32700",limit="",method=""} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the page lacks %s:\n%s", want, text)
		}
	}
	if status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if status, _ := get(t, "http://"+address+"/metrics", ""); status != http.StatusNotFound {
		t.Errorf("at the endpoint's address the page is %d, want 404", status)
	}
	if status, _ := get(t, page, "rebound.example"); status != http.StatusForbidden {
		t.Errorf("under another name the page is %d, want 403", status)
	}
	stop()
	var names []string
	for _, s := range collector.Spans() {
		if s.Attributes["mcp.method.name"] == "tools/call" {
			names = append(names, fmt.Sprint(s.Name, " ", s.Status, " ", s.Resource["service.name"]))
		}
		if strings.Contains(fmt.Sprint(s), "private") {
			t.Errorf("an argument is in %+v", s)
		}
	}
	if got, want := strings.Join(names, ", "), "tools/call echo 0 parley, tools/call fail 2 parley"; got != want {
		t.Errorf("traces %q, want %q", got, want)
	}
	for _, r := range collector.Requests() {
		if r.Header.Get("Api-Key") != "swordfish" {
			t.Errorf("the collector's key is %q", r.Header.Get("Api-Key"))
		}
	}
}

// That a collector does not take traces is told to the operator, without -v and
// without the key.
func TestLostTracesAreLogged(t *testing.T) {
	p := newEmptyPlace(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=swordfish")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	collector := otlptest.New(t)
	collector.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	at := p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:0", "--otlp", collector.URL)
	code, out, errs := command(t, "call", "echo", "message=hello", "--server", at)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if !p.saw(`level=WARN msg="traces are lost`) || strings.Contains(p.said.String(), "swordfish") {
		t.Errorf("the operator was told nothing of it, or too much:\n%s", p.said)
	}
}
