package principal_test

import (
	"testing"

	"github.com/parley-mcp/parley/principal"
)

// State and cursors are bound to an identity, so no two callers may share one.
// Proves: SEC-PAGE-1 (the caller's part).
func TestIdentity(t *testing.T) {
	seen := make(map[string]principal.Principal)
	for _, p := range []principal.Principal{
		{Subject: "a"},
		{Subject: "a", Client: "b"},
		{Subject: "a b"},
		{Subject: "a%20b"},
		{Issuer: "a", Subject: "b"},
		{Issuer: "a b"},
		{Issuer: "a", Client: "b"},
		{Client: "a"},
		{Client: "c", Groups: []string{"a"}},
	} {
		id := p.Identity()
		if other, ok := seen[id]; ok || id == "" {
			t.Errorf("%+v and %+v share the identity %q", p, other, id)
		}
		seen[id] = p
	}
}

// Scopes and the address are no part of an identity; an anonymous caller has
// none, and is limited by its address.
func TestAnonymous(t *testing.T) {
	var nobody *principal.Principal
	anonymous := &principal.Principal{Remote: "192.0.2.1", Scopes: []string{"read"}}
	for name, test := range map[string]struct {
		p             *principal.Principal
		identity, key string
	}{
		"nil":       {nobody, "", ""},
		"anonymous": {anonymous, "", "@192.0.2.1"},
		"IPv6":      {&principal.Principal{Remote: "2001:db8::1:2"}, "", "@2001:db8::/64"},
		"IPv4 in 6": {&principal.Principal{Remote: "::ffff:192.0.2.1"}, "", "@::ffff:192.0.2.1"},
		"local":     {principal.Local, " local ", " local "},
	} {
		if got := test.p.Identity(); got != test.identity {
			t.Errorf("%s: identity %q, want %q", name, got, test.identity)
		}
		if got := test.p.LimitKey(); got != test.key {
			t.Errorf("%s: limited as %q, want %q", name, got, test.key)
		}
	}
	if member := (&principal.Principal{Subject: "a", Groups: []string{"read"}}); member.Identity() != (&principal.Principal{Subject: "a"}).Identity() || member.Has("read") {
		t.Error("a group is part of the identity, or a scope")
	}
	if nobody.Has("read") || !anonymous.Has("read") || anonymous.Has("write") {
		t.Error("scopes are not what was granted")
	}
	if impostor := (principal.Principal{Subject: principal.Local.Subject}); !principal.Local.Has("read") || impostor.Has("read") {
		t.Error("Local alone has every scope")
	}
}

func TestContext(t *testing.T) {
	if principal.FromContext(t.Context()) != nil {
		t.Error("a context without a principal has one")
	}
	if got := principal.FromContext(principal.NewContext(t.Context(), principal.Local)); got != principal.Local {
		t.Errorf("got %+v", got)
	}
}

func TestValidScope(t *testing.T) {
	for scope, want := range map[string]bool{
		"files:read": true, "!": true, "~": true,
		"": false, "a b": false, "a\tb": false, `a"`: false, `a\`: false, "a\x7f": false, "é": false,
	} {
		if got := principal.ValidScope(scope); got != want {
			t.Errorf("%q is a scope: %t, want %t", scope, got, want)
		}
	}
}
