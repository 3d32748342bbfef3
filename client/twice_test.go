package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/internal/webtest"
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

func (s *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
		w.WriteHeader(s.status)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	m, err := linktest.Read(r)
	if err != nil || m.ID == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	switch m.Method {
	case mcp.MethodInitialize:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID, newest)
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
				c := dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: webtest.Direct{Handler: s}}}, &client.Options{
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

// A handler of progress may call the client, however much more progress waits.
// All of it is told, unless it is more than is kept: then the latest is.
func TestMuchProgressHandlerCalls(t *testing.T) {
	for name, test := range map[string]struct{ count, text, least, most int }{
		"small": {1000, 10, 1000, 1000},
		"big":   {400, 60 << 10, 60, 80},
		"huge":  {400, 100 << 10, 60, 80},
	} {
		t.Run(name, func(t *testing.T) {
			eras(t, func(t *testing.T, versions []string) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{versions: versions, on: tool(func(r *req) (any, error) {
						token, text := meta(r.in, mcp.MetaProgressToken), strings.Repeat("x", test.text)
						for i := range test.count {
							_ = r.tell(mcp.NotifyProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d,"message":%q}`, token, i, text))
						}
						return raw(done), nil
					})}
					s.on[mcp.MethodPromptsList] = func(*req) (any, error) { return raw(`{"prompts":[]}`), nil }
					c := connect(t, s, nil)
					var got []float64
					_, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{OnProgress: func(progress, _ float64, _ string) {
						for _, err := range c.Prompts(t.Context()) {
							t.Errorf("a call in the handler: %v", err)
						}
						time.Sleep(time.Millisecond) // of fake time: all the rest has arrived
						got = append(got, progress)
					}})
					if err != nil || len(got) < test.least || len(got) > test.most || !slices.IsSorted(got) || got[len(got)-1] != float64(test.count-1) {
						t.Errorf("%d told, the last %v, %v", len(got), got[max(0, len(got)-1):], err)
					}
				})
			})
		})
	}
}

// Middleware may send a request again while a question of its first attempt is
// still being answered: the second attempt has a time of its own.
func TestQuestionOutlivesAttempt(t *testing.T) {
	for name, single := range map[string]bool{"attributed": true, "not attributed": false} {
		for pause := range 3 { // the handler returns after the second attempt began, or before
			t.Run(fmt.Sprintf("%s, %d s", name, pause), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{versions: []string{newest}}
					attempts := 0
					s.on = tool(func(r *req) (any, error) {
						if attempts++; attempts > 1 {
							<-r.ctx.Done()
							return nil, errSilent
						}
						go func() { _, _ = r.conn.ask(context.Background(), mcp.MethodRootsList, `{}`) }()
						time.Sleep(time.Second) // of fake time
						return nil, jsonrpc.NewError(mcp.CodeInternalError, "try again")
					})
					answered := make(chan struct{})
					c := connect(t, s, &client.Options{
						OneAtATime: single,
						OnRoots: func(ctx context.Context) ([]mcp.Root, error) {
							defer close(answered)
							time.Sleep(2500 * time.Millisecond) // of fake time, 1.5 s after the first attempt
							if r := client.RequestFrom(ctx); (r != nil) != single {
								t.Errorf("the question belongs to %v", r)
							}
							return nil, nil
						},
						Middleware: []client.Middleware{func(next client.Func) client.Func {
							return func(ctx context.Context, r *client.Request) (client.Result, error) {
								res, err := next(ctx, r)
								if r.Method() == mcp.MethodToolsCall {
									time.Sleep(time.Duration(pause) * time.Second) // of fake time
									return next(ctx, r)
								}
								return res, err
							}
						}},
					})
					began := time.Now()
					_, err := c.CallTool(t.Context(), "t", nil, nil)
					if took := time.Since(began); !errors.Is(err, client.ErrTimeout) || took > 65*time.Second {
						t.Errorf("after %v: %v", took, err)
					}
					<-answered
				})
			})
		}
	}
}
