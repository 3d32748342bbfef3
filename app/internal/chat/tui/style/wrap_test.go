package style

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		width int
		want  []string
	}{
		"short":                     {"one two", 10, []string{"one two"}},
		"at a blank":                {"one two three", 8, []string{"one two", "three"}},
		"exactly":                   {"one two", 7, []string{"one two"}},
		"long word":                 {"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		"long word after a short":   {"a bcdefghij", 4, []string{"a", "bcde", "fghi", "j"}},
		"newlines":                  {"a\n\nb\n", 4, []string{"a", "", "b", ""}},
		"blanks at the beginning":   {"  a b", 4, []string{"  a", "b"}},
		"blanks at the end":         {"a    ", 4, []string{"a"}},
		"only blanks":               {"        ", 4, []string{""}},
		"wide":                      {"日本語", 4, []string{"日本", "語"}},
		"wider than the line":       {"日本", 1, []string{"日", "本"}},
		"combining":                 {"e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
		"an escape that was left":   {"a\x1b[2Jb", 20, []string{"a\uFFFD[2Jb"}},
		"a C1 escape that was left": {"a\u009b2Jb", 20, []string{"a\uFFFD2Jb"}},
		"no width":                  {"ab", 0, []string{"a", "b"}},
		"empty":                     {"", 5, []string{""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Wrap(test.text, test.width); !slices.Equal(got, test.want) {
				t.Errorf("Wrap(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
			}
		})
	}
}

func TestWrapHard(t *testing.T) {
	t.Parallel()
	if got, want := WrapHard("  if x {\n\ty()", 6), []string{"  if x", " {", "    y(", ")"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrapSpans(t *testing.T) {
	t.Parallel()
	bold := lipgloss.NewStyle().Bold(true)
	got := WrapSpans([]Span{{Text: "one tw"}, {Text: "o three", Style: bold}, {Text: "."}}, 8)
	var plain []string
	for _, line := range got {
		plain = append(plain, ansi.Strip(line))
		if strings.Contains(line, "\x1b[1m") != (strings.Count(line, "\x1b[") == 2) {
			t.Errorf("the styles of %q are not complete", line)
		}
	}
	if want := []string{"one two", "three."}; !slices.Equal(plain, want) {
		t.Errorf("got %q, want %q", plain, want)
	}
}

// A text of a megabyte is whole after it was wrapped, whatever it is made of.
func TestWrapLong(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"letters": "x", "wide": "日", "combining": "\u0301"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		if got := strings.Join(Wrap(text, 78), ""); got != text {
			t.Errorf("%s: %d bytes became %d", name, len(text), len(got))
		}
	}
}

// The time for a byte does not grow with the text.
func BenchmarkWrap(b *testing.B) {
	for name, unit := range map[string]string{"letters": "x", "wide": "日", "words": "a b", "combining": "\u0301", "blanks": " "} {
		for _, size := range []int{100 << 10, 1 << 20} {
			text := strings.Repeat(unit, size/len(unit))
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Wrap(text, 78)
				}
			})
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"ab\ncd", 5, "ab…"}, {"日本語", 4, "日…"}, {"abc", 0, ""}, {"a\x1bb", 5, "a\uFFFDb"}, {"ab", 1, "…"},
	} {
		if got := Fit(test.text, test.width); got != test.want {
			t.Errorf("Fit(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
	if got := Pad("日", 4); got != "日  " {
		t.Errorf("Pad gave %q", got)
	}
}
