package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
)

// dirSet is the set of directories that may be used now: those of the command line, or else the roots of
// the client; calls under way keep the set that they began with.
type dirSet struct {
	mu      sync.Mutex
	current *directories
	known   bool     // the roots of the client are in current
	uris    []string // these roots
	failed  []string // those of them that could not be opened
	changes int      // how often the client has said that its roots changed

	adopting sync.Mutex // held while roots become directories
}

// acquire returns the set for one call, which releases it at its end.
func (s *dirSet) acquire() *directories {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.uses++
	return s.current
}

func (s *dirSet) release(d *directories) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.uses--; d.uses == 0 {
		_ = closeAll(d.list) // they were only looked at
	}
}

// replace makes list the set. The one before is closed when nobody uses it.
func (s *dirSet) replace(d *directories) {
	s.mu.Lock()
	old := s.current
	d.uses = 1
	s.current = d
	s.mu.Unlock()
	if old != nil {
		s.release(old)
	}
}

func (s *dirSet) close() error {
	s.mu.Lock()
	d := s.current
	s.mu.Unlock()
	s.replace(&directories{maxPath: d.maxPath})
	return nil
}

// forgetRoots has the client asked again.
func (s *dirSet) forgetRoots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
	s.changes++
}

// state reports whether the roots of the client are in use, and how often they have changed.
func (s *dirSet) state() (known bool, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.changes
}

// roots are those that the client told last, and those of them that could not be opened.
func (s *dirSet) roots() (uris, failed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uris, s.failed
}

// note remembers the roots that the client told, and those of them that could not be opened.
func (s *dirSet) note(uris, failed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uris, s.failed = uris, failed
}

// know notes that the roots of the client are in use, unless they have changed since.
func (s *dirSet) know(changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = s.changes == changes
}

func closeAll(list []*directory) error {
	var err error
	for _, dir := range list {
		err = errors.Join(err, dir.root.Close())
	}
	return err
}

// openGiven opens the directories of the command line.
func (s *service) openGiven(paths []string) (*directories, error) {
	d := &directories{maxPath: s.opts.MaxPath, maxVisited: s.opts.MaxVisited}
	for _, path := range paths {
		dir, err := openDirectory(path)
		if err != nil {
			s.log.Warn("a directory cannot be used and is left out", "directory", path, "error", err)
			continue
		}
		d.list = append(d.list, dir)
	}
	if len(d.list) == 0 && len(paths) > 0 {
		return nil, fmt.Errorf("none of the directories %s can be opened", strings.Join(paths, ", "))
	}
	return d, nil
}

// openDirectory opens a directory of the command line, or a root of a client, which is a file URI or,
// as some clients send it, a path.
func openDirectory(text string) (*directory, error) {
	path, err := localPath(text, runtime.GOOS == "windows")
	if err != nil {
		return nil, err
	}
	name, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" {
		if _, in := within("/proc", real); in {
			return nil, errors.New("what is below /proc are no files, but the kernel's view of processes")
		}
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("it is not a directory")
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &directory{name: name, real: real, root: root}, nil
}

// errNoDirectory is the refusal of everything while there is no directory.
var errNoDirectory = mcp.Errorf("no directory may be used: start the server with directories, or use a client that has roots")

// maxRoots is the most roots of a client that are used. Each is an open file.
const maxRoots = 100

// directories are those that the call of ctx may use; the caller releases them. If the command line names
// none, they are the roots of the client at the other end of a pipe: in revisions with a handshake it is
// asked before the first call and when it says that they changed, else inside of each call. Roots name
// directories of the client's machine, so a client over HTTP is not asked.
func (s *service) directories(ctx context.Context) (*directories, error) {
	if server.Caller(ctx) == principal.Local && server.CanRoots(ctx) {
		if s.given {
			s.sayGiven()
		} else if err := s.askRoots(ctx); err != nil {
			return nil, err
		}
	}
	d := s.dirs.acquire()
	if len(d.list) == 0 {
		s.dirs.release(d)
		return nil, errNoDirectory
	}
	return d, nil
}

// maxAsked is how often a call asks for the roots if they change while it asks.
const maxAsked = 10

// askRoots asks the client for its roots where it has to be asked. An answer that was on its
// way when the client said that they changed does not count: it may be the old one.
func (s *service) askRoots(ctx context.Context) error {
	for i := range maxAsked {
		known, changes := s.dirs.state()
		if known && server.CallFrom(ctx).Handshake() {
			s.tryAgain()
			return nil
		}
		roots, err := server.Roots(ctx, &server.AskOptions{Key: fmt.Sprintf("roots-%d", i)})
		switch {
		case errors.Is(err, server.ErrAskFailed):
			s.log.Warn("the client did not tell its roots", "error", err)
			return s.withoutRoots(ctx, changes)
		case err != nil:
			return err
		case s.adopt(roots, changes):
			return nil
		}
	}
	return mcp.Errorf("the roots of the client change all the time; try again")
}

// withoutRoots is for a call whose question about the roots failed: the client may have taken back those
// that it told before. If it is asked inside of each call, only this one has none; else all have none until
// it tells them, unless another call learned them meanwhile. changes is as for adopt.
func (s *service) withoutRoots(ctx context.Context, changes int) error {
	if !server.CallFrom(ctx).Handshake() {
		return errNoDirectory
	}
	s.dirs.adopting.Lock()
	defer s.dirs.adopting.Unlock()
	if known, now := s.dirs.state(); !known && now == changes {
		s.useRoots(nil)
	}
	return nil
}

// adopt makes the roots of a client the directories. It
// reports whether these are its roots still: changes is how often they had changed before
// the client was asked.
func (s *service) adopt(roots []mcp.Root, changes int) bool {
	s.dirs.adopting.Lock()
	defer s.dirs.adopting.Unlock()
	if _, now := s.dirs.state(); now != changes {
		return false
	}
	if len(roots) > maxRoots {
		s.log.Warn("the client has more roots than are used; the others are left out", "roots", len(roots), "used", maxRoots)
		roots = roots[:maxRoots]
	}
	uris := make([]string, 0, len(roots))
	for _, r := range roots {
		uris = append(uris, r.URI)
	}
	s.useRoots(uris)
	s.dirs.know(changes)
	return true
}

// tryAgain opens roots that could not be opened before, such as directories that were made since.
func (s *service) tryAgain() {
	s.dirs.adopting.Lock()
	defer s.dirs.adopting.Unlock()
	uris, _ := s.dirs.roots()
	s.useRoots(uris)
}

// useRoots makes roots the directories, unless that changes nothing.
func (s *service) useRoots(uris []string) {
	last, failed := s.dirs.roots()
	fresh := !slices.Equal(last, uris)
	if !fresh && !slices.ContainsFunc(failed, canOpen) {
		return
	}
	d := &directories{maxPath: s.opts.MaxPath, maxVisited: s.opts.MaxVisited}
	failed = nil
	for _, uri := range uris {
		dir, err := openDirectory(uri)
		if err != nil {
			failed = append(failed, uri)
			if fresh {
				s.log.Warn("a root of the client cannot be used and is left out", "root", uri, "error", err)
			}
			continue
		}
		dir.name = dir.real
		d.list = append(d.list, dir)
	}
	s.dirs.note(uris, failed)
	s.log.Info("the roots of the client are the directories now", "directories", d.names(", "))
	s.dirs.replace(d)
	s.server.ResourcesChanged()
}

func canOpen(uri string) bool {
	dir, err := openDirectory(uri)
	if err == nil {
		_ = dir.root.Close() // it was only looked at
	}
	return err == nil
}
