package cli_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
)

// Secrets that a server is sent, by the way they go.
const (
	echoedBearer   = `plum/bearer+5521"<a>`
	echoedPassword = "plumpassword"
	echoedHeader   = "plum-header-4417"
	echoedQuery    = "plum query 4309"
	echoedVariable = "plum-variable-3298"
	echoedSetting  = "bearer plum-setting-3309" // of a variable whose name does not say so
	echoedOption   = "plum-option-6632"
	echoedUserinfo = "plum:userinfo:5410"
)

var allEchoed = []string{
	echoedBearer, echoedPassword, echoedHeader, echoedQuery, echoedVariable, strings.TrimPrefix(echoedSetting, "bearer "), echoedOption,
	echoedUserinfo,
}

// findEchoed fails if a secret is in a text, in any form in which it can be written, or its beginning.
func findEchoed(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range allEchoed {
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{
			secret, secret[:10], url.QueryEscape(secret), url.PathEscape(secret), compactText(secret), strings.Trim(string(quoted), `"`),
			base64.RawStdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
		} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s: it has %q: …%q", where, form, text[max(0, at-200):min(len(text), at+len(form)+40)])
			}
		}
	}
}

// compactText is a text within a JSON string.
func compactText(text string) string { return strings.Trim(compactJSON(text), `"`) }

// echoAnswer returns a server's response to a request, with said wherever the response can have text.
func echoAnswer(m object, said string) object {
	failed := func(code int) object {
		return object{"jsonrpc": "2.0", "id": m["id"], "error": object{"code": code, "message": "denied for " + said, "data": said}}
	}
	result := func(r object) object { return object{"jsonrpc": "2.0", "id": m["id"], "result": r} }
	params, _ := m["params"].(object)
	schema := object{"type": "object", "description": said, "properties": object{"text": object{"type": "string", "default": said}}}
	switch m["method"] {
	case "initialize":
		return result(object{
			"protocolVersion": "2025-06-18", "serverInfo": object{"name": "echo", "title": "for " + said, "version": said}, "instructions": "use " + said,
			"capabilities": object{"tools": object{}, "prompts": object{}, "resources": object{}, "completions": object{}},
		})
	case "tools/list":
		tools := []object{{"name": "bad name", "description": said, "inputSchema": object{"type": said}}}
		for _, name := range []string{"echo", "fail", "refuse"} {
			tools = append(tools, object{"name": name, "description": "for " + said, "inputSchema": schema})
		}
		return result(object{"tools": tools})
	case "tools/call":
		if params["name"] == "refuse" {
			return failed(-32000)
		}
		return result(object{"content": []object{{"type": "text", "text": said}}, "isError": params["name"] == "fail"})
	case "prompts/list":
		return result(object{"prompts": []object{{"name": "greet", "description": said}}})
	case "prompts/get":
		if params["name"] == "greet" {
			return result(object{"messages": []object{{"role": "user", "content": object{"type": "text", "text": said}}}})
		}
	case "resources/list":
		return result(object{"resources": []object{{"uri": "x://ok", "name": said, "description": said}}})
	case "resources/read":
		if params["uri"] == "x://ok" {
			return result(object{"contents": []object{{"uri": "x://ok", "text": said}}})
		}
	}
	return failed(-32601)
}

// echoerMain runs such a server over stdio, with secrets from its environment and arguments.
func echoerMain() {
	said := strings.Join(append([]string{os.Getenv("ECHO_TOKEN"), os.Getenv("ECHO_SETTING")}, os.Args[2:]...), " and ")
	fmt.Fprintln(os.Stderr, "told", said)
	if os.Args[1] == "exit" {
		os.Exit(3)
	}
	fmt.Println("listening with", said)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m object
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			fmt.Fprintln(os.Stderr, err, said)
			os.Exit(2)
		}
		if m["id"] != nil && m["method"] != nil {
			fmt.Println(compactJSON(echoAnswer(m, said)))
		}
	}
}

