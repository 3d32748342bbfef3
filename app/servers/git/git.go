// Package git is a server for Git repositories: their state, their history, and commits and
// branches. It takes the place of the reference server of that name, with the same tools.
//
// By default it reads and writes repositories itself. Then it starts no program, whatever a
// repository says: no hook, filter, pager, monitor or other command. With Options.Program it uses
// git, with all of these switched off.
package git

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/servers"
	"github.com/parley-mcp/parley/server"
)

// Options are what is not required of the server. A nil *Options, and each zero field, means the
// default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default: the defaults of
	// package server.
	Server *server.Options
	// Repositories are folders: only repositories that lie within one of them are touched. Default:
	// the roots of the client, and if it has none any repository, for callers on this machine alone.
	Repositories []string
	// Program is the git program, a path or a name in PATH, which is used for everything. Default
	// none: repositories are read and written without it.
	Program string
	// Confirm has the person asked before staged changes are thrown away, by clients that can ask.
	// Default false.
	Confirm bool
	// ReadOnly leaves out the tools that change something. Default false.
	ReadOnly bool
	// WriteScope is a scope that callers must have been granted to use these tools. Default none.
	WriteScope string
	// Limits bound what one call may do.
	Limits Limits
	// Now is the clock, for commits and for times that are seen from now. Default time.Now.
	Now func() time.Time
}

// Limits bound what one call may do. Each zero field means the default that is told.
type Limits struct {
	// Output is the most bytes of a result; what is longer is cut, and the result says so. Default
	// 1 MiB.
	Output int
	// Files is the most files and folders that are looked at, in commits, the index and the working
	// tree together. Default 500,000.
	Files int
	// Commits is the most commits that are read. Default 500,000.
	Commits int
	// Object is the most bytes of a file whose contents are looked at. Default 64 MiB.
	Object int64
	// Time is the longest that the git program may run, for Options.Program. Default 1 minute.
	Time time.Duration
}

func (l Limits) defaults() Limits {
	l.Output = cmp.Or(l.Output, 1<<20)
	l.Files = cmp.Or(l.Files, 500_000)
	l.Commits = cmp.Or(l.Commits, 500_000)
	l.Object = cmp.Or(l.Object, 64<<20)
	l.Time = cmp.Or(l.Time, time.Minute)
	return l
}

const instructions = `Tools for Git repositories. Each takes repo_path, the folder of the repository. ` +
	`Hooks, filters and other commands that a repository names are never run.`

// A gitServer has what all calls share.
type gitServer struct {
	Options

	writes sync.Mutex // one call at a time changes something
}

// New makes the server. It fails if one of the repositories or the program cannot be used. It owns
// nothing that outlives its sessions.
func New(ctx context.Context, version string, o *Options) (*server.Server, error) {
	g := &gitServer{}
	if o != nil {
		g.Options = *o
	}
	g.Limits = g.Limits.defaults()
	if g.Now == nil {
		g.Now = time.Now
	}
	if g.Program != "" {
		if err := checkProgram(ctx, g.Program); err != nil {
			return nil, err
		}
	}
	for _, path := range g.Repositories {
		if _, err := realPath(path); err != nil {
			return nil, err
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

// with opens the repository of a call, and closes it after f.
func (g *gitServer) with(ctx context.Context, path string, f func(engine) error) (err error) {
	allowed, err := g.allowed(ctx)
	if err != nil {
		return err
	}
	p, err := locate(path, allowed)
	if err != nil {
		return err
	}
	var e engine
	if g.Program != "" {
		e, err = openProgram(ctx, p, g.Program, g.Limits)
	} else {
		e, err = openNative(p, g.Limits)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	return f(e)
}

// change is with for what changes a repository.
func (g *gitServer) change(ctx context.Context, path string, f func(engine) error) error {
	return g.with(ctx, path, func(e engine) error {
		g.writes.Lock()
		defer g.writes.Unlock()
		if err := context.Cause(ctx); err != nil { // it waited for too long
			return err
		}
		return f(e)
	})
}
