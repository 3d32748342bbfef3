package host

import (
	"regexp"
	"strings"
	"testing"
)

// Every provider takes the names that the model is told, and two tools never have one.
func TestModelNames(t *testing.T) {
	t.Parallel()
	taken := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)
	seen := make(map[string][2]string)
	for _, server := range []string{"a", "1x", "_1x", "-x", "x_", "ä", "a__b", "1234567890123456789012345678901234567890123456789012345678901234567890"} {
		for _, tool := range []string{"t", "1", "b__t", "", "t.u", "t_u"} {
			name := modelName(server, tool)
			if !taken.MatchString(name) {
				t.Errorf("%s/%s: %s is not taken", server, tool, name)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("%s is %v and %s/%s", name, other, server, tool)
			}
			seen[name] = [2]string{server, tool}
		}
	}
	if got := modelName("a", "t"); got != "a__t" {
		t.Errorf("an ordinary name became %s", got)
	}
}

// Names of a server's request are told as they are where every provider takes them, and differ
// where they differ.
func TestPlainNames(t *testing.T) {
	t.Parallel()
	taken := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)
	seen := make(map[string]string)
	long := strings.Repeat("long_", 20)
	for name, same := range map[string]bool{
		"get_weather": true, "_x": true, "a-b": true, long[:64]: true,
		"": false, "7zip": false, "-x": false, "admin.tools.list": false, "admin_tools.list": false, "admin/tools": false,
		"späte frage": false, long[:65]: false, long[:66]: false, plainName("a.b"): false,
	} {
		told := plainName(name)
		if !taken.MatchString(told) || (told == name) != same {
			t.Errorf("%q is told as %s", name, told)
		}
		if other, ok := seen[told]; ok {
			t.Errorf("%s is %q and %q", told, name, other)
		}
		seen[told] = name
	}
}
