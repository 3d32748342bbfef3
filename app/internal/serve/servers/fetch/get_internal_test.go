package fetch

import "testing"

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
