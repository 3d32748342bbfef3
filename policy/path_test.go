package policy_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/policy"
)

// Proves: ruling 45. A relative path, or a text that may be one, is judged from the folder of the server at
// hand; where that is not known, a rule that allows does not match and one that restricts does.
func TestRelativePathsAreJudgedByServer(t *testing.T) {
	t.Parallel()
	const posix, windows, both = `"/srv/a"`, `"C:/Data"`, `["/srv/a","C:/Data"]`
	for _, test := range []struct {
		dirs, path, dir string
		allows, denies  match
	}{
		{posix, "b", "/srv/a", matches, matches},
		{posix, "b", "/home/ada", misses, misses},
		{posix, "b", "", misses, unjudged},
		{posix, "b", "home/ada", misses, unjudged}, // no absolute folder
		{posix, "../srv/a/b", "/home", matches, matches},
		// Quotes, which some servers remove.
		{posix, `"/srv/a/b"`, "/home", misses, unjudged},
		{posix, "'/srv/a/b'", "/home", misses, unjudged},
		{posix, `/srv/a"`, "/home", misses, unjudged},
		{posix, "/srv/a/it's", "/home", matches, matches},
		// Characters that some languages take for blanks.
		{posix, "\ufeff/srv/a/b", "/home", misses, unjudged},
		{posix, "\ufeff/etc/passwd", "/srv/a", misses, unjudged},
		{posix, "/srv/a\ufeff", "/home", misses, unjudged},
		{posix, "/srv/a\x1f", "/home", misses, unjudged},
		{posix, "/srv/a\u200b", "/home", misses, unjudged},
		{posix, "\x00/srv/a", "/home", misses, unjudged},
		// File URIs, which some servers take for relative paths.
		{posix, "file:///srv/a/b", "", misses, unjudged},
		{posix, "file:///srv/a/b", "/home", misses, unjudged},
		{posix, "file:///etc/passwd", "/srv/a", misses, unjudged},
		{posix, "file:///etc/passwd", "/home", misses, misses},
		{posix, "file:///x/../../srv/a/b", "/home", misses, unjudged},
		// Paths of Windows for a server that runs elsewhere: there they are names.
		{windows, `C:\Data\b`, "/home/ada", misses, unjudged},
		{both, `C:\Data\b`, "/home/ada", misses, unjudged},
		{posix, `C:\Data\b`, "/srv/a", misses, unjudged},
		{windows, "file:///C:/Data/b", "/home/ada", misses, unjudged},
		// Drives as shells on Windows write them.
		{windows, "/c/Data/b", `C:\x`, misses, unjudged},
		{windows, "/C/Data/b", `D:\x`, misses, unjudged},
		{windows, "/c", `C:\x`, misses, unjudged},
		{windows, `\c\Data\b`, `C:\x`, misses, unjudged},
		{windows, "/cygdrive/c/Data/b", `C:\x`, misses, unjudged},
		{windows, "/Cygdrive/c/Data/b", `C:\x`, misses, unjudged},
		{windows, "/mnt/c/Data/b", `C:\x`, misses, unjudged},
		{windows, "/mnt/cd/b", `C:\x`, misses, misses},
		{windows, "/c/Data/b", "", misses, unjudged},
		{both, "/c/Data/b", "", misses, unjudged},
		{windows, "/cd/Data/b", `C:\x`, misses, misses},
		{posix, "/c/x", "/home", misses, misses},
		// Other spellings of Windows.
		{windows, `b:stream`, `C:\Data`, misses, unjudged},
		{windows, `b. `, `C:\Data`, misses, unjudged},
		{windows, `B~1\c`, `C:\Data`, misses, unjudged},
		{windows, `\\?\C:\Data\b`, `C:\x`, misses, unjudged},
		{windows, `\??\C:\Data\b`, `C:\x`, misses, unjudged},
		{windows, `..\data\b`, `C:\Data`, misses, unjudged},
	} {
		checkArguments(t, `"/p":{"inside":`+test.dirs+`}`, `{"p":`+quoteJSON(test.path)+`}`, test.dir, test.allows, test.denies)
	}
}

