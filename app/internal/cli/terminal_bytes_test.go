package cli_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// waited waits until a text satisfies a condition, and returns it.
func waited(t *testing.T, what string, read func() string, ok func(text string) bool) string {
	t.Helper()
	look, late := time.NewTicker(50*time.Millisecond), time.After(patience)
	defer look.Stop()
	for text := ""; ; {
		select {
		case <-look.C:
			if text = read(); ok(text) {
				return text
			}
		case <-late:
			t.Fatalf("%s:\n%s", what, text)
		}
	}
}

// shown is what is on the screen.
func (s *tmuxScreen) shown() string {
	s.t.Helper()
	return s.run("capture-pane", "-p")
}

// finds waits until the screen shows what matches a pattern, and returns what is in its
// parentheses.
func (s *tmuxScreen) finds(pattern string) string {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	return want.FindStringSubmatch(waited(s.t, "the screen does not show "+pattern, s.shown, want.MatchString))[1]
}

// written is all that the terminal got until the end of the program.
func (s *tmuxScreen) written() string {
	s.t.Helper()
	return waited(s.t, "not all that the terminal got is kept", func() string { return fileText(s.t, s.bytes) },
		func(text string) bool { return strings.Contains(text, "ENDED ") })
}

// fileText is what a file has, nothing if it is not there yet.
func fileText(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}

// graphics sets how the text that follows looks (ECMA-48, SGR).
var graphics = regexp.MustCompile(`\x1b\[([0-9;:]*)m`)

// colorsIn are the parts of a text that set a colour.
func colorsIn(text string) []string {
	var found []string
	for _, m := range graphics.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(m[1], ";") {
			first, _, _ := strings.Cut(part, ":")
			n, err := strconv.Atoi(first)
			if err == nil && (n >= 30 && n <= 38 || n >= 40 && n <= 48 || n >= 90 && n <= 107) {
				found = append(found, m[0])
				break
			}
		}
	}
	return found
}

func TestColorsIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"\x1b[1mbold\x1b[0m \x1b[39;49m \x1b[m \x1b[4:3m \x1b[30D 31m": 0,
		"\x1b[31m": 1, "\x1b[1;38;5;7mx\x1b[48:2::1:2:3m": 2, "\x1b[0;97m": 1, "\x1b[107m": 1, "\x1b[40m": 1,
	} {
		if got := colorsIn(text); len(got) != want {
			t.Errorf("%q: %q set colours, want %d", text, got, want)
		}
	}
}
