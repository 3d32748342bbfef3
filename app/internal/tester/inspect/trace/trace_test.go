package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/trace"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

func greeter() *server.Server {
	s := server.New("hello", "1", nil)
	s.Add(server.Tool("greet", "Greets.", func(context.Context, mcp.None) (string, error) { return "hello", nil }))
	return s
}

// traced has a session with a server over HTTP, shown to a tap.
func traced(t *testing.T, version string, tap transport.Tap) {
	t.Helper()
	h := streamable.NewHandler(greeter(), nil)
	far := httptest.NewServer(h)
	defer far.Close()
	c, err := client.Connect(t.Context(), &streamable.Dialer{URL: far.URL + "/mcp?token=hunter-zqj&x=1", Tap: tap}, &client.Options{Versions: []string{version}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call[string](t.Context(), c, "greet", nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), h.Shutdown(context.Background())); err != nil {
		t.Fatal(err)
	}
}

// Each message is one event, which names the request that it answers.
func TestTracer(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		var events []trace.Event
		tracer := trace.New(mask.New(nil), func(e *trace.Event) error {
			events = append(events, *e)
			return nil
		})
		traced(t, version, tracer.Tap)
		counts, err := tracer.Close()
		if err != nil || counts.Sent < 2 || counts.Received < 2 || counts.Refused > 0 || counts.Links != 1 {
			t.Errorf("%s: %v, %v", version, counts, err)
		}
		var calls []string
		for _, e := range events {
			if e.Method == mcp.MethodToolsCall {
				calls = append(calls, e.Kind+" "+e.Type)
				if e.Exchange == 0 || len(e.Message) != e.Bytes || string(e.ID) == "" {
					t.Errorf("%s: %+v", version, e)
				}
			}
			if e.HTTP != nil && strings.Contains(e.HTTP.URL, "hunter-zqj") || e.Kind == "body" && e.Error == "" {
				t.Errorf("%s: %+v", version, e)
			}
		}
		if want := []string{"sent request", "received result"}; !slices.Equal(calls, want) {
			t.Errorf("%s: %q, want %q", version, calls, want)
		}
	}
}

// What a tap can show is told in lines that hold no control characters, and JSON.
func TestText(t *testing.T) {
	at := time.Now()
	tap := func(kind transport.TapKind, data string) transport.TapEvent {
		return transport.TapEvent{Kind: kind, Time: at, Link: 1, Data: []byte(data)}
	}
	refused := tap(transport.TapRefused, "\x1b[2Jlog line")
	refused.Err = errors.New("no JSON")
	closed := tap(transport.TapClosed, "")
	closed.Err = errors.New("it \x1b[31mbroke")
	head := tap(transport.TapResponse, "")
	head.Exchange, head.Status, head.Proto, head.Header = 7, 401, "HTTP/1.1", http.Header{"Content-Type": {"text/html"}, "X": {"\x1b"}}
	body, end := tap(transport.TapBody, "<p>token=abcdefgh1</p>"), tap(transport.TapBody, "")
	body.Exchange, end.Exchange, end.Err = 7, 7, io.EOF
	lost := tap(transport.TapResponse, "")
	lost.Exchange, lost.Err = 8, errors.New("refused")
	events := []transport.TapEvent{
		tap(transport.TapStderr, "one\r\npass"), tap(transport.TapStderr, "word=hunter2x\n\x1b[2Jthr"), refused,
		tap(transport.TapReceived, `[{"a":1}]`), tap(transport.TapReceived, "\xff"), tap(transport.TapReceived, ""), tap(transport.TapReceived, "{}"),
		tap(transport.TapReceived, `{"jsonrpc":"2.0","id":1,"result":{}}`), head, body, end, lost,
		tap(transport.TapStderr, strings.Repeat("x", 200_000)), closed, tap(transport.TapStderr, "late"),
	}
	var text, lines bytes.Buffer
	for _, w := range []trace.Writer{trace.Text(&text), trace.JSON(&lines)} {
		tracer := trace.New(mask.New(nil), w)
		for _, e := range events {
			tracer.Tap(e)
		}
		if counts, err := tracer.Close(); err != nil || counts.String() != "0 messages sent, 5 received, 1 refused; connections: 1" {
			t.Error(counts, err)
		}
	}
	for _, want := range []string{
		"stderr   one\n", "stderr   password=«redacted:", `stderr   \u{1b}[2Jthrxxx`, "refused  12 bytes: no JSON\n", `\u{1b}[2Jlog line`,
		"←  batch  9 bytes", "←  invalid  1 byte\n", "←  empty event", "←  invalid  2 bytes", "←  result  id 1", "←  401  HTTP/1.1  exchange 7", `X: \u{1b}`,
		"body  22 bytes  exchange 7\n", "<p>token=«redacted:", "http  ←  exchange 8: refused", `closed  connection 1: it \u{1b}[31mbroke`, "stderr   late\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") || strings.Contains(text.String()+lines.String(), "hunter2x") {
		t.Error("a control character or a secret is shown")
	}
	for line := range strings.Lines(lines.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %q", line)
		}
	}
}

