package jwt_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// A source is ready while it has keys that may be used, also old ones whose server errs; who asks
// whether it is, however often, makes no more fetches than who looks for keys.
func TestRemoteReady(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	s.Set(webtest.Answer(http.StatusServiceUnavailable, ""))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, MaxAge: time.Hour, StaleIfError: 2 * time.Hour})
	expect := func(when string, ready bool, fetches int32) {
		t.Helper()
		for range 3 {
			if err := r.Ready(t.Context()); (err == nil) != ready {
				t.Errorf("%s: %v", when, err)
			}
		}
		s.expect(t, when, fetches)
	}
	expect("without a server", false, 1)
	s.publish()
	c.Add(10 * time.Second)
	expect("without keys", false, 2)
	s.publish(keyOf(t, "k"))
	c.Add(time.Hour)
	find(t, r, "k", 1)
	expect("with keys", true, 3)
	s.Set(webtest.Answer(http.StatusServiceUnavailable, ""))
	c.Add(time.Hour)
	find(t, r, "k", 1) // waits for the fetch that fails
	expect("with old keys", true, 4)
	c.Add(2 * time.Hour)
	expect("with keys that are too old", false, 5)
}

// A source with a limit fetches when it is asked whether it is ready, as it does for tokens, and has no
// keys beyond the limit.
func TestRemoteReadyLimit(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "k"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: time.Minute})
	ready := func(when string, want bool) {
		t.Helper()
		if err := r.Ready(t.Context()); (err == nil) != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	ready("at first", true)
	c.Add(2 * time.Minute)
	ready("after the limit", true)
	s.expect(t, "after the limit", 2)
	s.Set(webtest.Answer(http.StatusServiceUnavailable, ""))
	c.Add(2 * time.Minute)
	ready("without a server", false)
	r.Close()
	ready("closed", false)
}

// Who asks waits no longer than it wants to.
func TestRemoteReadyHangs(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	asked := make(chan struct{})
	s.Set(func(_ http.ResponseWriter, r *http.Request) { close(asked); <-r.Context().Done() })
	r := newRemote(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() { answer <- r.Ready(ctx) }()
	<-asked
	cancel()
	if err := <-answer; err == nil {
		t.Error("it is ready")
	}
}
