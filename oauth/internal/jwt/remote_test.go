package jwt_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// keyServer is a jwks_uri whose answers the test chooses.
type keyServer struct {
	*httptest.Server
	webtest.Switch
}

func newKeyServer(t *testing.T, keys ...*jwt.Key) *keyServer {
	t.Helper()
	s := new(keyServer)
	s.publish(keys...)
	s.Server = webtest.Serve(t, &s.Switch)
	return s
}

func (s *keyServer) publish(keys ...*jwt.Key) {
	s.Set(webtest.Answer(http.StatusOK, string(jwt.SetJSON(keys...))))
}

func (s *keyServer) expect(t *testing.T, when string, want int32) {
	t.Helper()
	if got := s.Hits(); got != want {
		t.Errorf("%s: %d fetches, want %d", when, got, want)
	}
}

func newRemote(t *testing.T, s *keyServer, o *jwt.RemoteOptions) *jwt.Remote {
	t.Helper()
	f := oauth.NewFetcher(&oauth.FetchOptions{Timeout: time.Hour}).Loopback()
	r := jwt.NewRemote(f, func(context.Context) (string, error) { return s.URL, nil }, o)
	t.Cleanup(func() { r.Close(); f.Close() })
	return r
}

// patience is less than a fetch may take, which is a minute, so that waiting for one is seen.
const patience = 50 * time.Second

// find expects so many keys, without waiting for a server that hangs.
func find(t *testing.T, r *jwt.Remote, id string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if keys, err := r.Find(ctx, id, "ES256"); err != nil || len(keys) != want {
		t.Errorf("key %q: %d keys, %v; want %d", id, len(keys), err, want)
	}
}

// fails expects an error for the key k.
func fails(t *testing.T, r *jwt.Remote) {
	t.Helper()
	_ = findErr(t, r, "k")
}

func findErr(t *testing.T, r *jwt.Remote, id string) error {
	t.Helper()
	keys, err := r.Find(t.Context(), id, "ES256")
	if err == nil {
		t.Errorf("key %q: %d keys, want an error", id, len(keys))
	}
	return err
}

// One fetch serves all who come while it is under way, and after it.
func TestRemoteSingleFlight(t *testing.T) {
	t.Parallel()
	k := keyOf(t, "k")
	s := newKeyServer(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.Set(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		webtest.Answer(http.StatusOK, string(jwt.SetJSON(k)))(w, r)
	})
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { find(t, r, "k", 1) })
	}
	<-arrived
	close(release)
	all.Wait()
	find(t, r, "k", 1)
	find(t, r, "", 1)
	s.expect(t, "50 at once", 1)
}

// Who waits leaves when its own context ends; the fetch goes on for others.
func TestRemoteWaiterLeaves(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.Set(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		webtest.Answer(http.StatusOK, string(jwt.SetJSON(keyOf(t, "k"))))(w, r)
	})
	r := newRemote(t, s, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	left := make(chan error)
	go func() {
		_, err := r.Find(ctx, "k", "ES256")
		left <- err
	}()
	<-arrived
	cancel(gone)
	if err := <-left; !errors.Is(err, gone) {
		t.Errorf("the first leaves with %v", err)
	}
	close(release)
	find(t, r, "k", 1)
	s.expect(t, "after one left", 1)
}

// Attack: a flood of tokens with made-up key ids makes the server fetch.
func TestRemoteUnknownKeys(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "old"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now})
	for i := range 100 {
		find(t, r, fmt.Sprint("made up ", i), 0)
	}
	s.expect(t, "100 unknown ids at once", 1)
	find(t, r, "old", 1)
	c.Add(10*time.Second - 1)
	for _, wait := range []time.Duration{1, 1} { // it may be there by now
		doubt, ok := errors.AsType[*jwt.DoubtError](findErr(t, r, "new"))
		if !ok || doubt.Wait != wait {
			t.Errorf("a key that may be new: %v", doubt)
		}
	}
	s.expect(t, "just before the interval is over", 1)

	// A key that came by rotation is found after the interval.
	s.publish(keyOf(t, "old"), keyOf(t, "new"))
	c.Add(1)
	find(t, r, "new", 1)
	find(t, r, "old", 1)
	for i := range 100 {
		find(t, r, fmt.Sprint("made up ", i), 0)
	}
	s.expect(t, "after the interval", 2)
	// Known keys never wait for a fetch that strangers caused.
	c.Add(10 * time.Second)
	release := make(chan struct{})
	arrived := make(chan struct{})
	s.Set(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		webtest.Answer(http.StatusOK, string(jwt.SetJSON(keyOf(t, "new"))))(w, r)
	})
	var stranger sync.WaitGroup
	stranger.Go(func() { find(t, r, "made up", 0) })
	<-arrived
	find(t, r, "old", 1)
	close(release)
	stranger.Wait()
	find(t, r, "old", 0) // it was withdrawn
	s.expect(t, "in the end", 3)
}

