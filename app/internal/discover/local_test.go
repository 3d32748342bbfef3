package discover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/discover"
)

// What the programs answer. Written after their own code or documents, with made-up models.
const (
	ollama   = `{"object":"list","data":[{"id":"llama3.2:latest","object":"model","created":1700000000,"owned_by":"library"},{"id":"ada/notes:7b","object":"model","created":1700000001,"owned_by":"ada"}]}`
	noModels = `{"object":"list","data":null}`
	lmStudio = `{"data":[{"id":"qwen3-8b","object":"model","owned_by":"organization_owner"},{"id":"text-embedding-nomic","object":"model","owned_by":"organization_owner"}],"object":"list"}`
	llamaCpp = `{"models":[{"name":"m.gguf","model":"m.gguf","type":"model","details":{"format":"gguf"}}],"object":"list","data":[{"id":"m.gguf","aliases":[],"tags":[],"object":"model","created":1700000000,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_ctx_train":131072}}]}`
	vllm     = `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","created":1700000000,"owned_by":"vllm","root":"Qwen/Qwen3-8B","parent":null,"max_model_len":40960,"permission":[{"id":"modelperm-1","object":"model_permission","allow_view":true,"group":null}]}]}`
)

// find asks local servers as if they were at the usual ports, and returns what was found with
// the kind of the port in the place of its address.
func find(t *testing.T, handlers map[string]http.HandlerFunc) []discover.Local {
	t.Helper()
	kinds := make(map[string]string)
	var ports []discover.Port
	for _, usual := range discover.UsualPorts() {
		h, ok := handlers[usual.Kind]
		if !ok {
			continue
		}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		address := s.Listener.Addr().String()
		ports, kinds[address] = append(ports, discover.Port{Kind: usual.Kind, Address: address}), usual.Kind
	}
	found := discover.Find(t.Context(), &discover.Options{Env: noEnv, Ports: ports, Wait: time.Minute}).Local
	for i := range found {
		if want := "http://" + found[i].Address + "/v1"; found[i].BaseURL != want {
			t.Errorf("the base URL is %s, want %s", found[i].BaseURL, want)
		}
		found[i].Address, found[i].BaseURL = kinds[found[i].Address], ""
	}
	return found
}

func noEnv(string) (string, bool) { return "", false }

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text) // the test sees what is missing
	}
}

// Each program is told from the others.
func TestLocal(t *testing.T) {
	t.Parallel()
	got := find(t, map[string]http.HandlerFunc{
		discover.KindOllama: answer(ollama), discover.KindLMStudio: answer(lmStudio),
		discover.KindLlamaCpp: answer(llamaCpp), discover.KindVLLM: answer(vllm),
	})
	want := []discover.Local{
		{Kind: discover.KindOllama, Address: discover.KindOllama, Models: []string{"llama3.2:latest", "ada/notes:7b"}},
		{Kind: discover.KindLMStudio, Address: discover.KindLMStudio, Models: []string{"qwen3-8b", "text-embedding-nomic"}},
		{Kind: discover.KindLlamaCpp, Address: discover.KindLlamaCpp, Models: []string{"m.gguf"}},
		{Kind: discover.KindVLLM, Address: discover.KindVLLM, Models: []string{"Qwen/Qwen3-8B"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v\nwant  %+v", got, want)
	}
}

// A program that does not listen at its usual port, and one that has no model yet.
func TestLocalElsewhere(t *testing.T) {
	t.Parallel()
	got := find(t, map[string]http.HandlerFunc{
		discover.KindOllama: answer(noModels), discover.KindLMStudio: answer(vllm), discover.KindLlamaCpp: answer(ollama), discover.KindVLLM: answer(llamaCpp),
	})
	var kinds []string
	for _, l := range got {
		kinds = append(kinds, fmt.Sprintf("%s at the port of %s, %d models", l.Kind, l.Address, len(l.Models)))
	}
	want := []string{
		"Ollama at the port of Ollama, 0 models", "vLLM at the port of LM Studio, 1 models",
		"an OpenAI-compatible server at the port of llama.cpp, 2 models", "llama.cpp at the port of vLLM, 1 models",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("found %q, want %q", kinds, want)
	}
}

// What is no list of models is no model, whatever it is.
func TestOtherPrograms(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere.Store(true)
		answer(ollama)(w, r)
	}))
	t.Cleanup(target.Close)
	for name, h := range map[string]http.HandlerFunc{
		"HTML":           answer("<!doctype html><title>My app</title>"),
		"empty":          answer(""),
		"another object": answer(`{"object":"list"`),
		"no list":        answer(`{"data":[{"id":"x","object":"model"}]}`),
		"other things":   answer(`{"object":"list","data":[{"id":"file-1","object":"file"}]}`),
		"no names":       answer(`{"object":"list","data":[{"object":"model"}]}`),
		"a number":       answer(`{"object":"list","data":[{"id":1,"object":"model"}]}`),
		"two members":    answer(`{"object":"list","data":[],"data":[]}`),
		"an array":       answer(`[` + ollama + `]`),
		"10 MB":          answer(strings.Repeat(" ", 10<<20) + ollama),
		"10 MB of names": answer(`{"object":"list","data":[` + strings.Repeat(`{"id":"x","object":"model"},`, 400_000) + `{"id":"x","object":"model"}]}`),
		"a long header": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 64<<10))
			answer(ollama)(w, r)
		},
		"compressed": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer("\x1f\x8b\x08")(w, r)
		},
		"not allowed": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"loading":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL+"/v1/models", http.StatusTemporaryRedirect)
		},
		"cut off": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			answer(ollama)(w, r)
		},
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n\x1b[31m") // the test sees what is missing
			_ = c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := find(t, map[string]http.HandlerFunc{discover.KindOllama: h}); len(got) > 0 {
				t.Errorf("found %+v", got)
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.Load() {
			t.Error("a redirect was followed")
		}
	})
}

