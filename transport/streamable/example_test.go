package streamable_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// An endpoint in a mux of one's own.
func ExampleNewHandler() {
	endpoint := streamable.NewHandler(helloServer(), &streamable.Options{MaxMessage: 1 << 20})
	mux := http.NewServeMux()
	mux.Handle("/mcp", endpoint)
	site := httptest.NewServer(mux)
	defer site.Close()

	fmt.Println(greet(site.URL+"/mcp", nil))
	fmt.Println(endpoint.Shutdown(context.Background()))
	// Output:
	// Hello, Ada! <nil>
	// <nil>
}

// A server that is one for each tenant: middleware takes the tenant from the
// path, and the caller's language from a header.
func ExampleRequestFrom() {
	s := helloServer()
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if r := streamable.RequestFrom(c); r != nil && c.Method() == "tools/call" {
				fmt.Println("tenant", r.PathValue("tenant"), "language", streamable.Header(c, "Accept-Language"))
			}
			return next(c)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("/{tenant}/mcp", streamable.NewHandler(s, nil))
	site := httptest.NewServer(mux)
	defer site.Close()

	fmt.Println(greet(site.URL+"/acme/mcp", http.Header{"Accept-Language": {"de"}}))
	// Output:
	// tenant acme language de
	// Hello, Ada! <nil>
}

// A replica hands its sessions over to another one, which makes them anew from
// what was recorded. In production the record is a table that all of them see.
func ExampleHandler_Restore() {
	record := make(map[string][][]byte)
	old := streamable.NewHandler(helloServer(), &streamable.Options{OnSession: func(e streamable.SessionEvent) {
		fmt.Println("session", e.State)
		if e.Message != nil {
			record[e.ID] = append(record[e.ID], e.Message)
		}
	}})
	var current atomic.Pointer[streamable.Handler]
	current.Store(old)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.Load().ServeHTTP(w, r) }))
	defer site.Close()

	ctx := context.Background()
	c, err := client.Connect(ctx, streamable.URL(site.URL), &client.Options{Versions: []string{"2025-11-25"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := old.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	next := streamable.NewHandler(helloServer(), nil)
	for id, messages := range record {
		if err := next.Restore(ctx, id, nil, messages); err != nil {
			log.Fatal(err)
		}
	}
	current.Store(next)
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err, c.Close(), next.Shutdown(ctx))
	// Output:
	// session opened
	// session ended
	// Hello, Ada! <nil> <nil> <nil>
}

// Headers are asked for before each request, so that a key can change.
func ExampleDialer() {
	ctx := context.Background()
	d := streamable.URL("https://example.com/mcp")
	d.Header = func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + os.Getenv("EXAMPLE_KEY")}}, nil
	}
	c, err := client.Connect(ctx, d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}

func helloServer() *server.Server {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	return s
}

func greet(url string, header http.Header) (string, error) {
	ctx := context.Background()
	d := streamable.URL(url)
	d.Header = func(context.Context) (http.Header, error) { return header, nil }
	c, err := client.Connect(ctx, d, nil)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
}
