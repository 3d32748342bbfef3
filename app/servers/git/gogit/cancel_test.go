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

	"github.com/parley-mcp/parley/app/servers/git/gogit"
	"github.com/parley-mcp/parley/app/servers/git/repo"
)

// files is how many files the repository of these tests has of each kind.
const files = 8

// repository makes a repository with files that were changed in the last commit and again since,
// files that were renamed in it, and new ones.
func repository(t *testing.T) *repo.Place {
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
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
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
	write("changed", "three")
	write("new", "new")
	place, err := repo.Locate(dir, nil, nil)
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

// Each file and commit is a place where the work ends with its context, and nothing is done afterwards.
func TestWorkEndsWithItsContext(t *testing.T) {
	place := repository(t)
	for _, test := range []struct {
		name  string
		least int // how often the context is looked at
		work  func(ctx context.Context, r *gogit.Repository) error
	}{
		{"status", 3 * files, func(ctx context.Context, r *gogit.Repository) error {
			_, err := r.Status(ctx)
			return err
		}},
		{"unstaged", 2 * files, func(ctx context.Context, r *gogit.Repository) error {
			return r.DiffUnstaged(ctx, 3, io.Discard)
		}},
		{"with a commit", 4 * files, func(ctx context.Context, r *gogit.Repository) error {
			return r.DiffTarget(ctx, repo.Target{From: "HEAD~1"}, 3, io.Discard)
		}},
		{"show", 2 * files, func(ctx context.Context, r *gogit.Repository) error {
			c, err := r.Find(ctx, "HEAD")
			if err != nil {
				return err
			}
			return r.Show(ctx, c, io.Discard)
		}},
		{"log", 2, func(ctx context.Context, r *gogit.Repository) error {
			_, err := r.Log(ctx, -1, time.Time{}, time.Time{})
			return err
		}},
		{"branches", 1, func(ctx context.Context, r *gogit.Repository) error {
			_, err := r.Branches(ctx, "local", "HEAD", "")
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := func(most int) (looks int, err error) {
				r, err := gogit.Open(place, repo.Limits{}.Defaults(), nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx := &ending{Context: t.Context(), most: most}
				err = test.work(ctx, r)
				return ctx.looks, errors.Join(err, r.Close())
			}
			all, err := run(-1)
			if err != nil || all < test.least {
				t.Fatalf("%d looks at the context, want at least %d; %v", all, test.least, err)
			}
			const leaving = 4 // looks on the way out
			for most := range all {
				if looks, err := run(most); !errors.Is(err, context.Canceled) || looks > most+leaving {
					t.Fatalf("after %d looks: %v, %d looks", most, err, looks)
				}
			}
		})
	}
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
	r, err := gogit.Open(repository(t), repo.Limits{}.Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	out := &canceller{cancel: cancel}
	if err := r.DiffUnstaged(ctx, 3, out); !errors.Is(err, context.Canceled) || out.writes != 1 {
		t.Errorf("%v, %d writes: %s", err, out.writes, &out.Buffer)
	}
}
