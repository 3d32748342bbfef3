package mcptest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// greeter is a server with one tool.
func greeter() *server.Server {
	s := server.New("greeter", "1", nil)
	s.Add(server.Tool("greet", "Greets.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	return s
}

// A client takes one line, and is gone when its test is.
func TestClient(t *testing.T) {
	var c *client.Client
	t.Run("inner", func(t *testing.T) {
		mcptest.NoLeaks(t)
		c = mcptest.Client(t, greeter())
		got, err := client.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"})
		if err != nil || got != "Hello, Ada!" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	if _, err := client.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"}); err == nil {
		t.Error("the client is still open")
	}
	old := mcptest.Client(t, greeter(), &client.Options{Versions: []string{"2025-06-18"}})
	if old.Version() != "2025-06-18" {
		t.Errorf("the options were not used: %s", old.Version())
	}
}

// What a server opens is closed with its test, before goroutines are counted.
func TestBuildCleansUp(t *testing.T) {
	var open atomic.Int32
	build := func(tb testing.TB, o *server.Options) *server.Server {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		open.Add(1)
		go func() {
			defer close(ended)
			<-ctx.Done()
			open.Add(-1)
		}()
		tb.Cleanup(func() {
			cancel()
			<-ended
		})
		s := server.New("opens", "1", o)
		s.Add(server.Text("test:a", "a", "A"))
		return s
	}
	t.Run("each", func(t *testing.T) {
		mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
			if _, err := c.ReadResource(t.Context(), "test:a", nil); err != nil {
				t.Error(err)
			}
		}, mcptest.Over("mem", "stdio"))
	})
	if n := open.Load(); n != 0 {
		t.Errorf("%d servers left something open", n)
	}
}

// Filters choose among the eras, and only those that all of them keep are run.
func TestFilters(t *testing.T) {
	build := func(testing.TB, *server.Options) *server.Server { return greeter() }
	for _, try := range []struct {
		filters []mcptest.Filter
		want    string
	}{
		{[]mcptest.Filter{mcptest.In("2025-11-25"), mcptest.Over("mem", "websocket")}, "2025-11-25/mem 2025-11-25/websocket"},
		{[]mcptest.Filter{mcptest.Stateless, mcptest.Over("streamable")}, "2026-07-28/streamable 2026-07-28/streamable/fresh"},
		{[]mcptest.Filter{mcptest.Sessions, mcptest.Over("sse", "websocket")}, "2025-11-25/websocket 2024-11-05/sse"},
		{[]mcptest.Filter{mcptest.Over("mem"), func(e mcptest.Era) bool { return e.Fresh }}, "2026-07-28/mem/fresh"},
	} {
		var ran []string
		mcptest.EachEra(t, build, nil, func(_ *testing.T, era mcptest.Era, _ *client.Client) { ran = append(ran, era.String()) }, try.filters...)
		if got := strings.Join(ran, " "); got != try.want {
			t.Errorf("ran %s, want %s", got, try.want)
		}
	}
}

func ExampleClient() {
	// In a test, t is the test's own.
	t := new(exampleTB)
	defer t.finish()

	c := mcptest.Client(t, greeter())
	text, err := client.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err)
	// Output: Hello, Ada! <nil>
}

func ExampleEachEra() {
	build := func(tb testing.TB, o *server.Options) *server.Server {
		db, err := os.Create(filepath.Join(tb.TempDir(), "notes")) // what a server opens is closed with tb.Cleanup
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = db.Close() })
		s := server.New("notes", "1", o)
		s.Add(server.Text("note:1", "first", "Kept in "+db.Name()))
		return s
	}
	test := func(t *testing.T) {
		mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
			if _, err := c.ReadResource(t.Context(), "note:1", nil); err != nil {
				t.Error(err)
			}
		}, mcptest.Over("mem", "streamable"))
	}
	_ = test // as func TestNotes(t *testing.T)
}

// exampleTB is what an example has instead of a test.
type exampleTB struct {
	testing.TB
	ends []func()
}

func (t *exampleTB) Helper()                   {}
func (t *exampleTB) Context() context.Context  { return context.Background() }
func (t *exampleTB) Cleanup(f func())          { t.ends = append(t.ends, f) }
func (t *exampleTB) Errorf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
func (t *exampleTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func (t *exampleTB) finish() {
	for _, f := range t.ends {
		f()
	}
}
