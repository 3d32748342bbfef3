package streamable_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// plainWriter is what a logging middleware makes that forgets Unwrap.
type plainWriter struct{ w http.ResponseWriter }

func (p plainWriter) Header() http.Header            { return p.w.Header() }
func (p plainWriter) Write(data []byte) (int, error) { return p.w.Write(data) }
func (p plainWriter) WriteHeader(status int)         { p.w.WriteHeader(status) }

// flushWriter can flush, and no more.
type flushWriter struct{ plainWriter }

func (f flushWriter) Flush() { f.w.(http.Flusher).Flush() }

// openWriter is one that does as it should.
type openWriter struct{ plainWriter }

func (o openWriter) Unwrap() http.ResponseWriter { return o.w }

func wrapping(wrap func(http.ResponseWriter) http.ResponseWriter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(wrap(w), r) })
	}
}

// Middleware that hides what net/http's ResponseWriter can do is told of in the
// log, once, by its type; answers arrive whole all the same, at the end.
func TestOpaqueWriter(t *testing.T) {
	for _, test := range []struct {
		name  string
		front func(http.Handler) http.Handler
		want  []string // of the warning; none: there is none
	}{
		{"plain", wrapping(func(w http.ResponseWriter) http.ResponseWriter { return plainWriter{w} }), []string{"streamable_test.plainWriter", "nothing is streamed"}},
		{"behind one that unwraps", wrapping(func(w http.ResponseWriter) http.ResponseWriter { return openWriter{plainWriter{plainWriter{w}}} }), []string{"streamable_test.plainWriter", "nothing is streamed"}},
		{"TimeoutHandler", func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Minute, "") }, []string{"http.timeoutWriter", "nothing is streamed"}},
		{"flushes alone", wrapping(func(w http.ResponseWriter) http.ResponseWriter { return flushWriter{plainWriter{w}} }), []string{"streamable_test.flushWriter", "not timed out"}},
		{"unwraps", wrapping(func(w http.ResponseWriter) http.ResponseWriter { return openWriter{plainWriter{w}} }), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			var log logtest.Log
			h := streamable.NewHandler(newPeer(map[string]method{"steps": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
				for range 3 {
					if err := x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "step"}); err != nil {
						return nil, err
					}
				}
				return echo(x.In.Params), nil
			}}), &streamable.Options{Logger: log.Logger()})
			srv := httptest.NewServer(test.front(h))
			defer srv.Close()
			defer h.Shutdown(context.Background()) //nolint:errcheck // it has no end to wait for
			s := &site{TB: t, h: h, url: srv.URL, client: srv.Client()}
			id := s.open(v2506)
			for range 3 {
				for _, r := range []outcome{
					s.modern("steps", `"a":1`),
					s.send(http.MethodPost, rpc(1, "steps", `"a":1`), "Mcp-Session-Id", id),
				} {
					if r.status != 200 || strings.Count(r.body, `"method":"step"`) != 3 || !strings.Contains(r.body, `"result":{"a":1`) {
						t.Errorf("status %d, body %s, want three steps and the result", r.status, r.body)
					}
				}
			}
			warnings := strings.Count(log.String(), "Unwrap method")
			if want := min(len(test.want), 1); warnings != want {
				t.Errorf("%d warnings, want %d: %s", warnings, want, log.String())
			}
			for _, part := range test.want {
				if !strings.Contains(log.String(), part) {
					t.Errorf("the log is %s, want %s in it", log.String(), part)
				}
			}
		})
	}
}
