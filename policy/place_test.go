package policy_test

import "testing"

// Proves: SEC-TOOL-2
func TestInside(t *testing.T) {
	t.Parallel()
	const posix, windows = `"/srv/a"`, `["C:\\Data","D:/x/"]`
	for _, test := range []struct {
		dirs, path, dir string
		allows, denies  match
	}{
		{posix, "/srv/a", "", matches, matches},
		{posix, "/srv/a/", "", matches, matches},
		{posix, "/srv/a/b", "", matches, matches},
		{posix, "//srv///a/./b/../c", "", matches, matches},
		{posix, "/srv/ab", "", misses, misses},
		{posix, "/srv", "", misses, misses},
		{posix, "/", "", misses, misses},
		{posix, "/srv/a/../b", "", misses, misses},
		{posix, "/srv/a/..", "", misses, misses},
		{posix, "/x/../srv/a", "", matches, matches},
		{posix, "/../srv/a", "", misses, unjudged},
		{posix, "/srv/a/../../../etc", "", misses, unjudged},
		{posix, "/srv/A/b", "", misses, unjudged},
		{posix, "/SRV/a", "", misses, unjudged},
		{posix, "/srv/\u00aa", "", misses, misses},
		{posix, "", "", misses, unjudged},
		{posix, "/srv/a/\x00", "", misses, unjudged},
		{posix, " /srv/a", "", misses, unjudged},
		{posix, "/srv/a\n", "", misses, unjudged},
		{posix, `/srv/a\..\..\etc`, "", misses, unjudged},
		{posix, `/srv/a/b\c`, "", matches, matches},
		{posix, "/srv/a/...", "", matches, matches},
		// Relative paths.
		{posix, "b", "", misses, unjudged},
		{posix, "b", "/srv/a", matches, matches},
		{posix, ".", "/srv/a", matches, matches},
		{posix, "../b", "/srv/a", misses, misses},
		{posix, "../a/b", "/srv/a", matches, matches},
		{posix, "../../../x", "/srv/a", misses, unjudged},
		{posix, "a/b", "/srv", matches, matches},
		{posix, "b", "srv/a", misses, unjudged},
		{posix, "~/b", "/srv/a", misses, unjudged},
		{posix, "$HOME/b", "/srv/a", misses, unjudged},
		{posix, "%TEMP%/b", "/srv/a", misses, unjudged},
		{posix, "/srv/a/~", "", matches, matches},
		{posix, "/etc", "/srv/a", misses, misses},
		// URIs.
		{posix, "file:///srv/a/b", "/srv/a", matches, matches},
		{posix, "FILE://localhost/srv/a", "/srv/a", matches, matches},
		{posix, "file:/srv/a", "/srv/a", matches, matches},
		{posix, "file:///srv/%61", "/srv/a", matches, matches},
		{posix, "file:///srv/a/../b", "/x", misses, misses},
		{posix, "file:///srv/a/%2e%2e/b", "/x", misses, misses},
		{posix, "file:///srv/a%2fb", "", misses, unjudged},
		{posix, "file:///srv/a%00", "", misses, unjudged},
		{posix, "file:///srv/a%zz", "", misses, unjudged},
		{posix, "file:///srv/a?x", "", misses, unjudged},
		{posix, "file:///srv/a#x", "", misses, unjudged},
		{posix, "file://host/srv/a", "", misses, unjudged},
		{posix, "file:////srv/a", "", misses, unjudged},
		{posix, "file:srv/a", "/", misses, unjudged},
		{posix, "file:", "", misses, unjudged},
		{posix, "https://example.com/srv/a", "/srv/a", misses, unjudged},
		{posix, "data:x", "/srv/a", misses, unjudged},
		// Windows.
		{windows, `C:\Data`, "", matches, matches},
		{windows, `c:\Data\b`, "", matches, matches},
		{windows, `C:/Data/b`, "", matches, matches},
		{windows, `d:\x\..\x/y`, "", matches, matches},
		{windows, `C:\Database`, "", misses, misses},
		{windows, `E:\Data`, "", misses, misses},
		{windows, `C:\data`, "", misses, unjudged},
		{windows, `C:\..\Data`, "", misses, unjudged},
		{windows, `C:Data`, "", misses, unjudged},
		{windows, `C:`, "", misses, unjudged},
		{windows, `\\server\share\Data`, "", misses, unjudged},
		{windows, `\\?\C:\Data`, "", misses, unjudged},
		{windows, `C:\Data.\b`, "", misses, unjudged},
		{windows, `C:\Data\b:stream`, "", misses, unjudged},
		{windows, `C:\DATA~1\b`, "", misses, unjudged},
		{windows, `C:\Data\~b`, "", matches, matches},
		{windows, `/Data`, "", misses, unjudged},
		{windows, `\Data`, "", misses, unjudged},
		{windows, `b`, `C:\Data`, matches, matches},
		{windows, `..\b`, `C:\Data`, misses, misses},
		{windows, `\Data\b`, `C:\x`, matches, matches},
		{windows, `/Data/b`, `C:\x`, matches, matches},
		{windows, `//server/Data`, `C:\x`, misses, unjudged},
		{windows, "file:///C:/Data/b", "", misses, unjudged},
		{windows, "file:///C:/Data/b", `C:\Data`, misses, unjudged},
		{windows, "file:///Data/b", `C:\x`, misses, unjudged},
		{posix, `C:\srv\a`, "", misses, unjudged},
		{`["/srv/a","C:/Data"]`, `C:\Data`, "", matches, matches},
		{`["/srv/a","C:/Data"]`, `/srv/a/b`, "", matches, matches},
		{`["/srv/a","C:/Data"]`, `/srv/b`, "", misses, unjudged},
		{`["/srv/a","C:/Data"]`, `/srv/b`, "/x", misses, misses},
		{`["/srv/a","C:/Data"]`, `D:\x`, `C:\x`, misses, misses},
		{`"/"`, "/etc", "", matches, matches},
		{`"/"`, "etc", "/x", matches, matches},
		{`"C:/"`, `C:\x`, "", matches, matches},
		{`"C:/"`, `D:\x`, "", misses, misses},
	} {
		checkArguments(t, `"/p":{"inside":`+test.dirs+`}`, `{"p":`+quoteJSON(test.path)+`}`, test.dir, test.allows, test.denies)
	}
}

