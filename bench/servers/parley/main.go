// Command parley is the server that is measured, written with this library.
package main

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

func main() { fixture.Main(run) }

func run(c fixture.Config) error {
	s := newServer(c)
	if c.Task {
		if err := addTask(s); err != nil {
			return err
		}
	}
	switch {
	case c.Stdio:
		return fixture.ServeStdio(func(ctx context.Context) error { return stdio.Serve(ctx, s) })
	case c.Mem:
		return inMemory(s)
	}
	// One endpoint for every revision and mode; the driver opens many sessions
	// from one address.
	return fixture.ServeHTTP(streamable.NewHandler(s, &streamable.Options{
		MaxMessage:              c.MaxMessage,
		MaxSessionsPerPrincipal: -1,
		MaxSessionsPerAddress:   -1,
	}))
}

// Arguments of the tools.
type (
	echoIn struct {
		Text string `json:"text" desc:"What to say."`
	}
	progressIn struct {
		Count int `json:"count" desc:"How often."`
	}
	fillerIn struct {
		Path      string   `json:"path" desc:"Where to begin."`
		Recursive bool     `json:"recursive,omitzero" desc:"Whether to go into folders."`
		Limit     int      `json:"limit,omitzero" desc:"The most results to give."`
		Kinds     []string `json:"kinds,omitzero" desc:"What to look for."`
	}
)

// newServer has every check that is on by default, but for the rates and the
// size of a page, which the driver would reach at once.
func newServer(c fixture.Config) *server.Server {
	s := server.New(fixture.Server, "1", &server.Options{Limits: server.Limits{
		ToolRate: server.Unlimited, ListRate: server.Unlimited, PageSize: c.Tools + 2,
	}})
	s.Add(
		server.Tool(fixture.Echo, fixture.EchoAbout, func(_ context.Context, in echoIn) (string, error) {
			return in.Text, nil
		}),
		server.Tool(fixture.Progress, fixture.ProgressAbout, func(ctx context.Context, in progressIn) (string, error) {
			for i := range in.Count {
				if err := server.Progress(ctx, float64(i+1), float64(in.Count), ""); err != nil {
					return "", err
				}
			}
			return fixture.Done, nil
		}),
	)
	for i := range c.Tools {
		s.Add(server.Tool(fixture.Filler(i), fixture.FillerAbout, func(context.Context, fillerIn) (string, error) {
			return "", nil
		}))
	}
	if c.Blob > 0 {
		blob := fixture.Blob(c.Blob)
		s.Add(server.Resource(fixture.BlobURI, "blob", func(context.Context) ([]byte, error) { return blob, nil }))
	}
	return s
}

// addTask has a task that has ended, of callers without a name.
func addTask(s *server.Server) error {
	ctx, store := context.Background(), tasks.Memory()
	n := &tasks.NewTask{ID: fixture.TaskID, Owner: new(principal.Principal).Identity(), Tool: fixture.Echo, PollInterval: time.Second}
	_, lease, err := store.Create(ctx, n, time.Hour)
	if err != nil {
		return err
	}
	result := mcp.RawValue(`{"content":[{"type":"text","text":"` + fixture.Text + `"}],"resultType":"complete"}`)
	if _, err := store.Change(ctx, lease, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: result}}); err != nil {
		return err
	}
	tasks.Enable(s, store, nil)
	return nil
}

func inMemory(s *server.Server) error {
	c, err := client.Connect(context.Background(), mem.New(s, nil), nil)
	if err != nil {
		return err
	}
	return fixture.ServeMem(func(ctx context.Context, text string) (string, error) {
		return client.Call[string](ctx, c, fixture.Echo, fixture.EchoIn{Text: text})
	})
}
