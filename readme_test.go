package parley_test

import (
	"os"
	"strings"
	"testing"
)

// The code of the README is the code of the examples, so that it compiles.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) != 5 {
		t.Errorf("the README has %d blocks of Go, want a server, one over HTTP and a client, the last two with authorization", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		var indented strings.Builder
		for line := range strings.Lines(code) {
			indented.WriteString("\t" + line)
		}
		if !strings.Contains(string(examples), indented.String()) {
			t.Errorf("this is in no example:\n%s", code)
		}
	}
}
