package interop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Our client with the reference server that everybody tries first.
func TestEverythingServer(t *testing.T) {
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		goThrough(t, peer(t, everythingJS, "stdio"), legacy)
	})
	// Left to itself the server would listen on all interfaces.
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		d, log := dialer(t, startServer(t, nil, "--import", "./loopback.mjs", everythingJS, "streamableHttp"))
		goThrough(t, d, legacy)
		log.checkDeleted(t)
	})
}

// goThrough uses what the server offers, in a revision.
func goThrough(t *testing.T, d transport.Dialer, version string) {
	t.Helper()
	ctx := bounded(t)
	changed := make(chan string, 16)
	c, err := client.Connect(ctx, d, &client.Options{
		Eras:     client.NewEraMemory(),
		Versions: []string{version},
		OnElicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			// The rest of the form is filled in with its defaults.
			return client.Accept(map[string]any{"name": "Ada", "check": true})
		},
		OnSample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{
				Model: "test-model", Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("hi")}, StopReason: "endTurn",
			}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///srv/project", Name: "project"}}, nil
		},
		OnResourceUpdated: func(_ context.Context, uri string) { changed <- uri },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	everythingTools(ctx, t, c)
	everythingAsks(ctx, t, c)
	everythingReads(ctx, t, c)
}

func everythingTools(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			t.Fatalf("tools: %v", err)
		}
		names = append(names, tool.Name)
	}
	for _, name := range []string{"echo", "get-sum", "get-structured-content", "trigger-elicitation-request", "trigger-sampling-request"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among the tools %v", name, names)
		}
	}
	call(ctx, t, c, "echo", map[string]any{"message": "héllo"}, "Echo: héllo")
	call(ctx, t, c, "get-sum", map[string]any{"a": 2, "b": 3}, "The sum of 2 and 3 is 5.")

	type weather struct {
		Temperature float64 `json:"temperature"`
		Conditions  string  `json:"conditions"`
		Humidity    float64 `json:"humidity"`
	}
	got, err := client.Call[weather](ctx, c, "get-structured-content", map[string]any{"location": "Chicago"})
	if want := (weather{36, "Light rain / drizzle", 82}); err != nil || got != want {
		t.Errorf("get-structured-content: %v, %v, want %v", got, err, want)
	}

	var progress []float64
	_, err = client.Call[string](ctx, c, "trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": 4}, &client.CallOptions{
		OnProgress: func(p, _ float64, _ string) { progress = append(progress, p) },
	})
	if diff := cmp.Diff([]float64{1, 2, 3, 4}, progress); err != nil || diff != "" {
		t.Errorf("progress: %v\n%s", err, diff)
	}
}

func everythingAsks(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	// Values of the person, and defaults that our client fills in.
	call(ctx, t, c, "trigger-elicitation-request", nil, "Ada", "It was a dark and stormy night.", "hero-1")
	call(ctx, t, c, "trigger-sampling-request", map[string]any{"prompt": "Say hi.", "maxTokens": 20}, "test-model", "hi")
	call(ctx, t, c, "get-roots-list", nil, "file:///srv/project")
}

func everythingReads(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	count := 0
	for _, err := range c.Resources(ctx) {
		if err != nil {
			t.Fatalf("resources: %v", err)
		}
		count++
	}
	if count == 0 {
		t.Error("there are no resources")
	}
	read, err := c.ReadResource(ctx, "demo://resource/dynamic/text/7", nil)
	if err != nil || len(read.Contents) != 1 || !strings.HasPrefix(read.Contents[0].Text, "Resource 7: ") {
		t.Errorf("reading: %+v, %v", read, err)
	}
	values, err := c.Complete(ctx, &mcp.CompleteParams{
		Ref:      mcp.PromptRef("completable-prompt"),
		Argument: mcp.CompletionArgument{Name: "name", Value: "A"},
		Context:  &mcp.CompletionContext{Arguments: map[string]string{"department": "Engineering"}},
	})
	if err != nil || !slices.Equal(values.Values, []string{"Alice"}) {
		t.Errorf("completion: %+v, %v", values, err)
	}
	got, err := c.GetPrompt(ctx, "completable-prompt", map[string]string{"department": "Sales", "name": "Eve"}, nil)
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("prompt: %+v, %v", got, err)
	}
	if said, ok := got.Messages[0].Content.(*mcp.TextContent); !ok || said.Text != "Please promote Eve to the head of the Sales team." {
		t.Errorf("prompt: %+v", got.Messages[0].Content)
	}
}

