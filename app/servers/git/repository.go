package git

import (
	"context"
	"io"
	"time"

	"github.com/parley-mcp/parley/app/servers/git/gogit"
	"github.com/parley-mcp/parley/app/servers/git/program"
	"github.com/parley-mcp/parley/app/servers/git/repo"
	"github.com/parley-mcp/parley/server"
)

// A repository is open for one call. Texts are as git writes them, without the last line feed.
type repository interface {
	Status(ctx context.Context) (string, error)
	// Diff writes a diff of what; target is a revision for repo.DiffTarget.
	Diff(ctx context.Context, what repo.DiffKind, target string, lines int, out io.Writer) error
	// Commit makes a commit of what is staged and returns its name.
	Commit(ctx context.Context, message string, now time.Time) (string, error)
	Add(ctx context.Context, files []string) error
	Reset(ctx context.Context) error
	Log(ctx context.Context, q repo.LogQuery) ([]*repo.Commit, error)
	// CreateBranch returns the name of what the branch starts from; base may be "".
	CreateBranch(ctx context.Context, name, base string, now time.Time) (string, error)
	Checkout(ctx context.Context, rev string, now time.Time) error
	// Find returns the commit that a revision names, and Show writes what it changed, as a diff.
	Find(ctx context.Context, rev string) (*repo.Commit, error)
	Show(ctx context.Context, c *repo.Commit, out io.Writer) error
	Branches(ctx context.Context, q repo.BranchQuery) (string, error)
	// Refs lists branches and tags, for completion.
	Refs(ctx context.Context) ([]string, error)
	// Contents reads the file at a path of a commit, or nil and the names in the folder there.
	Contents(ctx context.Context, rev, path string) (content []byte, names []string, err error)
	Close() error
}

// open opens the repository at a path, which has to lie within what the call may touch.
func (g *gitServer) open(ctx context.Context, path string) (repository, error) {
	allowed, err := g.allowed(ctx)
	if err != nil {
		return nil, err
	}
	place, err := repo.Locate(path, allowed)
	if err != nil {
		return nil, err
	}
	if g.Program != "" {
		return program.Open(ctx, place, g.Program, g.Limits)
	}
	return gogit.Open(place, g.Limits, progress)
}

// progress tells the client what is going on. It is not known how much there is.
func progress(ctx context.Context, done int, what string) error {
	return server.Progress(ctx, float64(done), 0, what)
}
