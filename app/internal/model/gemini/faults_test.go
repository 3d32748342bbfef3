package gemini_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/gemini"
	"github.com/parley-mcp/parley/app/internal/model/modeltest"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A stream that ends too early is an error, wherever it ends. What came before was yielded.
func TestCutStream(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text", "calls", "thinking"} {
		text, err := os.ReadFile("testdata/" + name + ".sse")
		if err != nil {
			t.Fatal(err)
		}
		whole := show(model(t, streams(string(text))), hello())
		finished := strings.Index(string(text), `"finishReason"`)
		ended := finished + strings.Index(string(text[finished:]), "\n")
		seen := 0
		for i := range modeltest.Places(ended) {
			got := show(model(t, streams(string(text[:i]))), hello())
			before, after, ok := strings.Cut(got, "error ")
			if !ok || !strings.HasPrefix(after, "gemini ended its answer in the middle; what came before is kept") {
				t.Fatalf("%s, cut at %d: %s", name, i, got)
			}
			if !strings.HasPrefix(whole, before) && !strings.Contains(before, "Reading") { // a thought that is not whole
				t.Fatalf("%s, cut at %d: %s is no beginning of %s", name, i, before, whole)
			}
			seen = max(seen, len(before))
		}
		if seen < 20 {
			t.Errorf("%s: only %d bytes were yielded before the end", name, seen)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	list, err := published()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"FINISH_REASON_UNSPECIFIED": "error gemini ended its answer in the middle",
		"STOP":                      "stop end",
		"MAX_TOKENS":                "stop length",
		"MALFORMED_FUNCTION_CALL":   "error gemini made a call that cannot be read (MALFORMED_FUNCTION_CALL); try again",
		"UNEXPECTED_TOOL_CALL":      "error gemini made a call although it was given no tool",
		"TOO_MANY_TOOL_CALLS":       "error gemini made too many calls",
		"OTHER":                     "text \"[gemini ended its answer (OTHER)]\"\nstop other",
		"IMAGE_OTHER":               "text \"[gemini ended its answer (IMAGE_OTHER)]\"\nstop other",
		"NO_IMAGE":                  "text \"[gemini ended its answer (NO_IMAGE)]\"\nstop other",
		"NEVER_SEEN":                "text \"[gemini ended its answer (NEVER_SEEN)]\"\nstop other",
		"CONTINUATION":              "stop length",
	}
	for _, reason := range append(list["FinishReason"].Enum, "NEVER_SEEN", "CONTINUATION") {
		got := show(model(t, streams(events(finish(reason)))), hello())
		start, ok := want[reason]
		if !ok {
			if !strings.HasPrefix(got, `text "[gemini refuses to answer: `) || !strings.HasSuffix(got, "("+reason+")]\"\nstop refusal\n") {
				t.Errorf("%s: %s", reason, got)
			}
			continue
		}
		if !strings.HasPrefix(got, start) {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

// Streams that no server should send.
func TestStrangeStreams(t *testing.T) {
	t.Parallel()
	stop := finish("STOP")
	for _, test := range []struct{ name, stream, want string }{
		{"nothing", "", "error gemini ended its answer in the middle; what came before is kept; try again\n"},
		{"an answer of nothing", events(stop), "stop end\n"},
		{
			"two calls with one ID, and one without", events(parts(`{"functionCall":{"name":"f","id":"a"}},{"functionCall":{"name":"f","id":"a"}},{"functionCall":{"name":"f"}},{"functionCall":{"name":"f","id":"call-3"}}`), stop),
			`reasoning of gemini@models.example "" {"kind":"call","id":"a"}
call "a" "f" {}
reasoning of gemini@models.example "" {"kind":"call","id":"a"}
call "call-2" "f" {}
call "call-3" "f" {}
reasoning of gemini@models.example "" {"kind":"call","id":"call-3"}
call "call-4" "f" {}
stop calls
`,
		},
		{
			"arguments", events(parts(`{"functionCall":{"name":"never offered","args":null}},{"functionCall":{"name":"f","args":"{\"a\":"}},{"functionCall":{"args":[1, 2]}}`), stop),
			"call \"call-1\" \"never offered\" {}\ncall \"call-2\" \"f\" \"{\\\"a\\\":\"\ncall \"call-3\" \"\" [1, 2]\nstop calls\n",
		},
		{
			"unknown events, fields and parts", ": a comment\nevent: ping\nid: 7\nretry: 1\n\n" + events(`{}`, `null`, `{"new":{"a":1},"candidates":null}`,
				parts(`{},{"executableCode":{"code":"1"}},{"text":"a","new":[]},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`), `{"candidates":[{"index":1,"content":{"parts":[{"text":"other"}]},"finishReason":"SAFETY"}]}`, stop, "[DONE]"),
			"text \"a\"\ntext \"[image/png, 3 bytes, which is not shown]\"\nstop end\n",
		},
		{
			"usage that is none", events(`{"usageMetadata":{"promptTokenCount":-5,"cachedContentTokenCount":9,"candidatesTokenCount":1e300,"thoughtsTokenCount":-1}}`, stop),
			"usage {Input:0 Output:1099511627776 CacheRead:0 CacheWrite:0 Cost:0}\nstop end\n",
		},
		{
			"an error within", events(parts(`{"text":"a"},{"text":"t","thought":true}`), `{"error":{"code":503,"message":"The model is overloaded. `+testKey+`","status":"UNAVAILABLE"}}`),
			"text \"a\"\nreasoning of gemini@models.example \"t\" {\"kind\":\"thought\"}\nerror gemini broke its answer off: The model is overloaded. [key]\n",
		},
		{"an event that is no JSON", events(parts(`{"text":"a"}`), `{"candidates":`), "text \"a\"\nerror gemini sends an event that cannot be read: unexpected end of JSON input\n"},
		{"an event of another shape", events(`{"candidates":7}`), "error gemini sends an event that cannot be read: json: cannot unmarshal number"},
		{"deep JSON", events(`{"candidates":` + strings.Repeat("[", 100_000)), "error gemini sends an event that cannot be read: "},
		{"control characters in an error", events(`{"error":{"message":"\u001b[31mred\nline"}}`), "error gemini broke its answer off: "},
	} {
		got := show(model(t, streams(test.stream)), hello())
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got\n%.500s\nwant\n%.500s", test.name, got, test.want)
		}
		if strings.Contains(got, "\x1b") || strings.Contains(got, testKey) {
			t.Errorf("%s: %.500q", test.name, got)
		}
	}
}

// Answers that are no stream.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		status int
		kind   string
		body   string
		tries  int
		want   string
	}{
		{"too many", 429, "application/json", `[{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}]`, 3, "gemini has had too many requests: Quota exceeded; try again in 37s"},
		{"too many today", 429, "application/json", `{"error":{"message":"Quota exceeded.","details":[{"retryDelay":"7200s"}]}}`, 1, "try again in 2h0m0s"},
		{"overloaded", 503, "application/json", `{"error":{"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, 3, "gemini is overloaded: The model is overloaded; try again later"},
		{"overloaded too", 529, "", "", 3, "gemini is overloaded; try again later"},
		{"failed", 500, "text/html", "<html>no</html>", 3, "gemini failed (status 500); try again later"},
		{"a wrong key", 400, "application/json", `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, 1, "refuses the request (status 400): API key not valid. Please pass a valid API key; 'parley model key set gemini --base-url https://models.example' sets another one"},
		{"a key that may not", 403, "application/json", `{"error":{"message":"` + testKey + ` is blocked"}}`, 1, "gemini refuses the key: [key] is blocked; 'parley model key set gemini --base-url https://models.example' sets another one"},
		{"no such model", 404, "application/json", `{"error":{"message":"models/m is not found"}}`, 1, "does not know the model or the address"},
		{"a page", 200, "text/html", "<!doctype html><p>Hello", 1, "gemini answers with text/html where a stream of events was asked for; is the base URL right?"},
		{"an error as JSON", 200, "application/json", `{"error":{"message":"no"}}`, 1, "gemini answers with an error: no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := &transport{}
			for range 4 {
				at.Replies = append(at.Replies, reply{Status: test.status, Kind: test.kind, Body: strings.NewReader(test.body)})
			}
			waits := 0
			m := model(t, at, func(o *gemini.Options) { o.Waiting = func(error, time.Duration) { waits++ } })
			got := show(m, hello())
			if !strings.HasPrefix(got, "error ") || !strings.Contains(got, test.want) || strings.Contains(got, testKey) {
				t.Errorf("%s: %s", test.name, got)
			}
			if len(at.URLs) != test.tries || waits != test.tries-1 {
				t.Errorf("%s: %d requests, %d waits", test.name, len(at.URLs), waits)
			}
		})
	}
}

