package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/servers/filesystem/diff"
)

// numbers are lines with numbers.
func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func TestUnified(t *testing.T) {
	head := "Index: f\n" + strings.Repeat("=", 67) + "\n--- f\toriginal\n+++ f\tmodified\n"
	for name, test := range map[string]struct{ old, now, want string }{
		"same":           {"a\n", "a\n", ""},
		"both empty":     {"", "", ""},
		"from nothing":   {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"to nothing":     {"a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		"no end of line": {"a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		"end added":      {"a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		"far apart": {
			numbers(1, 20), "0\n" + numbers(1, 19) + "x\n",
			"@@ -1,4 +1,5 @@\n+0\n 1\n 2\n 3\n 4\n@@ -16,5 +17,5 @@\n 16\n 17\n 18\n 19\n-20\n+x\n",
		},
		"near": {
			numbers(1, 10), "0\n" + numbers(1, 8) + "x\n10\n",
			"@@ -1,10 +1,11 @@\n+0\n 1\n 2\n 3\n 4\n 5\n 6\n 7\n 8\n-9\n+x\n 10\n",
		},
		"moved": {"a\nb\nc\n", "c\na\nb\n", "@@ -1,3 +1,3 @@\n+c\n a\n b\n-c\n"},
	} {
		if got := diff.Unified("f", test.old, test.now); got != head+test.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, head+test.want)
		}
	}
}

// Texts that have nothing in common are shown at once, however long they are.
func TestFarApart(t *testing.T) {
	old, now := strings.Repeat("old\n", 100_000), strings.Repeat("new\n", 100_000)
	got := diff.Unified("f", "same\n"+old+"end\n", "same\n"+now+"end\n")
	if !strings.Contains(got, "@@ -1,100002 +1,100002 @@\n same\n-old\n") || strings.Count(got, "+new\n") != 100_000 || !strings.HasSuffix(got, "+new\n end\n") {
		t.Errorf("%.300q", got)
	}
}

// What a diff says gives the new text of the old one.
func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc")
	f.Add("", "\n\n")
	f.Fuzz(func(t *testing.T, old, now string) {
		if got := patch(t, old, diff.Unified("f", old, now)); got != now {
			t.Errorf("%q, want %q", got, now)
		}
	})
}

// patch applies a diff.
func patch(t *testing.T, old, text string) string {
	t.Helper()
	lines := strings.SplitAfter(text, "\n")[4:]
	rest := strings.SplitAfter(old, "\n")
	at := 0 // in rest
	var out strings.Builder
	for i, line := range lines {
		sign, bare := "", ""
		if line != "" {
			sign, bare = line[:1], line[1:]
		}
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\\ No newline") {
			bare = strings.TrimSuffix(bare, "\n")
		}
		switch sign {
		case "@":
			var start, count int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d", &start, &count); err != nil {
				t.Fatal(err)
			}
			if count > 0 {
				start--
			}
			for ; at < start; at++ {
				out.WriteString(rest[at])
			}
		case " ", "-":
			if rest[at] != bare {
				t.Fatalf("line %q, the old text has %q", line, rest[at])
			}
			at++
			if sign == " " {
				out.WriteString(bare)
			}
		case "+":
			out.WriteString(bare)
		}
	}
	return out.String() + strings.Join(rest[at:], "")
}
