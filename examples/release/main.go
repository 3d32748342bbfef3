// Command release has a tool that takes long, tells how far it is, can be
// cancelled, and asks before it goes on. See docs/guide/progress.md and
// docs/guide/asking.md.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A releaser builds a program and copies it to machines. It only waits here.
type releaser struct {
	machines []string
	step     time.Duration
	built    func(tag string) // told about each build; for tests
}

type releaseIn struct {
	Tag string `json:"tag" desc:"what to release" pattern:"^v[0-9]+$"`
}

type confirm struct {
	Notes string `json:"notes" desc:"what is new, for the announcement" maxlen:"500"`
}

func (r *releaser) release(ctx context.Context, in releaseIn) (string, error) {
	build, err := server.Once(ctx, "build", func() (string, error) { return r.build(ctx, in.Tag) })
	if err != nil {
		return "", err
	}
	answer, err := server.Elicit[confirm](ctx, fmt.Sprintf("Copy %s to %d machines?", build, len(r.machines)))
	if err != nil {
		return "", err
	}
	if !answer.Accepted() {
		return "Nothing was copied.", nil
	}
	if err := r.copy(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is on %d machines: %s", build, len(r.machines), answer.Value.Notes), nil
}

func (r *releaser) build(ctx context.Context, tag string) (string, error) {
	if err := wait(ctx, r.step); err != nil {
		return "", err
	}
	r.built(tag)
	return "build-of-" + tag, nil
}

// copy tells after each machine how far it is.
func (r *releaser) copy(ctx context.Context) error {
	for i, machine := range r.machines {
		if err := wait(ctx, r.step); err != nil {
			return fmt.Errorf("copy to %s: %w", machine, err)
		}
		if err := server.Progress(ctx, float64(i+1), float64(len(r.machines)), "copied to "+machine); err != nil {
			return err
		}
	}
	return nil
}

// wait stands for work. Like all that takes long it ends with ctx, and says why.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func newServer(r *releaser) *server.Server {
	s := server.New("release", "1.0.0", &server.Options{ProgressEvery: 100 * time.Millisecond})
	s.Add(server.Tool("release", "Builds a program and copies it to all machines.", r.release).With(server.ToolOptions{
		Timeout: 5 * time.Minute,
	}))
	return s
}

func main() {
	r := &releaser{
		machines: []string{"alpha", "beta", "gamma"}, step: 300 * time.Millisecond,
		built: func(tag string) { log.Print("built ", tag) },
	}
	if err := stdio.Serve(context.Background(), newServer(r)); err != nil {
		log.Fatal(err)
	}
}