// echoOverHTTP is such a server over HTTP. Its path says what it does instead of answering.
func echoOverHTTP(w http.ResponseWriter, r *http.Request) {
	told := append(r.Header.Values("Authorization"), r.Header.Get("X-Own"), r.URL.Query().Get("api_key"))
	if _, password, ok := r.BasicAuth(); ok {
		told = append(told, password)
	}
	said := strings.Join(told, " and ")
	var m object
	_ = json.NewDecoder(r.Body).Decode(&m)
	switch r.URL.Path {
	case "/status":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 "+said+"\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nno key like "+said)
			_ = conn.Close()
		}
	case "/cut": // within the bearer token, by our own bounds
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, strings.Repeat("x", 490)+" Bearer "+said)
	case "/unauthorized":
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+said+`", scope="`+echoedHeader+`"`)
		http.Error(w, "who is "+said, http.StatusUnauthorized)
	case "/forbidden":
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+echoedHeader+`"`)
		http.Error(w, "who is "+said, http.StatusForbidden)
	case "/moved":
		w.Header().Set("Location", "http://far.example/"+url.PathEscape(said))
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "/garbage":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "ready for "+said)
	case "/session":
		w.Header().Set("Mcp-Session-Id", echoedHeader)
		if m["method"] != "initialize" {
			http.Error(w, "unknown session "+echoedHeader, http.StatusNotFound)
			return
		}
		fallthrough
	default:
		w.Header().Set("Content-Type", "application/json")
		switch {
		case m["id"] == nil:
			w.WriteHeader(http.StatusAccepted)
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			_, _ = io.WriteString(w, compactJSON(echoAnswer(m, said)))
		}
	}
}

// An echoTarget is a server of the table below, as flags say it and as an argument does.
type echoTarget struct {
	name  string
	flags []string
	args  []string
	sent  []string // the secrets
}

// echoTargets are all servers that do a thing.
func echoTargets(base, mode string) []echoTarget {
	query := "?api_key=" + url.QueryEscape(echoedQuery)
	var list []echoTarget
	for _, scheme := range []string{"Bearer " + echoedBearer, "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:"+echoedPassword))} {
		name, _, _ := strings.Cut(scheme, " ")
		headers := []string{"--header", "Authorization: " + scheme, "--header", "X-Own: " + echoedHeader}
		list = append(list, echoTarget{
			"http " + name + " " + mode, append([]string{"--server", base + "/" + mode + query}, headers...), append([]string{base + "/" + mode + query}, headers...),
			[]string{echoedHeader, echoedQuery},
		})
	}
	child := []string{
		"env", "ECHO_TOKEN=" + echoedVariable, "ECHO_SETTING=" + echoedSetting,
		"echoer", mode, "--password", echoedOption, "db://ada:" + url.PathEscape(echoedUserinfo) + "@x",
	}
	return append(list, echoTarget{
		"stdio " + mode,
		[]string{"--server", "'" + strings.Join(child, "' '") + "'"},
		append([]string{"--"}, child...),
		[]string{echoedVariable, echoedOption},
	})
}

// runEcho runs a command, and returns its result and what it said beside that.
func runEcho(t *testing.T, args ...string) (out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Main(t.Context(), args, &kit.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	if code == 1 && args[0] != "inspect" || code == 2 { // a wrong command line, or an error of ours
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr.String())
	}
	findEchoed(t, args[0]+", standard error", stderr.String())
	return stdout.String(), stderr.String()
}

