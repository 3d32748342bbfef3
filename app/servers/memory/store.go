package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/app/safefile"
	"github.com/parley-mcp/parley/mcp"
)

// A store is the graph in its file. A change reads the file if another process has changed it, and
// replaces it as a whole, under a lock that processes share. Changes that come while another is made
// are then made together: the file is replaced once for all of them. It may be used by many goroutines.
type store struct {
	path    string // with no link
	o       *Options
	changed func() // tells subscribers

	busy  chan struct{} // holds a value while a goroutine uses what follows
	graph *graph        // nil: not read yet
	stamp fs.FileInfo   // the file as graph was read from, or written to it; nil: there was none

	waitingMu sync.Mutex
	waiting   []*pending // in the order in which they came

	written atomic.Pointer[fs.FileInfo] // the file as the last change of this process left it
}

// newStore prepares the file at path. It must not be a folder, and its folder must exist.
func newStore(path string, o *Options) (*store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // replacing a link would leave the file that it leads to as it was
	}
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file; name the file that the memory is kept in", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the folder of %s does not exist; make it, or name another file", path)
	}
	return &store{path: path, o: o, changed: func() {}, busy: make(chan struct{}, 1)}, nil
}

// view calls see with the graph as it is in the file. see must not change or keep it.
func (s *store) view(ctx context.Context, see func(g *graph) error) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer func() { <-s.busy }()
	if current, err := s.current(); err != nil {
		return err
	} else if !current {
		unlock, err := s.lock(ctx)
		switch {
		case err == nil:
			defer unlock()
		case !errors.Is(err, errNoLock) || s.o.SetAside:
			return err
		}
		// Without a lock, as in a folder that may not be written to, the file is the one or the
		// other all the same: it is replaced as a whole.
		if err := s.load(err == nil); err != nil {
			return err
		}
	}
	return see(s.graph)
}

// A pending change waits for the goroutine that makes changes.
type pending struct {
	do   func(g *graph) (changed bool, err error)
	err  error
	done chan struct{} // closed when err is set
}

// change calls do with the graph as it is in the file, and writes the file if do reports a change. After
// an error of do nothing has changed: do must return it before it changes the graph. do may be called
// again if what it did could not be written together with other changes.
func (s *store) change(ctx context.Context, do func(g *graph) (changed bool, err error)) error {
	c := &pending{do: do, done: make(chan struct{})}
	s.waitingMu.Lock()
	s.waiting = append(s.waiting, c)
	s.waitingMu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		if s.withdraw(c) {
			return context.Cause(ctx)
		}
	case s.busy <- struct{}{}:
		s.makeWaiting(ctx, c)
	}
	<-c.done
	return c.err
}

// withdraw reports whether c was still waiting. It is not made then.
func (s *store) withdraw(c *pending) bool {
	s.waitingMu.Lock()
	defer s.waitingMu.Unlock()
	at := slices.Index(s.waiting, c)
	if at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
	return at >= 0
}

// makeWaiting makes the changes that wait, of which own is the caller's, unless it was made already, and
// releases what acquire takes.
func (s *store) makeWaiting(ctx context.Context, own *pending) {
	defer func() { <-s.busy }()
	s.waitingMu.Lock()
	all := s.waiting
	s.waiting = nil
	s.waitingMu.Unlock()
	unlock, err := s.lock(ctx)
	if err != nil && ctx.Err() != nil && slices.Contains(all, own) {
		// Only this call was cancelled: one of the other callers makes the other changes.
		s.waitingMu.Lock()
		s.waiting = append(slices.DeleteFunc(all, func(c *pending) bool { return c == own }), s.waiting...)
		s.waitingMu.Unlock()
		all = []*pending{own}
	}
	if err == nil {
		defer unlock()
		if err = s.make(all); err != nil && len(all) > 1 {
			for _, c := range all { // one of them may be what cannot be written
				if err := s.make([]*pending{c}); err != nil {
					c.err = err
				}
			}
			err = nil
		}
	}
	for _, c := range all {
		if err != nil {
			c.err = err
		}
		close(c.done)
	}
}

// make makes changes, under the lock, and writes them. An error is that of all of them, and none was
// made then; errors of their functions are in them.
func (s *store) make(changes []*pending) error {
	if current, err := s.current(); err != nil {
		return err
	} else if !current {
		if err := s.load(true); err != nil {
			return err
		}
	}
	changed := false
	for _, c := range changes {
		did, err := c.do(s.graph)
		changed, c.err = changed || did && err == nil, err
	}
	if !changed {
		return nil
	}
	if err := s.save(); err != nil {
		s.graph = nil // it has what the file has not
		return err
	}
	stamp := s.stamp
	s.written.Store(&stamp)
	s.changed()
	return nil
}

