package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/lists"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// methods are those that a server is asked for after its handshake.
var methods = []string{
	"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "tools/call", "prompts/get",
	"completion/complete", "logging/setLevel", "ping", "parley-doctor/no-such-method",
}

// A server that does not answer, ends, or answers with nonsense on any one method is examined to
// the end, and the method is a finding.
func TestHostile(t *testing.T) {
	for _, kind := range []struct {
		name, code string
		f          fault
	}{
		{"silent", "MCP-CONN-003", fault{silent: true}},
		{"dies", "MCP-CONN-002", fault{dies: true}},
		{"nonsense", "MCP-CONN-001", fault{text: `{"jsonrpc":"2.0","id":ID,"result":[]}`}},
		{"half a frame", "MCP-CONN-004", fault{text: `{"jsonrpc":"2.0","id":ID,"resu`}},
		{"not UTF-8", "MCP-CONN-004", fault{text: "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"a\":\"\xff\"}}"}},
		{"another id", "MCP-CONN-003", fault{text: `{"jsonrpc":"2.0","id":"another","result":{}}`}},
		{"logs", "MCP-CONN-004", fault{before: "Server is listening…", result: object{}}},
	} {
		for _, method := range methods {
			t.Run(kind.name+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScript(sessions)
					s.capabilities["logging"] = object{}
					s.fails(method, kind.f)
					r, err := examine(t, s, nil)
					if err != nil {
						t.Fatal(err)
					}
					where := method
					if kind.code == "MCP-CONN-004" {
						where = ""
					}
					if find(r, kind.code, where) == nil {
						t.Errorf("%s is not found; there is:\n%s", kind.code, listed(r))
					}
				})
			})
		}
	}
}

// A server that is silent from the beginning is given up.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(sessions)
		s.fails("initialize", fault{silent: true})
		s.fails("server/discover", fault{silent: true})
		began := time.Now()
		_, err := examine(t, s, nil)
		if !errors.As(err, new(*doctor.UnreachableError)) || time.Since(began) > 2*time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// A server that is slow at everything ends the check when its time is over.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(sessions)
		for _, method := range methods {
			s.on[method] = func(params object) fault {
				time.Sleep(9 * time.Second) // of the bubble
				return fault{result: object{"tools": []any{object{"name": "a"}}, "nextCursor": fmt.Sprint(time.Now())}}
			}
		}
		r, err := examine(t, s, &doctor.Options{Revision: time.Minute})
		if err != nil || find(r, "MCP-CONN-003", "the check") == nil {
			t.Errorf("%v\n%s", err, listed(r))
		}
	})
}

// The end of the context ends the check.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(sessions)
		s.fails("tools/list", fault{silent: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		defer s.running.Wait()
		_, err := doctor.Examine(ctx, doctor.Target{Dialer: &scriptDialer{s, &doctor.Watch{}}, Versions: []string{sessions}}, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// Answers of 10 MiB, and lists without an end, are read within bounds. The time of the bubble stands
// still meanwhile: a busy machine takes longer than a request may.
func TestLargeAnswers(t *testing.T) {
	racetest.SkipSerial(t)
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 10<<20)
		s := newScript(sessions)
		s.tool()["description"] = large
		s.fails("parley-doctor/no-such-method", fault{result: object{"a": large}})
		s.fails("resources/read", fault{result: object{"contents": []any{object{"uri": "shop://prices", "text": large}}}})
		r, err := examine(t, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range []string{"MCP-CONN-007", "MCP-MODEL-003", "MCP-TOOL-007", "MCP-BASE-001"} {
			if find(r, code, "") == nil {
				t.Errorf("%s is not found; there is:\n%s", code, listed(r))
			}
		}
		for _, f := range r.Findings {
			if len(f.Reason) > 700 || len(f.Where) > 700 {
				t.Errorf("a finding has %d and %d bytes", len(f.Reason), len(f.Where))
			}
		}
		s = newScript(sessions)
		n := 0
		for _, list := range []string{"tools", "prompts", "resources"} {
			s.on[list+"/list"] = func(object) fault {
				n++
				return fault{result: object{list: []any{object{"name": fmt.Sprint("a", n), "uri": fmt.Sprint("a:", n)}}, "nextCursor": fmt.Sprint(n)}}
			}
		}
		r, err = examine(t, s, &doctor.Options{Lists: &lists.Limits{Pages: 50}})
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"tools", "prompts", "resources"} {
			if find(r, "MCP-PAGE-002", list) == nil {
				t.Errorf("the endless list of %s is not found; there is:\n%s", list, listed(r))
			}
		}
	})
}