// A request that failed is made again, and its answer is read.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := streams("", events(parts(`{"text":"a"}`), finish("STOP")))
		at.Replies[0].Status, at.Replies[0].Header = 503, map[string]string{"Retry-After": "3"}
		begun := time.Now()
		if got := show(model(t, at), hello()); got != "text \"a\"\nstop end\n" || time.Since(begun) != 3*time.Second {
			t.Error(got, time.Since(begun))
		}
	})
}

// A model that does not think is not asked for thoughts again.
func TestThoughtless(t *testing.T) {
	t.Parallel()
	answer := events(parts(`{"text":"a"}`), finish("STOP"))
	at := streams("", answer, answer)
	at.Replies[0] = reply{Status: 400, Kind: "application/json", Body: strings.NewReader(`{"error":{"message":"Thinking is not enabled for this model"}}`)}
	m := model(t, at)
	for range 2 {
		if got := show(m, hello()); got != "text \"a\"\nstop end\n" {
			t.Fatal(got)
		}
	}
	for i, asked := range []bool{true, false, false} {
		if strings.Contains(at.Bodies[i], "thinkingConfig") != asked {
			t.Errorf("request %d: %s", i, at.Bodies[i])
		}
	}
	at = answers(400, `{"error":{"message":"Thinking level is not supported"}}`)
	got := show(model(t, at, func(o *gemini.Options) { o.ThinkingLevel = "low" }), hello())
	if !strings.Contains(got, "Thinking level is not supported") || len(at.URLs) != 1 {
		t.Error("what the person asked for was left out:", got)
	}
}