// call calls a tool whose text must contain all of want.
func call(ctx context.Context, t *testing.T, c *client.Client, tool string, args any, want ...string) {
	t.Helper()
	result, err := c.CallTool(ctx, tool, args, nil)
	if err != nil {
		t.Errorf("%s: %v", tool, err)
		return
	}
	var all strings.Builder
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			all.WriteString(text.Text + "\n")
		}
	}
	for _, part := range want {
		if result.IsError || !strings.Contains(all.String(), part) {
			t.Errorf("%s: %q does not contain %q (isError %v)", tool, all.String(), part, result.IsError)
		}
	}
}

// The tool of the reference server that runs as a task only, in the revision in which tasks are
// part of the core: our client asks for the task, waits, and answers its question, of which its
// handler knows for which tool it is.
func TestEverythingTasks(t *testing.T) {
	for name, d := range map[string]func() transport.Dialer{
		"stdio": func() transport.Dialer { return peer(t, everythingJS, "stdio") },
		"http": func() transport.Dialer {
			return streamable.URL(startServer(t, nil, "--import", "./loopback.mjs", everythingJS, "streamableHttp"))
		},
	} {
		dialer := d()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 8)
			c, err := client.Connect(bounded(t), dialer, &client.Options{
				Eras: client.NewEraMemory(), Versions: []string{legacy}, Extensions: []client.Extension{tasks.Client(nil)},
				OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
					asked <- r.Target
					return client.Accept(map[string]string{"interpretation": "snake"})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			const tool = "simulate-research-query"
			call(bounded(t), t, c, tool, map[string]any{"topic": "tides"}, "Research Report: tides")
			if len(asked) != 0 {
				t.Errorf("asked for %q", <-asked)
			}
			call(bounded(t), t, c, tool, map[string]any{"topic": "python", "ambiguous": true}, "Research Report: python (snake)")
			if len(asked) != 1 {
				t.Errorf("asked %d times", len(asked))
			} else if got := <-asked; got != tool {
				t.Errorf("asked for %q", got)
			}
			researchHandles(t, c, tool)
			call(bounded(t), t, c, "echo", map[string]any{"message": "still"}, "Echo: still")
		})
	}
}

// researchHandles uses the tool by handles.
func researchHandles(t *testing.T, c *client.Client, tool string) {
	t.Helper()
	h, err := tasks.Start[string](bounded(t), c, tool, map[string]any{"topic": "moons"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if h, err = tasks.Resume[string](bounded(t), c, saved, nil); err != nil {
		t.Fatal(err)
	}
	if state, err := h.Status(bounded(t)); err != nil || state.Status != tasks.Working || state.Message == "" {
		t.Errorf("%+v, %v", state, err)
	}
	if got, err := h.Wait(bounded(t)); err != nil || !strings.Contains(got, "Research Report: moons") {
		t.Errorf("%q, %v", got, err)
	}
	if h, err = tasks.Start[string](bounded(t), c, tool, map[string]any{"topic": "stars"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Cancel(bounded(t)); err != nil {
		t.Error(err)
	}
	if _, err := h.Wait(bounded(t)); !errors.Is(err, tasks.ErrCancelled) {
		t.Errorf("a cancelled one: %v", err)
	}
}
