package login_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth/login"
)

// Proves: C3, C24: one sign-in, then the token on every request, in the header
// alone.
func TestTransport(t *testing.T) {
	t.Parallel()
	_, rs := newServers(t)
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	for range 3 {
		welcome(t, h, rs.url())
	}
	welcome(t, h, rs.url()+"/below")
	calls := rs.calls()
	if len(calls) != 5 || calls[0] != "" || slices.Contains(calls[1:], "") || b.visits() != 1 {
		t.Errorf("calls %q after %d visits", calls, b.visits())
	}
	for _, r := range rs.requests {
		if strings.Contains(r.URL.RawQuery, "access") {
			t.Errorf("a token is in the query: %s", r.URL)
		}
	}
}

// Bodies are sent again whole; those that cannot be get their 401 with the
// tokens ready.
func TestBodies(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	status, body, err := postOnce(t, h, rs.url(), "once")
	if status != 401 || body != "refused" || err != nil {
		t.Fatalf("%d %q %v, want the 401 as it was", status, body, err)
	}
	status, _, err = postOnce(t, h, rs.url(), "once")
	if status != 200 || err != nil || b.visits() != 1 {
		t.Fatalf("%d %v after %d visits, want 200 after 1", status, err, b.visits())
	}
	c, _ = newClient(t, login.Options{})
	status, _, err = post(t, c.HTTPClient(nil), rs.url(), "again")
	if status != 200 || err != nil {
		t.Fatalf("%d %v, want 200", status, err)
	}
	want := []string{"once", "once", "again", "again"}
	got := slices.DeleteFunc(slices.Clone(rs.bodies), func(s string) bool { return s == "" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
}

// A header set by hand is left alone, and its 401 too.
func TestOwnAuthorization(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	c, b := newClient(t, login.Options{})
	status, body, err := get(t, c.HTTPClient(nil), rs.url(), "Authorization", "Bearer mine")
	if status != 401 || body != "refused" || err != nil || b.begun != 0 {
		t.Errorf("%d %q %v, want the 401 as it was", status, body, err)
	}
	if diff := cmp.Diff([]string{"Bearer mine"}, rs.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A request is not changed, nor is its header.
func TestRequestUnchanged(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	c, _ := newClient(t, login.Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rs.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Transport(nil).RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %v", resp, err)
	}
	defer resp.Body.Close()
	if len(req.Header) != 0 {
		t.Errorf("header %v, want none", req.Header)
	}
}

// Attack: token leak on redirect: neither a redirect nor a request to another
// place has the token; what a redirect leads to causes no sign-in.
func TestAttackTokenLeakOnRedirect(t *testing.T) {
	t.Parallel()
	var leaks atomic.Int32
	var asked atomic.Int32
	evil := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "" || strings.Contains(r.URL.RawQuery, "access") {
			leaks.Add(1)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	as, rs := newServers(t)
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	for _, code := range []int{301, 302, 303, 307, 308} {
		rs.Lock()
		rs.handlers["/mcp/away"] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, evil.URL+"/mcp", code)
		}
		rs.Unlock()
		status, _, err := get(t, h, rs.url()+"/away")
		if status != 401 || err != nil {
			t.Errorf("%d: %d %v, want the 401 of the other origin", code, status, err)
		}
	}
	if asked.Load() != 5 || leaks.Load() != 0 || b.visits() != 1 {
		t.Errorf("%d requests with %d leaks and %d visits; want 5, 0, 1", asked.Load(), leaks.Load(), b.visits())
	}

	// A redirect to a resource that is signed in to does not act there in the
	// person's name.
	rs2 := newResource(t, as)
	welcome(t, h, rs2.url())
	change(rs, func() {
		rs.handlers["/mcp/away"] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, rs2.url(), http.StatusFound) }
	})
	if status, _, err := get(t, h, rs.url()+"/away"); status != 401 || err != nil {
		t.Errorf("%d %v, want 401", status, err)
	}
}

// Attack: tokens go to their resource alone: whole segments of its path and
// what is below, the same origin.
func TestTokenStaysAtResource(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	signed, _ := newClient(t, login.Options{})
	welcome(t, signed.HTTPClient(nil), rs.url())
	tests := map[string]bool{
		rs.url(): true, rs.url() + "/": true, rs.url() + "/a/b": true, rs.url() + "?q=1": true,
		rs.URL + "/": false, rs.URL + "/mcpx": false, rs.URL + "/MCP": false, rs.URL + "/other": false,
		rs.url() + "/../other": false, rs.url() + "/%2e%2e/other": false, rs.url() + "/..%2fother": false,
		strings.Replace(rs.url(), "127.0.0.1", "localhost", 1): false,
	}
	for target, want := range tests {
		var got string
		probe := &http.Client{Transport: signed.Transport(webtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Authorization")
			return &http.Response{StatusCode: 204, Body: http.NoBody, Request: r}, nil
		}))}
		if _, _, err := get(t, probe, target); err != nil || (got != "") != want {
			t.Errorf("%s: token %v (%v), want %v", target, got != "", err, want)
		}
	}
	// Not in the clear, whatever the resource.
	got := "none"
	probe := &http.Client{Transport: signed.Transport(webtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Get("Authorization")
		return &http.Response{StatusCode: 401, Body: http.NoBody, Request: r}, nil
	}))}
	if status, _, err := get(t, probe, "http://api.example/mcp"); status != 401 || got != "" || err != nil {
		t.Errorf("%d %q %v, want the 401 as it was", status, got, err)
	}
}

