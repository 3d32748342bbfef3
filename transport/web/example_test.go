package web_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/parley-mcp/parley/transport/web"
)

// Serve runs any handler until its context ends, and lets requests finish.
func ExampleServe() {
	ctx, stop := context.WithCancel(context.Background())
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	address := make(chan string, 1)
	served := make(chan error, 1)
	go func() {
		served <- web.Serve(ctx, "127.0.0.1:0", hello, &web.ServeOptions{
			Listening: func(a net.Addr) { address <- a.String() },
		})
	}()
	r, err := http.Get("http://" + <-address)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	fmt.Println(r.StatusCode, string(text), err)
	stop()
	fmt.Println(<-served)
	// Output:
	// 200 hello <nil>
	// <nil>
}

// An endpoint of one's own under the rules that those of this module have.
func ExampleAccess_Admit() {
	access := web.Access{Hosts: []string{"mcp.example"}}
	endpoint := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := access.Admit(w, r, &web.CORS{Methods: []string{http.MethodGet}})
		if !ok {
			return // it has been answered
		}
		_, _ = fmt.Fprintf(w, "hello %s", who.Remote)
	})
	for _, host := range []string{"mcp.example", "evil.example"} {
		fmt.Println(ask(endpoint, host))
	}
	// Output:
	// 200 hello 192.0.2.1
	// 403 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Host \"evil.example\" is not allowed here; add the name to the endpoint's allowed hosts (Access.Hosts) if it is its own"}}
}

func ask(h http.Handler, host string) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+host+"/", http.NoBody)
	h.ServeHTTP(w, r)
	return fmt.Sprint(w.Code, " ", w.Body)
}
