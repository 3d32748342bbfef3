package cli_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
)

// testKey is the key that the provider of tests wants. No output of the program has it.
const testKey = "sk-test-0123456789abcdef"

// fakeModel is a provider that speaks OpenAI's format. What it does depends on the model that
// is asked for: "adder" calls a tool and then says what it was told, "quoter" repeats its
// key in an error, "free" needs no key.
func fakeModel() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if !hasTestKey(w, r) {
			return
		}
		_, _ = fmt.Fprint(w, `{"data":[{"id":"adder","context_length":8192},{"id":"odd\u001b[31m"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", completions)
	done := make(chan os.Signal, 1)
	signal.Notify(done, os.Interrupt)
	s := &http.Server{Handler: mux}
	go func() {
		<-done
		_ = s.Close()
	}()
	fmt.Fprintf(os.Stderr, "the model is at http://%s/v1;\n", l.Addr())
	_ = s.Serve(l) // until it is closed
}

func hasTestKey(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == "Bearer "+testKey {
		return true
	}
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return false
}

func completions(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    string
		Messages []struct {
			Role    string
			Content any
		}
		Tools []any
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch {
	case req.Model == "free" && r.Header.Get("Authorization") != "":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"error":{"message":"a key came"}}`)
		return
	case req.Model == "free":
		say(w, `{"content":"without a key"}`, "stop")
		return
	case !hasTestKey(w, r):
		return
	case req.Model == "quoter":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"bad, with %s"}}`, testKey)
		return
	case req.Model != "adder":
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"error":{"message":"no such model"}}`)
		return
	}
	if last := req.Messages[len(req.Messages)-1]; last.Role == "tool" {
		text, _ := json.Marshal(fmt.Sprintf("the tool says %v", last.Content))
		say(w, fmt.Sprintf(`{"content":%s}`, text), "stop")
		return
	}
	say(w, `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"everything__add","arguments":"{\"a\":2,\"b\":3}"}}]}`, "tool_calls")
}

// say answers with a stream of one piece.
func say(w http.ResponseWriter, delta, reason string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\n", delta, reason)
	_, _ = fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")
}
