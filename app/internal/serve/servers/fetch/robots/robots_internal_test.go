package robots

import (
	"net/url"
	"strings"
	"testing"
)

// Rules of robots.txt by the sections of RFC 9309.
func TestRules(t *testing.T) {
	const agent = "ModelContextProtocol/1.0 (Autonomous)"
	for _, test := range []struct {
		name, rules, path string
		want              bool
	}{
		{"2.2.1 no group", "User-agent: other\nDisallow: /\n", "/a", true},
		{"2.2.1 the group for all", "User-agent: *\nDisallow: /\n", "/a", false},
		{"2.2.1 its own group goes before it", "User-agent: *\nDisallow: /\n\nUser-agent: ModelContextProtocol\nDisallow: /b\n", "/a", true},
		{"2.2.1 whatever the case", "USER-AGENT: modelcontextPROTOCOL\ndisallow: /\n", "/a", false},
		{"2.2.1 a version is no part of the name", "User-agent: ModelContextProtocol/2.0\nDisallow: /\n", "/a", false},
		{"2.2.1 a part of the name is another name", "User-agent: Model\nDisallow: /\n", "/a", true},
		{"2.2.1 groups of one name are one", "User-agent: ModelContextProtocol\nDisallow: /a\n\nUser-agent: ModelContextProtocol\nDisallow: /b\n", "/b", false},
		{"2.2.1 several names of a group", "User-agent: x\nUser-agent: ModelContextProtocol\nUser-agent: y\nDisallow: /a\n", "/a", false},
		{"2.2.1 an empty group allows", "User-agent: *\nDisallow: /\nUser-agent: ModelContextProtocol\nDisallow:\n", "/a", true},
		{"2.2.1 a group ends with the next name", "User-agent: x\nDisallow: /\nUser-agent: ModelContextProtocol\nDisallow: /b\n", "/a", true},
		{"2.2.2 the beginning of a path", "User-agent: *\nDisallow: /a\n", "/abc", false},
		{"2.2.2 the longest rule wins", "User-agent: *\nAllow: /a/b\nDisallow: /a\n", "/a/b/c", true},
		{"2.2.2 the longest rule wins, forbidding", "User-agent: *\nDisallow: /a/b\nAllow: /a\n", "/a/b/c", false},
		{"2.2.2 the length of a rule with a star is its own", "User-agent: *\nDisallow: /a.b*c\nAllow: /a.bxcd\n", "/a.bxcd", true},
		{"2.2.2 of two equal rules the one that allows", "User-agent: *\nDisallow: /page\nAllow: /page\n", "/page", true},
		{"2.2.2 and in the other order", "User-agent: *\nAllow: /page\nDisallow: /page\n", "/page", true},
		{"2.2.2 letters of a path have a case", "User-agent: *\nDisallow: /A\n", "/a", true},
		{"2.2.2 escapes that need not be", "User-agent: *\nDisallow: /%61%2d\n", "/a-b", false},
		{"2.2.2 escapes on the other side", "User-agent: *\nDisallow: /a~\n", "/%61%7E", false},
		{"2.2.2 escapes that must be", "User-agent: *\nDisallow: /a%2Fb\n", "/a/b", true},
		{"2.2.2 what is not ASCII", "User-agent: *\nDisallow: /ツ\n", "/%E3%83%84", false},
		{"2.2.2 the query is a part", "User-agent: *\nDisallow: /a?x=1\n", "/a?x=12", false},
		{"2.2.2 what is reserved, escaped in the URL", "User-agent: *\nDisallow: /a?b=https://c.example\n", "/a?b=https%3A%2F%2Fc.example", false},
		{"2.2.2 what is reserved, escaped in the rule", "User-agent: *\nDisallow: /a%2Cb\n", "/a,b", false},
		{"2.2.2 what URLs escape and rules do not", "User-agent: *\nDisallow: /a|{b}\n", "/a|{b}", false},
		{"2.2.2 and the same in a query", "User-agent: *\nDisallow: /a?%7Bb%7D\n", "/a?{b}", false},
		{"2.2.2 a percent sign that escapes nothing", "User-agent: *\nDisallow: /100%\n", "/100%25", false},
		{"2.2.2 robots.txt itself", "User-agent: *\nDisallow: /\n", "/robots.txt", true},
		{"2.2.3 a star", "User-agent: *\nDisallow: /*.gif\n", "/x/y.gif?z", false},
		{"2.2.3 a star that matches nothing", "User-agent: *\nDisallow: /a*b\n", "/ab", false},
		{"2.2.3 several stars", "User-agent: *\nDisallow: /a*b*c\n", "/a-c-b", true},
		{"2.2.3 the end", "User-agent: *\nDisallow: /a.gif$\n", "/a.gif?x", true},
		{"2.2.3 a star and the end", "User-agent: *\nDisallow: /*.gif$\n", "/a.gif.gif", false},
		{"2.2.3 a star before the end alone", "User-agent: *\nDisallow: /a*$\n", "/abc", false},
		{"2.2.3 a star that is escaped", "User-agent: *\nDisallow: /a%2Ab\n", "/a*b", false},
		{"2.2.3 is that character alone", "User-agent: *\nDisallow: /a%2Ab\n", "/axb", true},
		{"2.2.3 a dollar sign that is escaped", "User-agent: *\nDisallow: /a%24\n", "/a$b", false},
		{"2.2.3 a dollar sign before the end", "User-agent: *\nDisallow: /a$b\n", "/a%24b", false},
		{"2.2.3 a star and a slash in a query", "User-agent: *\nDisallow: *b=/c\n", "/a?b=%2Fc", false},
		{"2.2.3 a remark", "User-agent: * # all\nDisallow: /a # not this\n", "/a", false},
		{"2.2.4 other lines", "Sitemap: /s\nUser-agent: *\nCrawl-delay: x\nDisallow: /a\nno rule\n", "/a", false},
		{"2.2.4 a rule before any group", "Disallow: /a\nUser-agent: *\nDisallow: /b\n", "/a", true},
		{"2.2.4 and what follows it", "Disallow: /a\nUser-agent: *\nDisallow: /b\n", "/b", false},
		{"2.2 ends of lines", "User-agent: *\r\nDisallow: /a\rDisallow: /b", "/b", false},
		{"2.2 a byte order mark", "\ufeffUser-agent: *\nDisallow: /a\n", "/a", false},
		{"2.2 HTML", "<html><body>User-agent: *<br>Disallow: /</body></html>", "/a", true},
	} {
		u, err := url.Parse("http://example.com" + test.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := Parse(test.rules, agent).Allow(u); got != test.want {
			t.Errorf("%s: allow is %t, want %t", test.name, got, test.want)
		}
	}
}

// Many names over many rules are no more work than their sum.
func TestManyNames(t *testing.T) {
	text := strings.Repeat("User-agent: ModelContextProtocol\nUser-agent: *\n", 5_000) + strings.Repeat("Disallow: /a\n", 20_000)
	if got := len(Parse(text, "ModelContextProtocol/1.0").rules); got != 20_000 {
		t.Errorf("there are %d rules, want 20,000", got)
	}
}

// FuzzRules holds parsing and matching to their bounds: neither panics, and a rule that is
// the path itself decides.
func FuzzRules(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a*b$\n", "/a")
	f.Add("User-agent: x\nAllow: %zz%4\n", "/%zz")
	f.Fuzz(func(t *testing.T, text, path string) {
		u, err := url.Parse("http://example.com/" + strings.TrimLeft(path, "/"))
		if err != nil {
			t.Skip()
		}
		Parse(text, "x/1").Allow(u)
		exact := escapePath(u.EscapedPath(), false)
		if exact == "/robots.txt" {
			t.Skip()
		}
		u.RawQuery, u.ForceQuery = "", false
		if Parse("User-agent: *\nDisallow: "+exact, "x/1").Allow(u) {
			t.Errorf("%s is allowed though a rule forbids it", exact)
		}
	})
}
