package streamable_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/transport/streamable"
)

// BenchmarkDo measures a whole request with a JSON answer over the loopback
// interface, beside the same bytes with a bare http.Client.
func BenchmarkDo(b *testing.B) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerTo("1"))
	})
	url := serve(b, handler)
	b.Run("link", func(b *testing.B) {
		link, err := streamable.URL(url).Dial(b.Context(), linktest.NewInbox())
		if err != nil {
			b.Fatal(err)
		}
		defer link.Close(b.Context())
		b.ReportAllocs()
		for b.Loop() {
			if _, err := link.Do(b.Context(), ask(1, "tools/list"), modernRoute("tools/list")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		defer client.CloseIdleConnections()
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
		b.ReportAllocs()
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
	})
}
