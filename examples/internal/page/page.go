// Package page keeps parts of the guide that are made by tests: tables whose
// rows come from the code that they describe.
package page

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the parts of the guide that are made by tests")

// Check compares the part of a page of docs/guide between the comments
// "begin name" and "end name" with want, or writes it with -update. It is for
// tests in the folder examples and one below.
func Check(t *testing.T, file, name, want string) {
	t.Helper()
	file = filepath.Join("..", "docs", "guide", file)
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		file = filepath.Join("..", file)
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatalf("%s has no %q and %q", file, begin, end)
	}
	i += len(begin)
	want = "\n" + strings.TrimSpace(want) + "\n\n"
	if text[i:j] == want {
		return
	}
	if !*update {
		t.Errorf("%s: the part %q is out of date; run go test -update in this folder. It should be:%s", file, name, want)
		return
	}
	if err := os.WriteFile(file, []byte(text[:i]+want+text[j:]), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Code is text as code within a table.
func Code(text string) string {
	text = strings.ReplaceAll(text, "|", `\|`)
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}
