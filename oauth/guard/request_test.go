package guard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth/guard"
)

// FuzzAuthorization: whatever the headers are, what reaches the verifier is one
// token of the characters that tokens have, from one header; and no answer has
// a byte of it.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{
		"", "Bearer", "Bearer a", "bearer  a==", "DPoP a", "Basic YTpi", "Bearer a b", "Bearer a,b", "Bearer =", "Bearer\ta",
		" Bearer a", "Bearer a ", "Bearer \x00", "Bearer é", "Bear\ner a", "Negotiate", "Bearer a=b", "Bearer a, Bearer b",
	} {
		f.Add(seed, "")
		f.Add(seed, "Bearer b")
	}
	var got string
	v := guard.Func(issuerID, func(_ context.Context, token string) (*guard.Token, error) {
		got = token
		return &guard.Token{Subject: "ada", Audience: []string{resource}}, nil
	})
	g, err := guard.New(resource, v, &guard.Options{CacheAge: -1})
	if err != nil {
		f.Fatal(err)
	}
	h := g.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Authorization"] != nil {
			panic("the header goes on")
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	f.Fuzz(func(t *testing.T, first, second string) {
		got = ""
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, resource, nil)
		r.Header["Authorization"] = []string{first}
		if second != "" {
			r.Header["Authorization"] = []string{first, second}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusNoContent:
			scheme, rest, _ := strings.Cut(first, " ")
			if second != "" || !strings.EqualFold(scheme, "Bearer") || strings.TrimLeft(rest, " ") != got {
				t.Errorf("%q, %q passed with %q", first, second, got)
			}
		case http.StatusUnauthorized, http.StatusBadRequest:
			if challengeOf(t, w)["resource_metadata"] != metadata {
				t.Errorf("challenge: %v", w.Header())
			}
			if w.Code == http.StatusBadRequest && got != "" {
				t.Errorf("%q, %q was verified as %q", first, second, got)
			}
		default:
			t.Errorf("%q, %q: status %d", first, second, w.Code)
		}
		if strings.Trim(strings.TrimRight(got, "="), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") != "" {
			t.Errorf("the verifier got %q", got)
		}
	})
}
