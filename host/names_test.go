package host

import (
	"regexp"
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
