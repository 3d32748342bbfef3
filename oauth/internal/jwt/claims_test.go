package jwt_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

func TestClaimsAppendJSON(t *testing.T) {
	t.Parallel()
	full := &jwt.Claims{
		Issuer: "i", Subject: "s", Audience: []string{"a", "b"}, Expiry: time.Unix(5, 0), NotBefore: time.Unix(0, 0),
		IssuedAt: time.Unix(3, 999), ID: "j", ClientID: "c", Scope: "x y", Resource: []string{"r"}, JKT: "k",
		Grant: "g", Nonce: "n", AuthTime: time.Unix(1, 0), Extra: wire.RawValue(`{"act":{"sub":"z"},"b":[1, 2]}`),
	}
	for name, c := range map[string]struct {
		claims *jwt.Claims
		want   string // empty: refused
	}{
		"empty":       {&jwt.Claims{}, `{}`},
		"one":         {&jwt.Claims{Audience: []string{"a"}}, `{"aud":"a"}`},
		"extra alone": {&jwt.Claims{Extra: wire.RawValue(`{"x":1}`)}, `{"x":1}`},
		"extra empty": {&jwt.Claims{Issuer: "i", Extra: wire.RawValue(`{}`)}, `{"iss":"i"}`},
		"full": {full, `{"iss":"i","sub":"s","aud":["a","b"],"exp":5,"nbf":0,"iat":3,"jti":"j","client_id":"c","scope":"x y",` +
			`"resource":"r","cnf":{"jkt":"k"},"gid":"g","nonce":"n","auth_time":1,"act":{"sub":"z"},"b":[1,2]}`},
		"quotes":             {&jwt.Claims{Subject: `"\` + "\n"}, `{"sub":"\"\\\n"}`},
		"registered":         {&jwt.Claims{Extra: wire.RawValue(`{"iss":"evil"}`)}, ""},
		"registered, cnf":    {&jwt.Claims{Extra: wire.RawValue(`{"cnf":{}}`)}, ""},
		"registered, spelt":  {&jwt.Claims{Extra: wire.RawValue(`{"\u0069ss":"evil"}`)}, ""},
		"extra twice":        {&jwt.Claims{Extra: wire.RawValue(`{"x":1,"x":2}`)}, ""},
		"extra no object":    {&jwt.Claims{Extra: wire.RawValue(`[]`)}, ""},
		"extra broken":       {&jwt.Claims{Extra: wire.RawValue(`{"x":1`)}, ""},
		"not Unicode":        {&jwt.Claims{Subject: "\xff"}, ""},
		"before 1970":        {&jwt.Claims{Expiry: time.Unix(-1, 0)}, ""},
		"after 9999":         {&jwt.Claims{Expiry: time.Unix(253402300800, 0)}, ""},
		"not Unicode in aud": {&jwt.Claims{Audience: []string{"a", "\xff"}}, ""},
	} {
		got, err := c.claims.AppendJSON([]byte("before"))
		if c.want == "" {
			if err == nil || string(got) != "before" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !wire.Equal(wire.RawValue(got[len("before"):]), wire.RawValue(c.want)) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		// The codec calls it, for a pointer and within other values.
		for _, v := range []any{c.claims, *c.claims} {
			if got, err := wire.Marshal(v); err != nil || string(got) != c.want {
				t.Errorf("%s: the codec gives %s, %v; want %s", name, got, err, c.want)
			}
		}
	}
}

// Proves: R4: whatever form servers write claims in, one thing is read, and
// what has a wrong kind is refused, not passed over.
func TestClaimsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*jwt.Claims{
		`{}`:                                     {},
		`{"aud":"a"}`:                            {Audience: []string{"a"}},
		`{"aud":["a","b"]}`:                      {Audience: []string{"a", "b"}},
		`{"aud":null,"exp":null,"scope":null}`:   {},
		`{"exp":1e9}`:                            {Expiry: time.Unix(1e9, 0)},
		`{"exp":1000000000.9,"nbf":0,"iat":1.0}`: {Expiry: time.Unix(1e9, 0), NotBefore: time.Unix(0, 0), IssuedAt: time.Unix(1, 0)},
		`{"exp":253402300799}`:                   {Expiry: time.Unix(253402300799, 0)},
		`{"scope":"a b"}`:                        {Scope: "a b"},
		`{"scope":["a","b"]}`:                    {Scope: "a b"},
		`{"scp":"a b"}`:                          {Scope: "a b"},
		`{"scp":["a","b"]}`:                      {Scope: "a b"},
		`{"scope":"a","scp":["b"]}`:              {Scope: "a"},
		`{"azp":"c"}`:                            {ClientID: "c"},
		`{"azp":"c","client_id":"d"}`:            {ClientID: "d"},
		`{"resource":"r"}`:                       {Resource: []string{"r"}},
		`{"resource":["r","s"]}`:                 {Resource: []string{"r", "s"}},
		`{"cnf":{"jkt":"k"}}`:                    {JKT: "k"},
		`{"ISS":"x","Exp":1}`:                    {},
		`{"exp":"5"}`:                            nil,
		`{"exp":-1}`:                             nil,
		`{"exp":1e999}`:                          nil,
		`{"exp":253402300800}`:                   nil,
		`{"exp":true}`:                           nil,
		`{"exp":[]}`:                             nil,
		`{"nbf":"x"}`:                            nil,
		`{"iss":1}`:                              nil,
		`{"iss":["i"]}`:                          nil,
		`{"aud":{}}`:                             nil,
		`{"aud":["a",1]}`:                        nil,
		`{"aud":["a",null]}`:                     nil,
		`{"scope":["a b"]}`:                      nil,
		`{"scope":[""]}`:                         nil,
		`{"scope":7}`:                            nil,
		`{"cnf":"k"}`:                            nil,
		`{"cnf":{"jkt":1}}`:                      nil,
		`{"exp":1,"exp":2}`:                      nil,
		`{"exp":1,"\u0065xp":2}`:                 nil,
		`[]`:                                     nil,
		`{`:                                      nil,
		``:                                       nil,
		`{} {}`:                                  nil,
		"{\"iss\":\"\xff\"}":                     nil,
	} {
		got, err := jwt.Peek(forge(t, `{"alg":"ES256"}`, text))
		if want == nil {
			if !errors.Is(err, jwt.ErrMalformed) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, &got.Claims); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if string(got.Raw) != text {
			t.Errorf("%s: raw payload %s", text, got.Raw)
		}
	}
}

// Attack: a token that is bound to a certificate is shown as a bearer token.
func TestClaimsOtherKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`:                                 false,
		`{"cnf":{"jkt":"k"}}`:                false,
		`{"cnf":{}}`:                         true,
		`{"cnf":{"x5t#S256":"c"}}`:           true,
		`{"cnf":{"jkt":"k","x5t#S256":"c"}}`: true,
	} {
		got, err := jwt.Peek(forge(t, `{"alg":"ES256"}`, text))
		if err != nil || got.OtherKey != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