// Names that a server makes long are cut, and findings without end are counted.
func TestManyFindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(sessions)
		s.tools = nil
		for i := range 2500 {
			s.tools = append(s.tools, object{"name": strings.Repeat("é", 100+i%50) + fmt.Sprint(i), "inputSchema": 7})
		}
		r, err := examine(t, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) > 2000 || r.More == 0 {
			t.Errorf("%d findings and %d more", len(r.Findings), r.More)
		}
	})
}

// Over HTTP, what a response says beside its messages is examined too.
func TestOverHTTP(t *testing.T) {
	s := server.New("shop", "1", nil)
	s.Add(server.Tool("look", "Looks.", func(context.Context, mcp.None) (string, error) { return "", nil }))
	endpoint := streamable.NewHandler(s, nil)
	bad := false
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		switch {
		case bad && strings.Contains(string(body), "tools/list"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "<html>nothing</html>")
		case bad && strings.Contains(string(body), "no-such-method"):
			inner := httptest.NewRecorder()
			endpoint.ServeHTTP(inner, r)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(inner.Body.Bytes())
		default:
			endpoint.ServeHTTP(w, r)
		}
	}))
	defer func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = endpoint.Shutdown(ended) // the error is that of ended
		site.Close()
	}()
	for _, bad = range []bool{false, true} {
		watch := &doctor.Watch{}
		d := streamable.URL(site.URL)
		d.Tap = watch.Tap
		r, err := doctor.Examine(t.Context(), doctor.Target{Name: "shop", Dialer: d, Watch: watch, Versions: []string{stateless, sessions}}, patient)
		if err != nil {
			t.Fatal(err)
		}
		status, refused := find(r, "MCP-HTTP-001", ""), find(r, "MCP-CONN-005", "")
		if (status != nil) != bad || (refused != nil) != bad {
			t.Errorf("bad is %v, and there is:\n%s", bad, listed(r))
		}
	}
}

// TestMain lets the test binary be a server that ends badly.
func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_TEST_ENDS_BADLY") != "" {
		if stdio.Serve(context.Background(), server.New("bad", "1", nil)) == nil {
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}

// A process that does not end well is found.
func TestProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	watch := &doctor.Watch{}
	d := stdio.Command(self)
	d.Tap, d.ExtraEnv, d.Grace.Close = watch.Tap, []string{"PARLEY_TEST_ENDS_BADLY=1"}, time.Minute
	r, err := doctor.Examine(t.Context(), doctor.Target{Name: "bad", Dialer: d, Watch: watch, Versions: []string{stateless}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	if f := find(r, "MCP-CONN-006", "the process"); f == nil || !strings.Contains(f.Reason, "exit status 3") {
		t.Errorf("there is:\n%s", listed(r))
	}
}

// What is no MCP server is told apart in its own words, whatever its status.
func TestOtherWebServers(t *testing.T) {
	for _, status := range []int{200, 204, 301, 302, 307, 400, 402, 404, 405, 418, 500, 501, 502} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Location", "http://"+r.Host+"/again")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html><body>Hello</body></html>") // a client that left does not read it
		}))
		watch := &doctor.Watch{}
		d := streamable.URL(site.URL)
		d.Tap = watch.Tap
		_, err := doctor.Examine(t.Context(), doctor.Target{Name: "site", Dialer: d, Watch: watch, Versions: []string{stateless, sessions}}, patient)
		unreachable, ok := errors.AsType[*doctor.UnreachableError](err)
		if !ok || find(unreachable.Report, "MCP-CONN-008", "connecting") == nil {
			t.Errorf("%d: %v", status, err)
		}
		site.Close()
	}
}
