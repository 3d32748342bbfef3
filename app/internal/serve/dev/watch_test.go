package dev_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/dev"
)

// A folder is a folder of a test that is watched.
type folder struct {
	t    *testing.T
	path string
	size atomic.Int64
}

// write changes a file: each time it is longer, since times of files may be coarse.
func (f *folder) write(names ...string) {
	f.t.Helper()
	for _, name := range names {
		size := int(f.size.Add(1))
		path := filepath.Join(f.path, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *folder) remove(name string) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.path, filepath.FromSlash(name))); err != nil {
		f.t.Fatal(err)
	}
}

// watched runs a test with a watcher that runs, in the time of the test. While the function that it
// calls runs, during is called, if it is not nil.
func watched(t *testing.T, w *dev.Watcher, during func(f *folder), body func(f *folder, changes chan []string)) {
	t.Helper()
	f := &folder{t: t, path: t.TempDir()}
	f.write("main.go", "sub/b.go")
	w.Folders = []string{f.path}
	if err := w.Prepare(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f.t = t
		ctx, cancel := context.WithCancel(t.Context())
		changes, done := make(chan []string, 100), make(chan error, 1)
		go func() {
			done <- w.Run(ctx, func(files []string) {
				for i := range files {
					files[i], _ = filepath.Rel(f.path, files[i])
				}
				if during != nil {
					during(f)
				}
				changes <- files
			})
		}()
		body(f, changes)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the end: %v", err)
		}
	})
}

// quiet checks that nothing is told for a while.
func quiet(t *testing.T, changes chan []string) {
	t.Helper()
	select {
	case files := <-changes:
		t.Errorf("told of %q", files)
	case <-time.After(time.Minute):
	}
}

func TestWatcherTellsOfChanges(t *testing.T) {
	watched(t, &dev.Watcher{}, nil, func(f *folder, changes chan []string) {
		quiet(f.t, changes)
		for _, step := range []struct {
			do   func()
			want []string
		}{
			{func() { f.write("main.go") }, []string{"main.go"}},
			{func() { f.write("sub/new.go") }, []string{"sub/new.go"}},
			{func() { f.remove("sub/b.go") }, []string{"sub/b.go"}},
			{func() { f.write("a.go", "main.go"); f.remove("sub/new.go") }, []string{"a.go", "main.go", "sub/new.go"}},
		} {
			step.do()
			if diff := cmp.Diff(step.want, <-changes); diff != "" {
				f.t.Error(diff)
			}
			quiet(f.t, changes)
		}
	})
}

// Ten quick edits are one change; edits without an end are not waited for for ever.
func TestWatcherCollects(t *testing.T) {
	watched(t, &dev.Watcher{Interval: time.Second}, nil, func(f *folder, changes chan []string) {
		start := time.Now()
		for range 10 {
			f.write("main.go")
			time.Sleep(300 * time.Millisecond) // of the test's own clock
		}
		if got := <-changes; !slices.Equal(got, []string{"main.go"}) {
			f.t.Errorf("%q", got)
		}
		if took := time.Since(start); took > 6*time.Second {
			f.t.Errorf("it took %v", took)
		}
		quiet(f.t, changes)

		for len(changes) == 0 {
			f.write("main.go")
			time.Sleep(700 * time.Millisecond)
		}
		<-changes
	})
}

func TestWatcherLeavesOut(t *testing.T) {
	watched(t, &dev.Watcher{Ignore: []string{"*.log", "build", "sub/gen/*.go"}}, nil, func(f *folder, changes chan []string) {
		f.write(".git/index", ".env", "node_modules/x/index.js", "sub/vendor/y.go", "__pycache__/z.pyc", "sub/a.log", "build/out", "sub/gen/a.go")
		if err := os.Symlink("main.go", filepath.Join(f.path, "link.go")); err != nil {
			f.t.Log(err) // not on every system
		}
		quiet(f.t, changes)
		f.write("gen/a.go")
		if got := <-changes; !slices.Equal(got, []string{filepath.Join("gen", "a.go")}) {
			f.t.Errorf("%q", got)
		}
	})
}

// A file that is written by each start is left out after a while; one that is edited during a start
// is not lost, and also not if it is edited during the next ones.
func TestWatcherOfOwnFiles(t *testing.T) {
	said := make(chan string, 10)
	starts := 0
	w := &dev.Watcher{Report: func(text string) { said <- text }}
	during := func(f *folder) {
		f.write("program")
		if starts++; starts <= 4 {
			f.write("edited.go")
		}
	}
	watched(t, w, during, func(f *folder, changes chan []string) {
		f.write("main.go")
		both := []string{"edited.go", "program"}
		for _, want := range [][]string{{"main.go"}, both, both, both, both} {
			if diff := cmp.Diff(want, <-changes); diff != "" {
				f.t.Error(diff)
			}
		}
		quiet(f.t, changes)
		f.write("main.go", "edited.go")
		if diff := cmp.Diff([]string{"edited.go", "main.go"}, <-changes); diff != "" {
			f.t.Error(diff)
		}
		quiet(f.t, changes)
		if text := <-said; len(said) > 0 || !strings.Contains(text, "program changes each time") {
			f.t.Errorf("said %q, and %d more", text, len(said))
		}
	})
}

func TestWatcherLimits(t *testing.T) {
	f := &folder{t: t, path: t.TempDir()}
	f.write("a", "b", "c/d")
	for _, tt := range []struct {
		w    dev.Watcher
		want string
	}{
		{dev.Watcher{Folders: []string{f.path}, MaxFiles: 4}, ""},
		{dev.Watcher{Folders: []string{f.path}, MaxFiles: 3}, "more than 3 below"},
		{dev.Watcher{Folders: []string{f.path}, Ignore: []string{"["}}, `the pattern "["`},
		{dev.Watcher{Folders: []string{filepath.Join(f.path, "absent")}}, "absent"},
		{dev.Watcher{Folders: []string{filepath.Join(f.path, "a")}}, "it is no folder"},
	} {
		err := tt.w.Prepare()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v, want %q", tt.w, err, tt.want)
		}
	}
}
