package gogit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// Status writes what `git status` does.
func (r *Repository) Status(out io.Writer) error {
	w, err := r.openTree()
	if err != nil {
		return err
	}
	var b strings.Builder
	branch, commit, err := r.head()
	if err != nil {
		return err
	}
	if err := r.writeHead(&b, branch, commit); err != nil {
		return err
	}
	staged, err := r.staged(w.idx)
	if err != nil {
		return err
	}
	if staged, err = findRenames(r.ctx, staged); err != nil {
		return err
	}
	unstaged, conflicts, err := w.unstaged()
	if err != nil {
		return err
	}
	untracked, err := w.untracked()
	if err != nil {
		return err
	}
	if commit.IsZero() {
		b.WriteString("\nNo commits yet\n\n")
	}
	merging := r.writeState(&b, len(conflicts) > 0)
	var unstage []string
	switch {
	case merging:
	case commit.IsZero():
		unstage = []string{"rm --cached <file>...\" to unstage"}
	default:
		unstage = []string{"restore --staged <file>...\" to unstage"}
	}
	add, resolve := "add", "add <file>...\" to mark resolution"
	if slices.ContainsFunc(unstaged, func(c *change) bool { return c.to == nil }) {
		add = "add/rm"
	}
	for _, stages := range conflicts {
		if stages != 6 && stages != 7 {
			resolve = "add/rm <file>...\" as appropriate to mark resolution"
		}
	}
	section(&b, "Changes to be committed", staged, describe, unstage...)
	section(&b, "Unmerged paths", sortedKeys(conflicts), func(name string) string {
		return fmt.Sprintf("%-17s%s", conflictLabels[conflicts[name]], QuotePath(name))
	}, resolve)
	section(&b, "Changes not staged for commit", unstaged, describe,
		add+" <file>...\" to update what will be committed", "restore <file>...\" to discard changes in working directory")
	section(&b, "Untracked files", untracked, QuotePath, "add <file>...\" to include in what will be committed")
	if len(staged) == 0 {
		b.WriteString(nothingStaged(len(unstaged)+len(conflicts) > 0, len(untracked) > 0, commit.IsZero(), merging))
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// nothingStaged is the last line of a status where nothing is staged.
func nothingStaged(changed, untracked, first, merging bool) string {
	switch {
	case changed:
		return "no changes added to commit (use \"git add\" and/or \"git commit -a\")\n"
	case untracked:
		return "nothing added to commit but untracked files present (use \"git add\" to track)\n"
	case first:
		return "nothing to commit (create/copy files and use \"git add\" to track)\n"
	case !merging:
		return "nothing to commit, working tree clean\n"
	}
	return ""
}

// conflictLabels are by the stages that there are: 1 is the common ancestor, 2 ours, 4 theirs.
var conflictLabels = []string{
	1: "both deleted:", 2: "added by us:", 3: "deleted by them:", 4: "added by them:", 5: "deleted by us:", 6: "both added:", 7: "both modified:",
}

// writeHead writes the branch, and how it stands to the one that it follows.
func (r *Repository) writeHead(b *strings.Builder, branch plumbing.ReferenceName, commit plumbing.Hash) error {
	if branch == "" {
		if r.has("rebase-merge") || r.has("rebase-apply") {
			b.WriteString("Not currently on any branch.\n")
			return nil
		}
		at, name := r.detached(commit)
		fmt.Fprintf(b, "HEAD detached %s %s\n", at, name)
		return nil
	}
	fmt.Fprintf(b, "On branch %s\n", branch.Short())
	follows, name := r.upstream(branch.Short())
	if follows == "" || commit.IsZero() {
		return nil
	}
	other, err := r.reference(follows)
	if err != nil {
		fmt.Fprintf(b, "Your branch is based on '%s', but the upstream is gone.\n  (use \"git branch --unset-upstream\" to fixup)\n\n", name)
		return nil //nolint:nilerr // that there is none is what is told
	}
	ahead, behind, err := r.apart(commit, other)
	if err != nil {
		return err
	}
	switch {
	case ahead == 0 && behind == 0:
		fmt.Fprintf(b, "Your branch is up to date with '%s'.\n\n", name)
	case behind == 0:
		fmt.Fprintf(b, "Your branch is ahead of '%s' by %s.\n  (use \"git push\" to publish your local commits)\n\n", name, commits(ahead))
	case ahead == 0:
		fmt.Fprintf(b, "Your branch is behind '%s' by %s, and can be fast-forwarded.\n"+
			"  (use \"git pull\" to update your local branch)\n\n", name, commits(behind))
	default:
		fmt.Fprintf(b, "Your branch and '%s' have diverged,\nand have %d and %d different commits each, respectively.\n"+
			"  (use \"git pull\" to merge the remote branch into yours)\n\n", name, ahead, behind)
	}
	return nil
}

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

// upstream is the branch that a branch follows, and what it is called.
func (r *Repository) upstream(branch string) (plumbing.ReferenceName, string) {
	remote, merge := r.conf.get("branch."+branch+".remote"), r.conf.get("branch."+branch+".merge")
	short, ok := strings.CutPrefix(merge, "refs/heads/")
	switch {
	case !ok || remote == "":
		return "", ""
	case remote == ".":
		return plumbing.ReferenceName(merge), short
	}
	return plumbing.NewRemoteReferenceName(remote, short), remote + "/" + short
}

// detached says where HEAD is that is at no branch: at what was checked out, or from it if it has
// moved on.
func (r *base) detached(commit plumbing.Hash) (at, name string) {
	text, err := readInRoot(r.dir, "logs/HEAD")
	name = r.shorten(commit)
	if err != nil {
		return "at", name
	}
	for _, line := range slices.Backward(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")) {
		fields, message, ok := strings.Cut(line, "\t")
		to, found := strings.CutPrefix(message, "checkout: moving from ")
		if !ok || !found {
			continue
		}
		_, to, _ = strings.Cut(to, " to ")
		hashes := strings.Fields(fields)
		if len(hashes) < 2 {
			break
		}
		there := plumbing.NewHash(hashes[1])
		if label, ok := r.label(to, there); ok {
			name = label
		} else {
			name = r.shorten(there)
		}
		if there != commit {
			return "from", name
		}
		return "at", name
	}
	return "at", name
}

// label is a name that was checked out, if it is a tag or a remote branch that is still there.
func (r *base) label(name string, at plumbing.Hash) (string, bool) {
	for _, prefix := range []string{"refs/tags/", "refs/remotes/"} {
		h, err := r.reference(plumbing.ReferenceName(prefix + name))
		if err != nil {
			continue
		}
		if t, _, err := r.read(plumbing.AnyObject, h); err == nil && t == plumbing.TagObject {
			if c, err := r.peel(name, h); err == nil {
				h = c.Hash
			}
		}
		if h == at {
			return name, true
		}
	}
	return "", false
}

// has reports whether git has a file about something that is under way.
func (r *Repository) has(name string) bool {
	_, err := r.dir.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// writeState writes what is under way, and reports whether it is a merge.
func (r *Repository) writeState(b *strings.Builder, conflicts bool) bool {
	switch {
	case r.has("MERGE_HEAD"):
		if conflicts {
			b.WriteString("You have unmerged paths.\n  (fix conflicts and run \"git commit\")\n  (use \"git merge --abort\" to abort the merge)\n\n")
		} else {
			b.WriteString("All conflicts fixed but you are still merging.\n  (use \"git commit\" to conclude merge)\n\n")
		}
		return true
	case r.has("rebase-merge"), r.has("rebase-apply"):
		b.WriteString("You are currently rebasing.\n\n")
	case r.has("CHERRY_PICK_HEAD"):
		b.WriteString("You are currently cherry-picking.\n\n")
	case r.has("REVERT_HEAD"):
		b.WriteString("You are currently reverting.\n\n")
	case r.has("BISECT_LOG"):
		b.WriteString("You are currently bisecting.\n\n")
	}
	return false
}

// section writes a part of the status, unless it is empty: a heading, what can be done, and a line for
// each file.
func section[T any](b *strings.Builder, heading string, list []T, line func(T) string, hints ...string) {
	if len(list) == 0 {
		return
	}
	b.WriteString(heading + ":\n")
	for _, hint := range hints {
		b.WriteString("  (use \"git " + hint + ")\n")
	}
	for _, file := range list {
		b.WriteString("\t" + line(file) + "\n")
	}
	b.WriteByte('\n')
}

// describe is the line of a change.
func describe(c *change) string {
	label, name := "modified:", QuotePath(c.path())
	switch {
	case c.from == nil:
		label = "new file:"
	case c.to == nil:
		label = "deleted:"
	case c.from.path != c.to.path:
		label, name = "renamed:", QuotePath(c.from.path)+" -> "+name
	case kind(c.from.mode) != kind(c.to.mode):
		label = "typechange:"
	case c.to.mode == filemode.Submodule:
		name += " (new commits)"
	}
	return fmt.Sprintf("%-12s%s", label, name)
}
