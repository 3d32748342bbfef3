package guard_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/principal"
)

// A verdict is what a verifier says until it is changed.
type verdict struct {
	token atomic.Pointer[guard.Token]
	err   atomic.Pointer[error]
	asked atomic.Int64
	again chan struct{} // has an element after a question; may be nil
}

func (v *verdict) Issuers() []string { return []string{issuerID} }

func (v *verdict) Verify(context.Context, string) (*guard.Token, error) {
	v.asked.Add(1)
	select {
	case v.again <- struct{}{}:
	default:
	}
	if err := v.err.Load(); err != nil {
		return nil, *err
	}
	return v.token.Load(), nil
}

func (v *verdict) fail(err error) { v.err.Store(&err) }

// A watchedSite is a guard with RequireFresh in front of requests that last until their context ends.
type watchedSite struct {
	t *testing.T
	*verdict
	guard *guard.Guard
	log   *logtest.Log
	h     http.Handler
}

// fresh is the RequireFresh of the tests.
const fresh = 8 * time.Second

func newWatched(t *testing.T, o guard.Options) *watchedSite {
	t.Helper()
	s := &watchedSite{t: t, verdict: new(verdict), log: new(logtest.Log)}
	s.token.Store(&guard.Token{Issuer: issuerID, Subject: "ada", Audience: []string{resource}, Scopes: []string{"mcp", "more"}})
	o.RequireFresh, o.Logger = fresh, s.log.Logger()
	g, err := guard.New(resource, s.verdict, &o)
	if err != nil {
		t.Fatal(err)
	}
	s.guard = g
	s.h = g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Name") != "brief" {
			<-r.Context().Done()
			s.log.Logger().Info("ended", "cause", context.Cause(r.Context()))
		}
	}))
	return s
}

// start sends a request, and returns a channel that is closed when it has ended, and what leaves it.
func (s *watchedSite) start(method, name string) (ended <-chan struct{}, leave func()) {
	s.t.Helper()
	return s.startWith("secret-token", method, name)
}

// startWith does it with a token.
func (s *watchedSite) startWith(token, method, name string) (ended <-chan struct{}, leave func()) {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	r := httptest.NewRequestWithContext(ctx, method, resource, strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Mcp-Name", name)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	return done, leave
}

// over reports whether a request has ended.
func over(ended <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// Streams and calls end within RequireFresh after their token was revoked, lost a scope or cannot be
// verified, and not before. Attack: a stream that outlives the access of its caller.
func TestRequireFresh(t *testing.T) {
	t.Parallel()
	down := errors.Join(guard.ErrUnavailable, errors.New("down"))
	tests := []struct {
		name   string
		change func(s *watchedSite)
		ends   bool
	}{
		{"nothing", func(*watchedSite) {}, false},
		{"revoked", func(s *watchedSite) { s.fail(errors.New("revoked")) }, true},
		{"a scope less", func(s *watchedSite) {
			s.token.Store(&guard.Token{Issuer: issuerID, Subject: "ada", Audience: []string{resource}, Scopes: []string{"mcp"}})
		}, true},
		{"a scope more", func(s *watchedSite) {
			s.token.Store(&guard.Token{Issuer: issuerID, Subject: "ada", Audience: []string{resource}, Scopes: []string{"mcp", "more", "most"}})
		}, false},
		{"another subject", func(s *watchedSite) {
			s.token.Store(&guard.Token{Issuer: issuerID, Subject: "bob", Audience: []string{resource}, Scopes: []string{"mcp", "more"}})
		}, true},
		{"not to be verified", func(s *watchedSite) { s.fail(down) }, true},
		{"not to be verified for a moment", func(s *watchedSite) {
			s.fail(down)
			time.AfterFunc(fresh/2+fresh/4, func() { s.err.Store(nil) })
		}, false},
	}
	for _, test := range tests {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(test.name+" "+method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := newWatched(t, guard.Options{})
					defer s.guard.Close()
					ended, leave := s.start(method, "long")
					defer func() { leave(); <-ended }()
					time.Sleep(20 * fresh)
					if over(ended) {
						t.Fatal("it ended, and nothing was revoked")
					}
					test.change(s)
					start := time.Now()
					if test.ends {
						<-ended
						if took := time.Since(start); took > fresh {
							t.Errorf("it ended after %v", took)
						}
						if log := s.log.String(); !strings.Contains(log, principal.ErrRevoked.Error()) || strings.Contains(log, "secret-token") {
							t.Errorf("log: %s", log)
						}
						return
					}
					time.Sleep(20 * fresh)
					if over(ended) {
						t.Errorf("it ended; log: %s", s.log)
					}
				})
			})
		}
	}
}