// A resource that refuses fresh tokens gets its 401 through, and does not send
// the person to the browser with each request.
func TestFreshTokenRefused(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	now := clocktest.New(time.Now())
	c, b := newClient(t, login.Options{Now: now.Now})
	rs.as = []*authServer{as}
	rs.handlers["/mcp"] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+rs.URL+rs.prmPath+`"`)
		w.WriteHeader(401)
	}
	h := c.HTTPClient(nil)
	for range 3 {
		if status, _, err := get(t, h, rs.url()); status != 401 || err != nil {
			t.Errorf("%d %v, want 401", status, err)
		}
	}
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
	now.Add(2 * time.Minute) // then another try is fair: refreshed, then anew
	_, _, _ = get(t, h, rs.url())
	if b.visits() != 2 {
		t.Errorf("%d visits, want 2", b.visits())
	}
}

// Proves: C23: 403 leads to the union of scopes, once for each operation that
// needs more; the request is repeated.
func TestStepUp(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.scope = "basic"
	rs.prm["scopes_supported"] = []string{"profile"}
	rs.needs["write"], rs.needs["admin"] = "write", "admin"
	var reasons []login.Reason
	c, b := newClient(t, login.Options{Confirm: func(_ context.Context, p login.Prompt) error {
		reasons = append(reasons, p.Why)
		return nil
	}})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	welcome(t, h, rs.url(), "Mcp-Name", "write")
	welcome(t, h, rs.url(), "Mcp-Name", "admin")
	welcome(t, h, rs.url(), "Mcp-Name", "write")
	var got []string
	for _, u := range b.urls {
		got = append(got, u.Query().Get("scope"))
	}
	if diff := cmp.Diff([]string{"basic", "basic write", "basic write admin"}, got); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]login.Reason{login.ReasonSignIn, login.ReasonStepUp, login.ReasonStepUp}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	// The scopes outlast the tokens.
	as.expire(true)
	welcome(t, h, rs.url())
	if got := b.urls[3].Query().Get("scope"); got != "basic write admin" {
		t.Errorf("scope %q after all tokens were lost", got)
	}
}