// quoteJSON is for texts without characters that Go and JSON write differently.
func quoteJSON(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		if r < ' ' {
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
			continue
		}
		if r == '"' || r == '\\' {
			b = append(b, '\\')
		}
		b = append(b, string(r)...)
	}
	return string(append(b, '"'))
}

// Proves: SEC-TOOL-2
func TestHost(t *testing.T) {
	t.Parallel()
	const name, beneath = `"example.com"`, `"*.example.com"`
	for _, test := range []struct {
		hosts, url     string
		allows, denies match
	}{
		{name, "https://example.com", matches, matches},
		{name, "https://example.com/a?b#c", matches, matches},
		{name, "HTTPS://EXAMPLE.com:8443/", matches, matches},
		{name, "ftp://example.com./x", matches, matches},
		{name, "https://example.com?@evil.example", matches, matches},
		{name, "https://example.com#@evil.example", matches, matches},
		{name, "https://www.example.com", misses, misses},
		{name, "https://example.com.evil.example", misses, misses},
		{name, "https://evil.example/example.com", misses, misses},
		{name, "https://ada@example.com", misses, unjudged},
		{name, "https://example.com@evil.example", misses, unjudged},
		{name, `https://evil.example\@example.com`, misses, unjudged},
		{name, `https://example.com/a\b`, misses, unjudged},
		{name, `https:\\example.com`, misses, unjudged},
		{name, "https://exa\tmple.com", misses, unjudged},
		{name, " https://example.com", misses, unjudged},
		{name, "https://example.com/a b", misses, unjudged},
		{name, "//example.com/", misses, unjudged},
		{name, "/example.com", misses, unjudged},
		{name, "example.com", misses, unjudged},
		{name, "https:example.com", misses, unjudged},
		{name, "https:/example.com", misses, unjudged},
		{name, "https:///example.com", misses, unjudged},
		{name, "mailto:ada@example.com", misses, unjudged},
		{name, "blob:https://example.com/x", misses, unjudged},
		{name, "://example.com", misses, unjudged},
		{name, "1x://example.com", misses, unjudged},
		{name, "", misses, unjudged},
		{name, "https://", misses, unjudged},
		{name, "https://example%2ecom", misses, unjudged},
		{name, "https://example\u3002com", misses, unjudged},
		{name, "https://\uff45xample.com", misses, unjudged},
		{name, "https://example..com", misses, unjudged},
		{name, "https://example.com..", misses, unjudged},
		{name, "https://.example.com", misses, unjudged},
		{name, "https://example.com:x/", misses, unjudged},
		{name, "https://example.com:65536/", misses, unjudged},
		{name, "https://example.com:/", matches, matches},
		{beneath, "https://a.example.com", matches, matches},
		{beneath, "https://a.b.example.com", matches, matches},
		{beneath, "https://example.com", misses, misses},
		{beneath, "https://badexample.com", misses, misses},
		{`"xn--bcher-kva.example"`, "https://xn--bcher-kva.example", matches, matches},
		{`"xn--bcher-kva.example"`, "https://bücher.example", misses, unjudged},
		{`"*"`, "https://anything.example", matches, matches},
		{`"*"`, "https://ada@anything.example", misses, unjudged},
		// Ports.
		{`"example.com:443"`, "https://example.com", matches, matches},
		{`"example.com:443"`, "wss://example.com:0443", matches, matches},
		{`"example.com:443"`, "http://example.com", misses, misses},
		{`"example.com:443"`, "https://example.com:8443", misses, misses},
		{`"example.com:443"`, "other://example.com", misses, unjudged},
		{`"example.com:443"`, "other://example.org", misses, unjudged},
		{`"example.com:443"`, "https://example.com:0", misses, unjudged},
		{`"*:80"`, "http://a.example", matches, matches},
		{`"*.example.com:80"`, "http://a.example.com", matches, matches},
		// Addresses.
		{`"[::1]"`, "http://[::1]:8080/", matches, matches},
		{`"[::1]"`, "http://[0:0:0:0:0:0:0:1]/", matches, matches},
		{`"[::1]:80"`, "http://[::1]/", matches, matches},
		{`"[::1]"`, "http://[::2]/", misses, misses},
		{`"[::1]"`, "http://[::1%25eth0]/", misses, unjudged},
		{`"[::1]"`, "http://::1/", misses, unjudged},
		{`"[::1]"`, "http://[::1/", misses, unjudged},
		{`"127.0.0.1"`, "http://127.0.0.1/", matches, matches},
		{`"127.0.0.1"`, "http://[::ffff:127.0.0.1]/", matches, matches},
		{`"127.0.0.1"`, "http://127.1/", misses, unjudged},
		{`"127.0.0.1"`, "http://2130706433/", misses, unjudged},
		{`"127.0.0.1"`, "http://0x7f000001/", misses, unjudged},
		{`"127.0.0.1"`, "http://0177.0.0.01/", misses, unjudged},
		{`"127.0.0.1"`, "http://127.0.0.1./", matches, matches},
		{`"127.0.0.1"`, "http://127.0.0.0x1/", misses, unjudged},
		{`["a.example","b.example"]`, "http://b.example", matches, matches},
	} {
		checkArguments(t, `"/u":{"host":`+test.hosts+`}`, `{"u":`+quoteJSON(test.url)+`}`, "", test.allows, test.denies)
	}
}

