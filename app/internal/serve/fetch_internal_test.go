package serve

import (
	"strings"
	"testing"
	"time"
)

// A flag that would do nothing, or fail every call, is refused when the server starts.
func TestFetchFlags(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fetchFlags)
		want   string
	}{
		"line break in the user agent": {func(f *fetchFlags) { f.userAgent = "a\nb" }, "--user-agent must be one line of text"},
		"pattern of hosts":             {func(f *fetchFlags) { f.allowPrivate = []string{"*.example.com"} }, "--allow-private \"*.example.com\": must be a network"},
		"host with a port":             {func(f *fetchFlags) { f.allowPrivate = []string{"a.example:80"} }, "--allow-private \"a.example:80\": must be a network"},
		"address with a zone":          {func(f *fetchFlags) { f.allowPrivate = []string{"fe80::1%eth0"} }, "--allow-private \"fe80::1%eth0\": must be a network"},
		"no time":                      {func(f *fetchFlags) { f.timeout = 0 }, "must be greater than 0"},
	} {
		flags := &fetchFlags{timeout: time.Second, maxBytes: 1}
		test.change(flags)
		if _, _, err := flags.open(t.Context(), nil, nil, &builtinOptions{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want %q", name, err, test.want)
		}
	}
	for _, host := range []string{"10.0.0.0/8", "::1", "fd11::/16", "intranet", "Wiki.Example.com", "a_b.example"} {
		if !isHost(host) {
			t.Errorf("%s is refused", host)
		}
	}
}
