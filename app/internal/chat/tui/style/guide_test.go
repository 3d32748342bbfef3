package style_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
)

// The guide lists all keys as they are.
func TestGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "docs", "guide", "screen.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	keys := style.DefaultKeys()
	for _, group := range []style.Group{style.GroupAlways, style.GroupChat, style.GroupPanel, style.GroupView} {
		for _, a := range keys.Group(group) {
			fmt.Fprintf(&want, "| `%s` | %s | `%s` | %s |\n", a.Name, a.Group, strings.Join(a.Keys, "`, `"), a.Help)
		}
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/guide/screen.md must have these rows:\n%s", want.String())
	}
	_, block, _ := strings.Cut(string(page), "```jsonc\n")
	block, _, _ = strings.Cut(block, "```")
	var file struct {
		Screen struct{ Keys map[string][]string }
	}
	if err := json.Unmarshal([]byte(block), &file); err != nil {
		t.Fatalf("%v in %s", err, block)
	}
	changed, err := style.NewKeys(file.Screen.Keys)
	if err != nil || len(file.Screen.Keys) == 0 || !changed.Is("ctrl+s", style.Send) {
		t.Errorf("the keys of the guide: %v, %v", file.Screen.Keys, err)
	}
}
