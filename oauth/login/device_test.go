package login_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/principal"
)

// The requirements of RFC 8628 for a client, and their tests.
//
//	3.1   client_id, or the client's authentication; TLS alone                       TestDeviceSignIn, TestDeviceHostile
//	3.2   an interval that is absent is 5 s                                          TestDevicePolling, oauth.TestParseDeviceAuthorization
//	3.3.1 the user code is shown, also with verification_uri_complete                TestDeviceSignIn
//	3.4   grant_type, device_code; resource (spec 2026-07-28, basic/authorization)   TestDeviceSignIn
//	3.5   the interval is kept; slow_down adds 5 s for good; no answer: less often;
//	      any other error ends it                                                    TestDevicePolling, TestDeviceRefused

// A deviceServer is an authServer with the device flow.
type deviceServer struct {
	*authServer
	says  []string       // answers to polls in order: an error, "drop" or "down"; then there are tokens
	extra map[string]any // members of the device authorization response; nil removes one
	asked []map[string][]string
	polls []map[string][]string
}

func newDeviceServers(t *testing.T) (*deviceServer, *resourceServer) {
	t.Helper()
	as, rs := newServers(t)
	as.Config.SetKeepAlivesEnabled(false) // connections that stay open would keep a synthetic clock from going on
	rs.Config.SetKeepAlivesEnabled(false)
	d := &deviceServer{authServer: as}
	as.override["device_authorization_endpoint"] = as.issuer() + "/device_authorization"
	as.handlers["/device_authorization"] = d.serveDevice
	as.handlers["/token"] = d.servePoll
	return d, rs
}

func (d *deviceServer) serveDevice(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	d.asked = append(d.asked, r.PostForm)
	answer := map[string]any{
		"device_code": "device-code", "user_code": "WDJB-MJHT", "verification_uri": d.URL + "/device",
		"verification_uri_complete": d.URL + "/device?user_code=WDJB-MJHT", "expires_in": 600, "interval": 3,
	}
	for name, value := range d.extra {
		if answer[name] = value; value == nil {
			delete(answer, name)
		}
	}
	reply(w, cmp.Or(d.status, 200), answer)
}

func (d *deviceServer) servePoll(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	if r.PostForm.Get("grant_type") != oauth.GrantDeviceCode {
		d.serveToken(w, r)
		return
	}
	d.polls = append(d.polls, r.PostForm)
	if len(d.says) == 0 {
		d.issue(w, &grant{client: r.PostForm.Get("client_id"), resource: r.PostForm.Get("resource")}, oauth.GrantDeviceCode)
		return
	}
	said := d.says[0]
	if len(d.says) > 1 || said != "authorization_pending" { // the last pending one is for good
		d.says = d.says[1:]
	}
	switch said {
	case "drop":
		panic(http.ErrAbortHandler)
	case "down":
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		reply(w, 400, map[string]any{"error": said})
	}
}

// pollTimes notes when requests to the token endpoint are sent.
type pollTimes struct {
	next  http.RoundTripper
	times *[]time.Duration
	start time.Time
}

func (p *pollTimes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/token" {
		*p.times = append(*p.times, time.Since(p.start))
	}
	return p.next.RoundTrip(r)
}

// signInByDevice signs in within a synthetic clock, and returns when the polls were.
func signInByDevice(t *testing.T, rs *resourceServer, o login.Options) (polls []time.Duration, shown []login.DevicePrompt, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if o.Device == nil {
			o.Device = func(_ context.Context, p login.DevicePrompt) error {
				shown = append(shown, p)
				return nil
			}
		}
		o.Fetch = oauth.NewFetcher(&oauth.FetchOptions{Around: func(next http.RoundTripper) http.RoundTripper {
			return &pollTimes{next, &polls, start}
		}})
		c := login.New(&o)
		_, err = c.SignIn(t.Context(), rs.url(), nil)
		took = time.Since(start)
		_ = c.Close()
	})
	return polls, shown, took, err
}

