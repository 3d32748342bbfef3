package oauth_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
)

func TestParseScope(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scope string
		want  []string
		ok    bool
	}{
		{"", nil, true},
		{"  ", nil, true},
		{"a", []string{"a"}, true},
		{"b a  b c", []string{"b", "a", "c"}, true},
		{"files:read https://a.example/x!#[]~", []string{"files:read", "https://a.example/x!#[]~"}, true},
		{"a\tb", nil, false},
		{"a\nb", nil, false},
		{`a"b`, nil, false},
		{`a\b`, nil, false},
		{"ä", nil, false},
		{"a\x7f", nil, false},
	} {
		got, err := oauth.ParseScope(c.scope)
		if (err == nil) != c.ok {
			t.Errorf("%q: got error %v, want ok=%v", c.scope, err, c.ok)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.scope, diff)
		}
	}
	var many []string
	for i := range 101 {
		many = append(many, "s"+strconv.Itoa(i))
	}
	if _, err := oauth.ParseScope(oauth.JoinScope(many[:100]) + " s1 s2"); err != nil {
		t.Errorf("100 scopes: %v", err)
	}
	if _, err := oauth.ParseScope(strings.Join(many, " ")); err == nil {
		t.Error("101 scopes: got no error")
	}
}

// Proves: C23, the union of what was asked for and what is missing.
func TestUnionScopes(t *testing.T) {
	t.Parallel()
	got := oauth.UnionScopes([]string{"b", "a", "b"}, nil, []string{"c", "a"})
	if diff := cmp.Diff([]string{"b", "a", "c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := oauth.UnionScopes(nil, []string{}); got != nil {
		t.Errorf("of nothing: got %v, want nil", got)
	}
}
