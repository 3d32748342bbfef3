package cli_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-mcp/parley/app/internal/browsertest"
	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// fakeBrowser is a browser as a program: it opens the URL, follows wherever
// that leads, and fills in forms with $FORM, a query.
func fakeBrowser() {
	if err := fillIn(os.Args[len(os.Args)-1], os.Getenv("FORM")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fillIn(address, form string) error {
	var fields url.Values
	if form != "" {
		var err error
		if fields, err = url.ParseQuery(form); err != nil {
			return err
		}
	}
	p, err := browsertest.New().FillIn(context.Background(), address, fields)
	if err == nil && p.Status >= http.StatusBadRequest {
		err = fmt.Errorf("%s answered %d", p.URL.Path, p.Status)
	}
	return err
}

// pickPort is a port that was free just now.
func pickPort() (string, error) {
	const first, count = 20000, 10000 // below those that systems give out by themselves
	var err error
	for range 100 {
		n := int(portsPicked.Add(1)) + os.Getpid()*37
		port := strconv.Itoa(first + n%count)
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}

// portsPicked counts the ports, so that no two scripts get the same.
var portsPicked atomic.Uint32

// freePort is the script command "freeport NAME", which sets a variable: an
// authorization server and its MCP server must know each other's address.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	port, err := pickPort()
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// A served is a server that a script has started.
type served struct {
	ts   *testscript.TestScript
	name string
}

// serving has, by served, the functions that end a server and return when it has.
var serving sync.Map

// serveFlags is the script command "serving NAME REGEXP COMMAND...": it starts a
// server, waits for a line that matches, and sets NAME to what the parentheses
// found. All that the server says goes into the file NAME.log. It ends with
// the script, or with "serving NAME -".
func serveFlags(ts *testscript.TestScript, _ bool, args []string) {
	name := args[0]
	if args[1] == "-" {
		end, ok := serving.LoadAndDelete(served{ts, name})
		if !ok {
			ts.Fatalf("%s is not serving", name)
		}
		end.(func())()
		return
	}
	log, err := os.OpenFile(ts.MkAbs(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, variable := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"} {
		cmd.Env = append(cmd.Env, variable+"="+ts.Getenv(variable))
	}
	var said output
	cmd.Stderr = io.MultiWriter(log, &said)
	ts.Check(cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	serving.Store(served{ts, name}, func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	ts.Defer(func() {
		serving.Delete(served{ts, name})
		_ = cmd.Process.Signal(os.Interrupt)
		if <-ended; err != nil {
			ts.Logf("%s ended: %v", name, err)
		}
		log.Close()
	})
	value := said.wait(args[1], ended)
	if value == "" {
		ts.Fatalf("%s did not start; see %s.log", name, name)
	}
	ts.Setenv(name, value)
}

// A place is an authorization server and an MCP server that it guards, in this
// process, with the settings of a person of their own.
type place struct {
	t      *testing.T
	dir    string // of settings
	url    string // of the MCP server
	issuer string
	said   *output // of all servers
	stop   func()  // ends the server that was started last, before the test does
}

// newEmptyPlace is a place without servers.
func newEmptyPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), said: new(output)}
	t.Setenv("XDG_CONFIG_HOME", p.dir)
	return p
}

// newPlace starts both. Whoever comes is signed in.
func newPlace(t *testing.T, authFlags ...string) *place {
	t.Helper()
	return newPlaceWith(t, append([]string{"--auto-approve", "ada"}, authFlags...)...)
}

// newPlaceWith starts both. The flags say who is signed in.
func newPlaceWith(t *testing.T, authFlags ...string) *place {
	t.Helper()
	p := newEmptyPlace(t)
	port, err := pickPort()
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://127.0.0.1:" + port + "/mcp"
	p.issuer = p.start(`authorization server is (\S+);`, append([]string{
		"auth", "serve", "--http", "127.0.0.1:0", "--allow-registration",
		"--resource", p.url + "=everything:read,everything:write",
	}, authFlags...)...)
	p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", "127.0.0.1:"+port, "--auth", p.issuer, "--scope", "everything:read", "-v")
	return p
}

// start runs a server of the program until the test ends, and returns what it
// says in the parentheses of a pattern.
func (p *place) start(pattern string, args ...string) (value string) {
	p.t.Helper()
	value, p.stop = start(p.t, pattern, p.said, args...)
	p.t.Cleanup(p.stop)
	return value
}

// start runs a server of the program, and returns what it says in the
// parentheses of a pattern. All that it says goes to said as well. Stop waits
// for its end.
func start(t *testing.T, pattern string, said io.Writer, args ...string) (value string, stop func()) {
	t.Helper()
	interrupts, ended := make(chan os.Signal, 1), make(chan struct{})
	var own output
	code := 0
	go func() {
		defer close(ended)
		code = cli.Main(context.Background(), args, &kit.Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: io.MultiWriter(&own, said), Interrupts: interrupts,
		})
	}()
	if value = own.wait(pattern, ended); value == "" {
		t.Fatalf("parley %s did not start:\n%s", strings.Join(args, " "), &own)
	}
	return value, sync.OnceFunc(func() {
		interrupts <- os.Interrupt
		if <-ended; code != 0 {
			t.Errorf("parley %s ended with %d", strings.Join(args, " "), code)
		}
	})
}

// An output is what a program says on standard error.
type output struct {
	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{} // closed when there is more; may be nil
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// next is what was said, and a channel that is closed when there is more.
func (o *output) next() (grown <-chan struct{}, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown == nil {
		o.grown = make(chan struct{})
	}
	return o.grown, o.text.String()
}

// wait waits for a match of a pattern and returns what is in its parentheses;
// all of it if it has none. After ended it returns "".
func (o *output) wait(pattern string, ended <-chan struct{}) string {
	want := regexp.MustCompile(pattern)
	for over := false; ; {
		grown, text := o.next()
		found := want.FindStringSubmatch(text)
		if found != nil {
			return found[len(found)-1]
		}
		if over {
			return ""
		}
		select {
		case <-grown:
		case <-ended:
			over = true
		}
	}
}

// shortDir is a folder whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // that of the test is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is a temporary folder
	return dir
}
