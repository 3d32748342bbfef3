// Package testpage is for tests of examples that run whole programs: where they
// can listen, and how to know that they do.
package testpage

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// FreeAddress is an address on loopback that was free just now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Await asks for a page until it answers with a status, any if that is 0, and
// returns the body.
func Await(t testing.TB, page string, status int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil && (status == 0 || resp.StatusCode == status) {
				return string(body)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not answer with %d", page, status)
		}
	}
}