// Proves: a person is shown the code and where to enter it; both requests name client and
// resource; the tokens are kept and refreshed as others are. The client registers for this
// flow, and one that is registered for browsers stays so.
func TestDeviceSignIn(t *testing.T) {
	t.Parallel()
	d, rs := newDeviceServers(t)
	store := login.NewMemory()
	browsing, _ := newClient(t, login.Options{Store: store})
	if _, err := browsing.SignIn(t.Context(), rs.url(), nil); err != nil {
		t.Fatal(err)
	}
	if err := browsing.SignOut(t.Context(), rs.url()); err != nil {
		t.Fatal(err)
	}
	_, shown, _, err := signInByDevice(t, rs, login.Options{Store: store, Scopes: []string{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(shown) != 1 || shown[0].UserCode != "WDJB-MJHT" || shown[0].VerificationURI != d.URL+"/device" ||
		shown[0].VerificationURIComplete != d.URL+"/device?user_code=WDJB-MJHT" || shown[0].Resource != rs.url() || shown[0].Issuer != d.issuer() {
		t.Errorf("the person was shown %+v", shown)
	}
	d.Lock()
	asked, polls, registered := d.asked[0], d.polls[0], d.registered
	d.Unlock()
	if len(registered) != 2 || registered[1]["redirect_uris"] != nil || !slices.Contains(registered[1]["grant_types"].([]any), any(oauth.GrantDeviceCode)) {
		t.Errorf("registrations are %v", registered)
	}
	for name, want := range map[string]string{"client_id": "client-4", "resource": rs.url(), "scope": "read"} {
		if !slices.Equal(asked[name], []string{want}) {
			t.Errorf("the device request has %s %q, want %q", name, asked[name], want)
		}
	}
	for name, want := range map[string]string{"client_id": "client-4", "resource": rs.url(), "device_code": "device-code", "grant_type": oauth.GrantDeviceCode} {
		if !slices.Equal(polls[name], []string{want}) {
			t.Errorf("the token request has %s %q, want %q", name, polls[name], want)
		}
	}
	if asked["grant_type"] != nil || asked["redirect_uri"] != nil {
		t.Errorf("the device request is %v", asked)
	}
	later, b := newClient(t, login.Options{Store: store})
	welcome(t, later.HTTPClient(nil), rs.url())
	d.expire(false)
	welcome(t, later.HTTPClient(nil), rs.url())
	if b.begun != 0 {
		t.Error("a browser was needed")
	}
}

// Attack: metadata of the same issuer that moves the endpoint for devices would have the secret of the
// client: it is registered anew.
func TestDeviceMovedEndpoint(t *testing.T) {
	t.Parallel()
	d, _ := newDeviceServers(t)
	d.handlers["/elsewhere"] = d.serveDevice
	store := login.NewMemory()
	ids := make([]string, 0, 3)
	for _, path := range []string{"/device_authorization", "/device_authorization", "/elsewhere"} {
		d.Lock()
		d.override["device_authorization_endpoint"] = d.issuer() + path
		d.Unlock()
		rs := newResource(t, d.authServer)
		rs.Config.SetKeepAlivesEnabled(false)
		if _, _, _, err := signInByDevice(t, rs, login.Options{Store: store}); err != nil {
			t.Fatal(err)
		}
		d.Lock()
		ids = append(ids, d.asked[len(d.asked)-1]["client_id"][0])
		d.Unlock()
	}
	if ids[0] != ids[1] || ids[1] == ids[2] {
		t.Errorf("the clients are %q, want the same twice and another one", ids)
	}
}

// Proves: section 3.5: the first poll comes after an interval, slow_down adds 5 s for good,
// a lost answer doubles the interval.
func TestDevicePolling(t *testing.T) {
	t.Parallel()
	const pending, slow = oauth.AuthorizationPending, oauth.SlowDown
	for _, test := range []struct {
		name  string
		extra map[string]any
		says  []string
		want  []int // seconds between polls
	}{
		{"at once", nil, nil, []int{3}},
		{"the server's interval", nil, []string{pending, pending}, []int{3, 3, 3}},
		{"no interval", map[string]any{"interval": nil}, []string{pending}, []int{5, 5}},
		{"an interval of 0", map[string]any{"interval": 0}, []string{pending}, []int{5, 5}},
		{"slow down", nil, []string{slow, pending, slow, pending}, []int{3, 8, 8, 13, 13}},
		{"lost answers", nil, []string{"drop", "down", pending}, []int{3, 6, 12, 12}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d, rs := newDeviceServers(t)
			d.says, d.extra = append(slices.Clone(test.says), "stop"), test.extra
			polls, _, _, err := signInByDevice(t, rs, login.Options{})
			if err == nil || !strings.Contains(err.Error(), "stop") {
				t.Fatalf("the sign-in ended with %v", err)
			}
			var got []int
			last := time.Duration(0)
			for _, at := range polls {
				got = append(got, int((at-last+time.Second/2)/time.Second))
				last = at
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("waits between polls are %v s, want %v", got, test.want)
			}
		})
	}
}

// Proves: errors end the sign-in at once; a code that nobody enters ends it in time, whatever
// the server says; so does the end of the context.
func TestDeviceRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, says, want string
		denied           bool
	}{
		{"denied", oauth.AccessDenied, "was denied", true},
		{"expired", oauth.ExpiredToken, "nobody entered the code in time", true},
		{"grant", oauth.InvalidGrant, oauth.InvalidGrant, true},
		{"pending for ever", oauth.AuthorizationPending, "nobody entered the code in time", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d, rs := newDeviceServers(t)
			d.says = []string{test.says}
			polls, _, took, err := signInByDevice(t, rs, login.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, principal.ErrDenied) != test.denied {
				t.Errorf("the sign-in ended with %v", err)
			}
			if test.says != oauth.AuthorizationPending && len(polls) != 1 || took > 10*time.Minute+time.Second {
				t.Errorf("%d polls in %v", len(polls), took)
			}
		})
	}
	d, rs := newDeviceServers(t)
	d.says, d.extra = []string{oauth.AuthorizationPending}, map[string]any{"expires_in": 1 << 40}
	if _, _, took, err := signInByDevice(t, rs, login.Options{}); err == nil || took > 16*time.Minute {
		t.Errorf("a code for ages: %v after %v", err, took)
	}
	cause := errors.New("no thanks")
	refuse := func(context.Context, login.DevicePrompt) error { return cause }
	if polls, _, _, err := signInByDevice(t, rs, login.Options{Device: refuse}); !errors.Is(err, cause) || len(polls) != 0 {
		t.Errorf("a code that could not be shown: %v, %d polls", err, len(polls))
	}
}

