package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/model/openai"
)

// The window of a model, by what each server tells of it, and where it was asked.
func TestWindow(t *testing.T) {
	t.Parallel()
	const (
		own    = "http://127.0.0.1:1/v1"
		ollama = `{"object":"list","data":[{"id":"m:latest","object":"model","created":1,"owned_by":"library"}]}`
		studio = `{"data":[{"id":"m","object":"model","owned_by":"organization_owner","max_context_length":131072}]}`
		llama  = `{"object":"list","data":[{"id":"m","object":"model","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`
	)
	for _, c := range []struct {
		name, address, list, more string
		want                      int
		asked                     string // beside the list
	}{
		{"OpenAI", "", `{"data":[{"id":"m","object":"model","owned_by":"system"}]}`, "", 0, ""},
		{"OpenRouter", "https://openrouter.ai/api/v1", `{"data":[{"id":"other","context_length":4096},{"id":"m","context_length":200000}]}`, "", 200000, ""},
		{"Groq", own, `{"data":[{"id":"m","owned_by":"Meta","context_window":131072}]}`, "", 131072, ""},
		{"Mistral", own, `{"data":[{"id":"m","owned_by":"mistralai","max_context_length":32768}]}`, "", 32768, ""},
		{"vLLM", own, `{"data":[{"id":"m","owned_by":"vllm","max_model_len":"40960"}]}`, "", 40960, ""},
		{"llama.cpp", own, llama, `{"default_generation_settings":{"n_ctx":8192,"params":{}},"total_slots":1}`, 8192, "http://127.0.0.1:1/props?model=m"},
		{"llama.cpp that tells it", own, strings.ReplaceAll(llama, `"meta":{`, `"meta":{"n_ctx":16384,`), "", 16384, ""},
		{"LM Studio", own, studio, `{"data":[{"id":"n","loaded_context_length":9000},{"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":4096}]}`, 4096, "http://127.0.0.1:1/api/v0/models"},
		{"LM Studio, not loaded", own, studio, `{"data":[{"id":"m","state":"not-loaded","max_context_length":131072}]}`, 0, "http://127.0.0.1:1/api/v0/models"},
		{"Ollama", own, ollama, `{"models":[{"name":"m:latest","model":"m:latest","size_vram":1,"context_length":4096}]}`, 4096, "http://127.0.0.1:1/api/ps"},
		{"Ollama, not loaded", own, ollama, `{"models":[]}`, 0, "http://127.0.0.1:1/api/ps"},
		{"a model that is not there", own, `{"data":[{"id":"m2","context_length":8192}]}`, "", 0, ""},
		{"nothing", own, `{}`, "", 0, ""},
		{"too small", own, `{"data":[{"id":"m","context_length":12}]}`, "", 0, ""},
		{"too large", own, `{"data":[{"id":"m","context_length":99999999999}]}`, "", 0, ""},
		{"no number", own, `{"data":[{"id":"m","context_length":{"is":1},"max_model_len":-4096}]}`, `{"models":7}`, 0, "http://127.0.0.1:1/api/ps"},
	} {
		at := &transport{Replies: []reply{{Kind: "application/json", Body: strings.NewReader(c.list)}}}
		if c.asked != "" {
			at.Replies = append(at.Replies, reply{Kind: "application/json", Body: strings.NewReader(c.more)})
		}
		got, err := openai.Window(t.Context(), &openai.Options{Model: "m", BaseURL: c.address, Client: client(at), Key: testKey})
		asked := strings.Join(at.URLs[1:], " ")
		if got != c.want || asked != c.asked || (err != nil) != strings.HasSuffix(c.more, ":7}") {
			t.Errorf("%s: %d, %v, asked %s", c.name, got, err, asked)
		}
		if strings.Contains(fmt.Sprint(at.URLs, at.Bodies, err), testKey) {
			t.Errorf("%s: the key is in an address or an error", c.name)
		}
	}
}

// A server that is down is asked once.
func TestWindowOfNobody(t *testing.T) {
	t.Parallel()
	for _, c := range []reply{
		{Status: 503, Body: strings.NewReader("")},
		{Kind: "text/html", Body: strings.NewReader("<!doctype html>")},
	} {
		at := &transport{Replies: []reply{c}}
		if got, err := openai.Window(t.Context(), &openai.Options{Model: "m", Client: client(at)}); got != 0 || err == nil || len(at.URLs) != 1 {
			t.Errorf("%d, %v, %d requests", got, err, len(at.URLs))
		}
	}
	if _, err := openai.Window(t.Context(), &openai.Options{Model: "m", BaseURL: "x"}); err == nil {
		t.Error("an address that is none")
	}
}
