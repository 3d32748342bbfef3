package oauth_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
)

type params = map[string]string

// Proves: C3.
func TestParseChallenges(t *testing.T) {
	t.Parallel()
	bearer := func(p params) oauth.Challenge { return oauth.Challenge{Scheme: "Bearer", Params: p} }
	for _, c := range []struct {
		name   string
		values []string
		want   []oauth.Challenge
	}{
		{"nothing", nil, nil},
		{"empty", []string{"", " ", ",", " ,\t, "}, nil},
		{"scheme alone", []string{"Bearer"}, []oauth.Challenge{bearer(params{})}},
		{
			"one",
			[]string{`Bearer resource_metadata="https://a.example/x", scope="a b"`},
			[]oauth.Challenge{bearer(params{"resource_metadata": "https://a.example/x", "scope": "a b"})},
		},
		{
			"no spaces",
			[]string{`Bearer error="invalid_token",scope=a,Realm="x"`},
			[]oauth.Challenge{bearer(params{"error": "invalid_token", "scope": "a", "realm": "x"})},
		},
		{"bad white space", []string{"\tBearer \t a = \"x\" ,, b\t=\ty ,"}, []oauth.Challenge{bearer(params{"a": "x", "b": "y"})}},
		{
			"escapes",
			[]string{`Bearer a="x\"y\\z\,", b="c, Basic d=e"`},
			[]oauth.Challenge{bearer(params{"a": `x"y\z,`, "b": "c, Basic d=e"})},
		},
		{"empty text", []string{`Bearer a=""`}, []oauth.Challenge{bearer(params{"a": ""})}},
		{
			"two values",
			[]string{"Basic realm=x", "Bearer"},
			[]oauth.Challenge{{Scheme: "Basic", Params: params{"realm": "x"}}, bearer(params{})},
		},
		{
			"several in one",
			[]string{`Negotiate, Basic realm="x", charset="UTF-8", Bearer, NTLM dGVzdA==, DPoP algs="ES256"`},
			[]oauth.Challenge{
				{Scheme: "Negotiate", Params: params{}},
				{Scheme: "Basic", Params: params{"realm": "x", "charset": "UTF-8"}},
				bearer(params{}),
				{Scheme: "NTLM", Params: params{"": "dGVzdA=="}},
				{Scheme: "DPoP", Params: params{"algs": "ES256"}},
			},
		},
		{
			"token68",
			[]string{"Negotiate abc", "Negotiate a-._~+/= "},
			[]oauth.Challenge{{Scheme: "Negotiate", Params: params{"": "abc"}}, {Scheme: "Negotiate", Params: params{"": "a-._~+/="}}},
		},
		{
			"unquoted URL",
			[]string{"Bearer resource_metadata=https://a.example/x?y=z, error=invalid_token"},
			[]oauth.Challenge{bearer(params{"resource_metadata": "https://a.example/x?y=z", "error": "invalid_token"})},
		},

		{"twice", []string{`Bearer scope="a", SCOPE="b"`}, nil},
		{"token68 and parameter", []string{"Negotiate abc, d=e"}, nil},
		{"parameter of nothing", []string{`scope="a", b=c`}, nil},
		{"unterminated", []string{`Bearer scope="a`, `Bearer a="\`, "Bearer a="}, []oauth.Challenge{bearer(params{"": "a="})}},
		{"control character", []string{"Bearer scope=\"a\r\nX: y\"", "Bearer a=\"\x00\"", "Bearer a=\x7f"}, nil},
		{"text after a text", []string{`Bearer a="b"c`, `Bearer a="b" c="d"`}, nil},
		{"no blank after the scheme", []string{`Bearer"x"`, "Bearer;a=b"}, nil},
		{"a word where a parameter should be", []string{"Bearer Basic realm=x"}, nil},
		{
			"after a broken one",
			[]string{`Bearer a="b" c, d="e, Bearer", Basic realm="x"`, `@, Bearer a=b`},
			[]oauth.Challenge{{Scheme: "Basic", Params: params{"realm": "x"}}, bearer(params{"a": "b"})},
		},
		{"values are apart", []string{"Bearer a=b", "c=d"}, []oauth.Challenge{bearer(params{"a": "b"})}},
	} {
		if diff := cmp.Diff(c.want, oauth.ParseChallenges(c.values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestParseChallengesBounds(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("Bearer a=b, ", 20)
	if got := oauth.ParseChallenges([]string{many, many}); len(got) != 16 {
		t.Errorf("got %d challenges, want 16", len(got))
	}
	for n, want := range map[int]int{32: 1, 33: 0} {
		var b strings.Builder
		b.WriteString("Bearer ")
		for i := range n {
			b.WriteString("p" + strconv.Itoa(i) + "=x, ")
		}
		if got := oauth.ParseChallenges([]string{b.String()}); len(got) != want {
			t.Errorf("got %d challenges of %d parameters, want %d", len(got), n, want)
		}
	}
}

func TestFindChallenge(t *testing.T) {
	t.Parallel()
	list := oauth.ParseChallenges([]string{"Basic, bearer a=1, Bearer a=2, DPoP"})
	if c, ok := oauth.FindChallenge(list, "DPoP", "Bearer"); !ok || c.Scheme != "DPoP" {
		t.Errorf("got %v, %v, want DPoP, which is asked for first", c, ok)
	}
	if c, ok := oauth.FindChallenge(list, "BEARER"); !ok || c.Params["a"] != "1" {
		t.Errorf("got %v, %v, want the first bearer", c, ok)
	}
	if c, ok := oauth.FindChallenge(list, "Digest"); ok {
		t.Errorf("got %v, want none", c)
	}
}

// Attack: header splitting, by what a description holds.
func TestChallengeString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		challenge oauth.Challenge
		want      string
	}{
		{oauth.Challenge{Scheme: "Bearer"}, "Bearer"},
		{oauth.Challenge{Scheme: "Bearer", Params: params{
			"zeta": "1", "alpha": "2", "resource_metadata": "https://a.example/", "scope": "a b", "error": "invalid_token",
			"realm": "x", "error_description": "no",
		}}, `Bearer realm="x", error="invalid_token", error_description="no", scope="a b", ` +
			`resource_metadata="https://a.example/", alpha="2", zeta="1"`},
		{oauth.Challenge{Scheme: "Bearer", Params: params{"a": "x\r\nSet-Cookie: y\x00\x7f"}}, `Bearer a="x??Set-Cookie: y??"`},
		{oauth.Challenge{Scheme: "Bearer", Params: params{"a": `"\`}}, `Bearer a="\"\\"`},
		{oauth.Challenge{Scheme: "Bearer", Params: params{"a\r\n": "x", "b c": "y", "d": "z"}}, `Bearer d="z"`},
		{oauth.Challenge{Scheme: "Bearer\r\nX:", Params: params{"a": "b"}}, ""},
		{oauth.Challenge{Scheme: "Negotiate", Params: params{"": "ab=="}}, "Negotiate ab=="},
		{oauth.Challenge{Scheme: "Negotiate", Params: params{"": "a\r\nb"}}, "Negotiate"},
	} {
		if got := c.challenge.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
