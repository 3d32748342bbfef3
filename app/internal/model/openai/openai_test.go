package openai_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/openai"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	schemas "github.com/parley-mcp/parley/schema/provider"
)

// What New refuses, and says.
func TestNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    openai.Options
		want string
	}{
		{"no model", openai.Options{Model: " "}, "no model is named; a name looks like gpt-5.1, or llama3.2 for a server on this machine"},
		{"no address", openai.Options{Model: "m", BaseURL: "localhost"}, `openai: the base URL "localhost" is none; it looks like http://127.0.0.1:11434/v1`},
		{"in the clear", openai.Options{Model: "m", BaseURL: "http://models.example/v1", Key: testKey}, `openai: the base URL "http://models.example/v1" is http, and not on this machine: the key would be sent in the clear; use https`},
		{"two lines", openai.Options{Model: "m", Key: testKey + "\n" + testKey}, "openai: the key has a blank, a line break or another character in it that no key has; was more than the key copied?"},
	} {
		m, err := openai.New(&c.o)
		if m != nil || err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Where requests go, and what Info says.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o         openai.Options
		url, name string
	}{
		{openai.Options{}, "https://api.openai.com/v1/chat/completions", "openai"},
		{openai.Options{BaseURL: "http://localhost:11434", Provider: "ollama"}, "http://localhost:11434/v1/chat/completions", "ollama"},
		{openai.Options{BaseURL: " https://openrouter.ai/api/v1/ ", Key: " " + testKey + "\n"}, "https://openrouter.ai/api/v1/chat/completions", "openai"},
		{openai.Options{BaseURL: "https://models.example/x/chat/completions"}, "https://models.example/x/chat/completions", "openai"},
	} {
		at := streams(events(finish("stop")))
		c.o.Model, c.o.Client = "m", client(at)
		c.o.Info = host.ModelInfo{Window: 7}
		m, err := openai.New(&c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(m, hello()); got != "stop end\n" || at.URLs[0] != c.url {
			t.Errorf("%s: %s", at.URLs[0], got)
		}
		key := ""
		if c.o.Key != "" {
			key = "Bearer " + testKey
		}
		if at.Headers[0].Get("Authorization") != key {
			t.Errorf("the key is sent as %q", at.Headers[0].Get("Authorization"))
		}
		want := host.ModelInfo{Name: "m", Provider: c.name, Window: 7, Schemas: schemas.OpenAI}
		if got := m.Info(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
	}
}

// Answers that are no stream. The waits between the tries are those of the provider.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const kind = "application/json"
	for _, c := range []struct {
		name  string
		reply reply
		tries int
		want  string
	}{
		{"429", reply{Status: 429, Kind: kind, Header: map[string]string{"Retry-After": "20"}, Body: strings.NewReader(`{"error":{"message":"Rate limit reached for m","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)}, 3, "openai has had too many requests: Rate limit reached for m; try again in 20s"},
		{"429, long", reply{Status: 429, Kind: kind, Header: map[string]string{"Retry-After": "3600"}, Body: strings.NewReader(`{}`)}, 1, "openai has had too many requests; try again in 1h0m0s"},
		{"429, paid up", reply{Status: 429, Kind: kind, Header: map[string]string{"X-Should-Retry": "false"}, Body: strings.NewReader(`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`)}, 1, "openai has had too many requests: You exceeded your current quota; try again later"},
		{"500", reply{Status: 500, Kind: kind, Body: strings.NewReader(`{"error":{"message":"The server had an error","type":"server_error"}}`)}, 3, "openai failed (status 500): The server had an error; try again later"},
		{"529", reply{Status: 529, Kind: kind, Body: strings.NewReader(`{}`)}, 3, "openai is overloaded; try again later"},
		{"401", reply{Status: 401, Kind: kind, Body: strings.NewReader(`{"error":{"message":"Incorrect API key provided: ` + testKey + `","code":"invalid_api_key"}}`)}, 1, "openai refuses the key: Incorrect API key provided: [key]; 'parley model key set openai --base-url https://models.example' sets another one"},
		{"404", reply{Status: 404, Kind: kind, Body: strings.NewReader(`{"error":{"message":"model 'm' not found","type":"not_found_error"}}`)}, 1, "openai does not know the model or the address https://models.example/v1: model 'm' not found; 'parley model list openai --base-url https://models.example/v1' lists what there is"},
		{"HTML", reply{Kind: "text/html", Body: strings.NewReader("<!doctype html><p>Hello")}, 1, "openai answers with text/html where a stream of events was asked for; is the base URL right?"},
		{"an error with status 200", reply{Kind: kind, Body: strings.NewReader(`{"error":{"code":502,"message":"no provider"}}`)}, 1, "openai answers with an error: no provider"},
		{"a redirect", reply{Status: 302, Kind: "text/plain", Header: map[string]string{"Location": "https://elsewhere.example/"}, Body: strings.NewReader("")}, 1, "openai answers with a redirect (status 302), which is not followed; is the base URL right?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				text, err := io.ReadAll(c.reply.Body)
				if err != nil {
					t.Fatal(err)
				}
				at := &transport{}
				for range c.tries {
					again := c.reply
					again.Body = bytes.NewReader(text)
					at.Replies = append(at.Replies, again)
				}
				waits := 0
				m := model(t, at, func(o *openai.Options) {
					o.Waiting = func(error, time.Duration) { waits++ }
				})
				if got := show(m, hello()); got != "error "+c.want+"\n" {
					t.Errorf("got\n%swant\n%s", got, c.want)
				}
				if len(at.Bodies) != c.tries || at.Closed != c.tries || waits != c.tries-1 {
					t.Errorf("%d tries, %d closed, %d waits", len(at.Bodies), at.Closed, waits)
				}
			})
		})
	}
}

// The key is in a header, and in nothing else.
func TestKey(t *testing.T) {
	t.Parallel()
	said := `{"error":{"message":"` + testKey + `","type":"` + testKey + `","code":"` + testKey + `"},"message":"` + testKey + `"}`
	for _, status := range []int{200, 301, 400, 401, 402, 403, 404, 413, 422, 501} {
		for _, kind := range []string{"application/json", "text/plain", "text/html", "text/event-stream", testKey} {
			for _, text := range []string{said, testKey, "<html>" + testKey, events(said), events(testKey), events(finish(testKey)), events(finish("error" + testKey))} {
				at := &transport{Replies: []reply{{Status: status, Kind: kind, Header: map[string]string{"Retry-After": testKey}, Body: strings.NewReader(text)}}}
				got := show(model(t, at), hello())
				fault := new(provider.Error)
				for _, err := range model(t, &transport{Replies: []reply{{Status: status, Kind: kind, Body: strings.NewReader(text)}}}).Generate(t.Context(), hello()) {
					if errors.As(err, &fault) {
						got += fault.Type + fault.Text + fault.Advice
					}
				}
				if strings.Contains(got, testKey) {
					t.Errorf("status %d, %s: %s", status, kind, got)
				}
				for i := range at.Bodies {
					if strings.Contains(at.Bodies[i]+at.URLs[i], testKey) || at.Headers[i].Get("Authorization") != "Bearer "+testKey {
						t.Errorf("%s %s %s", at.URLs[i], at.Bodies[i], at.Headers[i].Get("Authorization"))
					}
				}
			}
		}
	}
}

// Nothing is left when the consumer stops or the context ends: the server sees the end.
func TestNothingLeft(t *testing.T) {
	mcptest.NoLeaks(t)
	const calls = 20
	ended := make(chan struct{}, calls)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(events(delta(`"content":"Hi"`))))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	defer s.Close()
	cause := errors.New("enough")
	for i := range calls {
		connection := &http.Transport{}
		m := model(t, connection, func(o *openai.Options) { o.BaseURL = s.URL })
		ctx, cancel := context.WithCancelCause(t.Context())
		pieces := 0
		for p, err := range m.Generate(ctx, hello()) {
			pieces++
			if i%2 == 0 {
				break
			}
			cancel(cause)
			if pieces == 2 && !errors.Is(err, cause) || pieces == 1 && p.Text != "Hi" {
				t.Errorf("piece %d: %+v, %v", pieces, p, err)
			}
		}
		cancel(nil)
		if want := 1 + i%2; pieces != want {
			t.Errorf("%d pieces, want %d", pieces, want)
		}
		<-ended
		connection.CloseIdleConnections()
	}
}

// A consumer may stop at any piece; it gets no other.
func TestStopAnywhere(t *testing.T) {
	t.Parallel()
	stream, err := os.ReadFile("testdata/openrouter-reasoning.sse")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Count(show(model(t, streams(string(stream))), hello()), "\n")
	for stop := 1; stop <= all; stop++ {
		at := streams(string(stream))
		n := 0
		for _, err := range model(t, at).Generate(t.Context(), hello()) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == stop {
				break
			}
		}
		if at.Closed != 1 {
			t.Errorf("stopped at %d: the body was closed %d times", stop, at.Closed)
		}
	}
}

// The models that servers list.
func TestList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, kind, body, want string }{
		{"OpenAI", "application/json", `{"object":"list","data":[{"id":"gpt-5.1","object":"model","created":1,"owned_by":"system"},{"id":"gpt-4.1"},{"id":""}]}`, "gpt-4.1||0 gpt-5.1||0"},
		{"OpenRouter", "application/json", `{"data":[{"id":"a/b","name":"A: B","context_length":200000}]}`, "a/b|A: B|200000"},
		{"vLLM", "application/json", `{"data":[{"id":"q","max_model_len":32768}]}`, "q||32768"},
		{"llama.cpp", "application/json", `{"data":[{"id":"q","meta":{"n_ctx_train":4096}},{"id":"r","meta":null,"context_length":-1}]}`, "q||4096 r||0"},
		{"Ollama without models", "application/json", `{"object":"list","data":null}`, ""},
		{"a page", "text/html", `<!doctype html>`, "openai answers with a page (HTML); is the base URL right?"},
	} {
		at := &transport{Replies: []reply{{Kind: c.kind, Body: strings.NewReader(c.body)}}}
		list, err := openai.List(t.Context(), &openai.Options{BaseURL: "http://127.0.0.1:1", Client: client(at), Key: testKey})
		got := joined(list)
		if err != nil {
			got = err.Error()
		}
		if got != c.want || at.URLs[0] != "http://127.0.0.1:1/v1/models" || at.Headers[0].Get("Authorization") != "Bearer "+testKey {
			t.Errorf("%s: %s from %s", c.name, got, at.URLs[0])
		}
	}
	if _, err := openai.List(t.Context(), &openai.Options{BaseURL: "x"}); err == nil {
		t.Error("an address that is none")
	}
}

// A real server, if one is configured: see the names of the variables.
func TestRealServer(t *testing.T) {
	address, name := os.Getenv("PARLEY_TEST_OPENAI_URL"), os.Getenv("PARLEY_TEST_OPENAI_MODEL")
	if name == "" {
		t.Skip("PARLEY_TEST_OPENAI_MODEL names no model")
	}
	m, err := openai.New(&openai.Options{Model: name, BaseURL: address, Key: os.Getenv("PARLEY_TEST_OPENAI_KEY")})
	if err != nil {
		t.Fatal(err)
	}
	r := &host.Request{
		System:   "Use the tool for every question about the weather.",
		Messages: []host.Message{says(user, "What is the weather in Bern?")},
		Tools:    []host.ToolSpec{{Name: "get_weather", Description: "Tells the weather of a city.", InputSchema: mcp.RawValue(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}},
	}
	var called bool
	for range 3 {
		answer, results := host.Message{Role: assistant}, host.Message{Role: user}
		var text strings.Builder
		for p, err := range m.Generate(t.Context(), r) {
			switch {
			case err != nil:
				t.Fatal(err)
			case p.Reasoning != nil:
				answer.Blocks = append(answer.Blocks, host.Block{Reasoning: p.Reasoning})
			case p.Call != nil:
				called = true
				answer.Blocks = append(answer.Blocks, block(p.Call))
				results.Blocks = append(results.Blocks, result(p.Call.ID, mcp.Text("Hail of 3 cm.")))
			}
			text.WriteString(p.Text)
		}
		if len(results.Blocks) == 0 {
			if !called || !strings.Contains(strings.ToLower(text.String()), "hail") {
				t.Errorf("called: %v; the answer is %q", called, text.String())
			}
			return
		}
		if text.Len() > 0 {
			answer.Blocks = append(answer.Blocks, block(mcp.Text(text.String())))
		}
		r.Messages = append(r.Messages, answer, results)
	}
	t.Error("the model calls the tool again and again")
}
