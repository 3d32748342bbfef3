// Package git is a server for Git repositories: their state, their history, and commits and
// branches. It replaces the reference server of the same name and has the same tools.
//
// It reads and writes repositories itself and never starts a program, whatever a repository says: no
// git, hook, filter, pager, monitor or other command.
package git

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
	"github.com/parley-mcp/parley/server"
)

// Options are what is not required of the server. A nil *Options, and each zero field, means the
// default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default: the defaults of
	// package server.
	Server *server.Options
	// Repositories are folders: only repositories that lie within one of them are touched, and the one that a
	// folder is in (see Above). Default: the roots of the client, and if it has none any repository, for callers
	// on this machine alone.
	Repositories []string
	// Confirm has the user asked before staged changes are thrown away, by clients that can ask.
	// Default false.
	Confirm bool
	// ReadOnly leaves out the tools that change something. Default false.
	ReadOnly bool
	// WriteScope is a scope that callers must have been granted to use these tools. Default none.
	WriteScope string
	// Limits bound what one call may do.
	Limits gogit.Limits
	// Now is the clock, for commits and for times that are seen from now. Default time.Now.
	Now func() time.Time
}

const instructions = `Tools for Git repositories. Each takes repo_path, the folder of the repository. ` +
	`Hooks, filters and other commands that a repository names are never run.`

// A gitServer has what all calls share.
type gitServer struct {
	Options

	above  []string   // repositories that folders of Repositories are in
	writes sync.Mutex // one call at a time changes something
}

// New creates the server. It fails if one of the repositories cannot be used. It owns nothing that
// outlives its sessions.
func New(version string, o *Options) (*server.Server, error) {
	g := &gitServer{}
	if o != nil {
		g.Options = *o
	}
	g.Limits = g.Limits.Defaults()
	if g.Now == nil {
		g.Now = time.Now
	}
	for _, path := range g.Repositories {
		above, err := Above(path)
		if err != nil {
			return nil, err
		}
		if above != "" {
			g.above = append(g.above, above)
		}
	}
	s := server.New("mcp-git", version, servers.Options(g.Server, "Git", "Git repositories of this machine", instructions))
	s.Add(g.readingTools()...)
	if !g.ReadOnly {
		s.Add(g.writingTools()...)
	}
	if len(g.Repositories) == 1 {
		s.Add(g.files())
	}
	return s, nil
}

// Above returns the repository that a folder is a part of: the folder above it that is one and has files of
// it in its index. It returns "" if the folder is a repository itself or not in one, and if the repository
// belongs to another user.
func Above(dir string) (string, error) {
	real, err := gogit.RealPath(dir)
	if err != nil {
		return "", err
	}
	root := gogit.Root(real)
	if root == "" || root == real || gogit.Foreign(root) || !gogit.Tracks(root, real) {
		return "", nil
	}
	return root, nil
}

// progress reports progress to the client. The total is unknown. A call that opens a repository twice counts
// from 0 twice; progress below the last one is not reported.
func progress(ctx context.Context, done int, what string) error {
	err := server.Progress(ctx, float64(done), 0, what)
	if errors.Is(err, server.ErrNoProgress) {
		return nil
	}
	return err
}

// with opens the repository at a path, which must lie within what the call may touch, and closes it after f.
func (g *gitServer) with(ctx context.Context, path string, f func(*gogit.Repository) error) (err error) {
	allowed, err := g.allowed(ctx)
	if err != nil {
		return err
	}
	place, err := gogit.Locate(path, allowed, g.above)
	if err != nil {
		return err
	}
	r, err := gogit.Open(ctx, place, g.Limits, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return f(r)
}
