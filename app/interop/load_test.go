package interop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/gosdk"
	"github.com/parley-mcp/parley/app/interop/mcpgo"
	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// What ordinary programs ask of a server at once: calls of one client, at the
// same time and one after the other, and clients behind one address.
const (
	parallelCalls   = 200
	sequentialCalls = 1000
	clientsAtOnce   = 100
	requestsEach    = 4 // three lists and a call
)

// loads are the clients in Go: how each connects to the endpoint at a URL, or,
// where that is empty, to our server as its child process.
var loads = []struct {
	name    string
	connect func(ctx context.Context, url string) (script.Client, error)
}{
	{"ours " + modern, oursTo(modern)},
	{"ours " + legacy, oursTo(legacy)},
	{"go-sdk " + modern, goSDKTo(modern)},
	{"go-sdk " + legacy, goSDKTo(legacy)},
	{"mcp-go " + modern, mcpGoTo(modern)},
	{"mcp-go " + legacy, mcpGoTo(legacy)},
}

func oursTo(version string) func(context.Context, string) (script.Client, error) {
	return func(ctx context.Context, url string) (script.Client, error) {
		if url == "" {
			return ours.Connect(ctx, stdio.Command(program, "ours"), version)
		}
		return ours.Connect(ctx, streamable.URL(url), version)
	}
}

func goSDKTo(version string) func(context.Context, string) (script.Client, error) {
	return func(ctx context.Context, url string) (script.Client, error) {
		if url == "" {
			return gosdk.Connect(ctx, &mcp.CommandTransport{Command: exec.CommandContext(ctx, program, "ours")}, version)
		}
		return gosdk.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, version)
	}
}

func mcpGoTo(version string) func(context.Context, string) (script.Client, error) {
	return func(ctx context.Context, url string) (script.Client, error) {
		if url == "" {
			return mcpgo.Connect(ctx, transport.NewStdio(program, nil, "ours"), version)
		}
		dial, err := transport.NewStreamableHTTP(url)
		if err != nil {
			return nil, err
		}
		return mcpgo.Connect(ctx, dial, version)
	}
}

// typescriptLoads are the clients in TypeScript.
var typescriptLoads = []struct {
	name    string
	options map[string]any
}{
	{"typescript v1", map[string]any{"sdk": "v1"}},
	{"typescript v2 legacy", map[string]any{"sdk": "v2", "mode": "legacy"}},
	{"typescript v2 auto", map[string]any{"sdk": "v2", "mode": "auto"}},
}

// With every limit at its default, a server answers what one ordinary client
// asks in a hurry: 200 calls at once and 1,000 one after the other, on a pipe
// and over HTTP.
// Proves: SEC-DOS-1.
func TestLoadOfOneClient(t *testing.T) {
	for _, l := range loads {
		t.Run("stdio "+l.name, func(t *testing.T) { callMuch(t, l.connect, "") })
		t.Run("http "+l.name, func(t *testing.T) { callMuch(t, l.connect, serveOurs(t).url) })
	}
	for _, l := range typescriptLoads {
		calls := with(l.options, map[string]any{"parallel": parallelCalls, "sequential": sequentialCalls})
		t.Run("stdio "+l.name, func(t *testing.T) {
			typescriptLoad(t, with(calls, overStdio(nil)), parallelCalls+sequentialCalls)
		})
		t.Run("http "+l.name, func(t *testing.T) {
			typescriptLoad(t, with(calls, map[string]any{"transport": "http", "url": serveOurs(t).url}), parallelCalls+sequentialCalls)
		})
	}
}

// A hundred clients behind one address connect at once, list three times and
// call.
// Proves: SEC-DOS-1.
func TestLoadOfManyClients(t *testing.T) {
	for _, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			e := serveOurs(t)
			ctx := bounded(t)
			var answers tally
			var all sync.WaitGroup
			for range clientsAtOnce {
				all.Go(func() {
					c, err := l.connect(ctx, e.url)
					if err != nil {
						answers.count(err)
						return
					}
					for range requestsEach - 1 {
						_, err := c.Tools(ctx)
						answers.count(err)
					}
					answers.count(echo(ctx, c, "hello"))
					answers.note(c.Close())
				})
			}
			all.Wait()
			answers.check(t, clientsAtOnce*requestsEach)
		})
	}
	for _, l := range typescriptLoads {
		t.Run(l.name, func(t *testing.T) {
			o := map[string]any{"transport": "http", "url": serveOurs(t).url, "clients": clientsAtOnce}
			typescriptLoad(t, with(l.options, o), clientsAtOnce*requestsEach)
		})
	}
}

// callMuch calls echo many times at once, and then many times in a row.
func callMuch(t *testing.T, connect func(context.Context, string) (script.Client, error), url string) {
	ctx := bounded(t)
	c, err := connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	var answers tally
	var all sync.WaitGroup
	for i := range parallelCalls {
		all.Go(func() { answers.count(echo(ctx, c, fmt.Sprint("parallel ", i))) })
	}
	all.Wait()
	for i := range sequentialCalls {
		answers.count(echo(ctx, c, fmt.Sprint("sequential ", i)))
	}
	answers.check(t, parallelCalls+sequentialCalls)
}

func echo(ctx context.Context, c script.Client, message string) error {
	r, err := c.Call(ctx, script.Echo, map[string]string{"message": message}, nil)
	if err == nil && r.Text != message {
		err = fmt.Errorf("echo of %q said %q", message, r.Text)
	}
	return err
}

// typescriptLoad runs load.mjs, and checks how many requests were answered.
func typescriptLoad(t *testing.T, options map[string]any, want int) {
	t.Helper()
	argument, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	cmd := node(t, "load.mjs", string(argument))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("load.mjs: %v\n%s%s", err, out, stderr.Bytes())
	}
	var got struct {
		Answered int      `json:"answered"`
		Errors   []string `json:"errors"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("load.mjs printed %q: %v", out, err)
	}
	if got.Answered != want || len(got.Errors) > 0 {
		t.Errorf("%d of %d requests were answered; errors: %q", got.Answered, want, got.Errors)
	}
}

// with returns the options of a and b.
func with(a, b map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range []map[string]any{a, b} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// A tally counts the answers that many goroutines get.
type tally struct {
	mu       sync.Mutex
	answered int
	errors   []error
}

// count counts an answer, unless there is an error.
func (a *tally) count(err error) {
	a.note(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.answered++
	}
}

// note keeps the error of what is no request.
func (a *tally) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.errors = append(a.errors, err)
	}
}

func (a *tally) check(t *testing.T, want int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered != want || len(a.errors) > 0 {
		t.Errorf("%d of %d requests were answered; %d errors, the first: %q", a.answered, want, len(a.errors), a.errors[:min(3, len(a.errors))])
	}
}
