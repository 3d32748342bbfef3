package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// testPorts are the ports that a test asks for models, as KIND=ADDRESS with commas between
// them; those of the machine are never asked.
func testPorts() []discover.Port {
	ports := []discover.Port{}
	for text := range strings.SplitSeq(os.Getenv("PARLEY_TEST_PORTS"), ",") {
		if kind, address, ok := strings.Cut(text, "="); ok {
			ports = append(ports, discover.Port{Kind: kind, Address: address})
		}
	}
	return ports
}

// testWait is the time that a test gives in a variable, since the usual one is too short on a busy machine;
// 0 if it gives none.
func testWait(variable string) time.Duration {
	wait, err := time.ParseDuration(os.Getenv(variable))
	if err != nil {
		return 0
	}
	return wait
}

// models is a program that has models, with names that nobody should see as they are.
func models(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"llama3.2:latest","object":"model","owned_by":"library"},`+
		`{"id":"bad\u001b[31m","object":"model","owned_by":"library"},{"id":"qwen3:8b","object":"model","owned_by":"library"}]}`)
}

// setModelPorts starts programs for a script: OLLAMA is the address of one with models, WEB of
// one with pages, SILENT of one that never answers.
func setModelPorts(t *testing.T, e *testscript.Env) {
	t.Helper()
	ollama := httptest.NewServer(http.HandlerFunc(models))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>\x1b[31mshop</title>")
	}))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.Defer(func() {
		ollama.Close()
		web.Close()
		_ = silent.Close()
	})
	e.Setenv("OLLAMA", ollama.Listener.Addr().String())
	e.Setenv("WEB", web.Listener.Addr().String())
	e.Setenv("SILENT", silent.Addr().String())
}

// person makes a home folder with the files of other clients, and returns the path of
// parley.jsonc.
func person(t *testing.T, files map[string]string) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for _, k := range discover.KnownKeys() {
		t.Setenv(k.Variable, "")
	}
	for name, text := range files {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(home, ".config", "parley", "parley.jsonc")
}

// typed runs the program with a person who types at a terminal, and returns what they see. All ports
// answer.
func typed(t *testing.T, input string, ports []discover.Port, args ...string) (code int, screen string) {
	t.Helper()
	return typedWithin(t, time.Minute, input, ports, args...)
}

// typedWithin is typed where the ports have so long to answer.
func typedWithin(t *testing.T, wait time.Duration, input string, ports []discover.Port, args ...string) (code int, screen string) {
	t.Helper()
	var b bytes.Buffer
	if ports == nil {
		ports = []discover.Port{}
	}
	code = cli.Main(t.Context(), args, &kit.Streams{
		In: strings.NewReader(input), Out: &b, Err: &b, InTerminal: true, OutTerminal: true, ErrTerminal: true, ModelPorts: ports, ModelWait: wait,
	})
	return code, b.String()
}

const cursorFile = `{"mcpServers": {"files": {"command": "files-server", "args": ["/work"]},
	"ask": {"command": "x", "env": {"K": "${input:key}"}}, "token": {"command": "y", "env": {"K": "sk-12345"}}}}`

// A person who leaves at the first question has begun nothing, and no names of servers reach
// the screen as escape sequences.
func TestLeaveFirstRun(t *testing.T) {
	for _, input := range []string{"", "q\n", "/quit\n", "?\n"} {
		path := person(t, map[string]string{".cursor/mcp.json": cursorFile})
		code, screen := typed(t, input, nil)
		if code != 0 || !strings.Contains(screen, "Servers: 3 in the files of Cursor.") || strings.Contains(screen, "Session ") {
			t.Errorf("%q: exit code %d\n%s", input, code, screen)
		}
		if kept, err := os.ReadDir(filepath.Dir(path)); err == nil {
			t.Errorf("%q: the folder of the program has %v", input, kept)
		}
	}
}

// Ports that never answer do not hold up the first prompt for longer than they may.
func TestFirstRunWithSilentPorts(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	person(t, nil)
	var ports []discover.Port
	for _, p := range discover.UsualPorts() {
		ports = append(ports, discover.Port{Kind: p.Kind, Address: silent.Addr().String()})
	}
	if code, screen := typedWithin(t, 0, "/quit\n", ports); code != 0 || !strings.Contains(screen, "no local model answers") || !strings.Contains(screen, "You begin with the offline model") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// What a person may answer to the questions of init, and what comes of it.
func TestInitAnswers(t *testing.T) {
	ollama := httptest.NewServer(http.HandlerFunc(models))
	defer ollama.Close()
	address := ollama.Listener.Addr().String()
	ports := []discover.Port{{Kind: discover.KindOllama, Address: address}}
	for name, test := range map[string]struct {
		input string
		code  int
		want  []string // on the screen
		file  []string // in the file; nil if there must be none
		no    string   // not in the file
	}{
		"Enter": {
			input: "\n\ny\n", want: []string{"1: files, of Cursor: files-server /work", "Written."},
			file: []string{`"model": "offline"`}, no: "import",
		},
		"no": {input: "\n\nn\n", code: 3, want: []string{"Nothing was written."}},
		"one server and a local model": {
			input: "1\n3\nyes\n", want: []string{"3: openai:qwen3:8b, of Ollama at " + address, "The files of Cursor are left out"},
			file: []string{`"model": "openai:qwen3:8b"`, `"baseUrl": "http://` + address + `/v1"`, `"noKey": true`, `"cursor": false`, `"command": "files-server"`},
		},
		"a local model by its name": {
			input: "none\nopenai:llama3.2:latest\ny\n", want: []string{"is the model of that name that Ollama has"},
			file: []string{`"baseUrl": "http://` + address + `/v1"`, `"cursor": false`}, no: "files-server",
		},
		"a hosted model": {
			input: "all\nanthropic:some-model\ny\n", want: []string{"needs a key of Anthropic: set ANTHROPIC_API_KEY, or let"},
			file: []string{`"model": "anthropic:some-model"`}, no: "baseUrl",
		},
		"wrong answers": {
			input: "0\nx\n2\n3\n1\n99\nmistral:x\nsk-proj-12345\n1\ny\n",
			want: []string{
				`"0" is no number from 1 to 3`, `"x" is no number`, "ask of Cursor cannot be taken alone: env K:", "choose all servers of Cursor, or none of them",
				"token of Cursor cannot be taken alone: it has values that may be secret, which are not copied here; 'parley config import token' would",
				"there is no number 99: write one from 1 to 3", "write offline, or PROVIDER:NAME with one of anthropic, openai and gemini",
			},
			file: []string{`"model": "offline"`, `"cursor": false`}, no: "sk-",
		},
		"the end of the input": {input: "\n", code: 1, want: []string{"the input has ended: nothing was written"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := person(t, map[string]string{".cursor/mcp.json": cursorFile})
			code, screen := typed(t, test.input, ports, "init")
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.want {
				if !strings.Contains(screen, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if strings.Contains(screen, "sk-") || strings.Contains(screen, "\x1b") {
				t.Error("it shows what was typed, or escape sequences")
			}
			text, err := os.ReadFile(path)
			if test.file == nil && err == nil {
				t.Errorf("a file was written:\n%s", text)
			}
			for _, want := range test.file {
				if !strings.Contains(string(text), want) {
					t.Errorf("the file has no %s:\n%s", want, text)
				}
			}
			if test.no != "" && strings.Contains(string(text), test.no) {
				t.Errorf("the file has %s:\n%s", test.no, text)
			}
			if t.Failed() {
				t.Log(screen)
			}
		})
	}
}

// Names and commands of strangers are shown without their control characters, and a long list
// is cut; what is not listed can be chosen all the same.
func TestInitHostileNames(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"mcpServers": {"a\u001b[31m\u202eb": {"command": "x\u001b]0;title\u0007", "args": ["` + strings.Repeat("long ", 1000) + `"]}`)
	for n := range 300 {
		fmt.Fprintf(&b, `, "server%d": {"command": "s%d"}`, n, n)
	}
	b.WriteString("}}")
	path := person(t, map[string]string{".cursor/mcp.json": b.String()})
	code, screen := typed(t, "1 301\n\ny\n", nil, "init")
	for _, bad := range []string{"\x1b", "\u202e", "\a", strings.Repeat("long ", 20)} {
		before, _, _ := strings.Cut(screen, "This would be your file") // the file is shown whole
		if strings.Contains(before, bad) {
			t.Errorf("the list has %q", bad)
		}
	}
	if strings.Contains(screen, "\x1b") || !strings.Contains(screen, "and 241 more") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if text, err := os.ReadFile(path); code != 0 || err != nil || !strings.Contains(string(text), `"server299": {`) || strings.Contains(string(text), `"server0"`) {
		t.Errorf("exit code %d, %v\n%s", code, err, text)
	}
}

