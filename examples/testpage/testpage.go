// Package testpage is for tests of examples that run whole programs: where they
// can listen, and how to know that they do.
package testpage

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// Ports that FreeAddress takes: below those that systems give to connections, and to listeners
// that name none.
const (
	lowestPort = 20_000
	ports      = 12_000
)

// next counts the ports from one that other processes hardly begin with, so that nothing gets a
// port twice.
var next = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32N(ports))
	return n
}()

// FreeAddress is an address on loopback that was free just now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range ports {
		addr := fmt.Sprintf("127.0.0.1:%d", lowestPort+next.Add(1)%ports)
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
		if err == nil {
			_ = l.Close() // it was free
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Await asks for a page until it answers with a status, any if that is 0, and
// returns the body.
func Await(t testing.TB, page string, status int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
