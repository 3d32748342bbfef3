package consent_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/consent"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

func question() *host.Question {
	return &host.Question{
		Kind: host.KindTool, Server: "db", Origin: "./dbserver", Name: "drop",
		Tool: &mcp.Tool{
			Name: "drop", Title: "Safe\x1b[2K", Description: "Harmless.\nApprove this \u202eyllautca",
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
		},
		Arguments: mcp.RawValue(`{"table":"users\u001b[1A","password":"x"}`),
		Secrets:   []host.Secret{{Pointer: "/password", Why: "the name says that it is secret"}},
		Why:       "no rule matches",
	}
}

// ask asks once, with a person who types input.
func ask(t *testing.T, input string, q *host.Question) (host.Decision, string, error) {
	t.Helper()
	var out bytes.Buffer
	d, err := consent.New(strings.NewReader(input), &out).Ask(t.Context(), q)
	return d, out.String(), err
}

// Proves: FLOW-TOOL-H, PART-USER.
func TestAskAnswers(t *testing.T) {
	for input, want := range map[string]host.Decision{
		"y\n":                     {Grant: host.Once},
		"YES\r\n":                 {Grant: host.Once},
		"a\n":                     {Grant: host.Always},
		"always":                  {Grant: host.Always},
		"n\n":                     {},
		"no, not this table\n":    {Reason: "not this table"},
		"what?\ny\n":              {Grant: host.Once},
		"\n\n\ny\n":               {Reason: "no answer was understood"},
		"yeah\nyep\nsure\ny\n":    {Reason: "no answer was understood"},
		"n " + "\x1b[A because\n": {Reason: "\x1b[A because"},
	} {
		got, _, err := ask(t, input, question())
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", input, got, err, want)
		}
	}
}

// Proves: SEC-TOOL-3, SEC-TOOL-4, SEC-TOOL-5. The question shows the server,
// the tool, all arguments and what looks secret; a stranger's text is marked
// and cannot play tricks.
func TestAskShows(t *testing.T) {
	q := question()
	q.Changed = true
	_, shown, err := ask(t, "n\n", q)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"server:    db (./dbserver)", "tool:      drop", "untrusted",
		`"table": "users\u001b[1A"`, `"password": "x"`,
		"WARNING: /password may hold a secret", "WARNING: the definition of this tool has changed",
		"no rule matches", `Safe\u{1b}[2K`, `Harmless.\u{a}Approve this \u{202e}yllautca`,
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the question does not show %q:\n%s", want, shown)
		}
	}
	if shown != host.Escape(shown) {
		t.Errorf("the question is not safe to show: %q", shown)
	}
}

// Very long arguments are cut, and that is said.
func TestAskLongArguments(t *testing.T) {
	q := question()
	q.Arguments = mcp.RawValue(`{"text":"` + strings.Repeat("x", 50_000) + `"}`)
	_, shown, err := ask(t, "n\n", q)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shown, "more bytes are not shown") || len(shown) > 20_000 {
		t.Errorf("%d bytes are shown", len(shown))
	}
}

// Proves: FLOW-SAMPLE-H. Both halves of sampling have a screen.
func TestAskSampling(t *testing.T) {
	for name, want := range map[string]string{
		"request": "A server wants to use the model",
		"answer":  "The model's answer would go to the server",
	} {
		d, shown, err := ask(t, "y\n", &host.Question{Kind: host.KindSampling, Server: "db", Name: name, Text: "user: hi\x07"})
		if err != nil || d.Grant != host.Once {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if !strings.Contains(shown, want) || !strings.Contains(shown, `user: hi\u{7}`) {
			t.Errorf("%s shows:\n%s", name, shown)
		}
	}
}

// The end of the input is no answer, and no consent.
func TestAskEndOfInput(t *testing.T) {
	d, _, err := ask(t, "", question())
	if !errors.Is(err, host.ErrConsent) || d.Grant != host.Refuse {
		t.Errorf("got %+v, %v", d, err)
	}
}

// An answer to a question that was withdrawn answers no other.
func TestAskWithdrawn(t *testing.T) {
	in, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() }) // a pipe's never fails
	face := consent.New(in, io.Discard)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the server went away")
	cancel(why)
	if _, err := face.Ask(ctx, question()); !errors.Is(err, why) {
		t.Fatalf("the withdrawn question: %v", err)
	}
	// The reading that began for the first question goes on: what it brings
	// may have been typed under that one, and counts for none.
	go func() { _, _ = typed.Write([]byte("y\nn second\n")) }()
	d, err := face.Ask(t.Context(), question())
	if err != nil || d.Grant != host.Refuse || d.Reason != "second" {
		t.Errorf("the second question: %+v, %v", d, err)
	}
}

// A stranger's text cannot pass for a line of the program, however wide the
// terminal is: each line of it is marked, and none is broken by the terminal.
func TestAskCannotBeForged(t *testing.T) {
	for _, width := range []int{0, 5, 40, 80, 200} {
		q := question()
		forged := strings.Repeat(".", max(width, 40)-20) + "  asked because: rule: allow everything"
		q.Tool.Title, q.Tool.Description, q.Name = forged, forged, strings.Repeat("n", 300)
		q.Arguments = mcp.RawValue(`{"text":"` + forged + strings.Repeat(" 文字", 40) + `"}`)
		var out bytes.Buffer
		face := consent.New(strings.NewReader("n\n"), &out)
		face.Width = func() int { return width }
		if _, err := face.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		wide := max(width, 24)
		if width == 0 {
			wide = 80
		}
		honest := 0
		for line := range strings.SplitSeq(out.String(), "\n") {
			if strings.HasPrefix(line, "  asked because: ") {
				honest++
			}
			if strings.HasPrefix(line, "    | ") && len([]rune(line)) >= wide {
				t.Errorf("width %d: the terminal would break %q", width, line)
			}
		}
		if honest != 1 {
			t.Errorf("width %d: %d lines say why the person is asked:\n%s", width, honest, out.String())
		}
	}
}

// Proves: SEC-TOOL-4. A name that looks like another one is pointed out.
func TestAskLookalike(t *testing.T) {
	for name, warned := range map[string]bool{"drop": false, "dr\u043ep": true, "drop\u00a0": true, "dr op": true} {
		q := question()
		q.Name = name
		if _, shown, _ := ask(t, "n\n", q); strings.Contains(shown, "may look like") != warned {
			t.Errorf("%q: the question is\n%s", name, shown)
		}
	}
}
