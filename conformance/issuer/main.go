// Command issuer is the fixture that the official conformance suite tests as
// an authorization server. There is one client and one resource, and no person is
// asked anything: every visitor has agreed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const (
	// shutdownTime is how long requests under way get when the server ends.
	shutdownTime = 2 * time.Second
	// requestTime is how long a client may take to send its request.
	requestTime = 5 * time.Second
)

func main() {
	addr := flag.String("http", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	client := flag.String("client", "conformance", "`id` of the client, which is public and on this machine")
	resource := flag.String("resource", "http://127.0.0.1/mcp", "`URI` of the resource")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *addr, *client, *resource, func(url string) { _, _ = fmt.Fprintln(os.Stdout, url) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance issuer:", err)
		os.Exit(1) // this is a program: its status is its answer
	}
}

// run serves until ctx ends. The parent process learns the issuer
// identifier, which is the URL, from the first line.
func run(ctx context.Context, addr, client, resource string, tell func(url string)) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	s, err := newIssuer(url, client, resource)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: s, ReadTimeout: requestTime}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	tell(url)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err = server.Shutdown(ended)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	<-served //nolint:errcheck // it was shut down
	return err
}

func newIssuer(url, client, resource string) (*issuer.Server, error) {
	return issuer.New(url, issuer.NewMemory(), issuer.AutoApprove("conformance"), &issuer.Options{
		Resources: []issuer.Resource{{URI: resource, Scopes: []issuer.Scope{{Name: "mcp"}}, Default: []string{"mcp"}}},
		Clients: []issuer.StaticClient{{
			ID: client,
			// The port of a loopback address is free (RFC 8252, section 7.3).
			Metadata: oauth.ClientMetadata{ClientName: "Conformance suite", RedirectURIs: []string{"http://127.0.0.1/callback"}},
		}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}
