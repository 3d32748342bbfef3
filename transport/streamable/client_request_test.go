package streamable_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// answering answers each request.
func answering(c *farCall) *http.Response {
	if c.id == "" || c.name == "" {
		return reply(202, "", "")
	}
	return reply(200, "application/json", c.result())
}

// protocol returns the headers that the protocol has a word about.
func protocol(h http.Header) map[string]string {
	some := make(map[string]string)
	for name := range maps.Keys(h) {
		some[name] = strings.Join(h[name], "|")
	}
	return some
}

// Proves: SEC-HTTP-1 (header and body agree). A stateless request carries its
// route; what a header cannot hold is base64 (ruling 15). The user's headers
// go along and do not replace the protocol's.
func TestRouteHeaders(t *testing.T) {
	far := &farEnd{post: answering}
	link, _ := far.near(t, func(d *streamable.Dialer) {
		d.Header = func(context.Context) (http.Header, error) {
			return http.Header{
				"x-mine": {"yes"}, "Authorization": {"Bearer t"}, "Accept": {"text/html"}, "Content-Type": {"text/html"},
				"MCP-Session-Id": {"forged"}, "mcp-method": {"forged"}, "MCP-Protocol-Version": {"forged"}, "Last-Event-ID": {"forged"},
			}, nil
		}
	})
	m := &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "tools/call", Params: jsonrpc.Raw(jsonrpc.RawValue(`{"name":"wetter für heute"}`))}
	r := transport.Route{Carried: true, Version: modern, Method: "tools/call", Name: "wetter für heute", Fields: map[string][]string{
		"Region": {"us-west1"}, "Text": {" padded "}, "Empty": {""},
	}}
	if _, err := link.Do(t.Context(), m, r); err != nil {
		t.Fatal(err)
	}
	call := far.seen(http.MethodPost)[0]
	want := map[string]string{
		"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
		"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?d2V0dGVyIGbDvHIgaGV1dGU=?=",
		"Mcp-Param-Region": "us-west1", "Mcp-Param-Text": "=?base64?IHBhZGRlZCA=?=", "Mcp-Param-Empty": "",
		"X-Mine": "yes", "Authorization": "Bearer t",
	}
	if diff := cmp.Diff(want, protocol(call.Header)); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if want := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wetter für heute"}}`; call.body != want {
		t.Errorf("body is %s, want %s", call.body, want)
	}
}

// Proves: FLOW-INIT. The handshake goes without version and session; all that
// follows carries the session, and the version where the revision has such a
// header (spec 2025-11-25, basic/transports).
func TestSessionHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for version, named := range map[string]string{primed: primed, headless: "", unresumable: ""} {
			far := &farEnd{session: "s-1", version: version, post: answering}
			link, in := far.established(t, nil)
			if err := link.Post(t.Context(), &jsonrpc.Outgoing{Method: "notifications/initialized"}, transport.Route{}); err != nil {
				t.Fatal(err)
			}
			route := transport.Route{Carried: true, Version: version, Method: "tools/list", Name: "n"}
			if _, err := link.Do(t.Context(), ask(1, "tools/list"), route); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // for the stream
			shut(t, link, in)
			posts := far.seen(http.MethodPost)
			if h := posts[0].Header; h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Protocol-Version") != "" {
				t.Errorf("%s: initialize has headers %v", version, h)
			}
			rest := slices.Concat(posts[1:], far.seen(http.MethodGet), far.seen(http.MethodDelete))
			if len(rest) != 4 {
				t.Errorf("%s: %d requests after the handshake, want a notification, a request, a stream and an end", version, len(rest))
			}
			for _, c := range rest {
				if c.Header.Get("Mcp-Session-Id") != "s-1" || c.Header.Get("Mcp-Protocol-Version") != named || c.Header.Get("Mcp-Method") != "" {
					t.Errorf("%s: %s has headers %v", version, c.Method, c.Header)
				}
			}
		}
	})
}

// A probe for a stateless revision is no part of a session that is there.
func TestProbeBesideSession(t *testing.T) {
	far := &farEnd{session: "s-1", post: answering}
	link, _ := far.established(t, nil)
	if link.Traits().Abandons {
		t.Error("with a session the end of a context is no cancellation")
	}
	if _, err := link.Do(t.Context(), ask(1, "server/discover"), modernRoute("server/discover")); err != nil {
		t.Fatal(err)
	}
	h := far.seen(http.MethodPost)[1].Header
	if h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Protocol-Version") != modern || h.Get("Mcp-Method") != "server/discover" {
		t.Errorf("the probe has headers %v", h)
	}
	if err := link.Establish(t.Context(), transport.Established{Version: modern}); err != nil {
		t.Fatal(err)
	}
	if n := len(far.seen(http.MethodDelete)); n != 1 {
		t.Errorf("%d sessions ended, want the one that is not needed any more", n)
	}
	if traits := link.Traits(); !traits.Abandons || !traits.Routes {
		t.Errorf("traits are %+v, want all", traits)
	}
}

// Proves: SEC-AUTH-1. A header that HTTP does not allow is refused before
// anything is sent, without showing its value.
func TestHeaderRefused(t *testing.T) {
	wrong := errors.New("the keyring is locked")
	for name, header := range map[string]func(context.Context) (http.Header, error){
		"line break": func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer hunter2\r\nX-Evil: 1"}}, nil
		},
		"name":  func(context.Context) (http.Header, error) { return http.Header{"X Evil: 1\r\nY": {"hunter2"}}, nil },
		"error": func(context.Context) (http.Header, error) { return nil, wrong },
	} {
		far := &farEnd{post: answering}
		link, _ := far.near(t, func(d *streamable.Dialer) { d.Header = header })
		_, err := do(t, link)
		if err == nil || strings.Contains(err.Error(), "hunter2") || errors.Is(err, transport.ErrInterrupted) {
			t.Errorf("%s: error is %v, want one that shows nothing and is certain", name, err)
		}
		if name == "error" && !errors.Is(err, wrong) {
			t.Errorf("error is %v, want what the function said", err)
		}
		if n := len(far.calls); n != 0 {
			t.Errorf("%s: %d requests were sent, want none", name, n)
		}
	}
}

// A client with a cookie jar keeps it, although most requests need less of a
// client.
func TestCookies(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	far := &farEnd{post: func(c *farCall) *http.Response {
		resp := answering(c)
		resp.Header.Set("Set-Cookie", "who=me")
		return resp
	}}
	link, _ := far.near(t, func(d *streamable.Dialer) { d.Client.Jar = jar })
	for range 2 {
		if _, err := do(t, link); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range far.seen(http.MethodPost) {
		got = append(got, c.Header.Get("Cookie"))
	}
	if diff := cmp.Diff([]string{"", "who=me"}, got); diff != "" {
		t.Errorf("cookies (-want +got):\n%s", diff)
	}
}

// A parameter's name that is no header is refused as well.
func TestFieldRefused(t *testing.T) {
	far := &farEnd{post: answering}
	link, _ := far.near(t, nil)
	r := modernRoute("tools/call")
	r.Fields = map[string][]string{"a b": {"x"}}
	if _, err := link.Do(t.Context(), ask(1, "tools/call"), r); err == nil {
		t.Error("a header with a blank in its name was sent")
	}
	if _, err := link.Do(t.Context(), &jsonrpc.Outgoing{Method: "tools/list"}, r); err == nil {
		t.Error("a request without id was sent")
	}
	if n := len(far.calls); n != 0 {
		t.Errorf("%d requests were sent, want none", n)
	}
}
