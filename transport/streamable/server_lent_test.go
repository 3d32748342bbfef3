package streamable_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/transport/streamable"
)

// A keeper is a writer whose writes fail, and which reads on in what it was
// given, as net/http does over HTTP/2.
type keeper struct {
	http.ResponseWriter
	kept []byte
}

func (k *keeper) Write(data []byte) (int, error) {
	k.kept = data
	return 0, errors.New("stream closed")
}

// What could not be written is not used again: others' answers would go out in
// its place.
func TestFailedWriteKeepsItsMemory(t *testing.T) {
	h := streamable.NewHandler(newPeer(nil), nil)
	ask := func(w http.ResponseWriter, text string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(modernBody(1, "echo", `"text":"`+text+`"`)))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("MCP-Protocol-Version", v2607)
		r.Header.Set("Mcp-Method", "echo")
		h.ServeHTTP(w, r)
	}
	for range 50 {
		k := &keeper{ResponseWriter: httptest.NewRecorder()}
		ask(k, "mine")
		before := string(k.kept)
		if !strings.Contains(before, "mine") {
			t.Fatalf("answered %q", before)
		}
		for range 5 {
			w := httptest.NewRecorder()
			if ask(w, "yours"); !strings.Contains(w.Body.String(), "yours") {
				t.Fatal(w.Code, w.Body)
			}
		}
		if string(k.kept) != before {
			t.Fatalf("what was %s became %s", before, k.kept)
		}
	}
}
