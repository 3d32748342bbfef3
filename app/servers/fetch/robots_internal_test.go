package fetch

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Rules of robots.txt by the sections of RFC 9309.
func TestRobotsRules(t *testing.T) {
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
		{"2.2.2 robots.txt itself", "User-agent: *\nDisallow: /\n", "/robots.txt", true},
		{"2.2.3 a star", "User-agent: *\nDisallow: /*.gif\n", "/x/y.gif?z", false},
		{"2.2.3 a star that matches nothing", "User-agent: *\nDisallow: /a*b\n", "/ab", false},
		{"2.2.3 several stars", "User-agent: *\nDisallow: /a*b*c\n", "/a-c-b", true},
		{"2.2.3 the end", "User-agent: *\nDisallow: /a.gif$\n", "/a.gif?x", true},
		{"2.2.3 a star and the end", "User-agent: *\nDisallow: /*.gif$\n", "/a.gif.gif", false},
		{"2.2.3 a star before the end alone", "User-agent: *\nDisallow: /a*$\n", "/abc", false},
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
		if got := parseRobots(test.rules, agent).allow(u); got != test.want {
			t.Errorf("%s: allow is %t, want %t", test.name, got, test.want)
		}
	}
}

// Many names over many rules are no more work than their sum.
func TestRobotsManyNames(t *testing.T) {
	text := strings.Repeat("User-agent: ModelContextProtocol\nUser-agent: *\n", 5_000) + strings.Repeat("Disallow: /a\n", 20_000)
	if got := len(parseRobots(text, "ModelContextProtocol/1.0").rules); got != 20_000 {
		t.Errorf("there are %d rules, want 20,000", got)
	}
}

func TestCache(t *testing.T) {
	now := time.Unix(0, 0)
	c := newCache[int](1000, time.Hour)
	c.now = func() time.Time { return now }
	has := func(key string, want bool) {
		t.Helper()
		if _, ok := c.get(key); ok != want {
			t.Errorf("%s is kept: %t, want %t", key, ok, want)
		}
	}
	for i := range 3 {
		c.put(fmt.Sprint(i), i, 50)
	}
	has("0", true) // and is the last that was used
	c.put("3", 3, 50)
	has("1", false)
	has("0", true)
	c.put("large", 0, 1000)
	has("large", false)
	c.put("0", 7, 50)
	if v, _ := c.get("0"); v != 7 {
		t.Errorf("0 is %d, want the new value 7", v)
	}
	now = now.Add(time.Hour)
	for i := range 4 {
		has(fmt.Sprint(i), false)
	}
	if c.used > 0 && c.order.Len() == 0 || len(c.byKey) != c.order.Len() {
		t.Errorf("%d bytes are counted for %d values and %d keys", c.used, c.order.Len(), len(c.byKey))
	}
	if got := newFetcher(&Options{RobotsTime: 48 * time.Hour}).robots.time; got != 24*time.Hour {
		t.Errorf("a robots.txt is kept for %v, want 24 h at most", got)
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		" HTTP://EXAMPLE.com:80 ":       "http://example.com/",
		"https://example.com:443/a":     "https://example.com/a",
		"https://example.com:80/":       "https://example.com:80/",
		"http://bücher.example/":        "http://xn--bcher-kva.example/",
		"http://a_b.example/":           "http://a_b.example/",
		"http://example.com/a/./b/../c": "http://example.com/a/c",
		"http://example.com/?q=\"a b\"": "http://example.com/?q=%22a%20b%22",
		"http://example.com/a%2Fb":      "http://example.com/a%2Fb",
		"http://[2001:DB8::1]:8080/":    "http://[2001:db8::1]:8080/",
		"http://[2001:db8::1]:80/#x":    "http://[2001:db8::1]/#x",
	} {
		u, err := parseURL(text)
		if err != nil || u.String() != want {
			t.Errorf("%q: got %v, %v, want %s", text, u, err, want)
		}
	}
}

// No page makes the simplification fail otherwise than by an error, or its markdown large
// out of proportion.
func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		"<html><body><article><h1>a</h1><p>b, c</p></article></body></html>", "<table><tr><td colspan=9>a<td>b</table>", "<ul><li>a<ol><li>b</ul>",
		"<b><p>a<i>b</b>c</p>", "<svg><title/><b></svg><p>a", "<select><option>a</form>b", "<pre><code>a\n`b`</code></pre>", "<plaintext><b>", "a<!--",
		"<p>\ufdd0&lt;a&gt;*_\ufdd1", "<blockquote>a<blockquote>b", "<title>a</title><a href='%zz'>b</a><img src='data:,x' alt=']'>", "<math><mi><b></math>c",
	} {
		f.Add(seed)
	}
	at := &url.URL{Scheme: "http", Host: "example.com", Path: "/a/"}
	f.Fuzz(func(t *testing.T, page string) {
		page = strings.ToValidUTF8(page, "\ufffd")
		_, markdown, err := simplify(page, at, 1_000_000)
		if err != nil && markdown != "" {
			t.Errorf("there is an error, %v, and a text", err)
		}
		if len(markdown) > 100*(len(page)+100) {
			t.Errorf("%d bytes become %d", len(page), len(markdown))
		}
		if strings.ContainsAny(markdown, less+greater) {
			t.Error("characters that stand for others are left")
		}
	})
}

// FuzzRobots holds parsing and matching to their bounds: neither panics, and a rule that is
// the path itself decides.
func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a*b$\n", "/a")
	f.Add("User-agent: x\nAllow: %zz%4\n", "/%zz")
	f.Fuzz(func(t *testing.T, text, path string) {
		u, err := url.Parse("http://example.com/" + strings.TrimLeft(path, "/"))
		if err != nil {
			t.Skip()
		}
		parseRobots(text, "x/1").allow(u)
		exact := escapePath(u.EscapedPath())
		if strings.ContainsAny(exact, "*#$") || exact == "/robots.txt" {
			t.Skip()
		}
		u.RawQuery, u.ForceQuery = "", false
		if parseRobots("User-agent: *\nDisallow: "+exact, "x/1").allow(u) {
			t.Errorf("%s is allowed though a rule forbids it", exact)
		}
	})
}
