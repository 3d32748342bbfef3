package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// cutter is a site that runs a tool, cuts the stream of its answer, and
// answers with a status when it is asked for the rest.
type cutter struct {
	status int
	ran    atomic.Int32
}

func (s *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.serve(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

func (s *cutter) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
		w.WriteHeader(s.status)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := jsonrpc.Parse(body, jsonrpc.Limits{})
	if err != nil || m.ID.IsZero() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	id, _ := m.ID.AppendJSON(nil)
	switch m.Method {
	case mcp.MethodInitialize:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, id, newest)
	case mcp.MethodToolsCall:
		s.ran.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1\nretry: 1\ndata:\n\n")
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// Ruling 16: a tool whose answer was lost may have run, whatever the server says
// when it is asked for the rest of the answer. It is not called again.
func TestLostAnswerIsNotRefusal(t *testing.T) {
	for _, status := range []int{
		http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &cutter{status: status}
				c := dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: s}}, &client.Options{
					Versions: []string{newest}, Eras: client.NewEraMemory(),
				})
				_, err := c.CallTool(t.Context(), "pay", nil, nil)
				if n := s.ran.Load(); n != 1 || !errors.Is(err, transport.ErrInterrupted) {
					t.Errorf("the tool ran %d times, and the call gave %v", n, err)
				}
			})
		})
	}
}

// A handler of progress may call the server, also where calls take turns, and a
// call that ends waits for it.
func TestProgressHandlerCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{newest}}
		s.on = tool(func(r *req) (any, error) {
			if text(r.in, "name") == `"outer"` {
				return raw(done), r.tell(mcp.NotifyProgress, fmt.Sprintf(`{"progressToken":%s,"progress":1}`, meta(r.in, mcp.MetaProgressToken)))
			}
			return raw(done), nil
		})
		c := connect(t, s, &client.Options{OneAtATime: true})
		inner := errors.New("not called")
		_, err := c.CallTool(t.Context(), "outer", nil, &client.CallOptions{OnProgress: func(float64, float64, string) {
			_, inner = c.CallTool(t.Context(), "inner", nil, nil)
		}})
		if err != nil || inner != nil {
			t.Errorf("outer %v, inner %v", err, inner)
		}
	})
}
