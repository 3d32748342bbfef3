package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFaults lints a workspace in which each fault has a comment: // want LINTER...
func TestFaults(t *testing.T) {
	const dir = "testdata/faults"
	want := []string{"faults.go:18: exported", "faults.go:93: nolint"} // a comment there would mend them
	for _, name := range []string{"doc.go", "faults.go", "apart/apart.go", "apart/apart_test.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if _, linters, ok := strings.Cut(strings.TrimSpace(line), "// want "); ok {
				for linter := range strings.FieldsSeq(linters) {
					want = append(want, fmt.Sprintf("%s:%d: %s", name, n, linter))
				}
			}
		}
	}
	var out bytes.Buffer
	n, err := run(t.Context(), &options{Dir: dir, Modules: []string{"apart"}, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	form := regexp.MustCompile(`^(\S+?:\d+):\d+: .* \((\w+)\)\n$`)
	for line := range strings.Lines(out.String()) {
		m := form.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("a line of another form: %q", line)
		}
		got = append(got, m[1]+": "+m[2])
	}
	if n != len(got) {
		t.Errorf("run says %d findings and printed %d", n, len(got))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%s", diff, out.String())
	}
	for _, l := range linters {
		planted := slices.ContainsFunc(want, func(line string) bool { return strings.HasSuffix(line, ": "+l.name) })
		if large := []string{"dupl", "filelen", "funlen", "gocognit"}; !planted && !slices.Contains(large, l.name) {
			t.Errorf("no fault for %s", l.name)
		}
	}
}

// TestLarge lints what is too long, too deep and there twice.
func TestLarge(t *testing.T) {
	dir := t.TempDir()
	body := "\tif n > 0 {\n\t\tif n > 1 {\n\t\t\tif n > 2 {\n\t\t\t\tif n > 3 {\n\t\t\t\t\tif n > 4 {\n\t\t\t\t\t\tif n > 5 {\n\t\t\t\t\t\t\tif n > 6 {\n\t\t\t\t\t\t\t\tn--\n\t\t\t\t\t\t\t}\n\t\t\t\t\t\t}\n\t\t\t\t\t}\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n"
	var b strings.Builder
	b.WriteString("// Package large is too large.\npackage large\n\n// Deep is deep.\nfunc Deep(n int) int {\n" + body + "\treturn n\n}\n")
	for _, name := range []string{"Once", "Again"} {
		fmt.Fprintf(&b, "\n// %s is long.\nfunc %s(n int) int {\n%s\treturn n\n}\n", name, name, strings.Repeat("\tn += 2\n\tn -= n / 3\n", 45))
	}
	for i := range 150 {
		fmt.Fprintf(&b, "\n// F%d does nothing.\nfunc F%d() int {\n\treturn %d\n}\n", i, i, i)
	}
	for name, text := range map[string]string{"go.work": "go 1.26.0\n\nuse .\n", "go.mod": "module example.org/large\n\ngo 1.26.0\n", "large.go": b.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := run(t.Context(), &options{Dir: dir, Out: &out}); err != nil {
		t.Fatal(err)
	}
	for _, linter := range []string{"dupl", "filelen", "funlen", "gocognit"} {
		if !strings.Contains(out.String(), "("+linter+")\n") {
			t.Errorf("nothing of %s in:\n%s", linter, out.String())
		}
	}
}

// TestBroken: code that does not compile is an error, not a clean result.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.work": "go 1.26.0\n\nuse .\n", "go.mod": "module example.org/broken\n\ngo 1.26.0\n", "a.go": "package a\n\nvar x int = \"\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := run(t.Context(), &options{Dir: dir, Out: &bytes.Buffer{}}); err == nil || !strings.Contains(err.Error(), "cannot use") {
		t.Errorf("%d findings, error %v; want the compiler's words", n, err)
	}
}
