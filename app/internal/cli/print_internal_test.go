package cli

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/inspect/doctor"
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

// Lines of JSON at a terminal are the same values, and nothing in them works.
func TestJSONLines(t *testing.T) {
	t.Parallel()
	const line = `{"a":"é\u001b[2J` + "\x7f\u009b31m\u202e\u2066\u200b\u2028\U000e0041" + `\n","n":1.50}` + "\n"
	for _, terminal := range []bool{false, true} {
		var printed, written strings.Builder
		if err := (&program{streams: &Streams{Out: &printed, OutTerminal: terminal}}).printJSONLines(line); err != nil {
			t.Fatal(err)
		}
		if _, err := (&program{streams: &Streams{Out: &written, OutTerminal: terminal}}).jsonOut().Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{printed.String(), written.String()} {
			if terminal != (got != line) || terminal && got != host.Escape(got) || !strictjson.Equal([]byte(got), []byte(line)) {
				t.Errorf("at a terminal: %v: %q", terminal, got)
			}
		}
	}
}

// A report as text is readable whatever the length of a server's names.
func TestDescribeLongReport(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x1b", 100_000)
	text := describeReport(&doctor.Report{
		Model:    []doctor.Cost{{Name: long}},
		Findings: []doctor.Finding{{Where: "$.tools['" + long + "']", Reason: "why " + long, Mend: "mend it"}},
	})
	if len(text) > 5000 || !strings.Contains(text, `$.tools['\u{1b}`) || !strings.Contains(text, "mend it") {
		t.Errorf("%d bytes: %.1000s", len(text), text)
	}
}
