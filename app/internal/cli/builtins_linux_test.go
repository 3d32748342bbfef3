package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// loadEnv is for how long each built-in server is called, as fast as loadRate says; by default it
// gets loadCalls at once.
const (
	loadEnv   = "PARLEY_TEST_LOAD"
	loadRate  = 20 // calls per second and client
	loadCalls = 300
)

// What a server may have more at the end than after the first tenth of the calls. The heap of a
// Go program is as large as the collector leaves it, and files that are open differ by one or two
// at any moment.
const (
	maxMoreFiles      = 4
	maxMoreMemory     = 24 << 20
	maxMoreGoroutines = 6
)

// keptMemory is what servers keep of what they got, besides: 16 MiB of pages, and what the collector
// leaves beside them.
var keptMemory = map[string]int64{"fetch": 32 << 20}

// A toolCall is a call of a tool. In its arguments {n} is another number each time, and {c} that
// of the client.
type toolCall struct {
	tool string
	args map[string]any
}

// with is the arguments with the numbers filled in.
func (c *toolCall) with(n int64, client int) map[string]any {
	numbers := strings.NewReplacer("{n}", strconv.FormatInt(n, 10), "{c}", strconv.Itoa(client))
	var fill func(v any) any
	fill = func(v any) any {
		switch v := v.(type) {
		case string:
			return numbers.Replace(v)
		case []any:
			list := make([]any, len(v))
			for i := range v {
				list[i] = fill(v[i])
			}
			return list
		case map[string]any:
			object := make(map[string]any, len(v))
			for k := range v {
				object[k] = fill(v[k])
			}
			return object
		}
		return v
	}
	return fill(c.args).(map[string]any)
}

// A loaded is a built-in server, and calls that leave things as they were, once all are made.
type loaded struct {
	args  []string // behind its name
	calls []toolCall
}

var builtinNames = []string{"everything", "fetch", "filesystem", "git", "memory", "thinking", "time"}

