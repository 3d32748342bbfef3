package login_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/login"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	ctx, m := t.Context(), login.NewMemory()
	if _, err := m.Get(ctx, "a"); !errors.Is(err, login.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	value := []byte("1")
	for _, name := range []string{"b", "a", "b"} {
		if err := m.Set(ctx, name, value); err != nil {
			t.Fatal(err)
		}
	}
	value[0] = 'x'
	got, err := m.Get(ctx, "a")
	if string(got) != "1" || err != nil {
		t.Errorf("%q %v, want a copy of what was set", got, err)
	}
	got[0] = 'y'
	if again, _ := m.Get(ctx, "a"); string(again) != "1" {
		t.Error("a value was changed from outside")
	}
	if err := errors.Join(m.Delete(ctx, "a"), m.Delete(ctx, "a")); err != nil {
		t.Error(err)
	}
	names, err := m.Names(ctx)
	if diff := cmp.Diff([]string{"b"}, names); diff != "" || err != nil {
		t.Errorf("names %v (-want +got):\n%s", err, diff)
	}
}

func TestMemoryLock(t *testing.T) {
	t.Parallel()
	m := login.NewMemory()
	var wg sync.WaitGroup
	n := 0
	for range 50 {
		wg.Go(func() {
			unlock, err := m.Lock(t.Context(), "x")
			if err != nil {
				t.Error(err)
				return
			}
			n++ // the race detector watches
			unlock()
			unlock() // twice does no harm
		})
	}
	wg.Wait()
	if n != 50 {
		t.Errorf("n is %d, want 50", n)
	}
	unlock, err := m.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	other, err := m.Lock(t.Context(), "y")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Lock(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was left", err)
	}
	unlock()
}