// Proves: C23: the number of step-ups is limited, by resource and operation.
// Matches the official suite's scope-retry-limit scenario: at most 3
// authorizations.
func TestStepUpLimit(t *testing.T) {
	t.Parallel()
	t.Run("same scope", func(t *testing.T) {
		t.Parallel()
		as, rs := newServers(t)
		var logged bytes.Buffer
		c, b := newClient(t, login.Options{Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		h := c.HTTPClient(nil)
		rs.needs["x"] = "never"
		rs.scope = "never"
		as.handlers["/authorize"] = func(w http.ResponseWriter, r *http.Request) {
			as.serveAuthorize(w, r)
			for _, request := range as.codes { // grants something else
				request["scope"] = []string{"other"}
			}
		}
		for range 3 {
			if status, _, err := get(t, h, rs.url(), "Mcp-Name", "x"); status != 403 || err != nil {
				t.Errorf("%d %v, want the 403 as it was", status, err)
			}
		}
		if b.visits() != 2 {
			t.Errorf("%d visits, want 2", b.visits())
		}
		if got := logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "scopes=never") {
			t.Errorf("logged %s, want one line that names the scope", got)
		}
	})
	t.Run("ever other scopes", func(t *testing.T) {
		t.Parallel()
		_, rs := newServers(t)
		var n int
		rs.handlers["/mcp"] = func(w http.ResponseWriter, r *http.Request) {
			n++
			status, params := 401, ""
			if r.Header.Get("Authorization") != "" {
				status, params = 403, fmt.Sprintf(`error="insufficient_scope", scope="s%d", `, n)
			}
			w.Header().Set("WWW-Authenticate", `Bearer `+params+`resource_metadata="`+rs.URL+rs.prmPath+`"`)
			w.WriteHeader(status)
		}
		c, b := newClient(t, login.Options{})
		h := c.HTTPClient(nil)
		for range 2 {
			if status, _, err := get(t, h, rs.url(), "Mcp-Name", "x"); status != 403 || err != nil {
				t.Errorf("%d %v, want 403", status, err)
			}
		}
		if b.visits() != 4 { // one sign-in, three step-ups
			t.Errorf("%d visits, want 4", b.visits())
		}
		if status, _, _ := get(t, h, rs.url(), "Mcp-Name", "another"); status != 403 || b.visits() != 7 {
			t.Errorf("%d after %d visits, want 403 after 7: another operation has a count of its own", status, b.visits())
		}
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		rs := newResource(t, newAuthServer(t, ""))
		rs.needs["x"] = "more"
		c, b := newClient(t, login.Options{StepUps: -1})
		if status, _, err := get(t, c.HTTPClient(nil), rs.url(), "Mcp-Name", "x"); status != 403 || err != nil || b.visits() != 1 {
			t.Errorf("%d %v after %d visits, want 403 after 1", status, err, b.visits())
		}
	})
}

// A step-up without a person is an error that says which scopes are missing.
func TestStepUpNonInteractive(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	rs.needs["x"] = "more"
	store := login.NewMemory()
	c, _ := newClient(t, login.Options{Store: store})
	welcome(t, c.HTTPClient(nil), rs.url())
	c, _ = newClient(t, login.Options{Store: store, NonInteractive: true})
	_, _, err := get(t, c.HTTPClient(nil), rs.url(), "Mcp-Name", "x")
	var required *login.SignInRequiredError
	if !errors.As(err, &required) || required.Why != login.ReasonStepUp || !slices.Equal(required.Scopes, []string{"more"}) {
		t.Errorf("error %v, want a SignInRequiredError for more", err)
	}
}

// parallel makes n requests at once and returns how many were welcome.
func parallel(t *testing.T, h *http.Client, n int, target string, header ...string) int {
	t.Helper()
	var wg sync.WaitGroup
	var good atomic.Int32
	for i := range n {
		wg.Go(func() {
			status, _, err := get(t, h, fmt.Sprintf("%s/%d", target, i), header...)
			if status == 200 && err == nil {
				good.Add(1)
			} else {
				t.Errorf("%d %v", status, err)
			}
		})
	}
	wg.Wait()
	return int(good.Load())
}

// 64 requests at once lead to one sign-in, one refresh, one step-up.
func TestParallel(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.needs["x"] = "more"
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	grants := func() (codes, refreshes int) {
		_, tokens, _, _ := as.seen()
		for _, form := range tokens {
			if form.Get("grant_type") == "refresh_token" {
				refreshes++
			} else {
				codes++
			}
		}
		return codes, refreshes
	}
	rs.silent, rs.prmPath = true, "/.well-known/oauth-protected-resource"
	rs.resource = rs.URL
	if parallel(t, h, 64, rs.url()); b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
	as.expire(false)
	if parallel(t, h, 64, rs.url()); b.visits() != 1 {
		t.Errorf("%d visits after the tokens ended, want 1", b.visits())
	}
	if codes, refreshes := grants(); codes != 1 || refreshes != 1 {
		t.Errorf("%d codes and %d refreshes, want 1 and 1", codes, refreshes)
	}
	if parallel(t, h, 64, rs.url(), "Mcp-Name", "x"); b.visits() != 2 {
		t.Errorf("%d visits with a step-up, want 2", b.visits())
	}
}

// Whoever leaves leaves at once; the sign-in goes on for the others, and ends
// with the last.
func TestLeaving(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	b := &browser{hold: make(chan struct{}), inWait: make(chan struct{})}
	waits := make(chan struct{}, 4)
	c, _ := newClient(t, login.Options{Authorizer: b})
	h := c.HTTPClient(nil)
	request := func(ctx context.Context) error {
		ctx = limited(ctx, func() { waits <- struct{}{} }, nil)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, rs.url(), nil)
		if err != nil {
			return err
		}
		resp, err := h.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	first, leave := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { left <- request(first) }()
	<-b.inWait
	go func() { stayed <- request(t.Context()) }()
	<-waits
	<-waits // both wait for the same person
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("left with %v", err)
	}
	close(b.hold)
	if err := <-stayed; err != nil {
		t.Errorf("stayed with %v", err)
	}
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}

	// All leave: the visit ends, and the next request begins anew.
	b2 := &browser{hold: make(chan struct{}), inWait: make(chan struct{})}
	c, _ = newClient(t, login.Options{Authorizer: b2})
	h = c.HTTPClient(nil)
	alone, leave := context.WithCancel(t.Context())
	go func() { left <- request(alone) }()
	<-b2.inWait
	leave()
	if err := <-left; err == nil {
		t.Error("who left got an answer")
	}
	go func() { stayed <- request(t.Context()) }()
	<-b2.inWait
	close(b2.hold)
	if err := <-stayed; err != nil {
		t.Errorf("after all had left: %v", err)
	}
}

