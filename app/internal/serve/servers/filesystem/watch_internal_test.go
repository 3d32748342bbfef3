package filesystem

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Where the system does not watch, the log says why and the file is looked at each second.
func TestWatchingRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWatcher(slog.New(slog.NewTextHandler(&log, nil)))
		w.open = func() (*fsnotify.Watcher, error) { return nil, errors.New("too many watches") }
		var size, changes atomic.Int64
		state := func() fileState { return fileState{exists: true, size: size.Load()} }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.run(ctx, "/dir/file", state(), state, func() { changes.Add(1) })
		}()
		time.Sleep(10 * pollEvery)
		synctest.Wait()
		if n := changes.Load(); n != 0 {
			t.Errorf("%d changes of a file that is the same", n)
		}
		size.Store(2)
		time.Sleep(2 * pollEvery)
		synctest.Wait()
		if n := changes.Load(); n != 1 {
			t.Errorf("%d changes", n)
		}
		cancel()
		<-done
		if !strings.Contains(log.String(), "too many watches") {
			t.Errorf("the log: %s", &log)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}

// A directory that is removed ends its watches; the others go on.
func TestWatchedDirectoryRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"gone", "stays"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w := newWatcher(slog.New(slog.DiscardHandler))
	gone, err := w.add(filepath.Join(dir, "gone"), "x")
	if err != nil {
		t.Skipf("the system does not watch: %v", err)
	}
	stays, err := w.add(filepath.Join(dir, "stays"), "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	<-gone.lost
	if err := os.WriteFile(filepath.Join(dir, "stays", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-stays.changed
	if err := w.close(); err != nil {
		t.Error(err)
	}
	<-stays.lost
	if _, err := w.add(dir, "x"); !errors.Is(err, errClosed) {
		t.Errorf("after close: %v", err)
	}
}
