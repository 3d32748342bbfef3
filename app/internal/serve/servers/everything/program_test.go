package everything_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// Variables that make the test binary another program.
const (
	roleVar = "PARLEY_EVERYTHING_ROLE"
	pidVar  = "PARLEY_EVERYTHING_PID" // a file that gets the id of the process
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if file := os.Getenv(pidVar); role != "" && file != "" {
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	switch role {
	case "parley": // the program itself, with our arguments
		os.Exit(cli.Main(context.Background(), os.Args[1:], kit.Standard()))
	case "old": // the server as it was before the newest revision
		s := everything.New("1.0.0", nil)
		versions := slices.DeleteFunc(s.Versions(), func(v string) bool { return v == newest })
		s = everything.New("1.0.0", &everything.Options{Server: &server.Options{Versions: versions}})
		if err := stdio.Serve(context.Background(), s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a dialer that starts this binary in a role.
func child(t *testing.T, role string, args ...string) (d *stdio.CommandDialer, pid func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	d = stdio.Command(self, args...)
	d.ExtraEnv = []string{roleVar + "=" + role, pidVar + "=" + file, "GORACE=atexit_sleep_ms=0"}
	d.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	return d, func() int {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(string(text))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// connect connects and closes in the end.
func connect(t *testing.T, d transport.Dialer, o *client.Options) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Connect(ctx, d, o)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c
}

// Proves: FLOW-INIT, FLOW-TOOL, FLOW-RES, FLOW-SUB, FLOW-PROMPT, FLOW-COMPLETE,
// FLOW-ELICIT-P, FLOW-SAMPLE-P, FLOW-ROOTS, FLOW-PROGRESS, FLOW-LOG, FLOW-PING
// and FLOW-SHUTDOWN over real pipes, with the program itself as a child
// process, in each revision.
func TestProgram(t *testing.T) {
	racetest.SkipSerial(t)
	for _, version := range newServer(t, server.Limits{}).Versions() {
		t.Run(version, func(t *testing.T) {
			mcptest.NoLeaks(t)
			updated := make(chan string, 1)
			logged := make(chan string, 1)
			opts := &client.Options{
				Versions: []string{version},
				OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
					if strings.HasPrefix(r.Params.Message, "Drop") {
						return client.Accept(map[string]any{"sure": true})
					}
					return client.Accept(map[string]any{"reason": "it is old"})
				},
				OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
					return &mcp.CreateMessageResult{
						Role: mcp.RoleAssistant, Model: "test", Content: mcp.Contents{mcp.Text("so be it")},
					}, nil
				},
				OnRoots: func(context.Context) ([]mcp.Root, error) {
					return []mcp.Root{{URI: "file:///work/project", Name: "Project"}}, nil
				},
				OnResourceUpdated: func(_ context.Context, uri string) {
					select {
					case updated <- uri:
					default:
					}
				},
				LogLevel: mcp.LogEmergency,
				OnLog: func(_ context.Context, p *mcp.LogParams) {
					select {
					case logged <- string(p.Level):
					default:
					}
				},
			}
			d, _ := child(t, "parley", "serve", "everything")
			c := connect(t, d, opts)
			if c.Version() != version {
				t.Fatalf("the client speaks %s", c.Version())
			}
			checkTools(t, c, version >= "2025-06-18")
			checkRest(t, c)
			if _, err := client.Call[string](t.Context(), c, "log-messages", nil); err != nil {
				t.Errorf("log-messages: %v", err)
			}
			if got := await(t, logged); got != string(mcp.LogEmergency) {
				t.Errorf("logged at %q", got)
			}
			sub, err := c.Subscribe(t.Context(), "demo://ticks")
			if err != nil {
				t.Fatalf("subscribing: %v", err)
			}
			if got := await(t, updated); got != "demo://ticks" {
				t.Errorf("updated: %q", got)
			}
			if err := sub.Close(); err != nil {
				t.Errorf("ending the subscription: %v", err)
			}
		})
	}
}

// await takes what must come.
func await[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatal("what should have come did not")
	}
	panic("unreachable: the test has failed")
}

// checkTools calls tools of every kind.
func checkTools(t *testing.T, c *client.Client, forms bool) {
	t.Helper()
	names := make(map[string]bool)
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatalf("listing tools: %v", err)
		}
		names[tool.Name] = true
	}
	if len(names) < 15 || !names["add"] {
		t.Errorf("the tools are %v", names)
	}
	type sum struct {
		Sum float64 `json:"sum"`
	}
	type numbers struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}
	// Older revisions have no structured results: the sum is the text.
	if forms {
		if got, err := client.Call[sum](t.Context(), c, "add", numbers{2, 3}); err != nil || got.Sum != 5 {
			t.Errorf("add: %v, %v", got, err)
		}
	}
	if got, err := client.Call[string](t.Context(), c, "add", numbers{2, 3}); err != nil || got != "5" {
		t.Errorf("add: %q, %v", got, err)
	}
	var failed *client.ToolError
	if _, err := client.Call[string](t.Context(), c, "fail", nil); !errors.As(err, &failed) {
		t.Errorf("fail: %v", err)
	}
	var refused *jsonrpc.Error
	if _, err := c.CallTool(t.Context(), "nosuch", nil, nil); !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a tool that is not there: %v", err)
	}
	steps := 0
	_, err := client.Call[string](t.Context(), c, "trigger-long-running-operation", map[string]any{"duration": 0.05, "steps": 5},
		&client.CallOptions{OnProgress: func(float64, float64, string) { steps++ }})
	if err != nil || steps != 5 {
		t.Errorf("%d steps of progress, %v", steps, err)
	}
	asked, err := client.Call[string](t.Context(), c, "drop-table", map[string]any{"table": "users"})
	switch {
	case forms && (err != nil || asked != "dropped users, because: it is old (ticket 1005)"):
		t.Errorf("a form: %q, %v", asked, err)
	case !forms && !errors.As(err, &failed):
		t.Errorf("a form where there are none: %q, %v", asked, err)
	}
	for tool, want := range map[string]string{"trigger-sampling-request": "so be it", "get-roots-list": "file:///work/project"} {
		args := map[string]any{}
		if tool == "trigger-sampling-request" {
			args["prompt"] = "x"
		}
		if got, err := client.Call[string](t.Context(), c, tool, args); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v", tool, got, err)
		}
	}
}

