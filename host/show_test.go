package host_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
)

// Proves: SEC-TOOL-3. What has no shape of its own does not hide in a text.
func TestEscapeInvisible(t *testing.T) {
	for _, r := range []rune{
		0x00ad, 0x061c, 0x115f, 0x17b4, 0x180b, 0x180e, 0x180f, 0x200b, 0x202e, 0x2065, 0x2066, 0x2800, 0x3164,
		0xfe00, 0xfe0d, 0xfeff, 0xfff0, 0xfff9, 0x1d159, 0x1d173, 0xe0000, 0xe0020, 0xe0061, 0xe0080, 0xe0100, 0xe01ef, 0xe0fff, 0xf0000,
	} {
		if got := host.Escape("a" + string(r) + "b"); strings.ContainsRune(got, r) {
			t.Errorf("%U is shown as it is", r)
		}
	}
	for _, s := range []string{"naïve 文字 ✓", "❤\ufe0f", "क्षि"} {
		if got := host.Escape(s); got != s {
			t.Errorf("%q is shown as %q", s, got)
		}
	}
}