func (s *store) acquire(ctx context.Context) error {
	select {
	case s.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errNoLock says that there can be no lock, not that another process has it.
var errNoLock = errors.New("cannot be taken")

// lock takes the lock that processes share.
func (s *store) lock(ctx context.Context) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, s.o.LockWait)
	defer cancel()
	unlock, err = safefile.Lock(wait, s.path+".lock")
	switch {
	case err == nil || ctx.Err() != nil:
		return unlock, err
	case errors.Is(err, context.DeadlineExceeded):
		return nil, mcp.Errorf("another process has been using %s for more than %v; nothing was changed, try again", s.path, s.o.LockWait)
	}
	return nil, mcp.Errorf("the lock of %s %w, so nothing was changed: %w", s.path, errNoLock, err)
}

// current reports whether the graph is what the file has.
func (s *store) current() (bool, error) {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.graph != nil && s.stamp == nil, nil
	case err != nil:
		return false, mcp.Errorf("the memory cannot be read: %w", err)
	case !info.Mode().IsRegular(): // opening a pipe could wait for ever
		return false, mcp.Errorf("%s is not a file any more; nothing was read or changed, a person must look at it", s.path)
	}
	return s.graph != nil && s.stamp != nil && same(s.stamp, info), nil
}

// same reports whether a file has not been changed or replaced between two looks at it.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// load reads the file, under the lock if it is locked.
func (s *store) load(locked bool) (err error) {
	s.graph, s.stamp = nil, nil
	if locked {
		_ = safefile.RemoveTemporary(s.path) // they take room, and harm nothing
	}
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.graph = newGraph()
		return nil
	}
	if err != nil {
		return mcp.Errorf("the memory cannot be read: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return mcp.Errorf("the memory cannot be read: %w", err)
	}
	if info.Size() > int64(s.o.MaxFile) {
		return mcp.Errorf("%s has %d bytes, and at most %d are read; a person can allow more with --max-file, or take something out of it", s.path, info.Size(), s.o.MaxFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(s.o.MaxFile)+1))
	if err != nil {
		return mcp.Errorf("the memory cannot be read: %w", err)
	}
	g, bad := parse(data)
	if len(bad) > 0 {
		return s.loadBad(g, bad)
	}
	s.graph, s.stamp = g, info
	return nil
}

// loadBad decides about a file with lines that cannot be read.
func (s *store) loadBad(g *graph, bad []badLine) error {
	if !s.o.SetAside {
		more := ""
		if len(bad) > 1 {
			more = fmt.Sprintf(" (and %d more lines)", len(bad)-1)
		}
		return mcp.Errorf("%s cannot be read, and was left as it is: %w%s. A person must repair it, or start the server with --set-aside, which moves such lines to %s", s.path, &bad[0], more, s.rejected())
	}
	var lines bytes.Buffer
	for _, b := range bad {
		lines.Write(b.text)
		lines.WriteByte('\n')
	}
	f, err := os.OpenFile(s.rejected(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.Write(lines.Bytes())
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return mcp.Errorf("the lines that cannot be read cannot be set aside, so nothing was changed: %w", err)
	}
	s.graph = g
	if err := s.save(); err != nil {
		s.graph = nil
		return err
	}
	if s.o.Server != nil && s.o.Server.Logger != nil {
		s.o.Server.Logger.Warn("lines that cannot be read were moved", "from", s.path, "to", s.rejected(), "lines", len(bad))
	}
	return nil
}

func (s *store) rejected() string { return s.path + ".rejected" }

// save writes the graph, under the lock.
func (s *store) save() error {
	data, err := s.graph.encode()
	if err != nil {
		return err
	}
	if len(data) > s.o.MaxFile {
		return mcp.Errorf("the memory would have %d bytes, and at most %d are allowed; nothing was changed. Delete what is not needed any more, or have a person allow more with --max-file", len(data), s.o.MaxFile)
	}
	mode := fs.FileMode(0o600)
	if s.stamp != nil {
		mode = s.stamp.Mode().Perm()
	}
	if err := safefile.Replace(s.path, data, mode); err != nil {
		return mcp.Errorf("the memory cannot be written, and is as it was: %w", err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return mcp.Errorf("the memory cannot be read: %w", err)
	}
	s.stamp = info
	return nil
}

// watch calls changed when another process has changed the file, until ctx ends; what this process
// changes is told by the change itself.
func (s *store) watch(ctx context.Context, changed func()) {
	tick := time.NewTicker(s.o.Poll)
	defer tick.Stop()
	var last fs.FileInfo
	for first := true; ; first = false {
		info, err := os.Stat(s.path)
		if err != nil {
			info = nil
		}
		differs := (info == nil) != (last == nil) || info != nil && last != nil && !same(info, last)
		own := s.written.Load()
		if differs && !first && (own == nil || info == nil || !same(*own, info)) {
			changed()
		}
		last = info
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
