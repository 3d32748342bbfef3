package login_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// slowPerson agrees after a while.
type slowPerson struct {
	browser
	takes time.Duration
}

func (b *slowPerson) Begin(ctx context.Context, registered []string) (login.Visit, error) {
	v, err := b.browser.Begin(ctx, registered)
	return &slowVisit{v, b}, err
}

type slowVisit struct {
	login.Visit
	b *slowPerson
}

func (v *slowVisit) Wait(_ context.Context, u *url.URL, accept func(url.Values) bool) (url.Values, error) {
	time.Sleep(v.b.takes)
	// A client of its own, whose connection does not outlast the visit.
	once := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequest(http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := once.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, err
	}
	accept(to.Query())
	return to.Query(), nil
}

// A person who takes two minutes to sign in does not make the client's probe,
// which waits five seconds, take the server for an old or a dead one.
func TestSlowPersonWithClient(t *testing.T) {
	as, rs := newServers(t)
	// Connections that stay open would keep the synthetic clock from going on.
	as.Config.SetKeepAlivesEnabled(false)
	rs.Config.SetKeepAlivesEnabled(false)
	synctest.Test(t, func(t *testing.T) {
		s := server.New("hello", "1.0.0", nil)
		s.Add(server.Tool("greet", "Greets.", func(context.Context, struct{}) (string, error) { return "hello", nil }))
		inner := streamable.NewHandler(s, nil)
		requests := 0
		gate := webtest.ServeMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+rs.URL+rs.prmPath+`"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		person := &slowPerson{takes: 2 * time.Minute}
		signIn := login.New(&login.Options{Authorizer: person})
		d := streamable.URL(rs.url())
		d.Client = signIn.HTTPClient(gate.Client())
		start := time.Now()
		c, err := client.Connect(t.Context(), d, nil)
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		got, err := client.Call[string](t.Context(), c, "greet", struct{}{})
		if err != nil || got != "hello" || person.begun != 1 || time.Since(start) < 2*time.Minute {
			t.Errorf("%q %v after %v and %d visits", got, err, time.Since(start), person.begun)
		}
		if requests != 3 { // the probe twice, the call
			t.Errorf("%d requests, want 3: no other era was tried", requests)
		}
		_ = c.Close()
		_ = signIn.Close()
	})
}
