package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Arguments that may be null, as the original has them. JSON's null is like no argument.
type optional string

// JSONSchema is the schema of the type.
func (optional) JSONSchema() string {
	return `{"type":["string","null"],"default":null,"maxLength":4096}`
}

type repoIn struct {
	Repo string `json:"repo_path" desc:"The path of the Git repository." maxlen:"4096"`
}

type diffIn struct {
	repoIn

	Context int `json:"context_lines" desc:"How many unchanged lines to show around each change." min:"0" max:"100000" default:"3"`
}

type targetIn struct {
	repoIn

	Target  string `json:"target" desc:"The branch, tag or commit to compare the working tree with; or two of them to compare, as in main..topic, or main...topic for the changes of topic since it left main." maxlen:"4096"`
	Context int    `json:"context_lines" desc:"How many unchanged lines to show around each change." min:"0" max:"100000" default:"3"`
}

type commitIn struct {
	repoIn

	Message string `json:"message" desc:"The commit message." maxlen:"1000000"`
}

type addIn struct {
	repoIn

	Files []string `json:"files" desc:"Paths of files and folders to stage, relative to the repository. The single path \".\" stages everything." minlen:"1" maxlen:"10000"`
}

type logIn struct {
	repoIn

	MaxCount int      `json:"max_count" desc:"The most commits to list." default:"10"`
	Start    optional `json:"start_timestamp,omitzero" desc:"List commits from this time on: a date (2024-01-15, Jan 15 2024), a time (2024-01-15T14:30:25) or how long ago (2 weeks ago, yesterday)."`
	End      optional `json:"end_timestamp,omitzero" desc:"List commits up to this time, written like start_timestamp."`
}

type createIn struct {
	repoIn

	Name string   `json:"branch_name" desc:"The name of the new branch." maxlen:"4096"`
	Base optional `json:"base_branch,omitzero" desc:"The branch, tag or commit to start from; without it the current one."`
}

type checkoutIn struct {
	repoIn

	Name string `json:"branch_name" desc:"The branch to switch to. A tag or commit detaches HEAD." maxlen:"4096"`
}

type showIn struct {
	repoIn

	Revision string `json:"revision" desc:"The commit to show: a branch, a tag, a commit hash, or one of these followed by ~N for the Nth ancestor." maxlen:"4096"`
}

type branchIn struct {
	repoIn

	Type        string   `json:"branch_type" desc:"Which branches to list: local, remote or all." enum:"local,remote,all"`
	Contains    optional `json:"contains,omitzero" desc:"List only branches that contain this commit."`
	NotContains optional `json:"not_contains,omitzero" desc:"List only branches that do not contain this commit."`
}

// readingTools change nothing.
func (g *gitServer) readingTools() []server.Feature {
	o := func(title string) server.ToolOptions {
		return server.ToolOptions{Title: title, Annotations: servers.Hints(true, false, true)}
	}
	return []server.Feature{
		server.Tool("git_status", "Shows the state of the working tree: the branch, staged and unstaged changes, and untracked files.", g.status).
			With(o("Status")),
		server.Tool("git_diff_unstaged", "Shows changes in the working tree that are not staged yet, as a unified diff.", g.diffUnstaged).
			With(o("Unstaged changes")),
		server.Tool("git_diff_staged", "Shows changes that are staged for the next commit, as a unified diff.", g.diffStaged).
			With(o("Staged changes")),
		server.Tool("git_diff", "Shows how the working tree differs from a branch, tag or commit, as a unified diff.", g.diff).
			With(o("Differences")),
		server.Tool("git_log", "Lists the commits of the current branch, the newest first, if wanted of a span of time.", g.log).
			With(o("Log")),
		server.Tool("git_show", "Shows one commit: its author, date and message, and what it changed.", g.show).
			With(o("Show a commit")),
		server.Tool("git_branch", "Lists branches, if wanted those that contain a commit, or do not.", g.branch).
			With(o("List branches")),
	}
}

