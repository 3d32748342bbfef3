package gogit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
)

// files is how many files the repository of these tests has of each kind.
const files = 8

// repository makes a repository with files that were changed in the last commit and again since,
// files that were renamed in it, and new ones.
func repository(t *testing.T) *gogit.Place {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git, which makes the repository, is not installed")
	}
	home, dir := t.TempDir(), t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
	} {
		t.Setenv(name, value)
	}
	git := func(args ...string) { gitIn(t, dir, args...) }
	write := func(folder, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range files {
			text := fmt.Sprintf("%d\n%s\n", i, text)
			if err := os.WriteFile(filepath.Join(dir, folder, fmt.Sprintf("%02d.txt", i)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	git("init", "-q", "-b", "main")
	write("changed", "one")
	write("old", "some lines\nthat stay\nas they are")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	write("changed", "two")
	git("mv", "old", "renamed")
	write("renamed", "some lines\nthat stay\nas they were")
	git("add", ".")
	git("commit", "-q", "-m", "second")
	git("branch", "other", "HEAD~1")
	write("changed", "three")
	git("add", "changed/00.txt")
	write("new", "new")
	place, err := gogit.Locate(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v %s", args, err, out)
	}
}

// copyOf copies a repository.
func copyOf(t *testing.T, origin *gogit.Place) *gogit.Place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", origin.Work, dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	place, err := gogit.Locate(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// An ending context counts how often it is looked at, and ends after some of them; most -1 is never.
type ending struct {
	context.Context //nolint:containedctx // it is a context

	looks, most int
}

func (e *ending) Err() error {
	if e.looks++; e.most >= 0 && e.looks > e.most {
		return context.Canceled
	}
	return nil
}

// Each file and commit is a place where the work of each tool ends with its context, with the most
// arguments that it takes. Then no lock is left, and git finds the repository whole.
func TestWorkEndsWithItsContext(t *testing.T) {
	origin := repository(t)
	clean := copyOf(t, origin) // a checkout refuses to overwrite changes
	gitIn(t, clean.Work, "reset", "-q", "--hard")
	for _, test := range []struct {
		name   string
		least  int // how often the context is looked at
		writes bool
		work   func(r *gogit.Repository) error
	}{
		{"status", 3 * files, false, func(r *gogit.Repository) error { return r.Status(io.Discard) }},
		{"unstaged", 2 * files, false, func(r *gogit.Repository) error { return r.DiffUnstaged(3, io.Discard) }},
		{"staged", 2 * files, false, func(r *gogit.Repository) error { return r.DiffStaged(3, io.Discard) }},
		{"with a commit", 4 * files, false, func(r *gogit.Repository) error {
			return r.DiffTarget(gogit.Target{From: "HEAD~1"}, 3, io.Discard)
		}},
		{"between commits", 4 * files, false, func(r *gogit.Repository) error {
			return r.DiffTarget(gogit.Target{From: "HEAD~1", To: "HEAD", Base: true}, 3, io.Discard)
		}},
		{"show", 2 * files, false, func(r *gogit.Repository) error {
			c, err := r.Find("HEAD")
			if err != nil {
				return err
			}
			return r.Show(c, io.Discard)
		}},
		{"log", 2, false, func(r *gogit.Repository) error {
			_, err := r.Log(-1, time.Time{}, time.Time{})
			return err
		}},
		{"branches", 4, false, func(r *gogit.Repository) error { return r.Branches("all", "HEAD", "HEAD~1", io.Discard) }},
		{"names", 2, false, func(r *gogit.Repository) error {
			_, err := r.Refs()
			return err
		}},
		{"contents", 2, false, func(r *gogit.Repository) error {
			_, _, err := r.Contents("HEAD", "changed/00.txt")
			return err
		}},
		{"add everything", 8 * files, true, func(r *gogit.Repository) error {
			_, err := r.Add([]string{"."})
			return err
		}},
		{"add by the most patterns", 10_000, true, func(r *gogit.Repository) error {
			_, err := r.Add(patterns())
			return err
		}},
		{"commit", files, true, func(r *gogit.Repository) error {
			_, err := r.Commit("m", time.Unix(1710072000, 0))
			return err
		}},
		{"reset", 2 * files, true, func(r *gogit.Repository) error { return r.Reset(time.Unix(1710072000, 0)) }},
		{"create a branch", 2, true, func(r *gogit.Repository) error {
			_, err := r.CreateBranch("new", "HEAD~1", time.Unix(1710072000, 0))
			return err
		}},
		{"checkout", 4 * files, true, func(r *gogit.Repository) error {
			_, _, err := r.Checkout("other", time.Unix(1710072000, 0))
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := func(most int) (looks int, err error) {
				place := origin
				switch {
				case test.name == "checkout":
					place = copyOf(t, clean)
				case test.writes:
					place = copyOf(t, origin)
				}
				ctx := &ending{Context: t.Context(), most: most}
				r, err := gogit.Open(ctx, place, gogit.Limits{}.Defaults(), nil)
				if err != nil {
					t.Fatal(err)
				}
				err = errors.Join(test.work(r), r.Close())
				if test.writes {
					gitIn(t, place.Work, "fsck", "--strict", "--no-dangling")
					gitIn(t, place.Work, "add", "-u") // no lock is left
				}
				return ctx.looks, err
			}
			all, err := run(-1)
			if err != nil || all < test.least {
				t.Fatalf("%d looks at the context, want at least %d; %v", all, test.least, err)
			}
			const tries = 12
			for k := range tries {
				most := k * (all - 1) / (tries - 1)
				if looks, err := run(most); !errors.Is(err, context.Canceled) || looks > most+leaving {
					t.Errorf("after %d of %d looks: %v, %d looks", most, all, err, looks)
				}
			}
		})
	}
}

// leaving is how often the context is looked at on the way out.
const leaving = 16

// patterns are as many paths as git_add takes, which are hard to match.
func patterns() []string {
	list := []string{"."}
	for len(list) < 10_000 {
		list = append(list, fmt.Sprintf("*[a-y]*%d*.txt*", len(list)%files))
	}
	return list
}

// A canceller ends a context when it is written to.
type canceller struct {
	bytes.Buffer

	cancel context.CancelFunc
	writes int
}

func (c *canceller) Write(p []byte) (int, error) {
	c.cancel()
	c.writes++
	return c.Buffer.Write(p)
}

// A diff that is cancelled in the middle of a file writes nothing more of it.
func TestDiffEndsInAFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := gogit.Open(ctx, repository(t), gogit.Limits{}.Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := &canceller{cancel: cancel}
	if err := r.DiffUnstaged(3, out); !errors.Is(err, context.Canceled) || out.writes != 1 {
		t.Errorf("%v, %d writes: %s", err, out.writes, &out.Buffer)
	}
}