// A secret that a server was sent and repeats is in no error, log, list, report or lock; in the
// result that was asked for it is.
func TestEchoedSecrets(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	far := httptest.NewServer(http.HandlerFunc(echoOverHTTP))
	t.Cleanup(far.Close)
	for _, target := range echoTargets(far.URL, "ok") {
		t.Run(target.name, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // each has pins of its own
			for _, command := range [][]string{
				{"tools"},
				{"tools", "--json"},
				{"tools", "--for", "openai"},
				{"prompt"},
				{"prompt", "--json"},
				{"read"},
				{"read", "--json"},
				{"call", "fail"},
				{"call", "refuse"},
				{"call", "refuse", "--json"},
				{"read", "x://no"},
				{"prompt", "no"},
				{"complete", "prompt", "greet", "a=b"},
				{"tools", "--verbose"},
				{"run", "--allow", "*", "refuse"},
				{"config", "doctor", "--connect"},
			} {
				out, said := runEcho(t, append(command, target.flags...)...)
				if command[0] == "run" {
					out = "" // the answer of the model
				}
				findEchoed(t, strings.Join(command, " "), out)
				if !slices.Contains(command, "--for") && command[0] != "config" && !strings.Contains(out+said, mask.Hidden) {
					t.Errorf("%q: nothing is masked: %s %s", command, out, said)
				}
			}
			for _, command := range [][]string{{"call", "echo"}, {"call", "echo", "--json"}, {"read", "x://ok"}, {"prompt", "greet"}} {
				out, _ := runEcho(t, append(command, target.flags...)...)
				for _, sent := range target.sent {
					if !strings.Contains(out, sent) {
						t.Errorf("%q: the result is not as it came: %s", command, out)
					}
				}
			}
			echoedFiles(t, &target)
		})
	}
}

// echoedFiles are the reports, locks and recordings of a server.
func echoedFiles(t *testing.T, target *echoTarget) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	with := func(words ...string) []string { return append(words, target.args...) }
	for _, command := range [][]string{
		with("doctor", "--junit", file("junit"), "--sarif", file("sarif")), with("doctor", "--json"),
		with("trace", "--call", "echo", "--call", "fail"), with("trace", "--json", "--har", file("har")),
		with("record", "--out", file("cassette"), "--list", "--call", "refuse"),
		with("lock", "--out", file("lock")), with("lock", "--out", file("lock again")),
	} {
		out, _ := runEcho(t, command...)
		findEchoed(t, command[0], out)
	}
	// Results of inspect are as they came, and its errors are not.
	runEcho(t, with("inspect", "--method", "resources/read", "--uri", "x://no")...)
	runEcho(t, with("inspect", "--format", "json", "--method", "tools/call", "--tool-name", "refuse")...)

	lock := fileText(t, file("lock"))
	if lock != fileText(t, file("lock again")) || !strings.Contains(lock, mask.Hidden) {
		t.Errorf("the lock is not the same each time, or has nothing masked:\n%s", lock)
	}
	locked, err := contract.Decode(strings.NewReader(lock))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"for": "no change", "was for": "risky"} { // as if the lock were from before secrets were masked
		tool := locked.Tools["echo"]
		tool["description"] = text + strings.TrimPrefix(strings.ReplaceAll(fmt.Sprint(tool["description"]), mask.Hidden, target.sent[0]), "for")
		raw, err := contract.Encode(locked)
		if err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(old, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		out, said := runEcho(t, with("diff", old)...)
		findEchoed(t, "diff", out)
		if !strings.Contains(out+said, want) {
			t.Errorf("diff with a lock that has a secret: %s %s, want %q", out, said, want)
		}
		tool["description"] = strings.TrimPrefix(fmt.Sprint(tool["description"]), "was ")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		findEchoed(t, f.Name(), fileText(t, file(f.Name())))
	}
}

// A server that answers no request says in its place what it was sent.
func TestEchoedInFailures(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	far := httptest.NewServer(http.HandlerFunc(echoOverHTTP))
	t.Cleanup(far.Close)
	var targets []echoTarget
	for _, mode := range []string{"status", "cut", "unauthorized", "forbidden", "moved", "garbage", "session"} {
		targets = append(targets, echoTargets(far.URL, mode)[:2]...)
	}
	targets = append(targets, echoTargets(far.URL, "exit")[2])
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			for _, command := range [][]string{
				{"doctor", "--timeout", "1s"},
				{"doctor", "--json", "--timeout", "1s"},
				{"lock", "--out", filepath.Join(t.TempDir(), "lock")},
				{"inspect", "--method", "tools/list"},
				{"trace", "--timeout", "1s"},
				{"trace", "--json", "--timeout", "1s"},
				{"record", "--list", "--timeout", "1s", "--out", filepath.Join(t.TempDir(), "cassette")},
			} {
				out, _ := runEcho(t, append(command, target.args...)...)
				findEchoed(t, command[0], out)
			}
		})
	}
}

