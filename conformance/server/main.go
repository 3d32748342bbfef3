// Command server is the fixture that the official conformance suite tests as
// a server. It serves every revision at one URL, over Streamable HTTP, and is
// written with nothing but the public packages of the library: what it cannot
// say, no user can.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// pollAfter is how long a call may hold its connection before the client has
// to ask again for the answer. Only test_reconnection takes longer, by half of it,
// so that a busy machine has time on both sides.
const pollAfter = time.Second

// shutdownTime is how long requests under way get when the server ends.
const shutdownTime = 2 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance server:", err)
		os.Exit(1) // this is a program: its status is its answer
	}
}

func run() (err error) {
	addr := flag.String("http", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	behind := flag.String("proxy", "", "serve a proxy of the server, which speaks the protocol `revision` to it")
	pipes := flag.Bool("stdio", false, "serve on standard input and output, for a program that bridges them to HTTP")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := newServer(nil)
	if *pipes {
		return stdio.Serve(ctx, s)
	}
	var access web.Access
	if *behind != "" {
		p, connecting := proxied(ctx, s, *behind)
		if connecting != nil {
			return connecting
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		s = p.Server()
		access.Principal = suite
	}
	err = streamable.Serve(ctx, *addr, s, &streamable.Options{
		Access:    access,
		PollAfter: pollAfter,
		Retry:     100 * time.Millisecond,
		HTTP: web.ServeOptions{
			Grace: shutdownTime,
			// The parent process learns the URL from the first line.
			Listening: func(a net.Addr) { _, _ = fmt.Fprintf(os.Stdout, "http://%s%s\n", a, streamable.Path) },
		},
	})
	ended, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	return errors.Join(err, s.Shutdown(ended))
}

// suite is the caller of a proxy: one caller, which the suite is. A server with a
// handshake may be asked by the calls of one caller at the same time, and a
// question that the suite abandons would hold up anonymous callers.
func suite(*http.Request) *principal.Principal {
	return &principal.Principal{Subject: "suite"}
}

// proxied connects a proxy to a server in memory.
func proxied(ctx context.Context, s *server.Server, revision string) (*proxy.Proxy, error) {
	return proxy.Connect(ctx, mem.New(s, nil), &proxy.Options{Client: client.Options{Versions: []string{revision}}})
}

// newServer makes the server with everything that the suite looks for; o is
// for tests, and may be nil.
func newServer(o *server.Options) *server.Server {
	s := server.New("parley-conformance", "1.0.0", o)
	s.Add(contentTools()...)
	s.Add(noticeTools()...)
	s.Add(schemaTools()...)
	s.Add(askingTools()...)
	s.Add(roundTools()...)
	s.Add(changeTools(s)...)
	s.Add(resources()...)
	s.Add(prompts()...)
	addSkills(s)
	enableTasks(s)
	return s
}
