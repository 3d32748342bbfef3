package filesystem

import (
	"context"
	"io/fs"
	"runtime"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// maxNoted is the most files whose state is kept for a watch that has not begun.
const maxNoted = 10_000

// noteSubscriptions is middleware that keeps the state of files to which a client
// subscribes, as it is before the client is told of success: a change right after that is
// one that the client is told of, though the watch begins later.
func (s *service) noteSubscriptions(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		switch p := c.Params().(type) {
		case *mcp.SubscribeParams:
			s.note(c, p.URI)
		case *mcp.ListenParams:
			for _, uri := range p.Notifications.ResourceSubscriptions {
				s.note(c, uri)
			}
		}
		return next(c)
	}
}

func (s *service) note(ctx context.Context, uri string) {
	path, err := uriPath(uri, runtime.GOOS == "windows")
	if err != nil {
		return
	}
	d := s.dirs.acquire()
	defer s.dirs.release(d)
	if _, _, err := d.locate(ctx, path); err != nil {
		return // it will not be watched
	}
	state := d.state(ctx, path)
	s.notedMu.Lock()
	defer s.notedMu.Unlock()
	if s.noted == nil || len(s.noted) >= maxNoted {
		s.noted = make(map[string]fileState)
	}
	s.noted[uri] = state
}

// takeNote is the state that was kept of a file, if any.
func (s *service) takeNote(uri string) (state fileState, ok bool) {
	s.notedMu.Lock()
	defer s.notedMu.Unlock()
	state, ok = s.noted[uri]
	delete(s.noted, uri)
	return state, ok
}

// watchResource calls changed when a file changes, while a client is subscribed to it.
func (s *service) watchResource(ctx context.Context, uri string, changed func()) {
	path, err := uriPath(uri, runtime.GOOS == "windows")
	var p place
	if err == nil {
		p, err = s.look(ctx, path)
	}
	if err != nil {
		s.log.Warn("a resource cannot be watched", "uri", uri, "error", err)
		return
	}
	state := func() fileState {
		d := s.dirs.acquire()
		defer s.dirs.release(d)
		return d.state(context.WithoutCancel(ctx), path) // a watch that ends is no change
	}
	last, ok := s.takeNote(uri)
	if !ok {
		last = state()
	}
	s.watch.run(ctx, p.abs, last, state, changed)
}

// look finds the place of a file.
func (s *service) look(ctx context.Context, path string) (place, error) {
	d := s.dirs.acquire()
	defer s.dirs.release(d)
	p, _, err := d.locate(ctx, path)
	return p, err
}

// A fileState is what tells that a file changed.
type fileState struct {
	exists bool
	size   int64
	time   int64
	mode   fs.FileMode
}

func (d *directories) state(ctx context.Context, path string) fileState {
	p, exists, err := d.locate(ctx, path)
	if err != nil || !exists {
		return fileState{}
	}
	info, err := p.dir.root.Lstat(p.rel)
	if err != nil {
		return fileState{}
	}
	return fileState{true, info.Size(), info.ModTime().UnixNano(), info.Mode()}
}