// The time limits of all requests that wait for a person stand still.
func TestWaiting(t *testing.T) {
	t.Parallel()
	var waits, resumes atomic.Int32
	rs := newResource(t, newAuthServer(t, ""))
	b := &browser{hold: make(chan struct{})}
	c, _ := newClient(t, login.Options{Authorizer: b})
	h := c.HTTPClient(nil)
	ctx := limited(t.Context(), func() {
		if waits.Add(1) == 3 {
			close(b.hold)
		}
	}, func() { resumes.Add(1) })
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, rs.url(), nil)
			resp, err := h.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	wg.Wait()
	if waits.Load() != 3 || resumes.Load() != 3 {
		t.Errorf("%d waits, %d resumes; want 3 each", waits.Load(), resumes.Load())
	}
	// Nobody waits for a refresh.
	rs.as[0].expire(false)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, rs.url(), nil)
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if waits.Load() != 3 {
		t.Error("a refresh counts as waiting for a person")
	}
}

// A closed Client ends what waits, and starts nothing.
func TestClose(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	b := &browser{hold: make(chan struct{}), inWait: make(chan struct{})}
	c := login.New(&login.Options{Authorizer: b})
	h := c.HTTPClient(nil)
	done := make(chan error, 1)
	go func() {
		_, _, err := get(t, h, rs.url())
		done <- err
	}()
	<-b.inWait
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, login.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
	if _, _, err := get(t, h, rs.url()); !errors.Is(err, login.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

// FuzzTokenStaysAtResource holds every spelling of a path to the rule that a
// token goes to its resource and what is below alone, as any server reads it.
func FuzzTokenStaysAtResource(f *testing.F) {
	for _, seed := range []string{
		"/mcp", "/mcp/", "/mcp/a?b=c", "/mcpx", "/mcp/../x", "/mcp/%2e%2e/x", "/mcp/..%2fx", "/mcp/.%2e\\x", "//mcp", "/mcp//..//x",
		"/MCP", "/mcp;x", "/mcp%2fx", "/x/mcp", "/mcp/%252e%252e/x",
	} {
		f.Add(seed)
	}
	resource, stop := exampleServers()
	f.Cleanup(stop)
	c := login.New(&login.Options{Authorizer: &browser{}})
	f.Cleanup(func() { _ = c.Close() })
	if _, err := c.SignIn(context.Background(), resource, nil); err != nil {
		f.Fatal(err)
	}
	var got string
	next := c.Transport(webtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Get("Authorization")
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: r}, nil
	}))
	f.Fuzz(func(t *testing.T, target string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(resource, "/mcp")+target, nil)
		if err != nil {
			return
		}
		got = ""
		resp, err := next.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		clean := path.Clean(strings.ReplaceAll(req.URL.Path, "\\", "/"))
		inside := resource == "http://"+req.URL.Host+"/mcp" && (clean == "/mcp" || strings.HasPrefix(clean, "/mcp/"))
		if got != "" && !inside {
			t.Errorf("%s has the token", req.URL)
		}
	})
}

// lateStore tells when something was stored.
type lateStore struct {
	login.Store
	late func()
}

func (s lateStore) Set(ctx context.Context, name string, value []byte) error {
	if strings.HasPrefix(name, "resource.") { // the last that a sign-in stores
		defer s.late()
	}
	return s.Store.Set(ctx, name, value)
}

// Tokens that end at once do not make all who wait sign in one by one.
func TestShortLife(t *testing.T) {
	t.Parallel()
	const requests = 16
	as := newAuthServer(t, "")
	as.expires, as.norefrsh = 1, true
	rs := newResource(t, as)
	now := clocktest.New(time.Now())
	b := &browser{hold: make(chan struct{})}
	store := lateStore{login.NewMemory(), func() { now.Add(time.Hour) }}
	c, _ := newClient(t, login.Options{Now: now.Now, Store: store, Authorizer: b})
	h := c.HTTPClient(nil)
	rs.silent, rs.prmPath, rs.resource = true, "/.well-known/oauth-protected-resource", rs.URL
	var waits atomic.Int32
	ctx := limited(t.Context(), func() {
		if waits.Add(1) == requests {
			close(b.hold) // who comes later signs in anew
		}
	}, nil)
	var wg sync.WaitGroup
	for range requests {
		wg.Go(func() {
			r, err := webtest.Read(h, webtest.NewRequest(t, ctx, http.MethodGet, rs.url(), ""))
			if err != nil || r.Status != http.StatusOK {
				t.Errorf("%d %v", r.Status, err)
			}
		})
	}
	wg.Wait()
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
}
