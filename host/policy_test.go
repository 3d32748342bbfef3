package host_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func TestPolicy(t *testing.T) {
	p := &host.Policy{Rules: []host.Rule{
		rule(t, host.Allow, "db/*"),
		rule(t, host.Ask, "db/write_*"),
		rule(t, host.Deny, "*/drop*"),
		rule(t, host.Allow, "files/read-?"),
		rule(t, host.Allow, "sampling:db/*"),
	}}
	for _, test := range []struct {
		kind         host.Kind
		server, name string
		want         host.Effect
		why          string
	}{
		{host.KindTool, "db", "list", host.Allow, "rule: allow db/*, from test"},
		{host.KindTool, "db", "write_row", host.Ask, "rule: ask db/write_*, from test"},
		{host.KindTool, "db", "drop_table", host.Deny, "rule: deny */drop*, from test"},
		{host.KindTool, "other", "drop", host.Deny, "rule: deny */drop*, from test"},
		{host.KindTool, "files", "read-1", host.Allow, "rule: allow files/read-?, from test"},
		{host.KindTool, "files", "read-12", host.Ask, "no rule matches"},
		{host.KindTool, "files", "Read-1", host.Ask, "no rule matches"},
		{host.KindSampling, "db", "request", host.Allow, "rule: allow sampling:db/*, from test"},
		{host.KindSampling, "files", "request", host.Ask, "no rule matches"},
		{host.KindElicit, "db", "form", host.Ask, "no rule matches"},
	} {
		v := p.Decide(test.kind, test.server, test.name)
		if v.Effect != test.want || v.Why() != test.why {
			t.Errorf("%s %s/%s: %v because %q; want %v because %q", test.kind, test.server, test.name, v.Effect, v.Why(), test.want, test.why)
		}
	}
	var none *host.Policy
	if v := none.Decide(host.KindTool, "a", "b"); v.Effect != host.Ask {
		t.Errorf("no policy: %v", v.Effect)
	}
}

func TestParseRule(t *testing.T) {
	for pattern, want := range map[string]host.Rule{
		"*":            {Kind: host.KindTool, Server: "*", Name: "*"},
		"a/b":          {Kind: host.KindTool, Server: "a", Name: "b"},
		"a/b/c":        {Kind: host.KindTool, Server: "a", Name: "b/c"},
		"tool:a/*":     {Kind: host.KindTool, Server: "a", Name: "*"},
		"elicit:*":     {Kind: host.KindElicit, Server: "*", Name: "*"},
		"sampling:a/x": {Kind: host.KindSampling, Server: "a", Name: "x"},
	} {
		got, err := host.ParseRule(host.Ask, pattern, "")
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", pattern, diff)
		}
	}
	for _, bad := range []string{"", "a", "a/", "/b", "a*", "what:a/b", "tool:", "tool:a"} {
		if r, err := host.ParseRule(host.Ask, bad, ""); err == nil {
			t.Errorf("%q is the rule %v", bad, r)
		}
	}
}

// A pattern with many stars is matched in bounded time: this would take longer
// than the test may if it went back for every star.
func TestPatternCannotExplode(t *testing.T) {
	p := &host.Policy{Rules: []host.Rule{{Effect: host.Deny, Kind: host.KindTool, Server: "*", Name: strings.Repeat("*a", 200) + "b"}}}
	if v := p.Decide(host.KindTool, "x", strings.Repeat("a", 10_000)); v.Effect != host.Ask {
		t.Errorf("the effect is %v", v.Effect)
	}
}

// Proves: SEC-TOOL-5. Secrets in arguments are found by name and by shape, and
// are not in what is told of them.
func TestArgumentSecrets(t *testing.T) {
	raw := mcp.RawValue(`{
		"user": "ada", "passw\u006frd": "x1", "apiKey": "k", "tokens": 5, "token": "",
		"list": [{"note": "ghp_abcdefghijklmnopqrstuvwxyz0123"}],
		"a/b": "-----BEGIN RSA PRIVATE KEY-----", "monkey": "banana"}`)
	var where []string
	for _, s := range host.ArgumentSecrets(raw) {
		where = append(where, s.Pointer+" "+s.Why)
		if strings.Contains(s.Why, "ghp_") {
			t.Errorf("the secret is told: %q", s.Why)
		}
	}
	want := []string{
		"/a~1b looks like a private key",
		"/apiKey the name says that it is secret",
		"/list/0/note looks like a GitHub token",
		"/password the name says that it is secret",
	}
	if diff := cmp.Diff(want, where); diff != "" {
		t.Error(diff)
	}
	many := `[` + strings.Repeat(`{"password":"x"},`, 100) + `{}]`
	if n := len(host.ArgumentSecrets(mcp.RawValue(many))); n != 16 {
		t.Errorf("%d places are told, want 16", n)
	}
}

// Proves: SEC-TOOL-3. Nothing that moves a cursor, hides or reverses text
// reaches a terminal.
func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain, naïve, 日本":      "plain, naïve, 日本",
		"a\r\nb\tc":             "a\nb\tc",
		"\x1b[31mred":           `\u{1b}[31mred`,
		"a\rb\x00":              `a\u{d}b\u{0}`,
		"evil\u202etxt.exe":     `evil\u{202e}txt.exe`,
		"zero\u200bwidth":       `zero\u{200b}width`,
		"tag\U000E0041":         `tag\u{e0041}`,
		"\u009b1m":              `\u{9b}1m`,
		"bad\xffbytes":          `bad\xffbytes`,
		"line\u2028separator":   `line\u{2028}separator`,
		"filler\u3164":          `filler\u{3164}`,
		"select\U000E0101":      `select\u{e0101}`,
		"private\ue000":         `private\u{e000}`,
		"\ufeffmark":            `\u{feff}mark`,
		"replacement \ufffd ok": "replacement \ufffd ok",
	} {
		if got := host.Escape(in); got != want {
			t.Errorf("%+q becomes %q, want %q", in, got, want)
		}
	}
	if got, want := host.EscapeLine("a\nb\tc"), `a\u{a}b\u{9}c`; got != want {
		t.Errorf("one line: %q, want %q", got, want)
	}
}

func TestIndent(t *testing.T) {
	in := mcp.RawValue("{\"a\":[1, 2.5e3,true,null],\"b\":{},\"c\":[ ],\"d\":\"x\\\"{,}\u202ey\U000E0041\"}")
	want := `{
  "a": [
    1,
    2.5e3,
    true,
    null
  ],
  "b": {},
  "c": [],
  "d": "x\"{,}\u202ey\udb40\udc41"
}`
	if diff := cmp.Diff(want, host.Indent(in)); diff != "" {
		t.Error(diff)
	}
}

// What is indented stays the same, and is safe to show.
func FuzzIndent(f *testing.F) {
	f.Add(`{"a":["b",{"c":"\u001b"}]}`)
	f.Add("\"\\")
	f.Add("[[[[")
	f.Add("\x1b")
	f.Fuzz(func(t *testing.T, in string) {
		out := host.Indent(mcp.RawValue(in))
		if out != host.Escape(out) {
			t.Errorf("%q is shown as %q", in, out)
		}
	})
}
