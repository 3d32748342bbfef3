package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/parley-mcp/parley/app/servers/git/repo"
	"github.com/parley-mcp/parley/mcp"
)

// Status says what git status does.
func (g *Repository) Status(ctx context.Context) (string, error) {
	if err := g.place.NeedTree(); err != nil {
		return "", err
	}
	return g.text(ctx, "status", "--ignore-submodules=dirty")
}

// Diff writes what git diff does.
func (g *Repository) Diff(ctx context.Context, what repo.DiffKind, target string, context int, out io.Writer) error {
	if err := g.place.NeedTree(); err != nil {
		return err
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--unified=" + strconv.Itoa(context)}
	switch what {
	case repo.DiffUnstaged:
	case repo.DiffStaged:
		args = append(args, "--cached")
	case repo.DiffTarget:
		commit, err := g.resolve(ctx, target)
		if err != nil {
			return err
		}
		if err := g.bounded(ctx, commit); err != nil {
			return err
		}
		args = append(args, commit)
	}
	return g.run(ctx, nil, out, append(args, "--")...)
}

// Log lists commits from HEAD on.
func (g *Repository) Log(ctx context.Context, q repo.LogQuery) ([]*repo.Commit, error) {
	if q.Most == 0 {
		return nil, nil
	}
	args := []string{"rev-list"}
	if q.Most > 0 {
		args = append(args, "--max-count="+strconv.Itoa(q.Most))
	} else {
		args = append(args, "--max-count="+strconv.Itoa(g.limits.Commits))
	}
	for _, t := range []struct{ option, text string }{{"--since", q.Since}, {"--until", q.Until}} {
		if t.text == "" {
			continue
		}
		value := t.text
		if from, to, ok := repo.ParseTime(t.text, q.Now); ok {
			at := from
			if t.option == "--until" {
				at = to
			}
			value = "@" + strconv.FormatInt(at.Unix(), 10)
		}
		args = append(args, t.option+"="+value)
	}
	list, err := g.text(ctx, append(args, "HEAD", "--")...)
	if err != nil || list == "" {
		return nil, err
	}
	return g.commits(ctx, list)
}

// commits reads the commits of a list, one name on a line.
func (g *Repository) commits(ctx context.Context, list string) ([]*repo.Commit, error) {
	out := &repo.Output{Limit: 256 << 20}
	if err := g.run(ctx, strings.NewReader(list+"\n"), out, "cat-file", "--batch"); err != nil {
		return nil, err
	}
	in := bufio.NewReader(&out.Text)
	var commits []*repo.Commit
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return commits, nil
		}
		fields := strings.Fields(line)
		if err != nil || len(fields) != 3 {
			return nil, mcp.Errorf("git cat-file says %q", line)
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size < 0 || size > out.Text.Len()+in.Buffered() {
			return nil, mcp.Errorf("git cat-file says %q", line)
		}
		content := make([]byte, size+1) // a line feed follows
		if _, err := io.ReadFull(in, content); err != nil {
			return nil, err
		}
		commits = append(commits, parseCommit(fields[0], content[:size]))
	}
}

// parseCommit reads what `git cat-file` says of a commit.
func parseCommit(hash string, content []byte) *repo.Commit {
	head, message, _ := bytes.Cut(content, []byte("\n\n"))
	c := &repo.Commit{Hash: hash, Message: string(message)}
	for line := range bytes.Lines(head) {
		if author, ok := bytes.CutPrefix(line, []byte("author ")); ok {
			var s object.Signature
			s.Decode(bytes.TrimSuffix(author, []byte("\n")))
			c.Author = repo.Signature{Name: s.Name, Email: s.Email, When: s.When}
			break
		}
	}
	return c
}

// Find returns the commit that a revision names.
func (g *Repository) Find(ctx context.Context, rev string) (*repo.Commit, error) {
	h, err := g.resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	list, err := g.commits(ctx, h)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, repo.BadName(rev)
	}
	return list[0], nil
}

// Show writes what a commit changed.
func (g *Repository) Show(ctx context.Context, c *repo.Commit, out io.Writer) error {
	if err := g.bounded(ctx, c.Hash); err != nil {
		return err
	}
	args := []string{"diff-tree", "-r", "-p", "-M", "--no-commit-id", "--full-index", "--no-ext-diff", "--no-textconv", "--unified=" + strconv.Itoa(repo.DefaultContext)}
	if parent, err := g.resolve(ctx, c.Hash+"^"); err == nil {
		args = append(args, parent, c.Hash)
	} else {
		args = append(args, "--root", c.Hash)
	}
	return g.run(ctx, nil, out, append(args, "--")...)
}

// Branches lists branches as git branch does.
func (g *Repository) Branches(ctx context.Context, q repo.BranchQuery) (string, error) {
	args := []string{"branch", "--no-color", "--no-column", "--list"}
	switch q.Kind {
	case "remote":
		args = append(args, "-r")
	case "all":
		args = append(args, "-a")
	}
	for _, c := range []struct{ option, rev string }{{"--contains=", q.Contains}, {"--no-contains=", q.NotContains}} {
		if c.rev == "" {
			continue
		}
		h, err := g.resolve(ctx, c.rev)
		if err != nil {
			return "", err
		}
		args = append(args, c.option+h)
	}
	return g.text(ctx, args...)
}

// Refs lists what can be named as a revision.
func (g *Repository) Refs(ctx context.Context) ([]string, error) {
	text, err := g.text(ctx, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return nil, err
	}
	return append([]string{"HEAD"}, strings.Fields(text)...), nil
}

// Contents reads the file at a path of a commit, or the names in the folder there.
func (g *Repository) Contents(ctx context.Context, rev, name string) ([]byte, []string, error) {
	h, err := g.resolve(ctx, rev)
	if err != nil {
		return nil, nil, err
	}
	what := h + ":" + strings.TrimSuffix(name, "/")
	kind, err := g.text(ctx, "cat-file", "-t", what)
	switch {
	case err != nil:
		return nil, nil, mcp.Errorf("there is no %q in %s", name, rev)
	case kind == "blob":
		out := &repo.Output{Limit: int(g.limits.Object)}
		err := g.run(ctx, nil, out, "cat-file", "blob", what)
		if out.Full {
			return nil, nil, &repo.TooLargeError{Size: g.limits.Object + 1, Limit: g.limits.Object}
		}
		return out.Text.Bytes(), nil, err
	case kind != "tree":
		return nil, nil, mcp.Errorf("%q of %s is no file", name, rev)
	}
	list, err := g.text(ctx, "ls-tree", "-z", what)
	var names []string
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		head, name, _ := strings.Cut(line, "\t")
		if strings.Contains(head, " tree ") {
			name += "/"
		}
		names = append(names, name)
	}
	return nil, names, err
}
