package cli

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
)

// What a server writes on standard error is escaped at a terminal, however its bytes come.
func TestErrOf(t *testing.T) {
	t.Parallel()
	const text = "é\x1b[2Jü\u202e€\U0001F600\xff end\n"
	want := host.Escape(text)
	for size := 1; size <= len(text); size++ {
		var shown strings.Builder
		w := (&program{streams: &Streams{Err: &shown, ErrTerminal: true}}).errOf()
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
	if _, err := (&program{streams: &Streams{Err: &piped}}).errOf().Write([]byte(text)); err != nil || piped.String() != text {
		t.Errorf("into a pipe: %q, %v", piped.String(), err)
	}
}
