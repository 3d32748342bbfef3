package kit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// ShutdownTime is how long a server gets to end what it does.
const ShutdownTime = 5 * time.Second

// Bundled is the name of the demonstration server that is built in.
const Bundled = "everything"

// IsURL says whether a --server flag is an address and not a command.
func IsURL(flag string) bool {
	scheme, _, found := strings.Cut(flag, "://")
	return found && !strings.ContainsAny(scheme, " \t'\"/\\=")
}

// ListensEverywhere says whether an address to listen on can be reached from other
// machines.
func ListensEverywhere(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	return err == nil && name != "" && !oauth.LoopbackHost(name)
}

// Covers reports whether the tokens of a resource are for a URL.
func Covers(resource string, u *url.URL) bool {
	asked, err := oauth.CanonicalResource((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String())
	if err != nil {
		return false
	}
	resource, _, _ = strings.Cut(resource, "?")
	rest, ok := strings.CutPrefix(asked, strings.TrimSuffix(resource, "/"))
	return ok && (rest == "" || strings.HasPrefix(rest, "/"))
}

// Path is the path of a file of the program.
func Path(name string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the folder for settings: %w", err)
	}
	return filepath.Join(dir, "parley", name), nil
}

// ReadSecret reads a secret from a file, without the end of its line.
func ReadSecret(flag, path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", Usagef("%s: %w", flag, err)
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", Usagef("%s: %s must hold the secret in one line, and nothing else", flag, path)
	}
	return secret, nil
}

// OpeningError is the error of opening a database that a flag names.
func OpeningError(ctx context.Context, flag, what string, err error) error {
	var network *net.OpError
	var host *net.DNSError
	switch {
	case errors.As(err, &network), errors.As(err, &host):
		return &UnreachableError{fmt.Errorf("opening %s: %w", what, err)}
	case ctx.Err() == nil:
		return Usagef("%s: %w", flag, err)
	}
	return fmt.Errorf("opening %s: %w", what, err)
}
