package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/servers/git/repo"
	"github.com/parley-mcp/parley/mcp"
)

// Commit makes a commit of what is staged.
func (g *Repository) Commit(ctx context.Context, message string, now time.Time) (string, error) {
	if err := g.place.NeedTree(); err != nil {
		return "", err
	}
	tree, err := g.text(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree}
	old, err := g.text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	what := "commit"
	if err != nil {
		old, what = strings.Repeat("0", len(tree)), "commit (initial)"
	} else {
		args = append(args, "-p", old)
	}
	merged, err := repo.ReadSmall(filepath.Join(g.place.GitDir, "MERGE_HEAD"))
	if err == nil {
		what = "commit (merge)"
		for line := range strings.Lines(string(merged)) {
			args = append(args, "-p", strings.TrimSpace(line))
		}
	}
	name, email := repo.Identity("author", repo.Settings{}, repo.OwnSettings())
	g.env = append(g.env, fmt.Sprintf("GIT_AUTHOR_DATE=%d %s", now.Unix(), now.Format("-0700")), fmt.Sprintf("GIT_COMMITTER_DATE=%d %s", now.Unix(), now.Format("-0700")))
	if _, err := g.text(ctx, "config", "user.email"); err != nil { // then git may refuse to make a commit
		g.config = append(g.config, "user.name="+name, "user.email="+email)
	}
	var out bytes.Buffer
	if err := g.run(ctx, strings.NewReader(message), &out, append(args, "-F", "-")...); err != nil {
		return "", err
	}
	h := strings.TrimSpace(out.String())
	if _, err := g.text(ctx, "update-ref", "-m", what+": "+repo.Subject(message), "HEAD", h, old); err != nil {
		return "", err
	}
	for _, name := range repo.MergeFiles {
		if err := os.Remove(filepath.Join(g.place.GitDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return h, nil
}

// Add stages files, folders and what patterns match.
func (g *Repository) Add(ctx context.Context, files []string) error {
	names, err := g.place.CleanPaths(files)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	if err := g.unfiltered(ctx, names); err != nil {
		return err
	}
	_, err = g.text(ctx, append([]string{"add", "--"}, names...)...)
	return err
}

// unfiltered refuses files with a filter, which is off: what it keeps elsewhere would be added whole.
func (g *Repository) unfiltered(ctx context.Context, names []string) error {
	list, err := g.text(ctx, append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, names...)...)
	if err != nil || list == "" {
		return err
	}
	var out bytes.Buffer
	if err := g.run(ctx, strings.NewReader(list), &out, "check-attr", "--stdin", "-z", "filter"); err != nil {
		return err
	}
	fields := strings.Split(out.String(), "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if v := fields[i+2]; v != "unspecified" && v != "unset" {
			return mcp.Errorf("%q has the filter %q in its attributes, and this server runs no filter; use git yourself for it", fields[i], v)
		}
	}
	return nil
}

// Reset makes the index that of the current commit.
func (g *Repository) Reset(ctx context.Context) error {
	if err := g.place.NeedTree(); err != nil {
		return err
	}
	head, err := g.resolve(ctx, "HEAD")
	if err != nil {
		return mcp.Errorf("the current branch has no commits yet, so there is nothing to reset to")
	}
	if err := g.bounded(ctx, head); err != nil {
		return err
	}
	_, err = g.text(ctx, "read-tree", "--reset", head)
	return err
}

// CreateBranch makes a branch at what base names, or at the current branch.
func (g *Repository) CreateBranch(ctx context.Context, name, base string, _ time.Time) (string, error) {
	from := base
	if base == "" {
		head, err := g.text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
		if err != nil {
			return "", mcp.Errorf("HEAD is a detached symbolic reference: name a base_branch")
		}
		from, base = head, "refs/heads/"+head
	} else {
		found := ""
		for _, prefix := range []string{"refs/heads/", "refs/remotes/", "refs/tags/", "refs/"} {
			if _, err := g.text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", prefix+base); err == nil {
				found = prefix + base
				break
			}
		}
		if found == "" {
			return "", mcp.Errorf("there is no branch, remote branch or tag '%s'", base)
		}
		base = found
	}
	commit, err := g.resolve(ctx, base)
	if err != nil {
		return "", err
	}
	_, err = g.text(ctx, "branch", "--no-track", "--end-of-options", name, commit)
	return from, err
}

// Checkout switches to a branch, or to the commit that a revision names.
func (g *Repository) Checkout(ctx context.Context, rev string, _ time.Time) error {
	if err := g.place.NeedTree(); err != nil {
		return err
	}
	commit, err := g.resolve(ctx, rev)
	if err != nil {
		return err
	}
	if err := g.bounded(ctx, commit); err != nil {
		return err
	}
	_, err = g.text(ctx, "checkout", "--no-guess", "--no-recurse-submodules", "--quiet", rev, "--")
	return err
}