// checkRest uses what is no tool.
func checkRest(t *testing.T, c *client.Client) {
	t.Helper()
	read, err := c.ReadResource(t.Context(), "demo://cities/Japan/Kyoto", nil)
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "Kyoto in Japan is known for temples.\n" {
		t.Errorf("reading: %v, %v", read, err)
	}
	var refused *jsonrpc.Error
	if _, err := c.ReadResource(t.Context(), "demo://nothing\u200b\a", nil); !errors.As(err, &refused) {
		t.Errorf("reading what is not there: %v", err)
	}
	prompt, err := c.GetPrompt(t.Context(), "greeting", map[string]string{"name": "Ada"}, nil)
	if err != nil || len(prompt.Messages) != 2 {
		t.Errorf("a prompt: %v, %v", prompt, err)
	}
	found, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      mcp.CompletionRef{Type: mcp.RefPrompt, Name: "briefing"},
		Argument: mcp.CompletionArgument{Name: "country", Value: "j"},
	})
	if err != nil || !slices.Equal(found.Values, []string{"Japan"}) {
		t.Errorf("completion: %v, %v", found, err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
}

// Proves: FLOW-INIT, ruling 4: a client that is told nothing finds out what
// the server speaks.
func TestEraDetection(t *testing.T) {
	for role, want := range map[string]string{"parley": newest, "old": "2025-11-25"} {
		t.Run(role, func(t *testing.T) {
			mcptest.NoLeaks(t)
			d, _ := child(t, role, "serve", "everything")
			// One that has not even started yet must not be taken for an old one.
			c := connect(t, d, &client.Options{DiscoverProbe: patience})
			if c.Version() != want || c.Modern() != (want == newest) {
				t.Errorf("the client speaks %s, want %s", c.Version(), want)
			}
			if got, err := client.Call[string](t.Context(), c, "echo", map[string]any{"message": "here"}); err != nil || got != "here" {
				t.Errorf("echo: %q, %v", got, err)
			}
		})
	}
}

// Ruling 16: a server that dies in the middle of a call may have carried it
// out, and the client says so; the next call starts it again.
func TestKilledInTheMiddle(t *testing.T) {
	for _, version := range []string{newest, "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			mcptest.NoLeaks(t)
			d, pid := child(t, "parley", "serve", "everything")
			c := connect(t, d, &client.Options{Versions: []string{version}})
			first := pid()
			began := make(chan struct{}, 1)
			ended := make(chan error, 1)
			go func() {
				_, err := client.Call[string](t.Context(), c, "trigger-long-running-operation", map[string]any{"duration": 20, "steps": 100},
					&client.CallOptions{OnProgress: func(float64, float64, string) {
						select {
						case began <- struct{}{}:
						default:
						}
					}})
				ended <- err
			}()
			await(t, began)
			kill(t, first)
			if err := await(t, ended); !errors.Is(err, transport.ErrInterrupted) {
				t.Errorf("the call ended with %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if got, err := client.Call[string](ctx, c, "echo", map[string]any{"message": "again"}); err != nil || got != "again" {
				t.Errorf("after the death: %q, %v", got, err)
			}
			if second := pid(); second == first {
				t.Errorf("the process is still %d", first)
			}
		})
	}
}

// kill ends a process that this test started, at once.
func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}
