package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// publicName is the name under which the guide's configurations serve.
const publicName = "mcp.example.com"

// A reverseProxy is a program that stands in front of a server, with the
// configuration that the guide shows.
type reverseProxy struct {
	name, language string
	// start starts it in an empty folder, with the configuration for public,
	// the address to listen at, in front of backend.
	start func(t *testing.T, dir, config, public, backend string) *exec.Cmd
}

var reverseProxies = []reverseProxy{
	{"nginx", "nginx", startNginx},
	{"caddy", "caddyfile", startCaddy},
}

// needProxies skips the test unless proxies are wanted, which .ci/run does after
// installing them.
func needProxies(t *testing.T) {
	t.Helper()
	if os.Getenv("PARLEY_TEST_PROXIES") == "" {
		t.Skip("set PARLEY_TEST_PROXIES=1 where nginx and caddy are installed")
	}
}

// shown is the configuration in a language that the guide shows.
func shown(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "deployment.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "```"+language+"\n")
	if !ok {
		t.Fatalf("the guide shows no configuration in %s", language)
	}
	text, _, _ = strings.Cut(text, "```")
	return text
}

// replaced replaces what a configuration must hold.
func replaced(t *testing.T, config, old, by string) string {
	t.Helper()
	if !strings.Contains(config, old) {
		t.Fatalf("the configuration does not say %q:\n%s", old, config)
	}
	return strings.ReplaceAll(config, old, by)
}

func startNginx(t *testing.T, dir, config, public, backend string) *exec.Cmd {
	config = replaced(t, config, "listen 80;", "listen "+public+";")
	config = replaced(t, config, "127.0.0.1:8080", backend)
	temporary := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += kind + "_temp_path " + filepath.Join(dir, kind) + ";\n"
	}
	file := filepath.Join(dir, "nginx.conf")
	write(t, file, "daemon off;\nmaster_process off;\nerror_log stderr;\npid "+filepath.Join(dir, "pid")+";\n"+
		"events {}\nhttp {\naccess_log off;\n"+temporary+config+"}\n")
	return exec.Command("nginx", "-p", dir, "-c", file)
}

func startCaddy(t *testing.T, dir, config, public, backend string) *exec.Cmd {
	config = replaced(t, config, publicName+" {", "http://"+public+", http://"+publicName+":"+port(t, public)+" {")
	config = replaced(t, config, "127.0.0.1:8080", backend)
	file := filepath.Join(dir, "Caddyfile")
	write(t, file, "{\n\tadmin off\n\tauto_https off\n\tstorage file_system "+dir+"\n}\n"+config)
	cmd := exec.Command("caddy", "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	return cmd
}

func port(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run starts the proxy in front of a backend, and returns the address that it
// listens at. It ends with the test.
func (p reverseProxy) run(t *testing.T, backend string) (public string) {
	t.Helper()
	public = freeAddress(t) // the proxy opens it itself
	cmd := p.start(t, t.TempDir(), shown(t, p.language), public, backend)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", p.name, said.Bytes())
		}
	})
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		conn, err := net.Dial("tcp", public)
		if err == nil {
			_ = conn.Close()
			return public
		}
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", p.name, said.Bytes())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not listen", p.name)
	return ""
}

// callers are who called, as the server saw it.
type callers struct {
	mu  sync.Mutex
	all map[string]bool
}

func (c *callers) note(next server.Func) server.Func {
	return func(call *server.Call) (server.Result, error) {
		c.mu.Lock()
		if c.all == nil {
			c.all = make(map[string]bool)
		}
		c.all[call.Principal().Remote] = true
		c.mu.Unlock()
		return next(call)
	}
}

// only reports whether nobody but addr called.
func (c *callers) only(addr string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all) == 1 && c.all[addr]
}

func (c *callers) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.all)
}

// from is an HTTP client whose connections come from a loopback address, call
// the endpoint by its public name, and claim to be forwarded for somebody else.
func from(t *testing.T, addr, public string) *http.Client {
	t.Helper()
	underlying := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}).DialContext}
	t.Cleanup(underlying.CloseIdleConnections)
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Host = publicName + ":" + port(t, public)
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		return underlying.RoundTrip(r)
	})}
}

// endpointBehind serves s at an address of this machine, for the guide's
// configuration: under the public name, and with the proxy's address trusted.
func endpointBehind(t *testing.T, s *server.Server, o streamable.Options) (backend string) {
	t.Helper()
	o.Access = web.Access{Hosts: []string{publicName}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	h := streamable.NewHandler(s, &o)
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		web.Close()
	})
	return web.Listener.Addr().String()
}

// Behind nginx and Caddy, as the guide configures them, the whole script works
// in every revision, and callers are known by their own address, whatever they
// claim.
func TestReverseProxies(t *testing.T) {
	needProxies(t)
	for _, p := range reverseProxies {
		for _, version := range []string{modern, legacy, "2025-06-18", "2025-03-26"} {
			t.Run(p.name+" "+version, func(t *testing.T) {
				t.Parallel()
				var seen callers
				public := p.run(t, endpointBehind(t, ours.NewServer(nil, seen.note), streamable.Options{}))
				d := streamable.URL("http://" + public + "/mcp")
				d.Client = from(t, "127.0.0.7", public)
				check(t, ours.Run(bounded(t), d, version), want(version))
				if !seen.only("127.0.0.7") {
					t.Errorf("the server saw %v, want 127.0.0.7 alone", &seen)
				}
			})
		}
	}
}

