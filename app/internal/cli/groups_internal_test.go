package cli

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// Each group adds commands that no other has, and without it they are not there.
func TestCommandsOfGroups(t *testing.T) {
	for i, want := range []string{"chat", "call", "inspect", "bridge", "auth serve"} {
		all := groups
		groups = append(all[:i:i], all[i+1:]...)
		root := newRoot(&kit.Console{Streams: &kit.Streams{}})
		groups = all
		if c, _, err := root.Find(strings.Fields(want)); err == nil && c.CommandPath() == "parley "+want {
			t.Errorf("%s is there without its group", want)
		}
		c, _, err := newRoot(&kit.Console{Streams: &kit.Streams{}}).Find(strings.Fields(want))
		if err != nil || c.CommandPath() != "parley "+want {
			t.Errorf("%s: %v", want, err)
		}
	}
}
