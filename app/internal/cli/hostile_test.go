package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// A conversation with a server that writes what terminals obey, and lines of the program,
// wherever it can. Everything is shown, nothing of it works; at the end of each conversation
// the bytes that were written are checked.
//
// Proves: SEC-TOOL-3, SEC-TOOL-4, SEC-PROMPT-4, SEC-ELICIT-1, SEC-ELICIT-2, SEC-SAMPLE-1, SEC-LOG-1,
// SEC-PROG-1, SEC-COMP-1, SEC-RES-5, SEC-ICON-1, SEC-INIT-1, SEC-CANCEL-1.
func TestHostileTexts(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	for _, version := range versions[:2] {
		t.Run(version, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			fetched := make(chan string, 100)
			site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fetched <- r.URL.Path }))
			defer site.Close()
			k := begin(t, "--server", "bad=villain "+version+" nasty "+site.URL+"/icon.svg", "--server", "good=actor "+t.TempDir(), "--logs", "debug",
				"--allow", "good/*", "--ask", "bad/*")
			k.ready()
			k.says("bad/look text=now")
			k.sees("The model wants to call look of server bad.", "title (untrusted): ", `\u{1b}[2J`, "description (untrusted): The villain's look", "WARNING")
			k.answers("y")
			k.sees("look of server bad: done", `| seen: \u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2066}\u{200b}\u{e0041}`, "Done: ")
			k.hears(`[bad `, "error: ", "logged ")
			k.says("bad/fail")
			k.answers("y")
			k.sees("fail of server bad: failed", "Done: ")
			k.says("bad/lie")
			k.answers("y")
			k.sees("| [image, image/png, 31 bytes]", "Done: ")
			k.says("bad/wrong")
			k.answers("y")
			k.sees("wrong of server bad: done", "Done: ")
			k.says("bad/stranger")
			k.answers("y")
			k.sees("stranger of server bad: ", "Done: ")
			if shown := k.out.String(); strings.Contains(shown, "answer to nothing") || strings.Contains(shown, "progress of nothing") || strings.Contains(shown, "second answer") {
				t.Errorf("what was not asked for is shown:\n%s", shown)
			}
			hostileQuestions(k)
			k.says("/prompts")
			k.sees("/bad:verse topic= (untrusted): ", `/bad:n\u{1b}[2J`)
			k.says("/bad:verse")
			k.sees("Your value for topic")
			k.types("?")
			k.sees("value 1 (untrusted): safe", "value 2 (untrusted): ", `\u{1b}[2J`)
			k.types("1")
			k.sees("prompt verse of server bad", `| prompt: \u{1b}[2J`, "Done: ")
			k.says("hello @bad:x://r")
			k.sees("resource x://r of server bad", `| resource: <script>\u{1b}[2J`, "Done: ")
			k.says("/tools villain")
			k.sees("tool look of server bad (untrusted): ")
			k.says("/history")
			k.sees("look of server bad: done")
			k.says("good/who")
			k.sees("says:\n    parley speaks ")
			unforged(t, k.quits())
			if len(fetched) > 0 {
				t.Errorf("%s was fetched, which nobody asked for", <-fetched)
			}
		})
	}
}

// hostileQuestions answers what the villain asks.
func hostileQuestions(k *talk) {
	k.t.Helper()
	k.says("bad/form")
	k.answers("y")
	k.sees("Server bad asks you for something.", `| form: \u{1b}[2J`, "WARNING: the field ")
	k.answers("n")
	k.sees(`answered: `, `decline`, "Done: ")
	k.says("bad/page")
	k.answers("y")
	k.sees("Server bad wants you to visit a page.", "the page is at: xn--pple-43d.example", "https://xn--pple-43d.example/"+strings.Repeat("x", 300)+`?a=1#end`, "WARNING")
	k.answers("n")
	k.sees("Done: ")
	k.says("bad/secretpage")
	k.answers("y")
	k.sees("the page is at: evil.example", "WARNING")
	k.answers("c")
	k.sees("Done: ")
	for _, tool := range []string{"scriptpage", "bidipage"} { // no address to show at all
		k.says("bad/" + tool)
		k.answers("y")
		k.sees(tool+" of server bad: ", "malformed question", "Done: ")
	}
	k.says("bad/consult")
	k.answers("y")
	k.sees("Server bad wants to use the model.", `\u{1b}[2J`, `| sample: \u{1b}[2J`)
	k.answers("n")
	k.sees("consult of server bad: ", "Done: ")
}

// unforged fails if a line of a villain passes for one of the program.
func unforged(t *testing.T, shown string) {
	t.Helper()
	for line := range strings.Lines(shown) {
		if strings.HasPrefix(line, "> forged") || strings.HasPrefix(line, "  asked because: rule: allow everything") {
			t.Errorf("a forged line %q in\n%s", line, shown)
		}
	}
}

// The same server in a run without a person: what it asks is refused, and nothing of what it
// writes works at a terminal.
//
// Proves: SEC-TOOL-3, SEC-CAP-1.
func TestHostileRun(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	for _, version := range versions[:2] {
		for tool, want := range map[string]string{
			"look":     "<- bad/look: done",
			"fail":     "<- bad/fail failed: ",
			"wrong":    "structured result does not fit",
			"stranger": "<- bad/stranger: done",
			"form":     "capability not declared: this client does not offer",
			"page":     "capability not declared: this client does not offer",
			"consult":  "capability not declared: this client does not offer",
		} {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			shown := new(output)
			cli.Main(t.Context(), []string{"run", "--allow", "*", "--logs", "debug", "--server", "bad=villain " + version + " nasty", tool},
				&kit.Streams{In: strings.NewReader(""), Out: shown, Err: shown, OutTerminal: true})
			if !strings.Contains(shown.String(), want) {
				t.Errorf("%s in %s: no %q in\n%s", tool, version, want, shown)
			}
			if shown.String() != host.Escape(shown.String()) {
				t.Errorf("%s in %s: not safe to show:\n%q", tool, version, shown.String())
			}
		}
	}
}

// JSON of what a villain wrote is JSON at a terminal, too, and nothing of it works there.
//
// Proves: SEC-TOOL-3.
func TestHostileJSON(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	const version = "2025-06-18"
	server := []string{"villain", version, "nasty"}
	flag := []string{"--server", "bad=" + strings.Join(server, " ")}
	for _, args := range [][]string{
		append([]string{"trace", "--json", "--"}, server...),
		append([]string{"inspect", "--json", "--method", "tools/list", "--"}, server...),
		append([]string{"inspect", "--format", "json", "--method", "prompts/list", "--"}, server...),
		append([]string{"tools", "--json"}, flag...),
		append([]string{"prompt", "--json"}, flag...),
		append([]string{"call", "look", "--json"}, flag...),
		append([]string{"run", "--json", "--allow", "*", "look"}, flag...),
		{"session", "export", "last"},
	} {
		t.Run(args[0], func(t *testing.T) {
			shown := new(output)
			cli.Main(t.Context(), args, &kit.Streams{In: strings.NewReader(""), Out: shown, Err: new(output), OutTerminal: true})
			text := shown.String()
			if text != host.Escape(text) {
				t.Errorf("%q: not safe to show:\n%q", args, text)
			}
			if !strings.Contains(text, `\u001b[2J`) || !strings.Contains(text, `\u009b31m\u202e`) {
				t.Errorf("%q: the villain is not in it:\n%q", args, text)
			}
			for d := json.NewDecoder(strings.NewReader(text)); ; {
				if err := d.Decode(new(any)); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%q: no JSON: %v\n%q", args, err, text)
				}
			}
		})
	}
}
