package gemini_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A whole conversation: the host calls the tools of two servers, and what the model said
// goes back as it came, with the results.
func TestSession(t *testing.T) {
	t.Parallel()
	type place struct {
		City string `json:"city"`
	}
	weather := server.New("weather", "1.0.0", nil)
	weather.Add(server.Tool("get", "Reads the weather.", func(_ context.Context, in place) (string, error) { return "sunny in " + in.City, nil }))
	zip := server.New("zip", "1.0.0", nil)
	zip.Add(server.Tool("list", "Lists archives.", func(context.Context, mcp.None) (string, error) { return "none", nil }))
	h := host.New(&host.Options{Attended: true})
	defer func() { _ = h.Close() }()
	for name, s := range map[string]*server.Server{"weather": weather, "zip": zip} {
		if err := h.Add(host.Server{Name: name, Dialer: mem.New(s, nil)}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("testdata/text.sse")
	if err != nil {
		t.Fatal(err)
	}
	const first = `{"text":"Ich frage. "},{"functionCall":{"id":"k9x1","name":"weather__get","args":{"city":"München"}},"thoughtSignature":"RW5jcnlwdGVkK2EvYg=="},` +
		`{"functionCall":{"id":"k9x2","name":"zip__list","args":{}}}`
	at := streams(events(parts(`{"text":"Hm.","thought":true},`+first), finish("STOP")), string(text))
	s, err := h.NewSession(t.Context(), model(t, at), nil)
	if err != nil {
		t.Fatal(err)
	}
	go approve(t.Context(), t, s)
	answer, end, err := s.Ask(t.Context(), "Wie ist das Wetter?")
	if err != nil || !strings.HasPrefix(answer, "Grüße aus 東京") || end.Calls != 2 {
		t.Fatalf("%q, %+v, %v", answer, end, err)
	}
	for _, body := range at.Bodies {
		checkRequest(t, body)
	}
	var sent struct {
		Contents []struct {
			Parts json.RawMessage `json:"parts"`
		} `json:"contents"`
	}
	if err := json.Unmarshal([]byte(at.Bodies[1]), &sent); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		1: `[{"text":"Hm.","thought":true},` + first + `]`,
		2: `[{"functionResponse":{"id":"k9x1","name":"weather__get","response":{"output":"sunny in München"}}},` +
			`{"functionResponse":{"id":"k9x2","name":"zip__list","response":{"output":"none"}}}]`,
	} {
		if got := string(sent.Contents[i].Parts); want != "" && got != want {
			t.Errorf("turn %d is\n%s\nwant\n%s", i, got, want)
		}
	}
}

// approve answers yes to all questions.
func approve(ctx context.Context, t *testing.T, s *host.Session) {
	for r, err := range s.Watch(ctx, 0) {
		if err != nil {
			return // the end of the test
		}
		if q, ok := r.Body.(*host.QuestionRecord); ok {
			if err := s.Answer(ctx, q.ID, host.Answer{Action: host.Approve}); err != nil {
				t.Error(err)
			}
		}
	}
}