// writingTools change the repository.
func (g *gitServer) writingTools() []server.Feature {
	scopes := servers.Scopes(g.WriteScope)
	o := func(title string, destructive, idempotent bool) server.ToolOptions {
		return server.ToolOptions{Title: title, Scopes: scopes, Annotations: servers.Hints(false, destructive, idempotent)}
	}
	return []server.Feature{
		server.Tool("git_add", "Stages files for the next commit.", g.add).With(o("Stage files", false, true)),
		server.Tool("git_commit", "Commits what is staged. Hooks are not run.", g.commit).With(o("Commit", false, false)),
		server.Tool("git_reset", "Unstages everything that is staged; files stay as they are.", g.reset).With(o("Unstage everything", true, true)),
		server.Tool("git_create_branch", "Creates a branch, without switching to it.", g.createBranch).With(o("Create a branch", false, false)),
		server.Tool("git_checkout", "Switches to a branch. Refused if that would overwrite local changes.", g.checkout).With(o("Switch branches", false, false)),
	}
}

// run opens the repository of a call and has f write the result. The result begins with a heading and ends
// without its last line feed. If it was cut it says so.
func (g *gitServer) run(ctx context.Context, path, heading string, f func(*gogit.Repository, io.Writer) error) (string, error) {
	out := &output{Limit: g.Limits.Output}
	err := g.with(ctx, path, func(r *gogit.Repository) error {
		if err := f(r, out); !out.Full || !errors.Is(err, errFull) {
			return err
		}
		return nil
	})
	text := valid(out.Text.String())
	if !out.Full {
		return heading + strings.TrimSuffix(text, "\n"), err
	}
	if at := strings.LastIndexByte(text, '\n'); at > 0 {
		text = text[:at+1]
	}
	return heading + text + fmt.Sprintf("[cut here: the result is longer than %d bytes]", g.Limits.Output), err
}