// An error of writing is the last thing that happens.
func TestWriteFails(t *testing.T) {
	full := errors.New("no space")
	writes := 0
	tracer := trace.New(mask.New(nil), func(*trace.Event) error {
		writes++
		return full
	})
	for range 3 {
		tracer.Tap(transport.TapEvent{Kind: transport.TapClosed})
	}
	if _, err := tracer.Close(); !errors.Is(err, full) || writes != 1 {
		t.Error(err, writes)
	}
}

// A HAR file has what the format HTTP Archive 1.2 requires, with the types that it requires.
func TestHAR(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		m := mask.New(nil)
		h := trace.NewHAR(m)
		traced(t, version, h.Tap)
		c, err := client.Connect(t.Context(), mem.New(greeter(), &mem.Options{Tap: h.Tap}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := h.Write(&b, "1"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "hunter-zqj") {
			t.Error("the token is in it")
		}
		entries := checkHAR(t, b.Bytes())
		calls, pipes := 0, 0
		for _, e := range entries {
			post, _ := e["request"].(map[string]any)["postData"].(map[string]any)
			if text, _ := post["text"].(string); strings.Contains(text, "tools/call") {
				calls++
				answer, _ := e["response"].(map[string]any)["content"].(map[string]any)["text"].(string)
				if !strings.Contains(answer, `"hello"`) {
					t.Errorf("the answer is %q", answer)
				}
			}
			if messages, _ := e["_webSocketMessages"].([]any); len(messages) > 1 {
				pipes++
			}
		}
		if calls != 1 || pipes != 1 {
			t.Errorf("%s: %d calls and %d pipes in\n%s", version, calls, pipes, b.String())
		}
	}
}

// An object of the format: the names of its required members and their types.
type shape map[string]any

var (
	pairShape = shape{"name": "", "value": ""}
	harShape  = shape{"log": shape{
		"version": "", "creator": shape{"name": "", "version": ""},
		"entries": []any{shape{
			"startedDateTime": "", "time": 0.0, "cache": shape{}, "timings": shape{"send": 0.0, "wait": 0.0, "receive": 0.0},
			"request": shape{
				"method": "", "url": "", "httpVersion": "", "cookies": []any{pairShape}, "headers": []any{pairShape},
				"queryString": []any{pairShape}, "headersSize": 0.0, "bodySize": 0.0,
			},
			"response": shape{
				"status": 0.0, "statusText": "", "httpVersion": "", "cookies": []any{pairShape}, "headers": []any{pairShape},
				"content": shape{"size": 0.0, "mimeType": ""}, "redirectURL": "", "headersSize": 0.0, "bodySize": 0.0,
			},
		}},
	}}
)

// fits compares a value with a shape.
func fits(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case shape:
		o, ok := got.(map[string]any)
		if !ok {
			t.Fatalf("%s is %T, not an object", path, got)
		}
		for name, inner := range want {
			fits(t, path+"/"+name, inner, o[name])
		}
	case []any:
		list, ok := got.([]any)
		if !ok {
			t.Fatalf("%s is %T, not an array", path, got)
		}
		for _, item := range list {
			fits(t, path+"/*", want[0], item)
		}
	case string:
		if _, ok := got.(string); !ok {
			t.Errorf("%s is %T, not a text", path, got)
		}
	case float64:
		if _, ok := got.(float64); !ok {
			t.Errorf("%s is %T, not a number", path, got)
		}
	}
}

func checkHAR(t *testing.T, raw []byte) (entries []map[string]any) {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	fits(t, "", harShape, file)
	log, _ := file["log"].(map[string]any)
	if log["version"] != "1.2" {
		t.Error(log["version"])
	}
	list, _ := log["entries"].([]any)
	for _, item := range list {
		e, _ := item.(map[string]any)
		entries = append(entries, e)
		started, _ := e["startedDateTime"].(string)
		if _, err := time.Parse(time.RFC3339, started); err != nil {
			t.Error(err)
		}
		address, _ := e["request"].(map[string]any)["url"].(string)
		if u, err := url.Parse(address); err != nil || !u.IsAbs() {
			t.Errorf("%q is no URL: %v", address, err)
		}
		timings, _ := e["timings"].(map[string]any)
		for name, value := range timings {
			if n, ok := value.(float64); !ok || n < 0 && n != -1 {
				t.Errorf("%s is %v", name, value)
			}
		}
	}
	return entries
}
