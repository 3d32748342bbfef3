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

// ShutdownTime is the time limit for a server's shutdown.
const ShutdownTime = 5 * time.Second

// Bundled is the name of the built-in demo server.
const Bundled = "everything"

// IsURL reports whether the value of a --server flag is a URL, not a command.
func IsURL(flag string) bool {
	scheme, _, found := strings.Cut(flag, "://")
	return found && !strings.ContainsAny(scheme, " \t'\"/\\=")
}

// ListensEverywhere reports whether other machines can reach a listen address.
func ListensEverywhere(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	return err == nil && name != "" && !oauth.LoopbackHost(name)
}

// Covers reports whether tokens for a resource can be sent to a URL.
func Covers(resource string, u *url.URL) bool {
	asked, err := oauth.CanonicalResource((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String())
	if err != nil {
		return false
	}
	resource, _, _ = strings.Cut(resource, "?")
	rest, ok := strings.CutPrefix(asked, strings.TrimSuffix(resource, "/"))
	return ok && (rest == "" || strings.HasPrefix(rest, "/"))
}

// Path returns the path of one of Parley's files.
func Path(name string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the folder for settings: %w", err)
	}
	return filepath.Join(dir, "parley", name), nil
}

// ReadSecret returns the secret in a file, without its line ending.
func ReadSecret(flag, path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", Usagef("%s: %w", flag, err)
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", Usagef("%s: invalid secret file %s: it must contain exactly one line", flag, path)
	}
	return secret, nil
}

// OpeningError returns the error to report if a database named by a flag cannot be opened.
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
