package memory

import (
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

	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/app/internal/serve/servers"
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
func (s *store) view(ctx context.Context, see func(steps *servers.Steps, g *graph) error) error {
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
		if err := s.load(ctx, err == nil); err != nil {
			return err
		}
	}
	return see(servers.NewSteps(ctx), s.graph)
}

// A doing is a change of the graph. It reports whether it changed the graph. After an error it must not
// have changed it, unless the error is that of steps, whose call was cancelled.
type doing func(steps *servers.Steps, g *graph) (changed bool, err error)

// A pending change waits for the goroutine that makes changes.
type pending struct {
	ctx  context.Context //nolint:containedctx // of the call that waits
	do   doing
	err  error
	done chan struct{} // closed when err is set
}

// change calls do with the graph as it is in the file, and writes the file if do reports a change. do may be
// called again if its change could not be written together with other changes.
func (s *store) change(ctx context.Context, do doing) error {
	c := &pending{ctx: ctx, do: do, done: make(chan struct{})}
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
	left, err := s.makeAll(ctx, all)
	for _, c := range all[:len(all)-len(left)] {
		close(c.done)
	}
	// If this call was cancelled, one of the other callers makes the other changes. A caller that was cancelled
	// too only waits for its change to be done: withdraw did not find it.
	s.waitingMu.Lock()
	defer s.waitingMu.Unlock()
	var others []*pending
	for _, c := range left {
		switch {
		case ctx.Err() == nil || c == own:
			c.err = err
		case c.ctx.Err() != nil:
			c.err = context.Cause(c.ctx)
		default:
			others = append(others, c)
			continue
		}
		close(c.done)
	}
	s.waiting = append(others, s.waiting...)
}

// makeAll makes changes under the lock, and sets their errors. left are the last of them: those that were not
// made because of err.
func (s *store) makeAll(ctx context.Context, changes []*pending) (left []*pending, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return changes, err
	}
	defer unlock()
	err = s.make(ctx, changes)
	if err == nil {
		return nil, nil
	}
	if len(changes) == 1 || ctx.Err() != nil {
		return changes, err
	}
	for i := range changes { // one of them may be the one that cannot be written
		err := s.make(ctx, changes[i:i+1])
		if err != nil && ctx.Err() != nil {
			return changes[i:], err
		}
		if err != nil {
			changes[i].err = err
		}
	}
	return nil, nil
}

// errOverwritten says that another program has written the file since it was read.
var errOverwritten = mcp.Errorf("another program keeps writing the file of the memory; nothing was changed, try again")

// make makes changes, under the lock, and writes them. If it returns an error, none was made. Errors of
// their functions are in them. Programs that do not know the lock can write the file meanwhile: then
// make reads it again.
func (s *store) make(ctx context.Context, changes []*pending) (err error) {
	for range maxReads {
		if err = s.makeOnce(ctx, changes); !errors.Is(err, errOverwritten) {
			return err
		}
	}
	return err
}

