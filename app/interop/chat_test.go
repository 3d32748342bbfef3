package interop_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const filesystemJS = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"

// buildParley builds the program of this repository.
var buildParley = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "parley")
	work, err := filepath.Abs("../../go.work")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", path, "./cmd/parley")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "GOWORK="+work)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: "building parley: " + string(out), Err: err}
	}
	return path, nil
})

// A chat is a conversation with parley in a process of its own, through pipes.
type chat struct {
	t     *testing.T
	cmd   *exec.Cmd
	typed io.WriteCloser
	mark  string // in the environment of all servers

	mu    sync.Mutex
	shown bytes.Buffer
	grown chan struct{} // closed when there is more; may be nil
	at    int           // what was seen until here
	ended chan error
}

// Write takes what the program shows.
func (c *chat) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grown != nil {
		close(c.grown)
		c.grown = nil
	}
	return c.shown.Write(p)
}

// claudeFile writes servers in the form of Claude's file. Each process gets the mark.
func (c *chat) claudeFile(servers map[string]map[string]any) string {
	c.t.Helper()
	for _, s := range servers {
		if s["command"] != nil {
			s["env"] = map[string]string{markVar: c.mark}
		}
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "claude_desktop_config.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// markVar marks the processes of one test.
const markVar = "PARLEY_INTEROP_MARK"

// parley is the program as a command, with settings of its own.
func (c *chat) parley(args ...string) *exec.Cmd {
	c.t.Helper()
	path, err := buildParley()
	if err != nil {
		c.t.Fatal(err)
	}
	home := c.t.TempDir()
	cmd := exec.CommandContext(bounded(c.t), path, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home}
	return cmd
}

// begin starts the conversation.
func (c *chat) begin(args ...string) {
	c.t.Helper()
	c.cmd = c.parley(append([]string{"chat", "--plain"}, args...)...)
	c.cmd.Stdout, c.cmd.Stderr = c, c
	var err error
	if c.typed, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.ended = make(chan error, 1)
	go func() { c.ended <- c.cmd.Wait() }()
}

// sees waits until texts are shown, one after the other.
func (c *chat) sees(texts ...string) {
	c.t.Helper()
	late := time.After(patience)
	for _, text := range texts {
		for {
			c.mu.Lock()
			all := c.shown.String()
			if c.grown == nil {
				c.grown = make(chan struct{})
			}
			grown := c.grown
			c.mu.Unlock()
			if i := strings.Index(all[c.at:], text); i >= 0 {
				c.at += i + len(text)
				break
			}
			select {
			case <-grown:
			case <-late:
				c.t.Fatalf("%q is not shown. Seen before:\n%s\n===== and after it:\n%s", text, all[:c.at], all[c.at:])
			}
		}
	}
}

func (c *chat) types(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.typed, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// says sends a message; each of the answers is given to a question.
func (c *chat) says(line string, answers ...string) {
	c.t.Helper()
	c.sees("> ")
	c.types(line)
	for _, answer := range answers {
		c.sees("Your answer (", "): ")
		c.types(answer)
	}
}

// ready asks until so many servers are ready.
func (c *chat) ready(n int) {
	c.t.Helper()
	for late := time.After(patience); ; {
		c.says("/servers")
		c.sees("Server sdkweb (", ".\n")
		c.mu.Lock()
		all := c.shown.String()
		c.mu.Unlock()
		if strings.Count(all[strings.LastIndex(all, "/servers"):], "ready,") == n {
			return
		}
		select {
		case <-late:
			c.t.Fatalf("not all servers are ready:\n%s", all)
		default:
		}
	}
}

// quits ends the conversation. No process of a server may be left.
func (c *chat) quits() {
	c.t.Helper()
	c.says("/quit")
	if err := <-c.ended; err != nil {
		c.t.Errorf("the program ended with %v", err)
	}
	c.gone()
}

// gone fails if a process is left, where the system tells.
func (c *chat) gone() {
	c.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil && bytes.Contains(raw, []byte(markVar+"="+c.mark+"\x00")) {
			c.t.Errorf("%s is left", filepath.Dir(file))
		}
	}
}

// everybody is the servers of the conversation: the reference servers, one of the newest SDK,
// and the one that is built in, over pipes and over HTTP.
func everybody(t *testing.T, folder string) map[string]map[string]any {
	t.Helper()
	dir := peersDir(t)
	node := nodePath(t, dir)
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	script := func(args ...string) map[string]any {
		args[0] = filepath.Join(dir, args[0])
		return map[string]any{"command": node, "args": args}
	}
	return map[string]map[string]any{
		"ref":    script(everythingJS, "stdio"),
		"refweb": {"type": "http", "url": startServer(t, nil, "--import", "./loopback.mjs", everythingJS, "streamableHttp")},
		"files":  script(filesystemJS, folder),
		"sdk":    script("v2-server.mjs", "stdio"),
		"sdkweb": {"type": "http", "url": startServer(t, nil, "v2-server.mjs", "http")},
		"own":    {"command": parley, "args": []string{"serve", "everything"}},
	}
}

// One conversation with all of them: calls, a prompt with completion, a resource, sampling,
// forms, roots, logs, progress, and a call that is cancelled.
func TestChat(t *testing.T) {
	folder, root := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(root, "in.txt"): "inside", filepath.Join(folder, "out.txt"): "outside"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &chat{t: t, mark: rand.Text()}
	c.begin("--config", c.claudeFile(everybody(t, folder)), "--root", root, "--logs", "info")

	c.ready(6)
	for _, name := range []string{"ref", "refweb"} {
		c.says(name+"/echo message=hello", "e message=good day", "y")
		c.sees("says:\n    Echo: good day", "Done: ")
	}
	for _, name := range []string{"sdk", "sdkweb", "own"} {
		c.says(name+"/add a=2 b=3", "y")
		c.sees("says:\n    5", "Done: ")
	}
	c.says("ref/echo message=secret", "n not that one")
	c.sees("The reason: not that one", "Done: ")

	// The root takes the place of the folder that the server was started with.
	c.says("files/read_text_file path="+filepath.Join(root, "in.txt"), "y")
	c.sees("says:\n    inside", "Done: ")
	c.says("files/read_text_file path="+filepath.Join(folder, "out.txt"), "y")
	c.sees("Access denied", "Done: ")

	c.says("/ref:completable-prompt")
	c.sees("Your value for department")
	c.types("?S")
	c.sees("(untrusted): Sales")
	c.types("Engineering")
	c.sees("Your value for name")
	c.types("?A")
	c.sees("value 1 (untrusted): Alice")
	c.types("1")
	c.sees("| Please promote Alice to the head of the Engineering team.", "Done: ")
	c.says("what is in @ref:demo://resource/dynamic/text/7")
	c.sees("| Resource 7: ")
	c.sees("Your answer (", "): ") // the offline model takes the words for a request to read a file
	c.types("n")
	c.sees("Done: ")
	c.says("what is in @sdk:test://greeting")
	c.sees("| hello, world", "Done: ")

	for _, name := range []string{"sdk", "sdkweb"} {
		c.says(name+"/ask-model", "y", "e /messages/0/content/text=Say no.", "y", "e /content/text=No.", "y")
		c.sees(": No.", "Done: ")
	}
	c.says("ref/trigger-sampling-request prompt=x", "y", "n")
	c.sees("trigger-sampling-request of server ref: ", "Done: ")
	c.says("sdk/ask-person", "y", "y")
	c.sees("Your value for answer")
	c.types("Ada")
	c.sees("Send it?")
	c.types("y")
	c.sees("Your answer (", "): ")
	c.types("y")
	c.sees("Your value for answer")
	c.types("core")
	c.sees("Send it?")
	c.types("y")
	c.sees("hello, ", "Done: ")
	c.says("ref/trigger-elicitation-request", "y", "n")
	c.sees("Done: ")

	c.says("own/log-messages message=heard", "y")
	called := c.at
	c.sees("[own demo] emergency: ")
	c.at = called // a log message is no part of the call: it can come after the next prompt
	c.sees("Done: ")
	c.says("ref/trigger-long-running-operation duration=1 steps=2", "y")
	c.sees("trigger-long-running-operation of server ref: at 1 of 2", "trigger-long-running-operation of server ref: done", "Done: ")
	c.says("sdk/hang", "y")
	c.sees("hang of server sdk: at 1")
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.sees("hang of server sdk: cancelled", "Cancelled: ")
	c.says("sdk/stopped", "y")
	c.sees("stopped of server sdk: done", "Done: ")
	c.says("sdk/grow", "y")
	c.sees("says:\n    grown", "Done: ")
	c.says("sdk/grown", "y")
	c.sees("grown of server sdk: done", "Done: ")
	c.quits()
	if strings.ContainsAny(c.shown.String(), "\x1b\x07\x00") {
		t.Errorf("not safe to show:\n%q", c.shown.String())
	}
}

// parley run with all of them: rules decide, and nothing is left.
func TestRun(t *testing.T) {
	folder := t.TempDir()
	c := &chat{t: t, mark: rand.Text()}
	servers := everybody(t, folder)
	config := c.claudeFile(servers)
	for name, try := range map[string]struct{ request, want string }{
		"ref":    {"echo message=hello", "Echo: hello\n"},
		"refweb": {"get-sum a=2 b=3", "The sum of 2 and 3 is 5.\n"},
		"files":  {"list_allowed_directories", "Allowed directories:\n" + folder + "\n"},
		"sdk":    {"add a=2 b=3", "5\n"},
		"sdkweb": {"echo message=hello", "hello\n"},
		"own":    {"echo message=hello", "hello\n"},
	} {
		cmd := c.parley("run", "--config", config, "--allow", name+"/*", name+"/"+try.request)
		var said bytes.Buffer
		cmd.Stderr = &said
		if out, err := cmd.Output(); err != nil || string(out) != try.want {
			t.Errorf("%s: %q, %v\n%s", name, out, err, said.Bytes())
		}
		c.gone()
	}
}