// A key that the set lacks is in doubt until the set was fetched since it was asked for, and then
// it is not: a token of it is no good.
func TestRemoteDoubt(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "old"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now})
	inDoubt := func(id string, wait time.Duration) {
		t.Helper()
		if doubt, ok := errors.AsType[*jwt.DoubtError](findErr(t, r, id)); !ok || doubt.Wait != wait {
			t.Errorf("key %q: %v, want a wait of %v", id, doubt, wait)
		}
	}
	find(t, r, "old", 1)
	c.Add(time.Second)
	inDoubt("made up", 9*time.Second)
	inDoubt("new", 9*time.Second)
	s.publish(keyOf(t, "new"))
	c.Add(9 * time.Second)
	find(t, r, "new", 1)
	s.expect(t, "once the interval is over", 2)
	c.Add(time.Second)
	find(t, r, "made up", 0)
	find(t, r, "made up", 0)
	inDoubt("newer", 9*time.Second)
	s.expect(t, "for known and unknown keys", 2)
	// Also once strangers have filled all room.
	for i := range 2000 {
		inDoubt(fmt.Sprint("made up ", i), 9*time.Second)
	}
	c.Add(9 * time.Second)
	find(t, r, "made up", 0)
	find(t, r, "one more", 0)
	s.expect(t, "the next interval", 3)
}

// A set is used for its time, which the server may shorten.
func TestRemoteAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header string
		maxAge time.Duration
		want   time.Duration
	}{
		{"", 0, time.Hour},
		{"", time.Minute, time.Minute},
		{"public, max-age=120", 0, 2 * time.Minute},
		{`Max-Age="120" , must-revalidate`, 0, 2 * time.Minute},
		{"max-age=120, max-age=5000", 0, 2 * time.Minute},
		{"max-age=86400", 0, time.Hour},
		{"max-age=0", 0, 10 * time.Second},
		{"no-store", 0, 10 * time.Second},
		{"max-age=600, no-cache", 0, 10 * time.Second},
		{"max-age=-1", 0, time.Hour},
		{"max-age=soon", 0, time.Hour},
		{"max-age", 0, time.Hour},
		{"s-maxage=1", 0, time.Hour},
		{"max-age=99999999999999999999", 0, time.Hour},
	} {
		t.Run(c.header, func(t *testing.T) {
			t.Parallel()
			s := newKeyServer(t)
			s.Set(webtest.Answer(http.StatusOK, string(jwt.SetJSON(keyOf(t, "k"))), "Cache-Control", c.header))
			clk := clocktest.New(noon)
			r := newRemote(t, s, &jwt.RemoteOptions{Now: clk.Now, MaxAge: c.maxAge})
			find(t, r, "k", 1)
			clk.Add(c.want - 1)
			find(t, r, "k", 1)
			s.expect(t, "while fresh", 1)
			clk.Add(1)
			find(t, r, "k", 1)
			s.expect(t, "when old", 2)
		})
	}
}

// A set that is not to be stored is used for a moment all the same, also by who
// uses nothing stale: otherwise every token would be refused.
func TestRemoteNoStore(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	s.Set(webtest.Answer(http.StatusOK, string(jwt.SetJSON(keyOf(t, "k"))), "Cache-Control", "no-store"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, StaleIfError: -1})
	find(t, r, "k", 1)
	find(t, r, "k", 1)
	s.expect(t, "at once", 1)
	c.Add(10 * time.Second)
	find(t, r, "k", 1)
	s.expect(t, "later", 2)
}

// While the server errs the old set is used, for a time; then nothing is.
func TestRemoteStale(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"status": webtest.Answer(http.StatusServiceUnavailable, string(jwt.SetJSON())),
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
		},
		"HTML":     webtest.Answer(http.StatusOK, "<html>"),
		"not keys": webtest.Answer(http.StatusOK, `{"error":"x"}`),
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"keys":[]}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newKeyServer(t, keyOf(t, "k"))
			c := clocktest.New(noon)
			r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, MaxAge: time.Hour, StaleIfError: 2 * time.Hour})
			find(t, r, "k", 1)
			s.Set(answer)
			c.Add(time.Hour)
			find(t, r, "k", 1)
			find(t, r, "k", 1)
			_ = findErr(t, r, "unknown") // it may be a new one
			s.expect(t, "within one interval", 2)
			c.Add(2*time.Hour - 1)
			find(t, r, "k", 1)
			c.Add(10 * time.Second)
			if err := findErr(t, r, "k"); errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			// It comes back.
			s.publish(keyOf(t, "k"))
			c.Add(10 * time.Second)
			find(t, r, "k", 1)
		})
	}
}

