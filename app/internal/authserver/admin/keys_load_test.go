package admin_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth/guard"
)

const (
	perSecond = 200
	// bound is within which tokens of a revoked key are refused.
	bound = 5 * time.Second
	// keysMaxAge is that of the guard.
	keysMaxAge = 2 * time.Second
)

// A try is a request to a guarded server.
type try struct {
	key           string
	began, ended  time.Time
	status        int
	authorization string // what the guard says if it refuses
}

// A crowd sends requests to a guarded server, with tokens that it gets of both authorization servers
// all the while.
type crowd struct {
	s       *site
	guarded string
	client  *http.Client

	mu     sync.Mutex
	tokens [][2]string // with the IDs of their keys
	tries  []try
}

// mintAnother adds a token, for a while.
func (c *crowd) mintAnother(server string) {
	token, key, err := c.s.tryMint(server)
	if err != nil {
		c.s.t.Error(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens = append(c.tokens, [2]string{token, key}); len(c.tokens) > 400 {
		c.tokens = c.tokens[1:]
	}
}

// try sends a request with one of the tokens.
func (c *crowd) try() {
	c.mu.Lock()
	token := c.tokens[rand.N(len(c.tokens))]
	c.mu.Unlock()
	r, err := http.NewRequestWithContext(context.WithoutCancel(c.s.t.Context()), http.MethodPost, c.guarded, http.NoBody)
	if err != nil {
		c.s.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+token[0])
	t := try{key: token[1], began: time.Now()}
	response, err := c.client.Do(r)
	if err != nil {
		c.s.t.Error(err)
		return
	}
	_ = response.Body.Close()
	t.ended, t.status, t.authorization = time.Now(), response.StatusCode, response.Header.Get("WWW-Authenticate")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries = append(c.tries, t)
}

// work sends requests until the time is over, and waits for their answers.
func (c *crowd) work(until time.Time) {
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	for i := 0; time.Now().Before(until); i++ {
		<-tick.C
		all.Go(c.try)
		if i%10 == 0 {
			server := []string{c.s.first, c.s.second}[i/10%2]
			all.Go(func() { c.mintAnother(server) })
		}
	}
}

// used reports whether a token of a key was used.
func (c *crowd) used(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.tries, func(t try) bool { return t.key == key })
}

// bound is within which tokens of a revoked key are refused, on a machine that lets everything wait as long
// as the request that took longest.
func (c *crowd) bound() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := time.Duration(0)
	for _, t := range c.tries {
		longest = max(longest, t.ended.Sub(t.began))
	}
	return bound + longest
}

// take returns what was tried since it was called last.
func (c *crowd) take() []try {
	c.mu.Lock()
	defer c.mu.Unlock()
	tries := c.tries
	c.tries = nil
	return tries
}

// Proves: under 200 requests a second to a guard with --keys-max-age 2s, of tokens from two servers, a
// planned rotation refuses no token; and 5 seconds after a key was revoked none of its tokens is
// accepted, and every other is.
func TestKeysUnderLoad(t *testing.T) {
	t.Parallel()
	calm := time.Second // how long each phase takes that waits for nothing
	if text := os.Getenv("PARLEY_TEST_LOAD"); text != "" {
		var err error
		if calm, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s, _ := newKeySite(t, dsn, time.Now)
		c := s.crowd()
		old, token := s.signer()
		c.tokens = [][2]string{{token, old}}
		c.work(time.Now().Add(calm))
		if _, err := s.try("key rotate", `{"overlap":"5s"}`); err != nil {
			t.Fatal(err)
		}
		c.work(time.Now().Add(5*time.Second + calm))
		signer, _ := s.signer()
		for !c.used(signer) {
			c.work(time.Now().Add(calm))
		}
		planned := c.take()
		for _, try := range planned {
			if try.status != http.StatusOK {
				t.Errorf("a planned rotation: status %d for a token of %s, %s", try.status, try.key, try.authorization)
			}
		}
		if !slices.ContainsFunc(planned, func(try try) bool { return try.key == old }) || old == signer {
			t.Errorf("no token of %s was used, or it still signs", old)
		}

		stolen, _ := s.mint(s.first)
		if _, err := s.try("key revoke", `{"id":"`+signer+`"}`); err != nil {
			t.Fatal(err)
		}
		revoked := time.Now()
		c.work(revoked.Add(bound + calm))
		c.mu.Lock()
		c.tokens = append(c.tokens, [2]string{stolen, signer})
		c.mu.Unlock()
		c.work(time.Now().Add(calm))
		for time.Since(revoked) < c.bound()+calm {
			c.work(time.Now().Add(calm))
		}
		accepted, refused, bound := 0, 0, c.bound()
		for _, try := range c.take() {
			late := try.began.Sub(revoked) >= bound
			switch {
			case try.key == signer && late && try.status == http.StatusOK:
				t.Errorf("%v after the key was revoked its token is accepted", try.began.Sub(revoked))
			case try.key == signer && try.status != http.StatusOK:
				refused++
			case try.key != signer && late && try.status != http.StatusOK:
				t.Errorf("%v after another key was revoked: status %d, %s", try.began.Sub(revoked), try.status, try.authorization)
			case try.key != signer && late:
				accepted++
			}
		}
		if refused == 0 || accepted == 0 {
			t.Errorf("%d tokens of the key were refused, and %d of others accepted", refused, accepted)
		}
		t.Logf("%d requests during the rotation; after the revocation %d were refused", len(planned), refused)
	})
}

// crowd makes a crowd before a server with a guard.
func (s *site) crowd() *crowd {
	s.t.Helper()
	g, err := guard.New(resource, guard.JWT(s.first, &guard.JWTOptions{KeysMaxAge: keysMaxAge}), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(g.Close)
	guarded := httptest.NewServer(g.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	s.t.Cleanup(guarded.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: perSecond}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &crowd{s: s, guarded: guarded.URL, client: &http.Client{Transport: transport}}
}
