package safefile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/app/internal/safefile"
)

// One holds the lock at a time, and who waits ends with the context.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	inside, most := 0, 0
	var mu sync.Mutex
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		inside += n
		most = max(most, inside)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			unlock, err := safefile.Lock(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			count(1)
			count(-1)
			unlock()
			unlock() // again does no harm
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d at once", most)
	}
	unlock, err := safefile.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := safefile.Lock(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A file is replaced with its permissions, and only what Replace left is removed beside it.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	for _, content := range []string{"one", "two"} {
		if err := safefile.Replace(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q, %v", got, err)
		}
	}
	keep := []string{".a.txt.tmp", ".a.txt.12x.tmp", ".b.txt.12.tmp", "a.txt.12.tmp"}
	for _, name := range append([]string{".a.txt.123456.tmp"}, keep...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := safefile.RemoveTemporary(path); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := slices.Sorted(slices.Values(append(keep, "a.txt")))
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := safefile.Replace(filepath.Join(dir, "no", "such"), nil, 0o600); err == nil {
		t.Error("a file in a folder that does not exist")
	}
}