// loadedServers are the built-in servers, with files in a folder.
func loadedServers(t *testing.T, dir string) map[string]loaded {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<html><body><article><h1>%s</h1><p>%s</p></article></body></html>", r.URL.Path, strings.Repeat("Much text. ", 500))
	}))
	t.Cleanup(site.Close)
	files := filepath.Join(dir, "files")
	mkdir(t, files)
	for n := range 100 {
		write(t, filepath.Join(files, fmt.Sprintf("note%d.txt", n)), strings.Repeat("a line\n", n))
	}
	repo := filepath.Join(dir, "repo")
	mkdir(t, repo)
	write(t, filepath.Join(repo, "file.txt"), "one\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "file.txt"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", "first"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	write(t, filepath.Join(repo, "file.txt"), "two\n")
	type object = map[string]any
	type list = []any
	entity := "thing{n}"
	return map[string]loaded{
		"everything": {nil, []toolCall{
			{"echo", object{"message": "hello {n}"}},
			{"get-sum", object{"a": 2, "b": 3}},
			{"get-structured-content", object{"location": "Chicago"}},
			{"get-resource-links", object{"count": 5}},
			{"get-tiny-image", nil},
			{"gzip-file-as-resource", object{"name": "{n}.gz"}},
		}},
		"fetch": {[]string{"--allow-private", "127.0.0.1"}, []toolCall{
			{"fetch", object{"url": site.URL + "/{n}"}},
			{"fetch", object{"url": site.URL + "/{n}", "raw": true, "max_length": 100}},
		}},
		"filesystem": {[]string{files}, []toolCall{
			{"write_file", object{"path": "new{c}.txt", "content": "{n}\n"}},
			{"edit_file", object{"path": "new{c}.txt", "edits": list{object{"oldText": "{n}", "newText": "changed"}}}},
			{"move_file", object{"source": "new{c}.txt", "destination": "moved{c}.txt"}},
			{"read_text_file", object{"path": "moved{c}.txt", "head": 1}},
			{"move_file", object{"source": "moved{c}.txt", "destination": "new{c}.txt"}},
			{"list_directory_with_sizes", object{"path": "."}},
			{"directory_tree", object{"path": "."}},
			{"search_files", object{"path": ".", "pattern": "*9.txt"}},
			{"get_file_info", object{"path": "note9.txt"}},
		}},
		"git": {[]string{"--repository", repo}, []toolCall{
			{"git_status", object{"repo_path": repo}},
			{"git_diff_unstaged", object{"repo_path": repo}},
			{"git_add", object{"repo_path": repo, "files": list{"file.txt"}}},
			{"git_diff_staged", object{"repo_path": repo}},
			{"git_reset", object{"repo_path": repo}},
			{"git_log", object{"repo_path": repo}},
			{"git_show", object{"repo_path": repo, "revision": "HEAD"}},
			{"git_branch", object{"repo_path": repo, "branch_type": "all"}},
		}},
		"memory": {[]string{"--file", filepath.Join(dir, "memory.jsonl")}, []toolCall{
			{"create_entities", object{"entities": list{object{"name": entity, "entityType": "thing", "observations": list{"is new"}}}}},
			{"add_observations", object{"observations": list{object{"entityName": entity, "contents": list{"is number {n}"}}}}},
			{"create_relations", object{"relations": list{object{"from": entity, "to": entity, "relationType": "is"}}}},
			{"search_nodes", object{"query": "number {n}"}},
			{"open_nodes", object{"names": list{entity}}},
			{"read_graph", nil},
			{"delete_entities", object{"entityNames": list{entity}}},
		}},
		"thinking": {nil, []toolCall{
			{"sequentialthinking", object{"thought": "What is {n}?", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": true}},
			{"sequentialthinking", object{"thought": "A number.", "thoughtNumber": 2, "totalThoughts": 2, "nextThoughtNeeded": false, "branchFromThought": 1, "branchId": "b"}},
		}},
		"time": {nil, []toolCall{
			{"get_current_time", object{"timezone": "Asia/Kathmandu"}},
			{"convert_time", object{"source_timezone": "UTC", "time": "12:00", "target_timezone": "America/New_York"}},
		}},
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// environ is that of a program whose settings are in a folder.
func environ(dir string) []string {
	return append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GOTRACEBACK=all", "GORACE=atexit_sleep_ms=0", "DISABLE_THOUGHT_LOGGING=true")
}

// A serverProcess is a built-in server that runs, and the clients that are connected to it.
type serverProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	said    *output
	clients []*client.Client
	failed  atomic.Int64 // calls
}

// A duplex is the standard streams of a process.
type duplex struct {
	io.ReadCloser
	io.WriteCloser
}

func (d duplex) Close() error { return errors.Join(d.WriteCloser.Close(), d.ReadCloser.Close()) }

// newServerProcess starts a built-in server and connects to it: one client over its streams, two
// over HTTP.
func newServerProcess(t *testing.T, dir string, overHTTP bool, args ...string) *serverProcess {
	t.Helper()
	args = append([]string{"serve"}, args...)
	if overHTTP {
		args = append(args, "--http", "127.0.0.1:0")
	}
	s := &serverProcess{t: t, cmd: exec.CommandContext(t.Context(), "parley", args...), said: new(output)}
	s.cmd.Env, s.cmd.Dir, s.cmd.Stderr = environ(dir), dir, s.said
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	dialers := []transport.Dialer{stdio.Conn(duplex{out, in})}
	if overHTTP {
		late, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		url := s.said.wait(`at (http\S+);`, late.Done())
		dialers = []transport.Dialer{streamable.URL(url), streamable.URL(url)}
	}
	for _, d := range dialers {
		c, err := client.Connect(t.Context(), d, nil)
		if err != nil {
			t.Fatalf("parley %q: %v\n%s", args, err, s.said)
		}
		s.clients = append(s.clients, c)
	}
	return s
}

// call makes all calls of each client once, with numbers of its own.
func (s *serverProcess) call(calls []toolCall, n int64) {
	var wg sync.WaitGroup
	for i, c := range s.clients {
		wg.Go(func() {
			for _, call := range calls {
				r, err := c.CallTool(s.t.Context(), call.tool, call.with(n*int64(len(s.clients))+int64(i), i), nil)
				if err == nil && !r.IsError {
					continue
				}
				if s.failed.Add(1) <= 5 {
					s.t.Errorf("%s: %v %v", call.tool, err, r)
				}
			}
		})
	}
	wg.Wait()
}

// A usage is what a process has at one moment.
type usage struct {
	files, threads int
	memory         int64 // bytes that are no files
}

func (s *serverProcess) usage() (u usage) {
	s.t.Helper()
	dir := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	files, err := os.ReadDir(dir + "fd")
	if err != nil {
		s.t.Fatal(err)
	}
	u.files = len(files)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "Threads":
			u.threads = int(n)
		case "RssAnon":
			u.memory = n << 10
		}
	}
	return u
}

// end ends the process with all its clients connected, and returns how many goroutines it had.
func (s *serverProcess) end() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait() // the code is that of the signal
	for _, c := range s.clients {
		_ = c.Close() // the server is gone
	}
	return strings.Count("\n"+s.said.String(), "\ngoroutine ")
}

// loadTime is how long each server is called, and 0 by default.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(loadEnv)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s=%q is no time", loadEnv, text)
	}
	return d
}

