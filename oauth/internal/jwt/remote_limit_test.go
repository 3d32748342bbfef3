package jwt_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

const limit = 8 * time.Second

// settle waits until no fetch is under way: who asks for a key that is not there waits for it.
func settle(t *testing.T, r *jwt.Remote) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, _ = r.Find(ctx, "settle", "ES256") // whether it is there makes no difference
}

// A key that was dropped is found no longer than the limit, however long the server lets its answers
// be kept; and the set is fetched early enough that nobody waits for it.
func TestRemoteLimit(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", "public, max-age=300", "no-store"} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			s := newKeyServer(t)
			answer := func(keys ...*jwt.Key) {
				s.Set(webtest.Answer(http.StatusOK, string(jwt.SetJSON(keys...)), "Cache-Control", header))
			}
			answer(keyOf(t, "dropped"), keyOf(t, "stays"))
			c := clocktest.New(noon)
			r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit})
			find(t, r, "dropped", 1)
			answer(keyOf(t, "stays"))
			c.Add(limit / 2)
			find(t, r, "stays", 1) // and has it fetched
			settle(t, r)
			find(t, r, "dropped", 0)
			find(t, r, "stays", 1)
		})
	}
}

// The time until which keys may be used counts from when their fetch began.
func TestRemoteUntil(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "k"))
	c := clocktest.New(noon)
	until := func(r *jwt.Remote, want time.Time) {
		t.Helper()
		keys, got, err := r.FindUntil(t.Context(), "k", "ES256")
		if err != nil || len(keys) != 1 || !got.Equal(want) {
			t.Errorf("%d keys, until %v, %v; want 1, until %v", len(keys), got, err, want)
		}
	}
	limited := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit})
	until(limited, noon.Add(limit))
	c.Add(limit/2 - 1)
	until(limited, noon.Add(limit))
	until(newRemote(t, s, &jwt.RemoteOptions{Now: c.Now}), time.Time{})
}

// While the keys cannot be fetched the old ones are used until the limit, and not a moment longer.
func TestRemoteLimitWhileServerErrs(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "k"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit, StaleIfError: time.Hour, MaxAge: time.Hour})
	find(t, r, "k", 1)
	s.Set(webtest.Answer(http.StatusBadGateway, ""))
	for range 2 {
		c.Add(limit / 2)
		if c.Now().Before(noon.Add(limit)) {
			find(t, r, "k", 1)
			settle(t, r)
			find(t, r, "k", 1)
		}
	}
	fails(t, r)
	fails(t, r)
	s.expect(t, "while it errs", 3)
	s.publish(keyOf(t, "k"))
	fails(t, r)
	c.Add(limit / 4)
	find(t, r, "k", 1)
	s.expect(t, "once it is back", 4)
}

// A server that hangs makes nobody wait while the old keys are good; then callers wait for it, and
// who waited uses what comes, however long it took.
func TestRemoteLimitWhileServerHangs(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "old"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit})
	find(t, r, "old", 1)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.Set(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		c.Add(2 * limit) // as long as it took
		webtest.Answer(http.StatusOK, string(jwt.SetJSON(keyOf(t, "new"))))(w, r)
	})
	c.Add(limit / 2)
	find(t, r, "old", 1)
	<-arrived
	c.Add(limit/2 - 1)
	find(t, r, "old", 1)
	c.Add(1)
	brief, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if keys, err := r.Find(brief, "old", "ES256"); len(keys) != 0 || !errors.Is(err, gone) {
		t.Errorf("at the limit: %d keys, %v", len(keys), err)
	}
	release <- struct{}{}
	// Each fetch brings a set that is too old for who comes later.
	for range 2 {
		found := make(chan int)
		go func() {
			keys, err := r.Find(t.Context(), "new", "ES256")
			if err != nil {
				t.Error(err)
			}
			found <- len(keys)
		}()
		for n := -1; n < 0; {
			select {
			case <-arrived:
				release <- struct{}{}
			case n = <-found:
				if n != 1 {
					t.Errorf("who waited finds %d keys, want 1", n)
				}
			}
		}
	}
}

// Proves: RFC 9111 section 5.1: what a cache between had kept is as old as it says.
func TestRemoteLimitBehindCache(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	aged := func(age string) {
		s.Set(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("Cache-Control of the request is %q", r.Header.Get("Cache-Control"))
			}
			webtest.Answer(http.StatusOK, string(jwt.SetJSON(keyOf(t, "k"))), "Age", age)(w, r)
		})
	}
	aged("6")
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit})
	find(t, r, "k", 1)
	c.Add(2*time.Second - 1)
	find(t, r, "k", 1)
	settle(t, r)
	aged("8")
	c.Add(2 * time.Second)
	if err := findErr(t, r, "k"); !strings.Contains(err.Error(), "a cache had kept it for 8s") {
		t.Error(err)
	}
	aged("-1") // is no age
	c.Add(limit / 4)
	find(t, r, "k", 1)
}

// A clock that steps back makes no set good for longer.
func TestRemoteLimitClockStepsBack(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "dropped"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit})
	find(t, r, "dropped", 1)
	s.publish(keyOf(t, "new"))
	c.Add(-time.Hour)
	find(t, r, "dropped", 0)
	find(t, r, "new", 1)
	s.expect(t, "after the step", 2)
}

// Proves: RFC 9110 section 15.4.5: a set that has not changed is not sent again, and is good again.
func TestRemoteNotModified(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	tagged := func(tag string, keys ...*jwt.Key) {
		s.Set(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			webtest.Answer(http.StatusOK, string(jwt.SetJSON(keys...)))(w, r)
		})
	}
	tagged(`"1"`, keyOf(t, "one"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit})
	for range 5 {
		find(t, r, "one", 1)
		c.Add(limit)
	}
	s.expect(t, "while it is the same", 5)
	tagged(`"2"`, keyOf(t, "two"))
	find(t, r, "one", 0)
	find(t, r, "two", 1)
	c.Add(limit)
	find(t, r, "two", 1)
	s.expect(t, "after it changed", 7)

	// Nobody was asked whether it changed.
	s.Set(webtest.Answer(http.StatusNotModified, ""))
	fails(t, newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, Limit: limit}))
}
