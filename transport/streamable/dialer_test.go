package streamable_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Proves: SEC-AUTH-1. What identifies a server shows no secret of its URL, and
// tells apart what a query tells apart.
func TestDialerKey(t *testing.T) {
	key := func(url string) string { return streamable.URL(url).Key() }
	if got, want := key("https://a.example/mcp"), "https://a.example/mcp"; got != want {
		t.Errorf("key is %s, want %s", got, want)
	}
	if got, want := key("https://a.example/mcp#part"), "https://a.example/mcp"; got != want {
		t.Errorf("key with fragment is %s, want %s", got, want)
	}
	secret := key("https://a.example/mcp?token=hunter2")
	if strings.Contains(secret, "hunter2") || secret == key("https://a.example/mcp?token=other") {
		t.Errorf("key with a query is %s, want a digest of it", secret)
	}
	if secret != key("https://a.example/mcp?token=hunter2") {
		t.Error("two dialers of one server have different keys")
	}
	if got := key("http://user:hunter2@a.example/"); got != "" {
		t.Errorf("key of an address that is refused is %s, want none", got)
	}
}

// Proves: SEC-AUTH-1. Addresses that cannot be right are refused before
// anything is sent, and their secrets are not repeated.
func TestDialRefuses(t *testing.T) {
	for _, address := range []string{
		"", "mcp", "/mcp", "ftp://a.example/", "file:///etc/passwd", "http://", "http://:80/", "https://us er:hunter2@a.example/",
		"https://user:hunter2@a.example/mcp", "https://hunter2@a.example/mcp", "http://a.example:port/",
	} {
		link, err := streamable.URL(address).Dial(t.Context(), linktest.NewInbox())
		if err == nil {
			t.Errorf("%q was dialled", address)
			_ = link.Close(t.Context())
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error for %q repeats a secret: %v", address, err)
		}
	}
	_, err := streamable.URL("https://user:hunter2@a.example/mcp").Dial(t.Context(), linktest.NewInbox())
	if err == nil || !strings.Contains(err.Error(), "Header") {
		t.Errorf("error is %v, want the way out", err)
	}
}

func TestDialEnded(t *testing.T) {
	reason := errors.New("not now")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := streamable.URL(farURL).Dial(ctx, linktest.NewInbox()); !errors.Is(err, reason) {
		t.Errorf("dialling with an ended context: %v, want its cause", err)
	}
}
