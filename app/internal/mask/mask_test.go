package mask_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/mask"
)

// Secrets are masked by name, shape and value, and nothing else is.
func TestJSON(t *testing.T) {
	const github = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for _, test := range []struct{ in, want string }{
		{`{"password":"hunter2x"}`, `{"password":"«»"}`},
		{`{"a":"it is hunter2x","password":"hunter2x"}`, `{"a":"it is «»","password":"«»"}`},
		{`{"pin": 1234 , "n":1}`, `{"pin": "«»" , "n":1}`},
		{`{"pin":123456,"a":"your PIN is 123456","b":123456}`, `{"pin":"«»","a":"your PIN is «»","b":"«»"}`},
		{`{"token":true,"secret":null}`, `{"token":true,"secret":null}`},
		{`{"credentials":{"user":"ada","list":["one two",3]}}`, `{"credentials":{"user":"«»","list":["«»","«»"]}}`},
		{`{"progressToken":"a1b2c3d4","nextCursor":"abcdefg","maxTokens":100}`, `{"progressToken":"a1b2c3d4","nextCursor":"abcdefg","maxTokens":100}`},
		{
			`{"properties":{"password":{"type":"string","default":"hunter2x","description":"The password"}},"required":["password"]}`,
			`{"properties":{"password":{"type":"string","default":"«»","description":"The password"}},"required":["password"]}`,
		},
		{`{"properties":{"password":"hunter2x"}}`, `{"properties":{"password":"«»"}}`},
		{`{"properties":{"token":{"value":"abcdef"}}}`, `{"properties":{"token":{"value":"«»"}}}`},
		{`[{"name":"API_KEY","value":"abc def"},{"name":"HOME","value":"/root"}]`, `[{"name":"API_KEY","value":"«»"},{"name":"HOME","value":"/root"}]`},
		{`{"text":"{\"API_KEY\":\"abcdef\",\"HOME\":\"/root\"}"}`, `{"text":"{\"API_KEY\":\"«»\",\"HOME\":\"/root\"}"}`},
		{`{"text":"cloned with ` + github + `."}`, `{"text":"cloned with «»."}`},
		{`{"uri":"https://u:pw-of-u@example.com/a?token=abc&b=c"}`, `{"uri":"https://«»@example.com/a?token=«»&b=c"}`},
		{`{"a":"Authorization: Bearer abc","b":"Set-Cookie: a=b; Path=/; HttpOnly"}`, `{"a":"Authorization: Bearer «»","b":"Set-Cookie: a=«»; Path=/; HttpOnly"}`},
		{`{"authorization":"Bearer abcdefgh","x":"abcdefgh"}`, `{"authorization":"Bearer «»","x":"«»"}`},
		{`"from the environment"`, `"«»"`},
		{`{"from the environment":1}`, `{"«»":1}`},
		{` [ 1.50 , "\u0041<é" ,{} ] `, `[ 1.50 , "\u0041<é" ,{} ]`},
		{`""`, `""`},
		{`0`, `0`},
		{`{}`, `{}`},
		{`[]`, `[]`},
	} {
		m := mask.New(&mask.Options{Values: []string{"from the environment", "abc"}})
		got, ok := m.JSON([]byte(test.in))
		if !ok || !json.Valid(got) {
			t.Fatalf("%s: %v, %s", test.in, ok, got)
		}
		if shown := strings.Join(mask.Cut(string(got)), "«»"); shown != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.in, shown, test.want)
		}
		if again, _ := m.JSON(got); string(again) != string(got) {
			t.Errorf("%s: masked twice: %s", got, again)
		}
	}
}

func TestText(t *testing.T) {
	m := mask.New(&mask.Options{Public: []string{"session-id"}})
	for _, test := range []struct{ in, want string }{
		{"listening on port 3000\n", "listening on port 3000\n"},
		{"password=hunter2x ok", "password=«» ok"},
		{`half {"password":"hun\"ter`, `half {"password":"«»`},
		{`escaped {\"token\": \"abc\", \"b\": 1}`, `escaped {\"token\": \"«»\", \"b\": 1}`},
		{"api-key => 'a b' and more", "api-key => '«»' and more"},
		{"Cookie: a=b; c=d\r\nHost: x", "Cookie: a=«»; c=«»\r\nHost: x"},
		{"session-id: 1234", "session-id: 1234"},
		{"a://b ://c :// x://", "a://b ://c :// x://"},
		{"token=", "token="},
		{"token:", "token:"},
		{"=:=", "=:="},
		{"broken \xff token=abc\xfe", "broken \uFFFD token=«»"},
	} {
		if got := strings.Join(mask.Cut(m.Text(test.in)), "«»"); got != test.want {
			t.Errorf("%q: got %q, want %q", test.in, got, test.want)
		}
	}
}

