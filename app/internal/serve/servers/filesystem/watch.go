package filesystem

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pollEvery is how often a file is looked at that the system does not watch.
const pollEvery = time.Second

// watcher has the system tell of changes in directories, for all files that clients are
// subscribed to. It is opened with the first and closed with the last, since systems
// allow only so many.
type watcher struct {
	log  *slog.Logger
	open func() (*fsnotify.Watcher, error)

	mu     sync.Mutex
	closed bool
	system *fsnotify.Watcher              // nil while nothing is watched
	done   chan struct{}                  // closed when the goroutine that reads from system has ended
	files  map[string]map[*watch]struct{} // by directory
}

// A watch is one file that is watched.
type watch struct {
	name    string        // in its directory
	changed chan struct{} // something happened to it; holds one
	lost    chan struct{} // closed when the system watches it no longer
}

func newWatcher(log *slog.Logger) *watcher {
	return &watcher{log: log, open: fsnotify.NewWatcher, files: map[string]map[*watch]struct{}{}}
}

// errClosed is the refusal to watch after close.
var errClosed = errors.New("the server is shutting down")

// run calls changed whenever the state of a file is another one than last, until ctx ends. Where the
// system cannot watch the file, the log says why and the file is looked at each second.
func (w *watcher) run(ctx context.Context, path string, last fileState, state func() fileState, changed func()) {
	check := func() {
		if now := state(); now != last {
			last = now
			changed()
		}
	}
	dir := filepath.Dir(path)
	f, err := w.add(dir, filepath.Base(path))
	if err == nil {
		check() // what happened before the system watched
		err = f.follow(ctx, check)
		w.remove(dir, f)
	}
	if ctx.Err() != nil || errors.Is(err, errClosed) {
		return
	}
	w.log.Warn("the system does not watch a file; it is looked at each second", "directory", dir, "error", err)
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			check()
		}
	}
}

// errLost is the end of watching a directory that is gone.
var errLost = errors.New("its directory was moved or removed")

// follow calls check after each change, until ctx ends or nothing more is told.
func (f *watch) follow(ctx context.Context, check func()) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.lost:
			check()
			return errLost
		case <-f.changed:
			check()
		}
	}
}

// add has a file watched. Its directory is what the system watches, because files are
// replaced by others of their name.
func (w *watcher) add(dir, name string) (*watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}
	if w.system == nil {
		system, err := w.open()
		if err != nil {
			return nil, err
		}
		w.system, w.done = system, make(chan struct{})
		go w.dispatch(system, w.done)
	}
	if w.files[dir] == nil {
		if err := w.system.Add(dir); err != nil {
			return nil, errors.Join(err, w.rest())
		}
		w.files[dir] = map[*watch]struct{}{}
	}
	f := &watch{name: name, changed: make(chan struct{}, 1), lost: make(chan struct{})}
	w.files[dir][f] = struct{}{}
	return f, nil
}

// remove ends the watching of a file.
func (w *watcher) remove(dir string, f *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.files[dir][f]; !ok {
		return // its directory was lost
	}
	delete(w.files[dir], f)
	if len(w.files[dir]) == 0 {
		delete(w.files, dir)
		if w.system != nil {
			_ = w.system.Remove(dir) // it may be gone
		}
	}
	_ = w.rest() // nothing more can be done
}

// rest closes what nothing is watched with.
func (w *watcher) rest() error {
	if len(w.files) > 0 || w.system == nil {
		return nil
	}
	system := w.system
	w.system = nil
	return system.Close()
}

// close ends all watching and waits for the goroutine.
func (w *watcher) close() error {
	w.mu.Lock()
	w.closed = true
	for dir := range w.files {
		w.lose(dir)
	}
	err := w.rest()
	done := w.done
	w.mu.Unlock()
	if done != nil {
		<-done
	}
	return err
}

// dispatch hands on what the system tells, until it is closed.
func (w *watcher) dispatch(system *fsnotify.Watcher, done chan struct{}) {
	defer close(done)
	for {
		select {
		case e, ok := <-system.Events:
			if !ok {
				return
			}
			w.event(system, e)
		case err, ok := <-system.Errors:
			if !ok {
				return
			}
			w.log.Warn("events of watched files may be lost", "error", err)
			w.all(system)
		}
	}
}

// event tells the watches of one file, and those of a directory that is gone.
func (w *watcher) event(system *fsnotify.Watcher, e fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if system != w.system {
		return
	}
	for f := range w.files[filepath.Dir(e.Name)] {
		if f.name == filepath.Base(e.Name) {
			f.tell()
		}
	}
	if _, watched := w.files[e.Name]; watched && e.Op&(fsnotify.Remove|fsnotify.Rename) != 0 {
		_ = system.Remove(e.Name) // it may be gone
		w.lose(e.Name)
	}
}

// all tells all watches: some event was lost, and nobody knows which.
func (w *watcher) all(system *fsnotify.Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if system != w.system {
		return
	}
	for _, files := range w.files {
		for f := range files {
			f.tell()
		}
	}
}

// lose ends the watches of a directory.
func (w *watcher) lose(dir string) {
	for f := range w.files[dir] {
		close(f.lost)
	}
	delete(w.files, dir)
}

func (f *watch) tell() {
	select {
	case f.changed <- struct{}{}:
	default: // the one before was not looked at yet
	}
}