// An authorization server that hangs does not make every request hang: there
// is an old key, and the last fetch has failed. Attack: made-up key ids, to have
// requests wait until no room is left for others.
func TestRemoteHangs(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "k"))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now})
	find(t, r, "k", 1)
	s.Set(webtest.Answer(http.StatusBadGateway, ""))
	c.Add(time.Hour)
	find(t, r, "k", 1)
	arrived, over := make(chan struct{}), make(chan struct{})
	s.Set(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(over)
	})
	c.Add(10 * time.Second)
	find(t, r, "k", 1)
	<-arrived
	find(t, r, "k", 1)
	for i := range 100 {
		_ = findErr(t, r, fmt.Sprint("made up ", i))
	}
	select {
	case <-over:
		t.Error("unknown ids waited for the fetch")
	default:
	}
	s.expect(t, "while it hangs", 3)
}

// The first fetch that fails is told, and not repeated at once.
func TestRemoteFirstFails(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	s.Set(webtest.Answer(http.StatusInternalServerError, ""))
	c := clocktest.New(noon)
	r := newRemote(t, s, &jwt.RemoteOptions{Now: c.Now, StaleIfError: -1})
	for range 20 {
		fails(t, r)
	}
	s.expect(t, "20 times", 1)
	s.publish(keyOf(t, "k"))
	fails(t, r)
	c.Add(10 * time.Second)
	find(t, r, "k", 1)
	// Nothing stale is used if that was asked for.
	s.Set(webtest.Answer(http.StatusInternalServerError, ""))
	c.Add(time.Hour)
	fails(t, r)
}

// Attack: SSRF: the URL of the keys goes through the guarded client. And a URL
// that cannot be found is an error that is told.
func TestRemoteURL(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "k"))
	f := oauth.NewFetcher(nil)
	t.Cleanup(f.Close)
	blocked := jwt.NewRemote(f, func(context.Context) (string, error) { return s.URL, nil }, nil)
	t.Cleanup(blocked.Close)
	err := findErr(t, blocked, "k")
	if _, ok := errors.AsType[*oauth.BlockedError](err); !ok {
		t.Errorf("loopback: %v", err)
	}
	s.expect(t, "blocked", 0)

	lost := errors.New("no metadata")
	c := clocktest.New(noon)
	urlErr := lost
	calls := 0
	r := jwt.NewRemote(f.Loopback(), func(ctx context.Context) (string, error) {
		calls++
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the search for the URL has no bound")
		}
		return s.URL, urlErr
	}, &jwt.RemoteOptions{Now: c.Now})
	t.Cleanup(r.Close)
	if err := findErr(t, r, "k"); !errors.Is(err, lost) {
		t.Error(err)
	}
	urlErr = nil
	c.Add(10 * time.Second)
	find(t, r, "k", 1)
	if calls != 2 {
		t.Errorf("%d searches, want 2", calls)
	}
}

// A body beyond the bound of the fetcher is an error, not a part of a set.
func TestRemoteLargeBody(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, keyOf(t, "k"))
	f := oauth.NewFetcher(&oauth.FetchOptions{MaxBody: 64}).Loopback()
	t.Cleanup(f.Close)
	r := jwt.NewRemote(f, func(context.Context) (string, error) { return s.URL, nil }, nil)
	t.Cleanup(r.Close)
	fails(t, r)
}

func TestRemoteClose(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	arrived := make(chan struct{})
	s.Set(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	r := newRemote(t, s, nil)
	left := make(chan error)
	go func() {
		_, err := r.Find(t.Context(), "k", "ES256")
		left <- err
	}()
	<-arrived
	closed := make(chan struct{})
	go func() {
		r.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("Close waits for the server")
	}
	if err := <-left; err == nil {
		t.Error("a closed source finds keys")
	}
	fails(t, r)
	s.expect(t, "closed", 1)
	r.Close()
}

// A token of a Remote's issuer is taken, and one whose key cannot be fetched is
// not called a bad one.
func TestVerifyRemote(t *testing.T) {
	t.Parallel()
	k := keyOf(t, "k")
	s := newKeyServer(t, k)
	token, err := k.Sign(jwt.TypeAccessToken, claims())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jwt.Verify(t.Context(), token, newRemote(t, s, nil), check()); err != nil {
		t.Error(err)
	}
	s.Set(webtest.Answer(http.StatusInternalServerError, ""))
	_, err = jwt.Verify(t.Context(), token, newRemote(t, s, nil), check())
	for _, bad := range []error{jwt.ErrMalformed, jwt.ErrNoKey, jwt.ErrSignature, nil} {
		if errors.Is(err, bad) {
			t.Errorf("while the keys are out of reach: %v", err)
		}
	}
}