// An answer in several requests is one.
func TestContinuation(t *testing.T) {
	t.Parallel()
	usage := `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2}`
	on := `{"candidates":[{"finishReason":"CONTINUATION","continuationToken":"dG9rZW4="}],` + usage + `}`
	at := streams(events(parts(`{"text":"a"}`), on), events(parts(`{"text":"b"}`), finish("STOP"), `{`+usage+`}`))
	m := model(t, at)
	want := "text \"a\"\ntext \"b\"\nusage {Input:20 Output:4 CacheRead:0 CacheWrite:0 Cost:0}\nstop end\n"
	if got := show(m, hello()); got != want {
		t.Error(got)
	}
	checkRequest(t, at.Bodies[1])
	if strings.Contains(at.Bodies[0], "continuationToken") || !strings.Contains(at.Bodies[1], `"continuationToken":"dG9rZW4="`) {
		t.Error(at.Bodies)
	}
	at = &transport{}
	for range 40 {
		at.Replies = append(at.Replies, reply{Body: strings.NewReader(events(on))})
	}
	if got := show(model(t, at), hello()); !strings.HasSuffix(got, "stop length\n") || len(at.URLs) != 33 {
		t.Error(got, len(at.URLs))
	}
}

// The server sees the request end when the consumer stops, or its context ends.
func TestRequestEnds(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		ended := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, events(parts(`{"text":"a"}`)))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(ended)
		}))
		m := model(t, nil, func(o *gemini.Options) { o.BaseURL, o.Client = server.URL, server.Client() })
		ctx, cancel := context.WithCancel(t.Context())
		stopIn(ctx, t, m, cancelled, cancel)
		<-ended
		cancel()
		server.Close()
	}
}

// stopIn stops a turn after its first piece, by the end of its context or of the loop.
func stopIn(ctx context.Context, t *testing.T, m *gemini.Model, cancelled bool, cancel func()) {
	t.Helper()
	var last error
	for p, err := range m.Generate(ctx, hello()) {
		if last = err; err != nil {
			continue
		}
		if p.Text != "a" {
			t.Errorf("%+v", p)
		}
		if !cancelled {
			return
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Error("the end of the context is told as", last)
	}
}

// An endless answers one event, and then nothing until the request ends.
type endless struct{ open int }

func (e *endless) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	e.open++
	go func() {
		_, _ = io.WriteString(w, events(parts(`{"text":"a"}`))) // the reader may be gone
		<-req.Context().Done()
		e.open--
		w.CloseWithError(req.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r, Request: req}, nil
}

// No goroutine is left then: synctest.Test waits for all.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			at := &endless{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stopIn(ctx, t, model(t, at), cancelled, cancel)
			synctest.Wait()
			if at.open != 0 {
				t.Error("the request goes on")
			}
		})
	}
}

// A consumer that stops at any piece is not asked again.
func TestStopAnywhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"calls", "signed-text", "safety"} {
		text, err := os.ReadFile("testdata/" + name + ".sse")
		if err != nil {
			t.Fatal(err)
		}
		total := strings.Count(show(model(t, streams(string(text))), hello()), "\n")
		for stop := 1; stop <= total; stop++ {
			at := streams(string(text))
			n := 0
			for _, err := range model(t, at).Generate(t.Context(), hello()) {
				if err != nil {
					t.Error(err)
				}
				if n++; n == stop {
					break
				}
			}
			if n != stop || at.Closed != 1 {
				t.Errorf("%s: %d pieces, closed %d times", name, n, at.Closed)
			}
		}
	}
}

