package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/racetest"
)

// The page on security names tests. One that is gone would leave an attack
// that nobody tries any more.
func TestSecurityPage(t *testing.T) {
	racetest.SkipSerial(t)
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| attack | tests |\n|---|---|\n")
	if !found {
		t.Fatal("docs/security.md has no table of attacks")
	}
	folder, name := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`Test\w+`)
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			break
		}
		rows++
		for _, part := range strings.Split(cells[2], ";") {
			in := folder.FindStringSubmatch(part)
			tests := name.FindAllString(part, -1)
			if in == nil || len(tests) == 0 {
				t.Errorf("%s: %q names no package or no test", strings.TrimSpace(cells[1]), part)
				continue
			}
			have := testsIn(t, filepath.Join(root, filepath.FromSlash(in[1])))
			for _, test := range tests {
				if !have[test] {
					t.Errorf("%s: %s has no test %s", strings.TrimSpace(cells[1]), in[1], test)
				}
			}
		}
	}
	if want := 21; rows < want {
		t.Errorf("the table of attacks has %d rows, want at least %d", rows, want)
	}
}

// testsIn are the names of the tests of a folder.
func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	have := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			have[m[1]] = true
		}
	}
	return have
}
