package cassette_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/cassette"
)

// A site records what goes through a handler.
type site struct {
	t        *testing.T
	file     bytes.Buffer
	recorder *cassette.Recorder
	handler  http.Handler
}

func newSite(t *testing.T, next http.HandlerFunc) *site {
	t.Helper()
	s := &site{t: t}
	var err error
	if s.recorder, err = cassette.Record(&s.file, cassette.Header{}, mask.New(&mask.Options{})); err != nil {
		t.Fatal(err)
	}
	s.handler = s.recorder.HTTP(next)
	return s
}

// send sends a request, and returns the status and body of the response.
func (s *site) send(method, target, session, body string) (status int, answer string) {
	s.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// frames are what was recorded: link, sender and frame.
func (s *site) frames() []string {
	s.t.Helper()
	if _, err := s.recorder.Close(); err != nil {
		s.t.Fatal(err)
	}
	var list []string
	for i, line := range strings.Split(strings.TrimSpace(s.file.String()), "\n") {
		var f cassette.Frame
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			s.t.Fatal(err)
		}
		if i > 0 && !f.End {
			list = append(list, string(rune('0'+f.Link))+" "+f.From+" "+string(f.Message)+f.Text)
		}
	}
	return list
}

// Sessions are told apart by their ids, and requests without one by theirs.
func TestHTTPLinks(t *testing.T) {
	t.Parallel()
	var s *site
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(string(body), "initialize"):
			w.Header().Set("Mcp-Session-Id", "of "+r.URL.Query().Get("n"))
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		case strings.Contains(string(body), "outer"): // another request with its id comes meanwhile
			s.send(http.MethodPost, "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"inner"}`)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"outer"}`)
		case len(body) > 0:
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"other"}`)
		}
	})
	for _, n := range []string{"a", "b"} {
		s.send(http.MethodPost, "/mcp?n="+n, "", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	}
	s.send(http.MethodPost, "/mcp", "of b", `{"jsonrpc":"2.0","id":1,"method":"x"}`)
	s.send(http.MethodPost, "/mcp", "of a", `{"jsonrpc":"2.0","id":1,"method":"y"}`)
	s.send(http.MethodPost, "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"outer"}`)
	s.send(http.MethodPost, "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"after"}`)
	s.send(http.MethodDelete, "/mcp", "of a", "")
	want := []string{
		`0 client {"jsonrpc":"2.0","id":1,"method":"initialize"}`, `0 server {"jsonrpc":"2.0","id":1,"result":{}}`,
		`2 client {"jsonrpc":"2.0","id":1,"method":"initialize"}`, `2 server {"jsonrpc":"2.0","id":1,"result":{}}`,
		`2 client {"jsonrpc":"2.0","id":1,"method":"x"}`, `2 server {"jsonrpc":"2.0","id":1,"result":"other"}`,
		`0 client {"jsonrpc":"2.0","id":1,"method":"y"}`, `0 server {"jsonrpc":"2.0","id":1,"result":"other"}`,
		`3 client {"jsonrpc":"2.0","id":1,"method":"outer"}`,
		`4 client {"jsonrpc":"2.0","id":1,"method":"inner"}`, `4 server {"jsonrpc":"2.0","id":1,"result":"other"}`,
		`3 server {"jsonrpc":"2.0","id":1,"result":"outer"}`,
		`3 client {"jsonrpc":"2.0","id":1,"method":"after"}`, `3 server {"jsonrpc":"2.0","id":1,"result":"other"}`,
	}
	if diff := cmp.Diff(want, s.frames()); diff != "" {
		t.Error(diff)
	}
}