// Equal secrets have equal marks with one Masker, and other marks with another one.
func TestMarks(t *testing.T) {
	a, b := mask.New(nil), mask.New(nil)
	one := a.Text("password='one two'")
	if other := a.Text("password='one two'"); one != other || one == a.Text("password='three'") || one == b.Text("password='one two'") {
		t.Error(one, other)
	}
}

func TestHTTP(t *testing.T) {
	m := mask.New(&mask.Options{Headers: []string{"X-Own"}, Values: []string{"from-the-command-line"}})
	in := http.Header{
		"Authorization": {"Basic YWRhOmxvdmVsYWNl"}, "Cookie": {"a=b"}, "Set-Cookie": {"id=12; Path=/"}, "Mcp-Session-Id": {"5e55"},
		"X-Api-Key": {"k"}, "X-Own": {"o"}, "Content-Type": {"text/plain"}, "Location": {"/x?code=abc"}, "X-Other": {"is from-the-command-line"},
	}
	want := map[string]string{
		"Authorization": "Basic «»", "Cookie": "a=«»", "Set-Cookie": "id=«»; Path=/", "Mcp-Session-Id": "«»",
		"X-Api-Key": "«»", "X-Own": "«»", "Content-Type": "text/plain", "X-Other": "is «»",
	}
	out := m.Header(in)
	for name, value := range want {
		if got := strings.Join(mask.Cut(out.Get(name)), "«»"); got != value {
			t.Errorf("%s: %s, want %s", name, got, value)
		}
	}
	if got := m.Text("the password is lovelace"); strings.Contains(got, "lovelace") {
		t.Error(got)
	}
	form := m.Body("application/x-www-form-urlencoded", []byte("grant_type=authorization_code&code=ab%2Fc&client_secret=x"))
	if got := strings.Join(mask.Cut(form), "«»"); got != "grant_type=authorization_code&code=«»&client_secret=«»" {
		t.Error(got)
	}
	events := m.Body("text/event-stream; charset=utf-8", []byte("id: 1\r\ndata: {\"token\":\"abc\"}\r\n\r\n: ping\n"))
	if got := strings.Join(mask.Cut(events), "«»"); got != "id: 1\r\ndata: {\"token\":\"«»\"}\r\n\r\n: ping\n" {
		t.Errorf("%q", got)
	}
}

func TestEnvironment(t *testing.T) {
	got := mask.Environment([]string{"HOME=/root", "MY_API_KEY=a=b", "PLAIN=c", "broken"}, []string{"PLAIN"})
	if strings.Join(got, " ") != "a=b c" {
		t.Error(got)
	}
}