// A file that is there is asked about, keeps what no answer is about, and its choice is what
// Enter leaves.
func TestInitAgain(t *testing.T) {
	const before = "{\n  // my rules\n  \"rules\": [],\n  \"import\": {\"cursor\": false},\n  \"model\": \"openai:mine\"\n}\n"
	path := person(t, map[string]string{".cursor/mcp.json": cursorFile, ".config/parley/parley.jsonc": before})
	if code, screen := typed(t, "\n\n", nil, "init"); code != 0 || !strings.Contains(screen, "says so already: nothing is changed.") || !strings.Contains(screen, "Enter for openai:mine as it is") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	for _, input := range []string{"all\n1\nn\n", "all\n1\n"} {
		if code, screen := typed(t, input, nil, "init"); code == 0 || !strings.Contains(screen, "would become:") {
			t.Errorf("%q: exit code %d\n%s", input, code, screen)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != before {
			t.Errorf("%q: the file is now %s, %v", input, text, err)
		}
	}
	if code, screen := typed(t, "all\n1\ny\n", nil, "init"); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	const after = "{\n  // my rules\n  \"rules\": [],\n  \"import\": {\"cursor\": true},\n  \"model\": \"offline\"\n}\n"
	if text, err := os.ReadFile(path); err != nil || string(text) != after {
		t.Errorf("the file is now %s, %v", text, err)
	}
}

// Flags that are wrong are refused with what to write, and without what may be a key.
func TestInitFlags(t *testing.T) {
	person(t, map[string]string{".cursor/mcp.json": cursorFile})
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "cannot ask here; use --model or --import, and --yes"},
		{[]string{"--model", "sk-ant-12345"}, "--model: write offline, or PROVIDER:NAME"},
		{[]string{"--model", "openai:sk\n12345"}, "--model: write offline, or PROVIDER:NAME"},
		{[]string{"--model", "openai:"}, "--model: write offline"},
		{[]string{"--model", "openai:x", "--base-url", "localhost:1234"}, "--base-url: write a whole URL"},
		{[]string{"--model", "openai:x", "--base-url", "http://me:12345@localhost/v1"}, "may hold a secret"},
		{[]string{"--model", "openai:x", "--base-url", "http://models.example/v1"}, "unencrypted over http"},
		{[]string{"--model", "offline", "--base-url", "http://localhost:1/v1"}, "the offline model has no address"},
		{[]string{"--base-url", "http://localhost:1/v1", "--import", "cursor"}, "--base-url requires --model"},
		{[]string{"--import", "emacs"}, `there is no client "emacs"; the clients are claude-desktop, claude-code,`},
		{[]string{"--import", "goose"}, "goose has no servers on this machine; these have: cursor"},
		{[]string{"--import", "none", "--import", "cursor"}, "--import none: give it alone"},
		{[]string{"--model", "offline"}, "cannot ask here, so nothing was written; add --yes to write the file"},
		{[]string{"more"}, "wrong number of arguments"},
	} {
		var b bytes.Buffer
		code := cli.Main(t.Context(), append([]string{"init"}, test.args...), &kit.Streams{
			In: strings.NewReader(""), Out: &b, Err: &b, ModelPorts: []discover.Port{},
		})
		if code != 1 || !strings.Contains(b.String(), test.want) || strings.Contains(b.String(), "12345") {
			t.Errorf("%q: exit code %d and %s, want %q", test.args, code, b.String(), test.want)
		}
	}
}