// Events are recorded one by one, however they are cut into writes, and go through as they are.
func TestHTTPEvents(t *testing.T) {
	t.Parallel()
	const stream = "event: endpoint\ndata: /messages?session=7\n\n" +
		": comment\n\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n" +
		"data:{\"b\":2}\r\revent: message\ndata: no JSON\n\ndata: {\"cut\":"
	for size := 1; size <= len(stream); size++ {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			for rest := stream; rest != ""; {
				n, err := io.WriteString(w, rest[:min(size, len(rest))])
				if err != nil {
					t.Error(err)
				}
				rest = rest[n:]
				http.NewResponseController(w).Flush() //nolint:errcheck // a recorder can
			}
		})
		if _, body := s.send(http.MethodGet, "/sse", "", ""); body != stream {
			t.Fatalf("%d bytes at once: %q", size, body)
		}
		s.send(http.MethodPost, "/messages?session=7", "", `{"jsonrpc":"2.0","id":1,"method":"x"}`)
		s.send(http.MethodPost, "/messages?session=8", "", `{"jsonrpc":"2.0","id":1,"method":"y"}`)
		want := []string{
			`0 server {"a":1}`, `0 server {"b":2}`, `0 server no JSON`,
			`0 client {"jsonrpc":"2.0","id":1,"method":"x"}`, `2 client {"jsonrpc":"2.0","id":1,"method":"y"}`,
		}
		if diff := cmp.Diff(want, s.frames()); diff != "" {
			t.Fatalf("%d bytes at once: %s", size, diff)
		}
	}
}

// What is no message is recorded as text, and a request that is too long is refused.
func TestHTTPOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<h1>no</h1>")
	})
	if status, body := s.send(http.MethodPost, "/mcp", "", "half a {"); status != http.StatusBadGateway || body != "<h1>no</h1>" {
		t.Errorf("status %d, %q", status, body)
	}
	if status, _ := s.send(http.MethodPost, "/mcp", "", strings.Repeat(" ", cassette.MaxFrame+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", status)
	}
	if diff := cmp.Diff([]string{"0 client half a {", "0 server <h1>no</h1>"}, s.frames()); diff != "" {
		t.Error(diff)
	}
}

// What is secret in the headers and the query of a request, or in the headers of a response, is masked
// where a body repeats it, and forms are masked by the names of their fields.
func TestHTTPSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{"plain-hunter2-one", "cookie-two-77", "query-three-88", "code-four-99", "verifier-five-11", "set-six-22", "key-seven-33"}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "sid=set-six-22; HttpOnly")
		if r.URL.Path == "/events" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		var b strings.Builder
		for _, secret := range secrets {
			b.WriteString("data: no access with " + secret + " here\n\n")
		}
		for c := range strings.SplitSeq(b.String(), "") { // in parts of one byte
			if _, err := io.WriteString(w, c); err != nil {
				t.Error(err)
			}
		}
	})
	for _, path := range []string{"/mcp", "/events"} {
		r := httptest.NewRequest(http.MethodPost, path+"?api_key=query-three-88", strings.NewReader("grant_type=x&code=code-four-99&code_verifier=verifier-five-11"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer plain-hunter2-one")
		r.Header.Set("Cookie", "sid=cookie-two-77")
		r.Header.Set("X-Api-Key", "key-seven-33")
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		for _, secret := range secrets {
			if !strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s: the client did not get %s as it was", path, secret)
			}
		}
	}
	if all := strings.Join(s.frames(), "\n"); !strings.Contains(all, "no access with") {
		t.Errorf("the responses were not recorded:\n%s", all)
	}
	for _, secret := range secrets {
		if strings.Contains(s.file.String(), secret) {
			t.Errorf("%s is in the recording:\n%s", secret, s.file.String())
		}
	}
}

// An address of messages that is relative to that of the stream leads to the stream's connection.
func TestHTTPRelativeEndpoint(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"messages?s=1", "./messages?s=1", "/a/messages?s=1", "../a/messages?s=1", "http://example.com/a/messages?s=1"} {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			if _, err := io.WriteString(w, "\ufeffevent: endpoint\ndata: "+address+"\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n"); err != nil {
				t.Error(err)
			}
		})
		s.send(http.MethodGet, "/a/sse", "", "")
		s.send(http.MethodGet, "/a/sse", "", "")
		s.send(http.MethodPost, "/a/messages?s=1", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		want := []string{`0 server {"jsonrpc":"2.0","method":"m"}`, `2 server {"jsonrpc":"2.0","method":"m"}`, `0 client {"jsonrpc":"2.0","id":1,"method":"ping"}`}
		if diff := cmp.Diff(want, s.frames()); diff != "" {
			t.Errorf("%s: %s", address, diff)
		}
	}
}