// Attack: a server that has no such flow, sends the person or the client elsewhere, or writes
// to the person's terminal. Nothing is shown, and nothing polled.
func TestDeviceHostile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		change     func(*deviceServer)
	}{
		{"no endpoint", "no device_authorization_endpoint", func(d *deviceServer) { delete(d.override, "device_authorization_endpoint") }},
		{"endpoint over http", "https", func(d *deviceServer) { d.override["device_authorization_endpoint"] = "http://as.example/d" }},
		{"another issuer", "issuer", func(d *deviceServer) { d.override["issuer"] = "https://evil.example" }},
		{"page over http", "https", func(d *deviceServer) { d.extra = map[string]any{"verification_uri": "http://as.example/device"} }},
		{"page that runs code", "verification_uri", func(d *deviceServer) { d.extra = map[string]any{"verification_uri": "javascript:alert(1)"} }},
		{"code for the terminal", "user_code", func(d *deviceServer) { d.extra = map[string]any{"user_code": "\x1b[2J"} }},
		{"code of two lines", "user_code", func(d *deviceServer) { d.extra = map[string]any{"user_code": "A\nrun this"} }},
		{"interval without end", "interval", func(d *deviceServer) { d.extra = map[string]any{"interval": 1 << 40} }},
		{"redirect", "307", func(d *deviceServer) {
			d.handlers["/device_authorization"] = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, d.URL+"/elsewhere", http.StatusTemporaryRedirect)
			}
		}},
		{"refusal", oauth.UnauthorizedClient, func(d *deviceServer) {
			d.handlers["/device_authorization"] = func(w http.ResponseWriter, _ *http.Request) {
				reply(w, 400, map[string]any{"error": oauth.UnauthorizedClient})
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d, rs := newDeviceServers(t)
			test.change(d)
			polls, shown, _, err := signInByDevice(t, rs, login.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("the error is %v", err)
			}
			if len(shown) != 0 || len(polls) != 0 || slices.Contains(d.hits, "POST /elsewhere") {
				t.Errorf("shown %+v, %d polls, requests %v", shown, len(polls), d.hits)
			}
		})
	}
}

// A server without metadata has no endpoint for devices, and is said to have none.
func TestDeviceWithoutMetadata(t *testing.T) {
	t.Parallel()
	rs, as := newLegacy(t)
	as.places = []string{}
	c, _ := newClient(t, login.Options{Device: func(context.Context, login.DevicePrompt) error { return nil }})
	_, err := c.SignIn(t.Context(), rs.url(), nil)
	if err == nil || !strings.Contains(err.Error(), "no sign-in on another device") {
		t.Errorf("error %v, want that there is no sign-in on another device", err)
	}
}