// A server that is called for long has no more files, memory and goroutines at the end than near
// the beginning.
//
// Proves: SEC-DOS-1.
func TestBuiltinsForLong(t *testing.T) {
	racetest.SkipSerial(t)
	if racetest.Enabled {
		t.Skip("memory is another with the race detector")
	}
	if ranInOwnProcess(t) {
		return
	}
	whole := loadTime(t)
	for _, name := range builtinNames {
		for _, over := range []string{"stdio", "HTTP"} {
			t.Run(name+" "+over, func(t *testing.T) {
				if whole > 0 {
					t.Parallel() // the rate is low
				}
				dir := t.TempDir()
				l := loadedServers(t, dir)[name]
				fresh := newServerProcess(t, dir, over == "HTTP", append([]string{name}, l.args...)...)
				fresh.call(l.calls, -1)
				before := fresh.end()

				s := newServerProcess(t, dir, over == "HTTP", append([]string{name}, l.args...)...)
				var n int64
				var first usage
				made := func() int64 { return n * int64(len(l.calls)*len(s.clients)) }
				if whole == 0 {
					for ; made() < loadCalls; n++ {
						if made() <= loadCalls/3 {
							first = s.usage()
						}
						s.call(l.calls, n)
					}
				} else {
					first, n = s.callFor(whole, l.calls)
				}
				last := s.usage()
				goroutines := s.end()
				t.Logf("| %s | %s | %d | %d | %d → %d | %d → %d | %.1f → %.1f | %d → %d |", name, over, made(), s.failed.Load(),
					first.files, last.files, first.threads, last.threads, float64(first.memory)/(1<<20), float64(last.memory)/(1<<20), before, goroutines)
				if last.files > first.files+maxMoreFiles || last.memory > first.memory+maxMoreMemory+keptMemory[name] || goroutines > before+maxMoreGoroutines || before == 0 {
					t.Errorf("after %d calls there are %+v and %d goroutines; before that there were %+v and %d", made(), last, goroutines, first, before)
				}
			})
		}
	}
}

// callFor calls for a time at loadRate, and returns what the server had after the first tenth,
// and how often all calls were made.
func (s *serverProcess) callFor(whole time.Duration, calls []toolCall) (first usage, n int64) {
	s.t.Helper()
	tick := time.NewTicker(time.Second * time.Duration(len(calls)) / loadRate)
	defer tick.Stop()
	tenth, all := time.After(whole/10), time.After(whole)
	for {
		select {
		case <-tenth:
			first = s.usage()
		case <-all:
			return first, n
		case <-tick.C:
			s.call(calls, n)
			n++
		}
	}
}

// A server behind a connection with faults does not crash, ends with its connection, and leaves
// its files so that another one works with them.
//
// Proves: SEC-DOS-1.
func TestBuiltinsBehindChaos(t *testing.T) {
	racetest.SkipSerial(t)
	seeds := 1
	if text := os.Getenv("PARLEY_TEST_SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil || seeds <= 0 {
			t.Fatalf("PARLEY_TEST_SEEDS=%q is no number of seeds", text)
		}
	}
	for _, name := range builtinNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := loadedServers(t, dir)[name]
			faults := 0
			// A slow machine exchanges few messages: more seeds are tried until one of them applied a fault.
			for seed := 0; seed < seeds || faults == 0 && seed < seeds+20; seed++ {
				faults += behindChaos(t, dir, seed, name, &l)
			}
			if faults == 0 {
				t.Error("no fault was applied")
			}
			s := newServerProcess(t, dir, false, append([]string{name}, l.args...)...)
			s.call(l.calls, 1<<40)
			s.end()
		})
	}
}

// behindChaos makes the calls of a server behind faults, and returns how many faults there were.
func behindChaos(t *testing.T, dir string, seed int, name string, l *loaded) (faults int) {
	t.Helper()
	log := filepath.Join(dir, "faults.jsonl")
	args := append([]string{"chaos", "--seed", strconv.Itoa(seed), "--fault", "all=0.05", "--delay", "5ms", "--log", log, "--", "parley", "serve", name}, l.args...)
	d := stdio.Command("parley", args...)
	said := new(output)
	d.Env, d.Dir, d.Stderr = environ(dir), dir, said
	c, err := client.Connect(t.Context(), d, &client.Options{CallTimeout: time.Second, ConnectTimeout: 30 * time.Second})
	if err == nil { // a fault may have hit the beginning
		for round := range 3 {
			for _, call := range l.calls {
				_, _ = c.CallTool(t.Context(), call.tool, call.with(int64(1000*seed+round), 1+seed), nil) // it may fail
			}
		}
		_ = c.Close() // the connection may be broken
	}
	for _, bad := range []string{"panic:", "goroutine ", "fatal error:"} {
		if strings.Contains(said.String(), bad) {
			t.Errorf("seed %d: the server crashed:\n%s", seed, said)
			break
		}
	}
	told, err := os.ReadFile(log)
	if err != nil {
		t.Error(err)
	}
	return bytes.Count(told, []byte("\n"))
}
