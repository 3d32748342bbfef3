package mcptest_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

var update = flag.Bool("update", false, "write the transcripts anew")

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

// script is a file that passes; what others try is a change of it.
const script = `What a server says.

-- handshake --
# A remark.
> ` + hello + `
< {"jsonrpc":"2.0","id":1,
   "result":{"protocolVersion":"2025-06-18","capabilities":"$any","serverInfo":{"name":"t","version":"1"}}
  }

-- calls --
> {"jsonrpc":"2.0","id":2,"method":"tools/call",
    "params":{"name":"drop"}}
< {"jsonrpc":"2.0","id":"$save:ask","method":"elicitation/create","params":"$any"}
> {"jsonrpc":"2.0","id":"$ask","result":{"action":"accept","content":{"sure":true}}}
< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"dropped"}]}}
>! {"jsonrpc":"2.0","id":"$ask","meth
< {"jsonrpc":"2.0","id":"$any","error":{"code":-32700,"message":"$any"}}
`

func dropper() *server.Server {
	s := server.New("t", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Add(server.Tool("drop", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
		a, err := server.Elicit[sure](ctx, "Drop it?")
		if err != nil {
			return "", err
		}
		if a.Value.Sure {
			return "dropped", nil
		}
		return "kept", nil
	}))
	return s
}

// play plays a script in a test of its own, and returns what it complains of.
func play(t *testing.T, text string) (file, complaint string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "script.txtar")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf ends the goroutine
		defer close(done)
		mcptest.Transcript(r, dropper(), file)
	}()
	<-done
	return file, r.complaint
}

func TestTranscript(t *testing.T) {
	defer func(was bool) { *update = was }(*update)
	*update = false
	for _, c := range []struct{ name, old, new, wrong string }{
		{"as it is", "", "", ""},
		{"another text", `"text":"dropped"`, `"text":"kept"`, `part "calls", line 5: at /result/content/0/text: got "dropped", want "kept"`},
		{"a message missing", "< {\"jsonrpc\":\"2.0\",\"id\":\"$any\",\"error\":{\"code\":-32700,\"message\":\"$any\"}}\n", "", "a message that no step expects"},
		{"a message skipped", `< {"jsonrpc":"2.0","id":"$any"`, `<* {"jsonrpc":"2.0","id":"$any"`, ""},
		{"any order", "< {\"jsonrpc\":\"2.0\",\"id\":2", "> {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n<& {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n<& {\"jsonrpc\":\"2.0\",\"id\":2", ""},
		{"no mark", "# A remark.", "A remark.", "begins with no mark"},
		{"a gap", `< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"dropped"}]}}`, "< ?", "-update"},
		{"nothing saved", `"$save:ask"`, `"$any"`, `nothing was saved as "ask"`},
		{"no JSON expected", `"$save:ask",`, `"$save:ask"`, "not valid JSON"},
		{"wrong by the schema", `"params":{"name":"drop"}`, `"params":{"name":"drop","arguments":5}`, "schema of 2025-06-18"},
		{"wrong answer by the schema", `"action":"accept"`, `"action":"perhaps"`, "type ElicitResult"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.name, "schema") {
				oracle(t)
			}
			_, got := play(t, strings.Replace(script, c.old, c.new, 1))
			if (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
				t.Errorf("it complains %q, want %q", got, c.wrong)
			}
		})
	}
}

// With -update gaps are filled and what is wrong is put right; what is written
// passes, and is written the same again.
func TestTranscriptUpdate(t *testing.T) {
	defer func(was bool) { *update = was }(*update)
	*update = true
	text := strings.Replace(script, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"dropped"}]}}`, "?", 1)
	text = strings.Replace(text, `"name":"t","version":"1"}}`+"\n", `"name":"wrong","version":"1"}}`+"\n", 1)
	text = strings.Replace(text, `< {"jsonrpc":"2.0","id":"$save:ask","method":"elicitation/create","params":"$any"}`, "< ?", 1)
	text = strings.Replace(text, `"id":"$ask","result"`, `"id":"$id","result"`, 1)
	text = strings.Replace(text, `"id":"$ask","meth`, `"id":5,"meth`, 1)
	file, complaint := play(t, text)
	if complaint != "" {
		t.Fatalf("updating: %s", complaint)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"text":"dropped"`, `"capabilities":"$any"`, `"serverInfo":{"name":"t"`, `"id":"$save:id"`, `"message":"$any"`, "# A remark.\n", "What a server says.\n"} {
		if !strings.Contains(string(written), want) {
			t.Errorf("%s is not in what was written:\n%s", want, written)
		}
	}
	*update = false
	if _, complaint := play(t, string(written)); complaint != "" {
		t.Errorf("what was written does not pass: %s", complaint)
	}
	*update = true
	file, _ = play(t, string(written))
	if again, err := os.ReadFile(file); err != nil || string(again) != string(written) {
		t.Errorf("written again it differs (%v):\n%s", err, again)
	}
}

// recorder is a testing.TB that keeps what it is told.
type recorder struct {
	testing.TB
	complaint string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.complaint = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
