// Command deploy is a server over HTTP as it stands behind nginx or Caddy: in a
// mux of its own, with API keys, a health check and an orderly end. See
// docs/guide/deployment.md.
//
//	API_KEYS=ada:secret deploy -addr 127.0.0.1:8080 -host mcp.example.com -proxy 127.0.0.1/32
package main

import (
	"context"
	"crypto/sha256"
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
	"syscall"
	"time"

	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen at")
	host := flag.String("host", "localhost", "public name of the server")
	proxy := flag.String("proxy", "", "network of the reverse proxy in front, such as 127.0.0.1/32")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *host, *proxy, os.Getenv("API_KEYS")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, host, proxy, keyList string) error {
	var trusted []netip.Prefix
	if proxy != "" {
		p, err := netip.ParsePrefix(proxy)
		if err != nil {
			return fmt.Errorf("-proxy: %w", err)
		}
		trusted = append(trusted, p)
	}
	keys := parseKeys(keyList)
	s := server.New("deploy", "1.0.0", nil)
	s.Add(server.Tool("whoami", "Says who calls.", whoami))

	endpoint := streamable.NewHandler(s, &streamable.Options{
		Access: web.Access{
			Hosts:          []string{host}, // the public name, as clients write it
			TrustedProxies: trusted,        // whose X-Forwarded-For counts
		},
		Logger: slog.Default(),
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", keys.required(endpoint)) // or the endpoint itself, for anonymous callers
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })

	web := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(endpoint.Shutdown(grace), web.Shutdown(grace))
}

func whoami(ctx context.Context, _ struct{}) (string, error) {
	who := server.Caller(ctx)
	if who.Anonymous() {
		return "somebody at " + who.Remote, nil
	}
	return who.Subject, nil
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

// required lets in who has a key, and tells next who it is: limits, sessions and
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