// The key is in a header and in nothing else.
func TestKeyIsNowhere(t *testing.T) {
	t.Parallel()
	at := streams(events(finish("STOP")))
	m := model(t, at)
	show(m, conversation())
	if _, err := gemini.List(t.Context(), &gemini.Options{Key: testKey, BaseURL: "https://models.example", Client: &http.Client{Transport: at}}); err == nil || strings.Contains(err.Error(), testKey) {
		t.Error(err)
	}
	for i := range at.URLs {
		if strings.Contains(at.URLs[i]+at.Bodies[i], testKey) || at.Headers[i].Get(keyHeader) != testKey {
			t.Error(at.URLs[i], at.Bodies[i])
		}
	}
	if text := fmt.Sprintf("%+v", m.Info()); strings.Contains(text, testKey) {
		t.Error(text)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	at := &transport{Replies: []reply{
		{Kind: "application/json", Body: strings.NewReader(`{"models":[
			{"name":"models/gemini-3-pro","displayName":"Gemini 3 Pro","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"]},
			{"name":"models/embedding-001","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"a b&c"}`)},
		{Kind: "application/json", Body: strings.NewReader(`{"models":[{"name":"models/gemini-2.5-flash","inputTokenLimit":-1},{"name":""}],"nextPageToken":"a b&c"}`)},
	}}
	list, err := gemini.List(t.Context(), &gemini.Options{Key: testKey, BaseURL: "https://models.example/v1beta/", Client: &http.Client{Transport: at}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list); got != "[{gemini-2.5-flash  0} {gemini-3-pro Gemini 3 Pro 1048576}]" {
		t.Error(got)
	}
	if got := strings.Join(at.URLs, " "); got != "https://models.example/v1beta/models?pageSize=1000 https://models.example/v1beta/models?pageSize=1000&pageToken=a+b%26c" {
		t.Error(got)
	}
	if _, err := gemini.List(t.Context(), &gemini.Options{Key: "a b"}); err == nil {
		t.Error("a key that is none was taken")
	}
}

// A turn with a real server, if one is set: PARLEY_TEST_GEMINI_URL (default Google's),
// PARLEY_TEST_GEMINI_KEY and PARLEY_TEST_GEMINI_MODEL.
func TestRealServer(t *testing.T) {
	name := os.Getenv("PARLEY_TEST_GEMINI_MODEL")
	if name == "" {
		t.Skip("PARLEY_TEST_GEMINI_MODEL is not set")
	}
	m, err := gemini.New(&gemini.Options{Model: name, Key: os.Getenv("PARLEY_TEST_GEMINI_KEY"), BaseURL: os.Getenv("PARLEY_TEST_GEMINI_URL")})
	if err != nil {
		t.Fatal(err)
	}
	ask := says(mcp.RoleUser, "Call the tool clock__now, then tell me the time it says.")
	r := &host.Request{Messages: []host.Message{ask}, Tools: []host.ToolSpec{{Name: "clock__now", Description: "Tells the time.", InputSchema: mcp.RawValue(`{"type":"object","properties":{}}`)}}}
	said := host.Message{Role: mcp.RoleAssistant}
	results := host.Message{Role: mcp.RoleUser}
	for p, err := range m.Generate(t.Context(), r) {
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Reasoning != nil:
			said.Blocks = append(said.Blocks, host.Block{Reasoning: p.Reasoning})
		case p.Text != "":
			said.Blocks = append(said.Blocks, host.Block{Content: mcp.Text(p.Text)})
		case p.Call != nil:
			said.Blocks = append(said.Blocks, host.Block{Content: p.Call})
			results.Blocks = append(results.Blocks, host.Block{Content: result(p.Call.ID, mcp.Text("17:42"))})
		}
	}
	if len(results.Blocks) == 0 {
		t.Fatal("nothing was called")
	}
	r.Messages = []host.Message{ask, said, results}
	if got := show(m, r); !strings.Contains(got, "42") || strings.Contains(got, "error") {
		t.Error(got)
	}
}

// Long lines are read, up to a limit; thoughts that never end are given up.
func TestLongStreams(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	thought := events(parts(`{"thought":true,"text":"` + strings.Repeat("a", 1<<20) + `"}`))
	stop := finish("STOP")
	for _, test := range []struct{ name, stream, want string }{
		{"a long line", events(parts(`{"text":"`+strings.Repeat("x", 10<<20)+`"}`), stop), `text "` + strings.Repeat("x", 10<<20) + "\"\nstop end\n"},
		{"a line that is too long", "data: " + strings.Repeat("x", 17<<20), "error gemini sends too much at once: an event of the stream is longer than 16 MiB"},
		{"endless thoughts", strings.Repeat(thought, 20) + events(stop), "error gemini sent more than 16 MiB of thoughts"},
	} {
		if got := show(model(t, streams(test.stream)), hello()); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got\n%.500s\nwant\n%.500s", test.name, got, test.want)
		}
	}
}
