package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-mcp/parley/app/cli"
)

// fakeBrowser is a browser as a program: it opens the URL, follows wherever
// that leads, and fills in forms with $FORM.
func fakeBrowser() {
	if err := browse(context.Background(), os.Args[len(os.Args)-1], os.Getenv("FORM")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var (
	formAction = regexp.MustCompile(`<form[^>]*action="([^"]*)"`)
	formHidden = regexp.MustCompile(`<input type="hidden"[^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

// browse visits a URL. Each form it meets is sent with the fields of form, a
// query, and those that are hidden in it.
func browse(ctx context.Context, address, form string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	c := &http.Client{Jar: jar}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	for range 5 {
		resp, err := c.Do(r)
		if err != nil {
			return err
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if resp.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("%s answered %s", resp.Request.URL.Path, resp.Status)
		}
		action := formAction.FindSubmatch(page)
		if action == nil || form == "" {
			return nil
		}
		target, err := resp.Request.URL.Parse(strings.ReplaceAll(string(action[1]), "&amp;", "&"))
		if err != nil {
			return err
		}
		values, err := url.ParseQuery(form)
		if err != nil {
			return err
		}
		for _, hidden := range formHidden.FindAllSubmatch(page, -1) {
			values.Set(string(hidden[1]), string(hidden[2]))
		}
		if r, err = http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(values.Encode())); err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", target.Scheme+"://"+target.Host)
	}
	return nil
}

// pickPort is a port that was free just now.
func pickPort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	return port, l.Close()
}

// freePort is the script command "freeport NAME", which sets a variable: an
// authorization server and its MCP server must know each other's address.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	port, err := pickPort()
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// serveFlags is the script command "serving NAME REGEXP COMMAND...": it starts a
// server, waits for a line that matches, and sets NAME to what the parentheses
// found. All that the server says goes into the file NAME.log. It ends with
// the script, or with "serving NAME -".
func serveFlags(ts *testscript.TestScript, _ bool, args []string) {
	name := args[0]
	log, err := os.OpenFile(ts.MkAbs(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, variable := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"} {
		cmd.Env = append(cmd.Env, variable+"="+ts.Getenv(variable))
	}
	said, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	found := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(found)
		want := regexp.MustCompile(args[1])
		lines := bufio.NewScanner(said)
		for told := false; lines.Scan(); {
			_, _ = fmt.Fprintln(log, lines.Text()) // what is missing there fails the script
			if m := want.FindStringSubmatch(lines.Text()); m != nil && !told {
				told = true
				found <- m[1]
			}
		}
	})
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		reading.Wait()
		if err := cmd.Wait(); err != nil {
			ts.Logf("%s ended: %v", name, err)
		}
		log.Close()
	})
	value, ok := <-found
	if !ok {
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
	said   *bytes.Buffer
	stop   func() // ends the server that was started last, before the test does

	mu    sync.Mutex    // for said and grown
	grown chan struct{} // closed when more was said; may be nil
}

func (p *place) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.grown != nil {
		close(p.grown)
		p.grown = nil
	}
	return p.said.Write(b)
}

// newPlace starts both. Whoever comes is signed in.
func newPlace(t *testing.T, authFlags ...string) *place {
	t.Helper()
	return newPlaceWith(t, append([]string{"--auto-approve", "ada"}, authFlags...)...)
}

// newPlaceWith starts both. The flags say who is signed in.
func newPlaceWith(t *testing.T, authFlags ...string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), said: &bytes.Buffer{}}
	t.Setenv("XDG_CONFIG_HOME", p.dir)
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

// start runs a server of the program until the test ends, and returns what the
// line says that matches.
func (p *place) start(line string, args ...string) string {
	p.t.Helper()
	interrupts := make(chan os.Signal, 1)
	r, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- cli.Main(context.Background(), args, &cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: w, Interrupts: interrupts})
		w.Close()
	}()
	found := make(chan string, 1)
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		want := regexp.MustCompile(line)
		lines := bufio.NewScanner(io.TeeReader(r, p))
		for told := false; lines.Scan(); {
			if m := want.FindStringSubmatch(lines.Text()); m != nil && !told {
				told = true
				found <- m[1]
			}
		}
		if err := lines.Err(); err != nil {
			p.t.Errorf("reading what the server says: %v", err)
		}
	}()
	p.stop = sync.OnceFunc(func() {
		interrupts <- os.Interrupt
		if code := <-done; code != 0 {
			p.t.Errorf("parley %s ended with %d", strings.Join(args, " "), code)
		}
		<-rest
	})
	p.t.Cleanup(p.stop)
	select {
	case value := <-found:
		return value
	case <-rest:
		p.t.Fatalf("parley %s did not start:\n%s", strings.Join(args, " "), p.said)
	}
	return ""
}