func (s *store) makeOnce(ctx context.Context, changes []*pending) error {
	if current, err := s.current(); err != nil {
		return err
	} else if !current {
		if err := s.load(ctx, true); err != nil {
			return err
		}
	}
	var changed []*pending
	for i, c := range changes {
		did, err := c.do(servers.NewSteps(c.ctx), s.graph)
		if err != nil && c.ctx.Err() != nil {
			s.graph, c.err = nil, err // a part of the change may be in the graph
			return s.makeOnce(ctx, slices.Delete(slices.Clone(changes), i, i+1))
		}
		if did && err == nil {
			changed = append(changed, c)
		}
		c.err = err
	}
	if len(changed) == 0 {
		return nil
	}
	err := s.save(ctx)
	if err != nil && !errors.Is(err, safefile.ErrFolder) {
		s.graph = nil // it has what the file has not
		return err
	}
	for _, c := range changed {
		c.err = err
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
func (s *store) load(ctx context.Context, locked bool) (err error) {
	s.graph, s.stamp = nil, nil
	if locked {
		_ = safefile.RemoveTemporary(s.path) // they take room, and harm nothing
	}
	steps := servers.NewSteps(ctx)
	data, info, err := s.readFile(steps)
	if errors.Is(err, fs.ErrNotExist) {
		s.graph = newGraph()
		return nil
	}
	if err != nil {
		return err
	}
	g, err := parse(steps, data)
	if err != nil {
		return err
	}
	switch {
	case len(g.bad) == 0:
	case s.o.SetAside:
		s.stamp = info
		return s.setAside(context.WithoutCancel(ctx), g) // what was moved must not stay
	case len(g.nodes)+len(g.edges) == 0:
		return mcp.Errorf("%s cannot be read, and was left as it is: no line of it is a record of a memory (%w). A person must repair it or name another file, or start the server with --set-aside, which moves such lines to %s", s.path, &g.bad[0], s.rejected())
	default:
		s.warn("lines that cannot be read are kept in the file and left out", "file", s.path, "lines", len(g.bad), "first", g.bad[0].Error())
	}
	s.graph, s.stamp = g, info
	return nil
}

// readPart is the most that is read of the file between two polls.
const readPart = 1 << 20

// maxReads is how often a file that another program is writing is read.
const maxReads = 3

// readFile reads the file as it is between two changes of other programs, as far as its size and time
// show them.
func (s *store) readFile(steps *servers.Steps) (data []byte, info fs.FileInfo, err error) {
	for range maxReads {
		if data, info, err = s.readOnce(steps); !errors.Is(err, errOverwritten) {
			break
		}
	}
	return data, info, err
}

func (s *store) readOnce(steps *servers.Steps) (data []byte, info fs.FileInfo, err error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, mcp.Errorf("the memory cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return nil, nil, mcp.Errorf("the memory cannot be read: %w", err)
	}
	if info.Size() > int64(s.o.MaxFile) {
		return nil, nil, mcp.Errorf("%s has %d bytes, and at most %d are read; a person can allow more with --max-file, or take something out of it", s.path, info.Size(), s.o.MaxFile)
	}
	data = make([]byte, info.Size()+1) // one more, to see that it grew
	read := 0
	for err == nil && read < len(data) {
		if err := steps.Add(servers.CostPerPoll); err != nil {
			return nil, nil, err
		}
		var n int
		n, err = f.Read(data[read:min(len(data), read+readPart)])
		read += n
	}
	if data = data[:read]; err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, mcp.Errorf("the memory cannot be read: %w", err)
	}
	if after, err := os.Stat(s.path); err != nil || !same(info, after) || int64(len(data)) != info.Size() {
		return nil, nil, errOverwritten
	}
	return data, info, nil
}

func (s *store) warn(message string, args ...any) {
	if s.o.Server != nil && s.o.Server.Logger != nil {
		s.o.Server.Logger.Warn(message, args...)
	}
}

// setAside moves lines that cannot be read to a file next to the memory, under the lock.
func (s *store) setAside(ctx context.Context, g *graph) error {
	lines := []byte{'\n'} // the last line of the file may have been cut off
	for _, b := range g.bad {
		lines = append(append(lines, b.text...), '\n')
	}
	f, err := os.OpenFile(s.rejected(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		if info, err := f.Stat(); err == nil && info.Size() == 0 {
			lines = lines[1:]
		}
		_, err = f.Write(lines)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return mcp.Errorf("the lines that cannot be read cannot be set aside, so nothing was changed: %w", err)
	}
	count := len(g.bad)
	s.graph, g.bad = g, nil
	if err := s.save(ctx); err != nil && !errors.Is(err, safefile.ErrFolder) {
		s.graph = nil
		return err
	}
	s.warn("lines that cannot be read were moved", "from", s.path, "to", s.rejected(), "lines", count)
	return nil
}

func (s *store) rejected() string { return s.path + ".rejected" }

// save writes the graph, under the lock. The file is written in spite of a safefile.ErrFolder.
func (s *store) save(ctx context.Context) error {
	var size int64
	if s.stamp != nil {
		size = s.stamp.Size()
	}
	data, err := s.graph.encode(servers.NewSteps(ctx), int(size))
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
	switch info, err := os.Stat(s.path); {
	case err == nil && (s.stamp == nil || !same(s.stamp, info)), errors.Is(err, fs.ErrNotExist) && s.stamp != nil:
		return errOverwritten
	}
	replaced := safefile.ReplaceIf(s.path, data, mode, func() error { return servers.Ended(ctx) })
	if replaced != nil && ctx.Err() != nil && !errors.Is(replaced, safefile.ErrFolder) {
		return context.Cause(ctx)
	}
	if replaced != nil && !errors.Is(replaced, safefile.ErrFolder) {
		return mcp.Errorf("the memory cannot be written, and is as it was: %w", replaced)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return mcp.Errorf("the memory cannot be read: %w", err)
	}
	s.stamp = info
	if replaced != nil {
		return mcp.Errorf("the memory is changed, but a failure of the machine can undo that: %w", replaced)
	}
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