// A call that outlasts its token goes on, a stream does not, and a call whose token is revoked before
// that does not either.
func TestRequireFreshExpiry(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method  string
		revoked time.Duration // after the beginning
		ends    bool
	}{
		{http.MethodPost, time.Minute, false},
		{http.MethodGet, time.Minute, true},
		{http.MethodPost, 30 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newWatched(t, guard.Options{})
			defer s.guard.Close()
			s.token.Store(&guard.Token{
				Issuer: issuerID, Subject: "ada", Audience: []string{resource}, Expiry: time.Now().Add(time.Minute),
			})
			ended, leave := s.start(test.method, "long")
			defer func() { leave(); <-ended }()
			time.Sleep(test.revoked)
			s.fail(errors.New("not active"))
			time.Sleep(fresh)
			if over(ended) != test.ends {
				t.Errorf("%s, refused after %v: ended %v, want %v", test.method, test.revoked, !test.ends, test.ends)
			}
		})
	}
}

// Requests of one token are verified together, two times in RequireFresh; those that are short find
// it verified; and a token that was refused once is watched again when it is good again.
func TestRequireFreshCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWatched(t, guard.Options{})
		defer s.guard.Close()
		var all []<-chan struct{}
		for range 20 {
			ended, leave := s.start(http.MethodGet, "long")
			defer leave()
			all = append(all, ended)
		}
		for range 10 * fresh / time.Second {
			time.Sleep(time.Second)
			ended, _ := s.start(http.MethodPost, "brief")
			<-ended
		}
		if got := s.asked.Load(); got < 20 || got > 25 {
			t.Errorf("asked %d times in ten times RequireFresh", got)
		}
		s.fail(errors.New("revoked"))
		time.Sleep(fresh)
		for _, ended := range all {
			if !over(ended) {
				t.Error("a stream did not end")
			}
		}
		s.err.Store(nil)
		ended, leave := s.start(http.MethodGet, "long")
		defer leave()
		time.Sleep(2 * fresh)
		if over(ended) {
			t.Error("a stream ended whose token is good again")
		}
		s.fail(errors.New("revoked"))
		time.Sleep(fresh)
		if !over(ended) {
			t.Error("the next stream did not end")
		}
	})
}

// An issuer that does not answer keeps nothing alive, and a request waits for it no longer than the
// bound.
func TestRequireFreshSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		v := guard.Func(issuerID, func(ctx context.Context, _ string) (*guard.Token, error) {
			if slow.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &guard.Token{Subject: "ada", Audience: []string{resource}}, nil
		})
		s := newWatched(t, guard.Options{})
		g, err := guard.New(resource, v, &guard.Options{RequireFresh: fresh})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		s.h = g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		ended, leave := s.start(http.MethodGet, "long")
		defer leave()
		synctest.Wait()
		slow.Store(true)
		time.Sleep(fresh)
		if !over(ended) {
			t.Error("the stream goes on")
		}
		start := time.Now()
		ended, leave = s.start(http.MethodGet, "long")
		defer leave()
		<-ended
		if took := time.Since(start); took != fresh {
			t.Errorf("a request was refused after %v", took)
		}
	})
}

// A guard that could not see a revocation does not promise to.
func TestRequireFreshNeedsIntrospection(t *testing.T) {
	t.Parallel()
	jwts := guard.JWT(issuerID, nil)
	asking := guard.Introspection("https://other.example", &guard.IntrospectionOptions{ClientID: "rs"})
	for name, v := range map[string]guard.Verifier{
		"JWT": jwts, "among several": guard.ByIssuer(asking, jwts), "in Any": guard.Any(asking, jwts),
	} {
		if _, err := guard.New(resource, v, &guard.Options{RequireFresh: time.Second}); err == nil || !strings.Contains(err.Error(), "RequireFresh needs") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := guard.New(resource, asking, &guard.Options{RequireFresh: -1}); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Errorf("a negative time: %v", err)
	}
	if _, err := guard.New(resource, asking, &guard.Options{RequireFresh: time.Second}); err != nil {
		t.Error(err)
	}
}