// Names that could not be shown, written and sent back as they are, are left out.
func TestNamesOfModels(t *testing.T) {
	t.Parallel()
	names := []string{`a\u001b[31mb`, `line\nline`, `\u202Etxet`, `zero\u200bwidth`, ` blank`, strings.Repeat("x", 5000), `good:7b`, `größe`}
	var data []string
	for _, n := range names {
		data = append(data, `{"id":"`+n+`","object":"model","owned_by":"library"}`)
	}
	got := find(t, map[string]http.HandlerFunc{discover.KindOllama: answer(`{"object":"list","data":[` + strings.Join(data, ",") + `]}`)})
	if len(got) != 1 || !slices.Equal(got[0].Models, []string{"good:7b", "größe"}) {
		t.Errorf("found %+q", got)
	}
	many := strings.Repeat(`{"id":"x","object":"model"},`, 1000)
	got = find(t, map[string]http.HandlerFunc{discover.KindOllama: answer(`{"object":"list","data":[` + strings.TrimSuffix(many, ",") + `]}`)})
	if len(got) != 1 || len(got[0].Models) != 200 {
		t.Errorf("of 1,000 names: %d found", len(got[0].Models))
	}
}

// Ports that never answer hold nothing up: neither one that does not connect, nor one that
// connects and is silent, nor one that sends a byte now and then. No goroutine is left, which
// synctest would report.
func TestSilentPorts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		got := discover.Find(t.Context(), &discover.Options{Env: noEnv, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			switch _, port, err := net.SplitHostPort(address); {
			case err != nil:
				return nil, err
			case port == "11434": // its answer is there at once
				return served(ollama), nil
			case port == "1234": // nothing takes the connection
				<-ctx.Done()
				return nil, ctx.Err()
			case port == "8080": // reads, and says nothing
				near, far := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, far) }() // ends with the connection
				return near, nil
			default: // a byte in 50 ms
				near, far := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, far) }()
				go drip(far)
				return near, nil
			}
		}})
		if len(got.Local) != 1 || got.Local[0].Kind != discover.KindOllama {
			t.Errorf("found %+v, want Ollama", got.Local)
		}
		if took := time.Since(begun); took > discover.DefaultWait {
			t.Errorf("it took %v, more than %v", took, discover.DefaultWait)
		}
		if discover.DefaultWait > 300*time.Millisecond {
			t.Errorf("the ports have %v", discover.DefaultWait)
		}
		time.Sleep(time.Second) // of the bubble's clock: the slow server sees that its client has left
	})
}

// served is a connection to a server with one answer.
func served(text string) net.Conn {
	near, far := net.Pipe()
	go func() {
		buf := make([]byte, 4096)
		if _, err := far.Read(buf); err != nil {
			return
		}
		_, _ = fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
		_ = far.Close()
	}()
	return near
}

// drip sends the beginning of an answer slowly, until the connection ends.
func drip(c net.Conn) {
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"); err != nil {
		return
	}
	for {
		if _, err := c.Write([]byte(" ")); err != nil {
			return
		}
		time.Sleep(50 * time.Millisecond) // of the bubble's clock
	}
}

// A person who gives up does not wait for the ports.
func TestCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		got := discover.Find(ctx, &discover.Options{Env: noEnv, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, errors.New("given up")
		}})
		if took := time.Since(begun); len(got.Local) > 0 || took > 0 {
			t.Errorf("found %+v after %v", got.Local, took)
		}
	})
}

// The ports are those of this machine, and nothing goes through a proxy.
func TestUsualPorts(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.example:1")
	t.Setenv("http_proxy", "http://proxy.example:1")
	var asked atomic.Int32
	discover.Find(t.Context(), &discover.Options{Env: noEnv, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		if !slices.Contains([]string{"127.0.0.1:11434", "127.0.0.1:1234", "127.0.0.1:8080", "127.0.0.1:8000"}, address) {
			t.Errorf("asked %s", address)
		}
		asked.Add(1)
		return nil, errors.New("refused")
	}})
	if asked.Load() != 4 {
		t.Errorf("asked %d ports", asked.Load())
	}
}