// A stream flows while the call goes on: the tool ends only when the client
// has seen its progress.
//
// A proxy in Go may break off a response that begins before it has read the end of the request's
// body (golang/go#40747), which a quick server meets now and then. Such a call is made again.
func TestReverseProxiesStream(t *testing.T) {
	needProxies(t)
	for _, p := range reverseProxies {
		for _, version := range []string{modern, legacy} {
			t.Run(p.name+" "+version, func(t *testing.T) {
				t.Parallel()
				var seen atomic.Pointer[chan struct{}]
				s := server.New("streams", "1.0.0", nil)
				s.Add(server.Tool("wait", "Reports progress, and waits until it was seen.", func(ctx context.Context, _ struct{}) (string, error) {
					done := *seen.Load()
					if err := server.Progress(ctx, 1, 2, "half"); err != nil {
						return "", err
					}
					select {
					case <-done:
						return "seen", nil
					case <-ctx.Done():
						return "", context.Cause(ctx)
					}
				}))
				c := clientBehind(t, p, version, s, streamable.Options{}, "127.0.0.1")
				call := func() (*mcp.CallToolResult, error) {
					done := make(chan struct{})
					seen.Store(&done)
					var once sync.Once
					return c.CallTool(bounded(t), "wait", nil, &client.CallOptions{
						OnProgress: func(float64, float64, string) { once.Do(func() { close(done) }) },
					})
				}
				r, err := call()
				for range 5 {
					if p.name != "caddy" || !errors.Is(err, transport.ErrInterrupted) {
						break
					}
					r, err = call()
				}
				if err != nil || len(r.Content) != 1 || r.Content[0].(*mcp.TextContent).Text != "seen" {
					t.Errorf("the call gave %+v, %v", r, err)
				}
			})
		}
	}
}

// A response that the server ends before the answer is taken up again: the
// client comes back for what it has missed.
func TestReverseProxiesResume(t *testing.T) {
	needProxies(t)
	for _, p := range reverseProxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			log := &traffic{resumed: make(chan struct{})}
			hold := func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					if c.Target() == script.Echo {
						select {
						case <-log.resumed:
						case <-c.Done():
							return nil, context.Cause(c)
						}
					}
					return next(c)
				}
			}
			o := streamable.Options{
				Access:    web.Access{Hosts: []string{publicName}},
				PollAfter: 50 * time.Millisecond, Retry: 10 * time.Millisecond,
			}
			h := streamable.NewHandler(ours.NewServer(nil, hold), &o)
			backend := httptest.NewServer(log.server(h))
			t.Cleanup(func() {
				if err := h.Shutdown(context.Background()); err != nil {
					t.Errorf("shutdown: %v", err)
				}
				backend.Close()
			})
			public := p.run(t, backend.Listener.Addr().String())
			d := streamable.URL("http://" + public + "/mcp")
			d.Client = from(t, "127.0.0.1", public)
			c, err := ours.Connect(bounded(t), d, legacy)
			if err != nil {
				t.Fatal(err)
			}
			if err := echo(bounded(t), c, "hello"); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// Who floods the server is refused; a client with another address behind the
// same proxy is not.
// Proves: SEC-DOS-1.
func TestReverseProxiesLimits(t *testing.T) {
	needProxies(t)
	for _, p := range reverseProxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := server.New("limited", "1.0.0", &server.Options{Limits: server.Limits{ToolRate: 0.1}})
			s.Add(server.Tool("who", "Says who calls.", func(ctx context.Context, _ struct{}) (string, error) {
				return server.Caller(ctx).Remote, nil
			}))
			public := p.run(t, endpointBehind(t, s, streamable.Options{}))
			// Ten times the rate, for ten seconds, is what an address has at once.
			noisy := connectFrom(t, public, "127.0.0.2", modern)
			ctx := bounded(t)
			var refused atomic.Int32
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if _, err := client.Call[string](ctx, noisy, "who", nil); err != nil {
						refused.Add(1)
					}
				})
			}
			all.Wait()
			if refused.Load() == 0 {
				t.Error("a flood was not refused")
			}
			quiet := connectFrom(t, public, "127.0.0.3", modern)
			if who, err := client.Call[string](bounded(t), quiet, "who", nil); err != nil || who != "127.0.0.3" {
				t.Errorf("another address got %q, %v", who, err)
			}
		})
	}
}

// clientBehind connects to s, through the proxy, from an address.
func clientBehind(t *testing.T, p reverseProxy, version string, s *server.Server, o streamable.Options, addr string) *client.Client {
	t.Helper()
	return connectFrom(t, p.run(t, endpointBehind(t, s, o)), addr, version)
}

func connectFrom(t *testing.T, public, addr, version string) *client.Client {
	t.Helper()
	d := streamable.URL("http://" + public + "/mcp")
	d.Client = from(t, addr, public)
	c, err := client.Connect(bounded(t), d, &client.Options{Versions: []string{version}, Eras: client.NewEraMemory(), Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}
