package filesystem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
)

// What a diff says gives the new text of the old one.
func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc")
	f.Add("", "\n\n")
	f.Fuzz(func(t *testing.T, old, now string) {
		text, err := unified(t.Context(), "f", old, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := patch(t, old, text); got != now {
			t.Errorf("%q, want %q", got, now)
		}
	})
}

// An edit that is made leaves all lines alone before and after the place, and their ends; one that is
// not has an error.
func FuzzEdit(f *testing.F) {
	f.Add("a\r\n  b\nc", "b\n", "x\r\ny\n")
	f.Add("\tif x {\n\t}\n", "if x {\n}", "  if y {\n\tz\n}\n")
	f.Fuzz(func(t *testing.T, text, old, next string) {
		changed, err := edit{old, next}.apply(t.Context(), text, 8<<20)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		unixLines := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
		if old == "" || strings.Count(unixLines(text), unixLines(old)) > 1 {
			t.Errorf("%q is not one place in %q", old, text)
		}
		if strings.Contains(text, "\r") || strings.Contains(next, "\r") || !strings.Contains(text, unixLines(old)) {
			return
		}
		if want := strings.Replace(text, unixLines(old), next, 1); changed != want {
			t.Errorf("%q, want %q", changed, want)
		}
	})
}

// How lines differ that are longer than maxLikeness is not looked for: the hint says where they do, and
// claims no more.
func TestLongLinesCompared(t *testing.T) {
	long := strings.Repeat("x ", maxLikeness)
	for name, test := range map[string]struct{ is, want, says string }{
		"at the end":       {long + "\tend", long + " end", `Line 1 differs after 8192 bytes (indentation is not counted): the file has "\tend" there, and oldText has " end".`},
		"another look":     {"\"a\" " + long + "1", "\u201ca\u201d " + long + "2", `Line 1 differs after 0 bytes`},
		"indentation":      {"\t\t" + long + "1", "  " + long + "2", `Line 1 differs after 8192 bytes`},
		"within a letter":  {"é" + long, "è" + long, `differs after 0 bytes (indentation is not counted): the file has "\u00e9x`},
		"a beginning only": {long + "more", strings.TrimSpace(long), `the file has " more" there, and oldText has "".`},
	} {
		hint, err := compare(servers.NewSteps(t.Context()), []string{test.is}, []string{test.want}, 0)
		if err != nil || !strings.Contains(hint, test.says) || strings.Contains(hint, "only in") {
			t.Errorf("%s: %v, %.400q", name, err, hint[max(0, len(hint)-400):])
		}
	}
}

// Long lines are compared with the context looked at in between.
func TestNearestPolls(t *testing.T) {
	lines := slices.Repeat([]string{strings.Repeat("x", 5_000)}, 500)
	ctx := &meddler{t.Context(), 0, func() {}}
	if _, err := nearest(ctx, lines, []string{"y"}); err != nil {
		t.Fatal(err)
	}
	if looks := -ctx.left; looks < 20 {
		t.Errorf("it looks at its context %d times", looks)
	}
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
