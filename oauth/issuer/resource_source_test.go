package issuer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A scope that is removed while the person is asked is not granted, nor when it is there again.
func TestPendingScopeRemoved(t *testing.T) {
	t.Parallel()
	var write atomic.Bool
	write.Store(true)
	const uri = "https://notes.example/mcp"
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		o.MoreResources = func(context.Context) ([]issuer.Resource, error) {
			r := issuer.Resource{URI: uri, Scopes: []issuer.Scope{{Name: "read"}}}
			if write.Load() {
				r.Scopes = append(r.Scopes, issuer.Scope{Name: "write"})
			}
			return []issuer.Resource{r}, nil
		}
	})
	change := func(there bool) {
		write.Store(there)
		s.clock.Add(time.Second)
	}
	p := s.person()
	question := p.signIn(s.request("scope", "read write", "resource", uri), "ada")
	change(false)
	code := p.code(p.submit(question, "answer", "approve"))
	got := s.form("/token", params("grant_type", oauth.GrantAuthorizationCode, "client_id", "web", "code", code, "code_verifier", verifier))
	change(true)
	again := s.form("/token", params("grant_type", oauth.GrantRefreshToken, "client_id", "web", "refresh_token", got.text("refresh_token")))
	if got.text("scope") != "read" || again.text("scope") != "read" {
		t.Errorf("the tokens are %s and %s", got.Raw, again.Raw)
	}
	if silent := p.open(s.request("scope", "read write", "resource", uri)); silent.away != nil {
		t.Errorf("nobody is asked for the scope that is there again: %v", silent.away)
	}
	question = p.open(s.request("scope", "write", "resource", uri, "prompt", "consent"))
	change(false)
	if got := p.submit(question, "answer", "approve"); got.away == nil || got.away.Query().Get("error") != oauth.InvalidScope {
		t.Errorf("the only scope is gone: %d %v %s", got.status, got.away, got.body)
	}
}

// However many requests need the resources, a source that is slow, hangs or is broken is asked once at a
// time; nobody waits longer than for the own context, or 5 seconds, and afterwards it is asked anew.
func TestSlowSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		var broken atomic.Bool
		broken.Store(true)
		s, err := issuer.New("http://127.0.0.1:1", issuer.NewMemory(), formLogin{}, &issuer.Options{
			MoreResources: func(ctx context.Context) ([]issuer.Resource, error) {
				asked.Add(1)
				if !broken.Load() {
					return []issuer.Resource{{URI: mcpServer}}, nil
				}
				<-ctx.Done()
				return nil, errors.New("the database hangs")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		get := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/.well-known/oauth-authorization-server", nil))
			return w.Code
		}
		start := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				ctx, want := t.Context(), 5*time.Second
				if i%2 == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
					want = time.Second
				}
				if code := get(ctx); code != http.StatusInternalServerError || time.Since(start) != want {
					t.Errorf("request %d: %d after %v, want %v", i, code, time.Since(start), want)
				}
			})
		}
		all.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("the source was asked %d times", n)
		}
		broken.Store(false)
		for range 3 {
			if code := get(t.Context()); code != http.StatusOK {
				t.Errorf("once it answers again: %d", code)
			}
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("the source was asked %d times", n)
		}
	})
}