// change is run for what changes a repository. What git would have done and the call has not follows the
// result.
func (g *gitServer) change(ctx context.Context, path string, f func(*gogit.Repository, io.Writer) error) (string, error) {
	return g.run(ctx, path, "", func(r *gogit.Repository, out io.Writer) error {
		g.writes.Lock()
		defer g.writes.Unlock()
		if err := context.Cause(ctx); err != nil { // it waited for too long
			return err
		}
		if err := f(r, out); err != nil {
			return err
		}
		for _, note := range r.Notes() {
			if _, err := fmt.Fprintln(out, note); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *gitServer) status(ctx context.Context, in repoIn) (string, error) {
	return g.run(ctx, in.Repo, "Repository status:\n", (*gogit.Repository).Status)
}

func (g *gitServer) diffUnstaged(ctx context.Context, in diffIn) (string, error) {
	return g.run(ctx, in.Repo, "Unstaged changes:\n", func(r *gogit.Repository, out io.Writer) error {
		return r.DiffUnstaged(in.Context, out)
	})
}

func (g *gitServer) diffStaged(ctx context.Context, in diffIn) (string, error) {
	return g.run(ctx, in.Repo, "Staged changes:\n", func(r *gogit.Repository, out io.Writer) error {
		return r.DiffStaged(in.Context, out)
	})
}

func (g *gitServer) diff(ctx context.Context, in targetIn) (string, error) {
	target, err := gogit.ParseTarget(in.Target)
	if err != nil {
		return "", err
	}
	return g.run(ctx, in.Repo, "Diff with "+in.Target+":\n", func(r *gogit.Repository, out io.Writer) error {
		return r.DiffTarget(target, in.Context, out)
	})
}

func (g *gitServer) log(ctx context.Context, in logIn) (string, error) {
	now := g.Now()
	since, _, err := parseTime("start_timestamp", string(in.Start), now)
	if err != nil {
		return "", err
	}
	_, until, err := parseTime("end_timestamp", string(in.End), now)
	if err != nil {
		return "", err
	}
	return g.run(ctx, in.Repo, "Commit history:\n", func(r *gogit.Repository, out io.Writer) error {
		list, err := r.Log(max(in.MaxCount, -1), since, until)
		if err != nil {
			return err
		}
		for _, c := range list {
			if _, err := fmt.Fprintln(out, commitText(c)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *gitServer) show(ctx context.Context, in showIn) (string, error) {
	if err := gogit.CheckRevision("revision", in.Revision); err != nil {
		return "", err
	}
	return g.run(ctx, in.Repo, "", func(r *gogit.Repository, out io.Writer) error {
		c, err := r.Find(in.Revision)
		if err != nil {
			return err
		}
		if _, err = io.WriteString(out, commitText(c)); err == nil {
			err = r.Show(c, out)
		}
		if err == nil {
			_, err = fmt.Fprintln(out)
		}
		return err
	})
}

func (g *gitServer) branch(ctx context.Context, in branchIn) (string, error) {
	if err := cmp.Or(checkOptional("contains", in.Contains), checkOptional("not_contains", in.NotContains)); err != nil {
		return "", err
	}
	return g.run(ctx, in.Repo, "", func(r *gogit.Repository, out io.Writer) error {
		return r.Branches(in.Type, string(in.Contains), string(in.NotContains), out)
	})
}

// checkOptional is CheckRevision of an argument that may be missing.
func checkOptional(what string, rev optional) error {
	if rev == "" {
		return nil
	}
	return gogit.CheckRevision(what, string(rev))
}

func (g *gitServer) add(ctx context.Context, in addIn) (string, error) {
	return g.change(ctx, in.Repo, func(r *gogit.Repository, out io.Writer) error {
		added, err := r.Add(in.Files)
		if err == nil {
			_, err = fmt.Fprintln(out, addedText(added))
		}
		return err
	})
}

func (g *gitServer) commit(ctx context.Context, in commitIn) (string, error) {
	switch {
	case strings.ContainsRune(in.Message, 0):
		return "", mcp.Errorf("the message has a NUL, which a commit message cannot have")
	case strings.TrimSpace(in.Message) == "":
		return "", mcp.Errorf("the message is empty; say in it what the commit changes")
	}
	return g.change(ctx, in.Repo, func(r *gogit.Repository, out io.Writer) error {
		hash, err := r.Commit(in.Message, g.Now())
		if err == nil {
			_, err = fmt.Fprintln(out, "Changes committed successfully with hash", hash)
		}
		return err
	})
}

func (g *gitServer) reset(ctx context.Context, in repoIn) (string, error) {
	if g.Confirm && server.CanElicit(ctx) {
		staged, err := g.run(ctx, in.Repo, "", func(r *gogit.Repository, out io.Writer) error { return r.DiffStaged(0, out) })
		if err != nil {
			return "", err
		}
		if staged != "" {
			if err := servers.Confirm(ctx, fmt.Sprintf("Throw away what is staged in %s? Files stay as they are.", in.Repo)); err != nil {
				return "", err
			}
		}
	}
	return g.change(ctx, in.Repo, func(r *gogit.Repository, out io.Writer) error {
		err := r.Reset(g.Now())
		if err == nil {
			_, err = fmt.Fprintln(out, "All staged changes reset")
		}
		return err
	})
}

func (g *gitServer) createBranch(ctx context.Context, in createIn) (string, error) {
	if err := cmp.Or(gogit.CheckBranchName(in.Name), checkOptional("base branch", in.Base)); err != nil {
		return "", err
	}
	return g.change(ctx, in.Repo, func(r *gogit.Repository, out io.Writer) error {
		from, err := r.CreateBranch(in.Name, string(in.Base), g.Now())
		if err == nil {
			_, err = fmt.Fprintf(out, "Created branch '%s' from '%s'\n", in.Name, from)
		}
		return err
	})
}

func (g *gitServer) checkout(ctx context.Context, in checkoutIn) (string, error) {
	if err := gogit.CheckRevision("branch name", in.Name); err != nil {
		return "", err
	}
	return g.change(ctx, in.Repo, func(r *gogit.Repository, out io.Writer) error {
		branch, at, err := r.Checkout(in.Name, g.Now())
		switch {
		case err != nil:
		case branch == "":
			_, err = fmt.Fprintf(out, "HEAD is now detached at %s: commits made now belong to no branch until git_create_branch makes one\n", at)
		default:
			_, err = fmt.Fprintf(out, "Switched to branch '%s'\n", branch)
		}
		return err
	})
}
