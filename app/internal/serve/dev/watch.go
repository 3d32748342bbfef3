package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Defaults of a Watcher.
const (
	defaultInterval = 500 * time.Millisecond
	defaultMaxFiles = 20_000
)

// A Watcher finds out that files have changed by looking at their size and time, again and again. That
// works on every system and file system, also on those of networks and containers, whose changes are
// told to nobody, and it needs one file descriptor at a time; what it costs is bounded by MaxFiles.
//
// Folders and files that begin with a dot are left out, and the folders node_modules, vendor and
// __pycache__. Links are not followed.
type Watcher struct {
	// Folders are what is looked at, with all that is below.
	Folders []string
	// Ignore are patterns (path.Match) of names, or of paths below the folder with slashes, of files
	// and folders that are left out. Default none.
	Ignore []string
	// Interval is how often files are looked at. A change counts once nothing has changed for as long.
	// Default 500 ms.
	Interval time.Duration
	// MaxFiles is how many files and folders are looked at. Default 20,000.
	MaxFiles int
	// Report is told, in a line, what is not looked at any more. Default: nobody is.
	Report func(text string)

	last    map[string]fileState
	own     map[string]int // how often in a row a file changed while the server was started
	ignored map[string]bool
}

// A fileState is the size, modification time and mode of a file.
type fileState struct {
	size, changed int64
	mode          fs.FileMode
}

// ErrTooMany is the error of folders with more files than Watcher.MaxFiles.
var ErrTooMany = errors.New("too many files to look at")

// Prepare looks at the files for the first time: what differs later has changed.
func (w *Watcher) Prepare() error {
	for _, pattern := range w.Ignore {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("the pattern %q: %w", pattern, err)
		}
	}
	for _, folder := range w.Folders {
		info, err := os.Stat(folder)
		if err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
		if err != nil {
			return fmt.Errorf("watching %s: %w", folder, err)
		}
	}
	w.own, w.ignored = make(map[string]int), make(map[string]bool)
	var err error
	w.last, err = w.look()
	return err
}

// mostWaits is how many intervals a change waits for the last of a series of changes.
const mostWaits = 20

// Run calls changed with the files that have changed since Prepare, or since changed was called last,
// until ctx ends. Many changes in a row are one. What changes while changed runs counts afterwards; a
// file that does so five times in a row is written by the server or by what builds it, and is left out
// from then on.
func (w *Watcher) Run(ctx context.Context, changed func(files []string)) error {
	interval := w.Interval
	if interval <= 0 {
		interval = defaultInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	pending, waits, started := map[string]bool{}, 0, true
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		files, err := w.differences()
		if err != nil {
			return err
		}
		if started {
			files, started = w.notOwn(files), false
		}
		for _, f := range files {
			pending[f] = true
		}
		if len(pending) == 0 {
			continue
		}
		if waits++; len(files) > 0 && waits < mostWaits {
			continue
		}
		changed(slices.Sorted(maps.Keys(pending)))
		pending, waits, started = map[string]bool{}, 0, true
	}
}

// differences are the files that differ from what they were, have come or are gone.
func (w *Watcher) differences() ([]string, error) {
	now, err := w.look()
	if err != nil {
		return nil, err
	}
	var files []string
	for name, s := range now {
		if was, ok := w.last[name]; !ok || was != s {
			files = append(files, name)
		}
	}
	for name := range w.last {
		if _, ok := now[name]; !ok {
			files = append(files, name)
		}
	}
	w.last = now
	return slices.DeleteFunc(files, func(f string) bool { return w.ignored[f] }), nil
}

// mostOwn is how often in a row a file changes while the server is started, until it is taken for one
// that the start writes. A person who saves again while the last change is built does so a few times.
const mostOwn = 5

// notOwn leaves out files that changed while the server was started, each of the last mostOwn times.
func (w *Watcher) notOwn(files []string) []string {
	own := make(map[string]int, len(files))
	files = slices.DeleteFunc(files, func(f string) bool {
		if own[f] = w.own[f] + 1; own[f] < mostOwn {
			return false
		}
		w.ignored[f] = true
		if w.Report != nil {
			w.Report(f + " changes each time that the server is started, and is not watched any more")
		}
		return true
	})
	w.own = own
	return files
}

// look looks at all files once.
func (w *Watcher) look() (map[string]fileState, error) {
	most := w.MaxFiles
	if most <= 0 {
		most = defaultMaxFiles
	}
	found, entries := make(map[string]fileState), 0
	for _, folder := range w.Folders {
		err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil: // it is gone in the meantime, or cannot be read
				return nil //nolint:nilerr // the next look may be able to
			case name == folder:
				return nil
			case entries == most:
				return fmt.Errorf("%w: more than %d below %s; name a smaller folder, or leave some out", ErrTooMany, most, folder)
			}
			entries++
			switch {
			case w.leavesOut(folder, name, d):
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			case !d.Type().IsRegular():
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil //nolint:nilerr // likewise
			}
			found[name] = fileState{info.Size(), info.ModTime().UnixNano(), info.Mode()}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

var leftOut = []string{"node_modules", "vendor", "__pycache__"}

func (w *Watcher) leavesOut(folder, name string, d fs.DirEntry) bool {
	if strings.HasPrefix(d.Name(), ".") || d.IsDir() && slices.Contains(leftOut, d.Name()) {
		return true
	}
	below, err := filepath.Rel(folder, name)
	if err != nil {
		return false
	}
	for _, pattern := range w.Ignore {
		for _, text := range []string{d.Name(), filepath.ToSlash(below)} {
			if ok, err := path.Match(pattern, text); err == nil && ok {
				return true
			}
		}
	}
	return false
}
