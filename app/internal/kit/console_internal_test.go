package kit

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/strictjson"
)

// What a server writes on standard error is escaped at a terminal, however its bytes come.
func TestErrOf(t *testing.T) {
	t.Parallel()
	const text = "é\x1b[2Jü\u202e€\U0001F600\xff end\n"
	want := host.Escape(text)
	for size := 1; size <= len(text); size++ {
		var shown strings.Builder
		w := (&Console{Streams: &Streams{Err: &shown, ErrTerminal: true}}).ErrOf()
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got := shown.String(); got != want || strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("in pieces of %d bytes: %q, want %q", size, got, want)
		}
	}
	var piped strings.Builder
	if _, err := (&Console{Streams: &Streams{Err: &piped}}).ErrOf().Write([]byte(text)); err != nil || piped.String() != text {
		t.Errorf("into a pipe: %q, %v", piped.String(), err)
	}
}

// Lines of JSON at a terminal are the same values, and nothing in them works.
func TestJSONLines(t *testing.T) {
	t.Parallel()
	const line = `{"a":"é\u001b[2J` + "\x7f\u009b31m\u202e\u2066\u200b\u2028\U000e0041" + `\n","n":1.50}` + "\n"
	for _, terminal := range []bool{false, true} {
		var printed, written strings.Builder
		if err := (&Console{Streams: &Streams{Out: &printed, OutTerminal: terminal}}).PrintJSONLines(line); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Console{Streams: &Streams{Out: &written, OutTerminal: terminal}}).JSONOut().Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{printed.String(), written.String()} {
			if terminal != (got != line) || terminal && got != host.Escape(got) || !strictjson.Equal([]byte(got), []byte(line)) {
				t.Errorf("at a terminal: %v: %q", terminal, got)
			}
		}
	}
}