// A file that cannot be read is not written over.
func TestInitBrokenFile(t *testing.T) {
	path := person(t, map[string]string{".config/parley/parley.jsonc": "{\n  \"model\": \n}\n"})
	code, screen := typed(t, "", nil, "init", "--model", "offline", "--yes")
	if code != 1 || !strings.Contains(screen, "parley.jsonc: line 3:") || !strings.Contains(screen, "correct it first") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "{\n  \"model\": \n}\n" {
		t.Errorf("the file is now %s, %v", text, err)
	}
}

// Attack: a program on a usual port lists the name of a hosted model, to be given the
// conversations of people who ask for that one.
func TestInitHostedName(t *testing.T) {
	squatter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"gpt-5","object":"model"},{"id":"o3","object":"model"},{"id":"gpt-oss:20b","object":"model"}]}`)
	}))
	defer squatter.Close()
	ports := []discover.Port{{Kind: discover.KindOllama, Address: squatter.Listener.Addr().String()}}
	for name, local := range map[string]bool{"gpt-5": false, "o3": false, "gpt-oss:20b": true} {
		path := person(t, nil)
		if code, screen := typed(t, "", ports, "init", "--model", "openai:"+name, "--yes"); code != 0 {
			t.Fatalf("exit code %d\n%s", code, screen)
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), squatter.Listener.Addr().String()) != local {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// Where there is nothing to choose the conversation begins at once. The screen, which covers
// what was said before it, says what was looked for and a message to try, which works.
func TestFirstRunOnScreen(t *testing.T) {
	person(t, nil)
	t.Setenv("TERM", "xterm-256color")
	in, typed := io.Pipe()
	out := new(output)
	go func() {
		ended := t.Context().Done()
		out.wait("no other MCP client(.|\\s)*no key is set(.|\\s)*Try: ", ended)
		_, _ = io.WriteString(typed, "add 2 and 3\r")
		out.wait("Done: 2 turns", ended)
		_, _ = io.WriteString(typed, "/quit\r")
	}()
	code := cli.Main(t.Context(), nil, &kit.Streams{
		In: in, Out: out, Err: new(output), InTerminal: true, OutTerminal: true, ErrTerminal: true, Screen: true, ModelPorts: testPorts(),
	})
	if code != 0 {
		t.Errorf("exit code %d\n%q", code, out.String())
	}
}