// Proves: ruling 45. A path whose letters are written in another normal form is the same to some file
// systems.
func TestPathsAreComparedInBothNormalForms(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "/srv/M\u00fcller", "/srv/Mu\u0308ller"
	for _, test := range []struct {
		dir, path      string
		allows, denies match
	}{
		{composed, composed + "/x", matches, matches},
		{decomposed, decomposed + "/x", matches, matches},
		{composed, decomposed + "/x", misses, unjudged},
		{decomposed, composed + "/x", misses, unjudged},
		{composed, strings.ToUpper(decomposed), misses, unjudged},
		{composed, "/srv/Muller/x", misses, misses},
		{composed, decomposed + "s", misses, misses},
		{"/srv/\u00c5", "/srv/\u212b/x", misses, unjudged},             // the sign for angstrom
		{"/srv/\ud55c", "/srv/\u1112\u1161\u11ab/x", misses, unjudged}, // a Korean syllable
		{"/srv/q\u0307\u0323", "/srv/q\u0323\u0307", misses, unjudged}, // the order of two marks
		{"/srv/\ufb01", "/srv/FI", misses, unjudged},                   // a ligature, as letters in upper case
		{"/srv/stra\u00dfe", "/srv/STRASSE/x", misses, unjudged},
		{"/srv/STRASSE", "/srv/stra\u00dfe/x", misses, unjudged},
		{"/srv/private", "/srv/pri\u200cvate/x", misses, unjudged}, // some file systems ignore what is not seen
		{"/srv/pri\u00advate", "/srv/private/x", misses, unjudged},
		{"/srv/private", "/srv/private\ufe0f/x", misses, unjudged},
		{"/srv/x\u00b2", "/srv/x2", misses, misses},                        // a power is another name
		{"/srv", "/srv/" + strings.Repeat("u\u0308", 9), matches, matches}, // beneath, in any form
	} {
		checkArguments(t, `"/p":{"inside":`+quoteJSON(test.dir)+`}`, `{"p":`+quoteJSON(test.path)+`}`, "", test.allows, test.denies)
	}
}

// Proves: ruling 45. Only some schemes are known to have a host.
func TestSchemesWithHosts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hosts, url     string
		allows, denies match
	}{
		{`"example.com"`, "http://example.com/", matches, matches},
		{`"example.com"`, "WSS://example.com/", matches, matches},
		{`"example.com"`, "ftp://example.com/", matches, matches},
		{`"example.com"`, "file://example.com/etc/passwd", misses, unjudged},
		{`"example.com"`, "file://other.example/etc/passwd", misses, unjudged},
		{`"example.com"`, "postgres://example.com/db?host=other.example", misses, unjudged},
		{`"example.com"`, "ssh://example.com/", misses, unjudged},
		{`"example.com"`, "jar://example.com/", misses, unjudged},
		{`"*"`, "x://example.com/", misses, unjudged},
	} {
		checkArguments(t, `"/u":{"host":`+test.hosts+`}`, `{"u":`+quoteJSON(test.url)+`}`, "", test.allows, test.denies)
	}
}

// The argument of a resource is a URI: a file URI is judged as one, and a relative path not at all.
func TestInsideOfResources(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		uri    string
		allows match
		denies match
	}{
		{"file:///srv/a/b", matches, matches},
		{"file:///srv/b", misses, misses},
		{"b", misses, unjudged},
		{"notes://srv/a/b", misses, unjudged},
	} {
		for effect, want := range map[string]match{"allow": test.allows, "deny": test.denies} {
			p := newPolicy(t, `{"effect":"`+effect+`","kind":"resource","where":{"/uri":{"inside":"/srv/a"}}}`)
			q := call("s/"+test.uri, `{"uri":`+quoteJSON(test.uri)+`}`)
			q.Kind, q.Dir = policy.KindResource, "/srv/a"
			if v := p.Decide(q); matchOf(v) != want {
				t.Errorf("%s of %s: %d (%s), want %d", effect, test.uri, matchOf(v), v.Why(), want)
			}
		}
	}
}

// Decide and Explain tell what could not be judged for the server at hand, and why.
func TestExplainOfServersFolder(t *testing.T) {
	t.Parallel()
	p := newPolicy(t,
		`{"effect":"allow","where":{"/p":{"inside":"C:/Data"}}}`,
		`{"effect":"deny","where":{"/p":{"inside":"C:/Windows"}}}`,
	)
	const shell, relative = "the path begins with a drive as shells on Windows write it", "the path is relative, and the folder that it begins at is unknown"
	for _, test := range []struct{ path, dir, why string }{
		{"/c/Data/x", `C:\Data`, shell},
		{"x", "", relative},
	} {
		q := call("s/t", `{"p":`+quoteJSON(test.path)+`}`)
		q.Dir = test.dir
		want := "argument /p could not be judged: " + test.why
		x := p.Explain(q)
		if x.Verdict.Effect != deny || x.Verdict.Unjudged != want {
			t.Errorf("%s in %q: %v, %s", test.path, test.dir, x.Verdict.Effect, x.Verdict.Why())
		}
		for i, result := range []policy.Result{policy.ResultUnjudged, policy.ResultDecided} {
			if c := x.Considered[i]; c.Result != result || c.Detail != want {
				t.Errorf("%s in %q: rule %d: %v (%s)", test.path, test.dir, i+1, c.Result, c.Detail)
			}
		}
	}
}
