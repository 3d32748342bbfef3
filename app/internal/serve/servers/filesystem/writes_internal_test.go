package filesystem

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A waiter is a context that tells when somebody waits for its end.
type waiter struct {
	context.Context //nolint:containedctx // it is a context

	waits func()
}

func (w *waiter) Done() <-chan struct{} {
	w.waits()
	return w.Context.Done()
}

// changes are calls that change something, and whether they did.
func changes(t *testing.T, s *service, d *directories, dir string) map[string]func(ctx context.Context) (changed bool, err error) {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	holds := func(name, text string) bool {
		data, err := os.ReadFile(in(name))
		return err == nil && string(data) == text
	}
	for _, name := range []string{"edited", "moved"} {
		if err := os.WriteFile(in(name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]func(ctx context.Context) (bool, error){
		"write_file": func(ctx context.Context) (bool, error) {
			_, err := s.write(ctx, d, writeIn{in("new"), "new"})
			return holds("new", "new"), err
		},
		"edit_file": func(ctx context.Context) (bool, error) {
			_, err := s.edit(ctx, d, editIn{Path: in("edited"), Edits: []edit{{"old", "new"}}})
			return holds("edited", "new"), err
		},
		"move_file": func(ctx context.Context) (bool, error) {
			_, _, err := s.move(ctx, d, moveIn{in("moved"), in("to")})
			return holds("to", "old"), err
		},
	}
}

// A call that is cancelled while another one writes ends at once, and is not done later.
func TestCancelledWhileAnotherWrites(t *testing.T) {
	s, d, dir := inside(t, nil)
	writes, goOn := make(chan struct{}), make(chan struct{})
	onWrite = func() error { close(writes); <-goOn; return nil }
	defer func() { onWrite = nil }()
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := s.write(t.Context(), d, writeIn{filepath.Join(dir, "first"), "first"}); err != nil {
			t.Error(err)
		}
	})
	<-writes
	cause := errors.New("no longer wanted")
	calls := changes(t, s, d, dir)
	for name, call := range calls {
		ctx, cancel := context.WithCancelCause(t.Context())
		if _, err := call(&waiter{ctx, func() { cancel(cause) }}); !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(goOn)
	first.Wait()
	onWrite = nil
	for name, call := range calls {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if changed, _ := call(ended); changed {
			t.Errorf("%s was done after it was cancelled", name)
		}
		if changed, err := call(t.Context()); err != nil || !changed {
			t.Errorf("%s: changed %t, %v", name, changed, err)
		}
	}
}

// A call that is cancelled while it writes changes nothing.
func TestCancelledWhileItWrites(t *testing.T) {
	s, d, dir := inside(t, nil)
	cause := errors.New("no longer wanted")
	defer func() { onWrite = nil }()
	for name, call := range changes(t, s, d, dir) {
		ctx, cancel := context.WithCancelCause(t.Context())
		elsewhere(s, func() { t.Error("the copy is moved to its place") })
		onWrite = func() error { cancel(cause); return nil }
		if changed, err := call(ctx); !errors.Is(err, cause) || changed {
			t.Errorf("%s: changed %t, %v", name, changed, err)
		}
		cancel(nil)
		if left, err := filepath.Glob(filepath.Join(dir, ".parley-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: %q are left, %v", name, left, err)
		}
	}
}
