package sse

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzResolve lets a server choose where messages go: whatever it says, they
// stay with it.
//
// Proves: SEC-HTTP-1.
func FuzzResolve(f *testing.F) {
	stream, err := url.Parse("https://Server.example/deep/sse?token=x#y")
	if err != nil {
		f.Fatal(err)
	}
	for _, said := range []string{
		"/m?sessionId=1", "?a=b", "m", "https://server.example:443/m", "//evil.example", "javascript:x", "https:m", "https:///m",
		"/\\evil.example", "https://server.example@evil.example/", "\thttps://evil.example", "https://server.example.evil.example",
	} {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said string) {
		address, err := resolve(stream, said)
		if err != nil {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
		if err != nil {
			t.Fatalf("%q was taken for %q, which is no address: %v", said, address, err)
		}
		if u := r.URL; u.Scheme != "https" || strings.ToLower(u.Hostname()) != "server.example" || u.Port() != "" && u.Port() != "443" || u.User != nil || u.Fragment != "" {
			t.Errorf("%q was taken for %q", said, address)
		}
	})
}

// FuzzEndpoint opens streams at all kinds of addresses: what the server makes
// of them is something that our client takes, on the same path.
func FuzzEndpoint(f *testing.F) {
	for _, uri := range []string{"/sse", "/a%2Fb?x=1", "//evil.example/sse", "/?sessionId=2&sessionId=3", "/;=%zz?%zz", "http://host/sse", "http://@host/sse", "*", ""} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		u, err := url.ParseRequestURI(uri)
		if err != nil || u.Host == "" && u.Path == "" || len(uri) > 2000 {
			return // net/http would not have called the handler
		}
		u.Scheme, u.Host, u.Opaque, u.User = "http", "server.example", "", nil
		said := endpoint(&http.Request{URL: u, RequestURI: uri}, "ID")
		address, err := resolve(u, said)
		if err != nil {
			t.Fatalf("%q gives %q, which is not taken: %v", uri, said, err)
		}
		got, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if ids := got.Query()[sessionParam]; len(ids) != 1 || ids[0] != "ID" {
			t.Errorf("%q gives %q, with the sessions %q", uri, said, ids)
		}
	})
}
