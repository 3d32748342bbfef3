package openai_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A conversation of a host: two calls at once, their results, the answer, and a second
// message of the person. The requests are valid, and hold what came.
func TestHost(t *testing.T) {
	t.Parallel()
	type place struct {
		City string `json:"city"`
	}
	weather := server.New("weather", "1.0.0", nil)
	weather.Add(server.Tool("get", "Tells the weather.", func(_ context.Context, in place) (string, error) { return "hail in " + in.City, nil }))
	h := host.New(&host.Options{Attended: true})
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Add(host.Server{Name: "weather", Dialer: mem.New(weather, nil)}); err != nil {
		t.Fatal(err)
	}
	at := streams(
		events(delta(`"reasoning_content":"Two."`), delta(`"content":"I look."`),
			delta(`"tool_calls":[{"index":0,"id":"same","function":{"name":"weather__get","arguments":"{\"city\":\"Bern\"}"}},{"index":1,"id":"same","function":{"name":"weather__get","arguments":"{\"city\":\"Zürich\"}"}},{"index":2,"function":{"name":"nothing","arguments":"{"}}]`),
			finish("tool_calls"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":0.25}}`, done),
		events(delta(`"content":"Hail, both."`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"cost":0.5}}`, done),
		events(delta(`"content":"You are welcome."`), finish("stop"), done),
	)
	s, err := h.NewSession(t.Context(), model(t, at), nil)
	if err != nil {
		t.Fatal(err)
	}
	var watcher sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer watcher.Wait()
	defer cancel()
	var usage []host.Usage
	watcher.Go(func() {
		for r, err := range s.Watch(ctx, 0) {
			if err != nil {
				return
			}
			switch b := r.Body.(type) {
			case *host.QuestionRecord:
				if err := s.Answer(ctx, b.ID, host.Answer{Action: host.Approve}); err != nil {
					t.Error(err)
				}
			case *host.TurnEndRecord:
				if usage = append(usage, b.Usage); len(usage) == 3 {
					return
				}
			}
		}
	})
	for _, c := range [][2]string{{"What is the weather?", "Hail, both."}, {"Thanks.", "You are welcome."}} {
		answer, end, err := s.Ask(t.Context(), c[0])
		if err != nil || answer != c[1] || end.Outcome != host.OutcomeDone {
			t.Fatalf("%q, %+v, %v", answer, end, err)
		}
	}
	watcher.Wait()
	if len(usage) != 3 || usage[0].Cost != 0.25 || usage[1].Input != 20 {
		t.Errorf("%+v", usage)
	}
	if len(at.Bodies) != 3 {
		t.Fatalf("%d requests", len(at.Bodies))
	}
	for _, body := range at.Bodies {
		valid(t, body)
	}
	var last struct {
		Messages []struct {
			Role             string           `json:"role"`
			Content          string           `json:"content"`
			ToolCallID       string           `json:"tool_call_id"`
			ReasoningContent string           `json:"reasoning_content"`
			ToolCalls        []map[string]any `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal([]byte(at.Bodies[2]), &last); err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range last.Messages {
		roles = append(roles, m.Role)
	}
	if got := strings.Join(roles, " "); got != "system user assistant tool tool tool assistant user" {
		t.Fatal(got)
	}
	asked := last.Messages[2]
	if asked.Content != "I look." || asked.ReasoningContent != "Two." || len(asked.ToolCalls) != 3 {
		t.Errorf("%+v", asked)
	}
	for i, want := range []string{"hail in Bern", "hail in Zürich", "nothing"} {
		m := last.Messages[3+i]
		if !strings.Contains(m.Content, want) || m.ToolCallID != asked.ToolCalls[i]["id"] || m.ToolCallID == "" {
			t.Errorf("%+v, want %s of %v", m, want, asked.ToolCalls[i])
		}
	}
}
