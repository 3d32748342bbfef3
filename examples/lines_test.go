package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/examples/page"
)

// The examples of other libraries, and the lines of code that they have.
var (
	goSDK = []struct {
		name   string
		theirs int
	}{
		{"listfeatures", 64}, {"elicitation", 59}, {"middleware", 110}, {"toolschemas", 125}, {"proxy", 101},
	}
	typedTools = 90
)

// lines counts the lines of a program that are neither empty nor a comment.
func lines(t *testing.T, folder string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// The first page says how long the file is.
func TestLinesOfStart(t *testing.T) {
	name := guide + "/start.md"
	text := pages(t)[name]
	for _, b := range blocks(name, text) {
		if !strings.HasSuffix(b.directive, " as main.go") {
			continue
		}
		if want := fmt.Sprintf("in %d lines of Go", strings.Count(b.text, "\n")); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", name, want)
		}
		return
	}
	t.Errorf("%s has no program", name)
}

// The pages about other libraries say how long the programs are.
func TestLines(t *testing.T) {
	var b strings.Builder
	b.WriteString("| example | go-sdk | here |\n|---|---|---|\n")
	for _, e := range goSDK {
		n := lines(t, "gosdk-"+e.name)
		if n >= e.theirs {
			t.Errorf("%s has %d lines, not fewer than the %d of the other library", e.name, n, e.theirs)
		}
		fmt.Fprintf(&b, "| %s | %d | %d |\n", e.name, e.theirs, n)
	}
	page.Check(t, "migration-go-sdk.md", "lines", b.String())
	n := lines(t, "mcpgo-typed")
	page.Check(t, "migration-mcp-go.md", "lines", fmt.Sprintf("The whole program has %d lines of code; mcp-go's example `typed_tools` has %d.", n, typedTools))
}
