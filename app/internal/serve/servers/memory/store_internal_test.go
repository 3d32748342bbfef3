package memory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/app/internal/serve/servers"
)

// A polled context does something each time it is asked whether it is cancelled, as while the file is read.
type polled struct {
	context.Context //nolint:containedctx // it is a context

	poll func()
}

func (p *polled) Err() error {
	p.poll()
	return p.Context.Err()
}

// A file is read and written in parts, between which the call can be cancelled.
func TestFilePolls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	line := `{"type":"other","text":"` + strings.Repeat("a", 8*readPart) + `"}` // which is one poll to parse
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := newStore(path, &Options{MaxFile: DefaultMaxFile, LockWait: DefaultLockWait})
	if err != nil {
		t.Fatal(err)
	}
	polls := 0
	ctx := &polled{t.Context(), func() { polls++ }}
	if err := s.load(ctx, false); err != nil || polls < 9 {
		t.Errorf("%d polls to read it, %v", polls, err)
	}
	polls = 0
	if err := s.change(ctx, adding("new")); err != nil || polls < 9 {
		t.Errorf("%d polls to write it, %v", polls, err)
	}
}

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

// A change that is cancelled while it is made does not affect those that are written with it.
func TestCancelledTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancelled := func(steps *servers.Steps, g *graph) (bool, error) {
			if _, err := adding("half")(steps, g); err != nil {
				return false, err
			}
			cancel()
			return false, steps.Add(servers.CostPerPoll)
		}
		errs, writes, file := changing(t, &Options{MaxFile: DefaultMaxFile, LockWait: DefaultLockWait},
			[]context.Context{t.Context(), gone, t.Context()}, []doing{adding("one"), cancelled, adding("three")})
		if errs[0] != nil || !errors.Is(errs[1], context.Canceled) || errs[2] != nil {
			t.Errorf("%q", errs)
		}
		if writes != 1 || strings.Contains(file, "half") || !strings.Contains(file, "one") || !strings.Contains(file, "three") {
			t.Errorf("%d writes of %s", writes, file)
		}
	})
}

// Callers that are cancelled while the first of them waits for another process all return.
func TestCancelledWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	unlock, err := safefile.Lock(t.Context(), path+".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	s, err := newStore(path, &Options{MaxFile: DefaultMaxFile, LockWait: DefaultLockWait})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.busy <- struct{}{}
	errs := make(chan error)
	for _, name := range []string{"one", "two", "three"} {
		go func() { errs <- s.change(ctx, adding(name)) }()
	}
	waiting := func() int {
		s.waitingMu.Lock()
		defer s.waitingMu.Unlock()
		return len(s.waiting)
	}
	for waiting() < 3 {
		runtime.Gosched()
	}
	<-s.busy
	for waiting() > 0 { // one of them has taken all
		runtime.Gosched()
	}
	cancel()
	for range 3 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// A file that another program writes while it is read is read again, and one that it has written since is not
// replaced by what was there before.
func TestWrittenMeanwhile(t *testing.T) {
	const ada, bob = `{"type":"entity","name":"Ada","entityType":"t","observations":[]}` + "\n", `{"type":"entity","name":"Bob","entityType":"t","observations":[]}` + "\n"
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := newStore(path, &Options{MaxFile: DefaultMaxFile, LockWait: DefaultLockWait})
	if err != nil {
		t.Fatal(err)
	}
	write(ada + bob[:20]) // the other program is in the middle
	reading := &polled{Context: t.Context()}
	reading.poll = func() {
		reading.poll = func() {}
		write(ada + bob)
	}
	if err := s.change(reading, adding("new")); err != nil {
		t.Fatal(err)
	}
	meddled := false
	err = s.change(t.Context(), func(steps *servers.Steps, g *graph) (bool, error) {
		if !meddled {
			meddled = true
			write(ada + bob + strings.ReplaceAll(bob, "Bob", "Cy"))
		}
		return adding("newer")(steps, g)
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if want := ada + bob + strings.ReplaceAll(bob, "Bob", "Cy") + strings.ReplaceAll(ada, "Ada", "newer"); err != nil || strings.ReplaceAll(string(data), `"entityType":"t"`, "") != strings.ReplaceAll(want, `"entityType":"t"`, "") {
		t.Errorf("the file is\n%s\nwant\n%s\n%v", data, want, err)
	}
	times := 0
	reading.poll = func() {
		times++
		write(ada + strings.Repeat(bob, times))
	}
	write(ada)
	if err := s.change(reading, adding("last")); !errors.Is(err, errOverwritten) {
		t.Errorf("a file that is always written: %v", err)
	}
}