// A conversation shows no secret where it shows why a server cannot be used, how it was started or
// what it logs.
func TestEchoedInChat(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	far := httptest.NewServer(http.HandlerFunc(echoOverHTTP))
	t.Cleanup(far.Close)
	for _, target := range append(echoTargets(far.URL, "status")[:2], echoTargets("", "exit")[2]) {
		t.Run(target.name, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			server := append([]string{"--server", "x=" + target.flags[1]}, target.flags[2:]...)
			var shown, said bytes.Buffer
			cli.Main(t.Context(), append([]string{"chat", "--allow", "*"}, server...), &kit.Streams{
				In: strings.NewReader("refuse\n/servers\n/log x\n/quit\n"), Out: &shown, Err: &said,
			})
			plain := strings.NewReplacer("\n    | ", "", "\n    ", "").Replace(shown.String()) // lines that were broken
			findEchoed(t, "chat", shown.String())
			findEchoed(t, "chat, unbroken", plain)
			findEchoed(t, "chat, standard error", said.String())
			if !strings.Contains(plain, mask.Hidden) {
				t.Errorf("nothing is masked: %s", plain)
			}
			out, _ := runEcho(t, append([]string{"run", "--json", "--allow", "*", "refuse"}, server...)...)
			findEchoed(t, "run --json", out)
		})
	}
}

// The log of a bridge has the standard error of the server, and what it refused.
func TestEchoedInBridge(t *testing.T) {
	racetest.SkipSerial(t)
	const requests = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"refuse","arguments":{}}}
`
	target := echoTargets("", "ok")[2]
	cmd := exec.CommandContext(t.Context(), "parley", append([]string{"bridge", "--verbose", "--stdio"}, target.args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(requests), &said
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), echoedVariable) {
		t.Errorf("the client gets %s, %v", out, err)
	}
	findEchoed(t, "the log of the bridge", said.String())
	if !strings.Contains(said.String(), mask.Hidden) {
		t.Errorf("the log of the bridge has nothing masked: %s", said.String())
	}
}

// Entries of the configuration are sent secrets in the same ways, and as values of variables.
func TestEchoedSecretsOfEntries(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	far := httptest.NewServer(http.HandlerFunc(echoOverHTTP))
	t.Cleanup(far.Close)
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("ECHO_BEARER", echoedBearer)
	t.Setenv("ECHO_QUERY", url.QueryEscape(echoedQuery))
	if err := os.Mkdir(filepath.Join(dir, "parley"), 0o700); err != nil {
		t.Fatal(err)
	}
	entries := object{"servers": object{
		"far": object{"url": far.URL + "/ok?api_key=${ECHO_QUERY}", "headers": object{"Authorization": "Bearer ${ECHO_BEARER}", "X-Own": echoedHeader}},
		"near": object{
			"command": "echoer", "args": []string{"ok", "--password", echoedOption, "db://ada:" + url.PathEscape(echoedUserinfo) + "@x"},
			"env": object{"ECHO_TOKEN": echoedVariable, "ECHO_SETTING": echoedSetting},
		},
	}}
	if err := os.WriteFile(filepath.Join(dir, "parley", "parley.jsonc"), []byte(compactJSON(entries)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"far", "near"} {
		for _, command := range [][]string{
			{"doctor", name},
			{"lock", "--out", filepath.Join(dir, "lock"), name},
			{"trace", "--list", "--call", "refuse", name},
			{"record", "--out", filepath.Join(dir, "cassette"), "--list", "--call", "refuse", name},
			{"inspect", "--method", "resources/read", "--uri", "x://no", name},
		} {
			out, _ := runEcho(t, command...)
			findEchoed(t, command[0], out)
		}
		for _, file := range []string{"lock", "cassette"} {
			findEchoed(t, file, fileText(t, filepath.Join(dir, file)))
		}
	}
	_, said := runEcho(t, "run", "--allow", "*", "far/refuse")
	if !strings.Contains(said, mask.Hidden) {
		t.Errorf("run: nothing is masked: %s", said)
	}
	out, _ := runEcho(t, "config", "doctor", "--connect")
	findEchoed(t, "config doctor", out)
}