// A person is told why an argument could not be judged.
func TestUnjudgedReasons(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ where, value, want string }{
		{`"inside":"/etc"`, `"a\u0000"`, "the path has a NUL character"},
		{`"inside":"/etc"`, `""`, "the path is empty"},
		{`"inside":"/etc"`, `"/etc "`, "the path begins or ends with a blank or a character that is not seen"},
		{`"inside":"/etc"`, `"/../etc"`, "the path leads above the root"},
		{`"inside":"/etc"`, `"'/etc'"`, "the path begins or ends with a quote"},
		{`"inside":"/etc"`, `"/ETC"`, "the path differs from one of the rule only in letter case, the Unicode form of a letter, or characters that are not seen"},
		{`"inside":"/etc"`, `"C:\\etc"`, "the path is one of another system than those of the rule or the server's folder"},
		{`"inside":"/etc"`, `"file:///etc/x"`, "it is a file URI, which some servers read as a relative path"},
		{`"inside":"/etc"`, `"C:etc"`, "it is a path of Windows without a drive and a root"},
		{`"inside":"C:/etc"`, `"C:/etc./x"`, "the path has a name that Windows changes"},
		{`"inside":"/etc"`, `"/a\\..\\etc"`, "the path has a backslash beside '..'"},
		{`"inside":"/etc"`, `"https://example.com"`, "it is a URI, but no file URI"},
		{`"inside":"/etc"`, `"file://host/etc"`, "the file URI is not plain"},
		{`"inside":"/etc"`, `5`, "its type is not the one that the rule expects"},
		{`"host":"a.example"`, `"a.example"`, "it is no URL with a scheme and a host"},
		{`"host":"a.example"`, `"http://x@b.example"`, "the URL has user information"},
		{`"host":"a.example"`, `"http://b.example/ "`, "the URL has a blank, a control character or a backslash"},
		{`"host":"a.example"`, `"http://b%2eexample"`, "the URL's host is not written in plain ASCII"},
		{`"host":"a.example"`, `"http://127.1"`, "the URL's host is an unusual spelling of an address"},
		{`"host":"a.example"`, `"http://b.example:99999"`, "the URL's port is not a number from 1 to 65535"},
		{`"host":"a.example"`, `"file://a.example/etc"`, "the URL's scheme is not http, https, ws, wss or ftp"},
	} {
		p := newPolicy(t, `{"effect":"deny","where":{"/v":{`+test.where+`}}}`)
		v := p.Decide(call("s/t", `{"v":`+test.value+`}`))
		if want := "argument /v could not be judged: " + test.want; v.Unjudged != want {
			t.Errorf("%s of %s: %q, want %q", test.where, test.value, v.Unjudged, want)
		}
	}
}
