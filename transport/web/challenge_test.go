package web_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// What is no scope reaches nobody's challenge; the list given stays as it is.
// Proves: R7.
func TestChallenge(t *testing.T) {
	var asked []string
	who := &principal.Principal{Challenge: func(scopes []string) string {
		asked = scopes
		return "Bearer x"
	}}
	given := []string{"", "a b", "ok", `a"`, `a\`, "a\r\nX: 1", "ä", "also:ok"}
	before := slices.Clone(given)
	h := make(http.Header)
	web.Challenge(h, who, given)
	if d := cmp.Diff([]string{"ok", "also:ok"}, asked); d != "" || h.Get("WWW-Authenticate") != "Bearer x" {
		t.Errorf("asked for %s; header %v", d, h)
	}
	if d := cmp.Diff(before, given); d != "" {
		t.Errorf("the list was written to: %s", d)
	}
	web.Challenge(h, who, strings.Split(strings.Repeat("s ", 1000), " "))
	if len(asked) != 100 {
		t.Errorf("asked for %d scopes, want 100", len(asked))
	}
	web.Challenge(h, who, []string{"a", strings.Repeat("b", 1<<20), strings.Repeat("c", 4000), strings.Repeat("d", 4000), "e"})
	if d := cmp.Diff([]string{"a", strings.Repeat("c", 4000), "e"}, asked); d != "" {
		t.Errorf("asked for %s", d)
	}
	for _, who := range []*principal.Principal{nil, {}, principal.Local, {Challenge: func([]string) string { return "" }}} {
		h := make(http.Header)
		if web.Challenge(h, who, given); len(h) != 0 {
			t.Errorf("%+v: %v", who, h)
		}
	}
}

// A person is told which scopes are wanted, whatever stands around them in the
// header. Proves: C3, C23 (without a login).
func TestStatusErrorScopes(t *testing.T) {
	const plain = "the server answered 403 Forbidden; it does not let this caller in"
	named := func(scopes string) string {
		return "the server answered 403 Forbidden; it wants authorization with the scope " + scopes
	}
	for _, test := range []struct {
		header []string
		want   string
	}{
		{nil, plain},
		{[]string{`Bearer error="insufficient_scope", scope="a b", resource_metadata="https://r.example/x"`}, named("a b")},
		{[]string{`Bearer scope=a,error=insufficient_scope`}, named("a")},
		{[]string{`Basic realm="scope=x"`, `bearer  ERROR="insufficient_scope" , Scope="a"`}, named("a")},
		{[]string{`DPoP algs="ES256", error="insufficient_scope", scope="a\:b"`}, named("a:b")},
		{[]string{`Bearer error="invalid_token", scope="a"`}, plain},
		{[]string{`Bearer error="insufficient_scope"`}, plain},
		{[]string{`Bearer error_description="error=insufficient_scope, scope=evil"`}, plain},
		{[]string{"Bearer error=\"insufficient_scope\", scope=\"\x1b[31m a\""}, named("a")},
		{[]string{`Bearer error="insufficient_scope", scope="a`}, named("a")},
		{[]string{`Bearer error="insufficient_scope", scope="a\`}, plain},
		{[]string{`Bearer error="insufficient_scope", scope=`}, plain},
		{[]string{`=`, `"`, `Bearer`}, plain},
	} {
		e := &web.StatusError{Status: http.StatusForbidden, Header: http.Header{"Www-Authenticate": test.header}}
		if got := e.Error(); got != test.want {
			t.Errorf("%q: %s, want %s", test.header, got, test.want)
		}
	}
}

// Who is not let in is told from other failures without knowing of HTTP, and
// what the protocol said of it is there too.
func TestStatusErrorDenied(t *testing.T) {
	for status, want := range map[int]bool{401: true, 403: true, 400: false, 404: false, 407: false, 500: false, 302: false} {
		var err error = &web.StatusError{Status: status}
		if got := errors.Is(err, transport.ErrDenied); got != want {
			t.Errorf("%d: denied %v, want %v", status, got, want)
		}
	}
	said := jsonrpc.NewError(-31006, "this call needs the scope a")
	err := (&web.StatusError{Status: 403, Text: `{"jsonrpc":`}).Because(said)
	if got, ok := errors.AsType[*jsonrpc.Error](err); !ok || got != said || !strings.HasSuffix(err.Error(), "(it said: this call needs the scope a)") {
		t.Errorf("%v holds %v", err, got)
	}
	if err := (&web.StatusError{Status: 403, Text: "x"}).Because(nil); err.Unwrap() != nil || err.Text != "x" {
		t.Errorf("without a message: %+v", err)
	}
}

func FuzzStatusErrorScopes(f *testing.F) {
	f.Add(`Bearer error="insufficient_scope", scope="a b", x=y`)
	f.Add(`Bearer error=insufficient_scope scope="a\"b`)
	f.Add(`=,="\`)
	f.Fuzz(func(t *testing.T, header string) {
		e := &web.StatusError{Status: http.StatusForbidden, Header: http.Header{"Www-Authenticate": {header}}}
		for _, r := range e.Error() {
			if r < ' ' || r > '~' {
				t.Errorf("%q: the text has %q", header, r)
			}
		}
	})
}
