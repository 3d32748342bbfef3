package memory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/app/servers"
)

// changing makes changes that come while another is made, and returns their errors and how often the file
// was written.
func changing(t *testing.T, o *Options, contexts []context.Context, do []doing) (errs []error, writes int, file string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	s, err := newStore(path, o)
	if err != nil {
		t.Fatal(err)
	}
	s.changed = func() { writes++ }
	errs = make([]error, len(do))
	s.busy <- struct{}{}
	for i := range do {
		go func() { errs[i] = s.change(contexts[i], do[i]) }()
		synctest.Wait() // so that they come in this order
	}
	<-s.busy
	synctest.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return errs, writes, string(data)
}

// adding is a change that adds an entity.
func adding(name string) doing {
	return func(steps *servers.Steps, g *graph) (bool, error) {
		added, err := g.createEntities(steps, []newEntity{{Name: name, EntityType: "t"}})
		return len(added) > 0, err
	}
}

// Changes that wait are written together. One that fails or is cancelled does not affect the others.
func TestChangesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		refused := errors.New("refused")
		errs, writes, file := changing(t, &Options{MaxFile: DefaultMaxFile, LockWait: DefaultLockWait},
			[]context.Context{t.Context(), t.Context(), gone, t.Context()},
			[]doing{adding("one"), func(*servers.Steps, *graph) (bool, error) { return false, refused }, adding("two"), adding("three")})
		if errs[0] != nil || !errors.Is(errs[1], refused) || !errors.Is(errs[2], context.Canceled) || errs[3] != nil {
			t.Errorf("%q", errs)
		}
		if writes != 1 || strings.Count(file, `"name"`) != 2 || !strings.Contains(file, "one") || !strings.Contains(file, "three") {
			t.Errorf("%d writes of %s", writes, file)
		}
	})
}

// A change that makes the file too large is refused alone.
func TestTooLargeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []context.Context{t.Context(), t.Context(), t.Context()}
		errs, writes, file := changing(t, &Options{MaxFile: 300, LockWait: DefaultLockWait}, all,
			[]doing{adding("one"), adding(strings.Repeat("x", 300)), adding("three")})
		if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "at most 300 are allowed") || errs[2] != nil {
			t.Errorf("%q", errs)
		}
		if writes != 2 || strings.Contains(file, "xxx") || !strings.Contains(file, "one") || !strings.Contains(file, "three") {
			t.Errorf("%d writes of %s", writes, file)
		}
	})
}