// Known masks what was learned, in every form, and nothing else; so that the result is the same in each run.
func TestKnown(t *testing.T) {
	m := mask.New(&mask.Options{Distinct: true, Public: []string{"X-Public"}})
	m.Learn("Basic YWRhOnBsdW0tYmFzaWM=")
	m.LearnHeader("Authorization", `Bearer plum/"bearer"<1>`)
	m.LearnHeader("X-Own", "plum-own-1234")
	m.LearnHeader("X-Tenant", "engineering")
	m.LearnHeader("X-Public", "plum-public-1")
	m.LearnHeader("Accept-Language", "en-GB,en;q=0.5")
	m.LearnNamed("TOKEN", "plumplumplum")
	m.LearnNamed("PASSWORD", "postgres")
	m.LearnNamed("PIN", "1234")
	m.LearnNamed("DATABASE", "db://ada:plum%3Auser@x/y")
	m.LearnNamed("AUTH_HEADER", "Bearer plum-setting-1")
	m.LearnNamed("PLAIN", "a plain text")
	m.LearnHeader("Authorization", "SSWS plum-okta-1234")
	m.LearnHeader("Authorization", `Token token="plum-quoted-1", id=7`)
	m.LearnHeader("Cookie", "theme=dark; sid=plum-cookie-1")
	m.LearnHeader("X-Api-Version", "2024-11-05")
	m.LearnNamed("REMOTE", "git://plum-user-1234@x/y and postgres://postgres@x")
	m.LearnNamed("SIGNING_KEY", "-----BEGIN KEY-----\nplumplum0123456789AA\nplumplum0123456789BB\n-----END KEY-----\n")
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"a plain text about engineering at postgres:1234 in en-GB,en;q=0.5 for plum-public-1\n", "a plain text about engineering at postgres:1234 in en-GB,en;q=0.5 for plum-public-1\n"},
		{"password: hunter2x token=ghp_0123456789abcdefghijABCDEFGHIJ012345", "password: hunter2x token=ghp_0123456789abcdefghijABCDEFGHIJ012345"},
		{`Bearer plum/"bearer"<1>, plum%2F%22bearer%22%3C1%3E`, "Bearer «», «»"},
		{`plum/\"bearer\"<1> plum/\"bearer\"\u003c1\u003e cGx1bS8iYmVhcmVyIjwxPg==`, "«» «» «»=="},
		{"plum-basic plum-own-1234 plumplumplum plum:user plum-setting-1", "«» «» «» «» «»"},
		{"no key plum-own-… (cut off)", "no key «»… (cut off)"},
		{"\"no key plum-own-\"\nno plumplump \n", "\"no key «»\"\nno «» \n"},
		{"plum-own- and plum-ow", "plum-own- and plum-ow"},
		{"…\n…", "…\n…"},
		{"plum-okta-1234 plum-quoted-1 plum-cookie-1 plum-user-1234", "«» «» «» «»"},
		{"version 2024-11-05 of postgres", "version 2024-11-05 of postgres"},
		{"plumplum0123456789AA\nplumplum0123456789BB\n-----END KEY-----", "«»\n«»\n-----END KEY-----"},
		{`/properties/plum~1"bearer"<1>/type plum\/\"bearer\"<1> plum/&#34;bearer&#34;&lt;1&gt;`, "/properties/«»/type «» «»"},
	} {
		if got := m.Known(test.in); strings.ReplaceAll(got, mask.Hidden, "«»") != test.want {
			t.Errorf("%q: got %q, want %q", test.in, got, test.want)
		}
	}
}

// Values in JSON are masked one by one, and the result is JSON.
func TestKnownJSON(t *testing.T) {
	m := mask.New(&mask.Options{Distinct: true})
	m.Learn("123456")
	m.Learn("plum-\"1\"")
	for in, want := range map[string]string{
		`{"a":123456,"b":1234567,"password":"x","plum-\"1\"":["123456"]}`: `{"a":"«redacted»","b":1234567,"password":"x","«redacted»":["«redacted»"]}`,
		`{"properties":{"token":{"default":"hunter2x"}}, "n": 1.50}`:      `{"properties":{"token":{"default":"hunter2x"}}, "n": 1.50}`,
	} {
		got, ok := m.KnownJSON([]byte(in))
		if !ok || string(got) != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if got, ok := m.KnownJSON([]byte("no JSON")); ok {
		t.Errorf("%s", got)
	}
}

// Whatever comes, JSON stays JSON, and what was masked is not masked again.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{`{"token":["a",{"b":1}]}`, `{"properties":{"password":{"type":"string"}}}`, `token="a`, "\xff", `[{"name":"key","value":1}]`, `"{\"token\":1}"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := mask.New(&mask.Options{Values: []string{"value"}})
		out, isJSON := m.Message(data)
		if isJSON && !json.Valid(out) {
			t.Fatalf("%q became %q", data, out)
		}
		if known, isJSON := m.KnownJSON(data); isJSON && !json.Valid(known) {
			t.Fatalf("%q became %q", data, known)
		}
		_ = m.Body("text/event-stream", data)
		_ = m.URL(string(data))
		_ = m.HeaderValue("Cookie", string(data))
	})
}

// A message of 10 MiB takes time in proportion to its length.
func BenchmarkLong(b *testing.B) {
	raw := []byte(`{"result":{"data":"` + strings.Repeat("QUJDREVGR0g1Nz", 10<<20/14) + `","n":1}}`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, ok := mask.New(&mask.Options{Values: []string{"some-value"}}).JSON(raw); !ok {
			b.Fatal()
		}
	}
}
