package guard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/principal"
)

// A broad scope includes narrow ones, by way of others too, and rounds do no
// harm. Proves: R8.
func TestHierarchy(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Scopes: []string{"read"}, Implies: map[string][]string{
		"admin": {"write", "audit"}, "write": {"read"}, "read": {"list"}, "a": {"b"}, "b": {"a", "read"},
	}})
	tests := []struct {
		scope string
		want  []string // nil: refused
	}{
		{"read", []string{"read", "list"}},
		{"admin", []string{"admin", "write", "audit", "read", "list"}},
		{"write x", []string{"write", "x", "read", "list"}},
		{"a", []string{"a", "b", "read", "list"}},
		{"list", nil},
		{"audit", nil},
		{"adm", nil},
		{"Read", nil},
	}
	for _, test := range tests {
		t.Run(test.scope, func(t *testing.T) {
			b.t = t
			w := b.bearer(b.token(claims{"scope": test.scope}))
			if test.want == nil {
				b.refused(w, 403, "insufficient_scope")
				return
			}
			if d := cmp.Diff(test.want, b.passed(w).Scopes); d != "" {
				t.Error(d)
			}
		})
	}
}

// A caller who lacks scopes is told once all that the operation needs, and
// nothing that is no scope of a resource. Proves: R7, R9, R10.
// Attack: over-broad scope.
func TestAttackOverBroadScope(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Scopes: []string{"mcp"}, Implies: map[string][]string{"files:*": {"files:read"}}})
	p := b.passed(b.bearer(b.token(claims{"scope": "mcp other"})))
	tests := []struct {
		need []string
		want string
	}{
		{[]string{"files:write"}, "mcp files:write"},
		{[]string{"files:read", "files:write", "files:read", "mcp"}, "mcp files:read files:write"},
		{[]string{"files:read", "offline_access"}, "mcp files:read"},
		{[]string{"bad\"\r\nX: y", "ok"}, "mcp ok"},
		{nil, "mcp"},
	}
	for _, test := range tests {
		text := p.Challenge(test.need)
		got := parseChallenge(t, text)
		want := map[string]string{
			"scheme": "Bearer", "error": "insufficient_scope", "scope": test.want, "resource_metadata": metadata,
			"error_description": got["error_description"],
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", test.need, d)
		}
	}
	if p.Has("*") || p.Has("files:read") || p.Has("") {
		t.Error("a scope was taken for a pattern")
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	p := &principal.Principal{Subject: "ada", Scopes: []string{"a", "b"}}
	tests := []struct {
		p      *principal.Principal
		scopes []string
		want   bool
	}{
		{p, nil, true},
		{p, []string{"a"}, true},
		{p, []string{"a", "b"}, true},
		{p, []string{"a", "c"}, false},
		{nil, nil, true},
		{nil, []string{"a"}, false},
		{&principal.Principal{Remote: "192.0.2.1"}, []string{"a"}, false},
		{principal.Local, []string{"a"}, true},
		{&principal.Principal{Subject: "local"}, []string{"a"}, false},
	}
	for _, test := range tests {
		if got := guard.Allows(test.p, test.scopes...); got != test.want {
			t.Errorf("%v, %q: %v", test.p, test.scopes, got)
		}
	}
}
