// Command deploy is a server over HTTP as it stands behind nginx or Caddy, alone
// or as one of several replicas: in a mux of its own, with API keys, checks of
// its health and an orderly end. See docs/guide/deployment.md.
//
//	API_KEYS=ada:secret STATE_KEY=$(openssl rand -hex 32) \
//	  deploy -addr 127.0.0.1:8080 -host mcp.example.com -proxy 127.0.0.1/32
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// A config is what differs between machines.
type config struct {
	addr, host, proxy string
	drain             time.Duration
	apiKeys, stateKey string
	after             func(time.Duration) <-chan time.Time // time.After; for tests
}

func main() {
	c := config{after: time.After}
	flag.StringVar(&c.addr, "addr", "127.0.0.1:8080", "address to listen at")
	flag.StringVar(&c.host, "host", "localhost", "public name of the server")
	flag.StringVar(&c.proxy, "proxy", "", "network of the reverse proxy in front, such as 127.0.0.1/32")
	flag.DurationVar(&c.drain, "drain", 0, "how long to serve on after SIGTERM, until no new requests are sent here")
	flag.Parse()
	c.apiKeys, c.stateKey = os.Getenv("API_KEYS"), os.Getenv("STATE_KEY")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, c config) error {
	trusted, err := parseProxy(c.proxy)
	if err != nil {
		return err
	}
	s, err := newServer(c.stateKey)
	if err != nil {
		return err
	}
	endpoint := streamable.NewHandler(s, &streamable.Options{
		Access: web.Access{
			Hosts:          []string{c.host}, // the public name that clients use
			TrustedProxies: trusted,          // the server uses their X-Forwarded-For
		},
		Sessionless: true, // any replica can serve any request
		Logger:      slog.Default(),
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", parseKeys(c.apiKeys).required(endpoint)) // for anonymous callers, pass endpoint
	var ending atomic.Bool
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ending.Load() {
			http.Error(w, "ending", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})

	web := &http.Server{Addr: c.addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending.Store(true) // /readyz reports it; requests still arrive for a moment
	select {
	case err := <-failed:
		return err
	case <-c.after(c.drain):
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(endpoint.Shutdown(grace), web.Shutdown(grace))
}

func parseProxy(network string) ([]netip.Prefix, error) {
	if network == "" {
		return nil, nil
	}
	p, err := netip.ParsePrefix(network)
	if err != nil {
		return nil, fmt.Errorf("-proxy: %w", err)
	}
	return []netip.Prefix{p}, nil
}

// newServer makes the server. Replicas are given the same key, of 32 bytes in
// hexadecimal digits; without one the server is alone.
func newServer(stateKey string) (*server.Server, error) {
	var o server.Options
	if stateKey != "" {
		key, err := hex.DecodeString(stateKey)
		if err != nil {
			return nil, errors.New("STATE_KEY: write hexadecimal digits, as openssl rand -hex 32 does")
		}
		o.StateKeys = [][]byte{key}
	}
	s := server.New("deploy", "1.0.0", &o)
	s.Add(
		server.Tool("whoami", "Says who calls.", whoami),
		server.Tool("wipe", "Deletes everything, if the person is sure.", wipe),
	)
	return s, nil
}

func whoami(ctx context.Context, _ mcp.None) (string, error) {
	who := server.Caller(ctx)
	if who.Anonymous() {
		return "somebody at " + who.Remote, nil
	}
	return who.Subject, nil
}

type sure struct {
	Sure bool `json:"sure"`
}

// wipe asks. The answer may come to another replica than the question came from.
func wipe(ctx context.Context, _ mcp.None) (string, error) {
	a, err := server.Elicit[sure](ctx, "Delete everything?")
	if err != nil {
		return "", err
	}
	if !a.Accepted() || !a.Value.Sure {
		return "Nothing was deleted.", nil
	}
	return "Everything is gone.", nil
}

// apiKeys are the users by the digest of their key, so that looking one up
// takes the same time for every guess.
type apiKeys map[[sha256.Size]byte]*principal.Principal

// parseKeys reads "user:key,user:key".
func parseKeys(list string) apiKeys {
	keys := apiKeys{}
	for entry := range strings.SplitSeq(list, ",") {
		if user, key, ok := strings.Cut(entry, ":"); ok {
			keys[sha256.Sum256([]byte(key))] = &principal.Principal{Issuer: "api-keys", Subject: user}
		}
	}
	return keys
}

// required admits callers with a key, and puts their principal into the context: limits, sessions and
// what is visible then go by the user and no longer by the address.
func (k apiKeys) required(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		user := k[sha256.Sum256([]byte(key))]
		if user == nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "an API key is needed: Authorization: Bearer KEY", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(principal.NewContext(r.Context(), user)))
	})
}
