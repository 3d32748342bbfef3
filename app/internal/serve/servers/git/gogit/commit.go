package gogit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/mcp"
)

// stash is the reference of what git stash keeps. Its reflog has all but the newest.
const stash = "refs/stash"

// endMerge removes git's own files about a merge, a cherry-pick or a revert in progress. It keeps what the
// merge set aside in the stash.
func (r *Repository) endMerge(now time.Time) {
	if err := r.removeMerge(now); err != nil { // what the call was for is done
		r.notes = append(r.notes, "The merge, cherry-pick or revert in progress could not be ended: "+err.Error())
	}
}

func (r *Repository) removeMerge(now time.Time) error {
	gone := []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD"}
	if r.has("CHERRY_PICK_HEAD") || r.has("REVERT_HEAD") {
		if todo, err := readInRoot(r.dir, "sequencer/todo"); err == nil && bytes.Count(todo, []byte("\n")) <= 1 {
			gone = append(gone, "sequencer") // it was the last of several
		}
	}
	for _, name := range gone {
		if err := r.dir.RemoveAll(name); err != nil {
			return err
		}
	}
	aside, ok := r.autostash()
	if !ok {
		return nil
	}
	top, err := r.reference(stash)
	if err == nil || errors.Is(err, plumbing.ErrReferenceNotFound) {
		err = r.setReference(stash, false, top, aside, "autostash", now)
	}
	if err != nil {
		return err
	}
	r.notes = append(r.notes, "What git merge --autostash had set aside is in the stash: 'git stash pop' brings it back.")
	return r.dir.Remove("MERGE_AUTOSTASH")
}

// autostash returns the commit of what a merge set aside, if there is one that can be read.
func (r *Repository) autostash() (plumbing.Hash, bool) {
	_, aside, err := r.pseudo("MERGE_AUTOSTASH")
	if err == nil {
		_, err = r.readCommit(aside)
	}
	return aside, err == nil
}

// Commit makes a commit of what is staged.
func (r *Repository) Commit(message string, now time.Time) (hash plumbing.Hash, err error) {
	w, err := r.lockTree()
	if err != nil {
		return hash, err
	}
	defer w.lock.release()
	for _, e := range w.idx.Entries {
		if e.Stage != notConflicted {
			return hash, mcp.Errorf("there are unmerged paths, such as '%s': resolve the conflicts and stage the files first", e.Name)
		}
	}
	was, err := r.headTree()
	if err != nil {
		return hash, err
	}
	tree, err := r.writeTree(w.idx.Entries)
	if err != nil {
		return hash, err
	}
	c := &Commit{TreeHash: tree, Message: message}
	c.Author, c.Committer = r.signature("author", now), r.signature("committer", now)
	what := "commit"
	if _, at, err := r.pseudo("CHERRY_PICK_HEAD"); err == nil {
		picked, err := r.readCommit(at)
		if err != nil {
			return hash, err
		}
		what, c.Author = "commit (cherry-pick)", picked.Author
	}
	_, head, err := r.head()
	if err != nil {
		return hash, err
	}
	if !head.IsZero() {
		c.ParentHashes = append(c.ParentHashes, head)
	}
	merged, err := readInRoot(r.dir, "MERGE_HEAD")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return hash, err
	}
	for line := range strings.Lines(string(merged)) {
		text := strings.TrimSpace(line)
		parent := plumbing.NewHash(text)
		if _, err := r.readCommit(parent); err != nil || !plumbing.IsHash(text) {
			return hash, cmp.Or(r.ended(), mcp.Errorf(".git/MERGE_HEAD is damaged: %q is not the name of a commit", text))
		}
		c.ParentHashes = append(c.ParentHashes, parent)
	}
	if len(merged) == 0 && (tree == was || was.IsZero() && tree == emptyTree) {
		return hash, mcp.Errorf("nothing to commit: no change is staged; stage the files to commit with git_add first")
	}
	if hash, err = r.objects.write(plumbing.CommitObject, c.encode()); err != nil {
		return hash, err
	}
	switch {
	case head.IsZero():
		what = "commit (initial)"
	case len(merged) > 0:
		what = "commit (merge)"
	}
	if err := r.move(head, hash, what+": "+subject(message), now); err != nil {
		return hash, err
	}
	r.noteOmitted()
	r.endMerge(now)
	return hash, nil
}

// emptyTree is the name of the tree without entries.
var emptyTree = plumbing.ComputeHash(plumbing.TreeObject, nil)

// Notes returns a line for each thing that git would have done and the call has not: run a hook, sign the
// commit, or bring back what a merge set aside.
func (r *Repository) Notes() []string { return r.notes }

// noteOmitted notes what git commit would have done and Commit does not.
func (r *Repository) noteOmitted() {
	if hooks := r.skippedHooks(); hooks != "" {
		r.notes = append(r.notes, hooks)
	}
	if r.conf.is("commit.gpgsign", r.own.is("commit.gpgsign", false)) {
		r.notes = append(r.notes, "The commit is not signed, although commit.gpgSign is set: signing would start a program.")
	}
	if files := append(r.own.includes(), r.conf.includes()...); len(files) > 0 {
		r.notes = append(r.notes, "Settings in other files were not read, so their names, addresses, hooks and signing do not apply: "+strings.Join(files, ", ")+".")
	}
}

// skippedHooks is a sentence that names the hooks of git commit that the repository has, none of which
// is run; "" if it has none.
func (r *Repository) skippedHooks() string {
	if dir := cmp.Or(r.conf.get("core.hookspath"), r.own.get("core.hookspath")); dir != "" {
		return fmt.Sprintf("The hooks in %q (core.hooksPath) were not run.", dir)
	}
	var found []string
	for _, name := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"} {
		info, err := r.shared.Lstat("hooks/" + name)
		program := err == nil && (info.Mode()&fs.ModeSymlink != 0 || info.Mode()&0o111 != 0 || runtime.GOOS == "windows")
		if program || err != nil && !errors.Is(err, fs.ErrNotExist) { // the folder may be a link to elsewhere
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return ""
	case 1:
		return "The hook " + found[0] + " was not run."
	}
	return "The hooks " + strings.Join(found, ", ") + " were not run."
}

// writeTree writes the trees of the index, and returns the topmost.
func (r *Repository) writeTree(entries []*index.Entry) (plumbing.Hash, error) {
	staged := slices.DeleteFunc(slices.Clone(entries), func(e *index.Entry) bool { return e.IntentToAdd })
	slices.SortFunc(staged, func(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) }) // git does, others may not
	return r.writeFolder(staged, "")
}

// writeFolder writes the tree of entries whose paths begin with dir, and the trees in it.
func (r *Repository) writeFolder(entries []*index.Entry, dir string) (plumbing.Hash, error) {
	var tree []treeEntry
	for len(entries) > 0 {
		if err := r.step("writing folders"); err != nil {
			return plumbing.ZeroHash, err
		}
		e, n := entries[0], 1
		name, _, isDir := strings.Cut(e.Name[len(dir):], "/")
		in := treeEntry{Name: name, Mode: e.Mode, Hash: e.Hash}
		if isDir {
			below := dir + name + "/"
			for n < len(entries) && strings.HasPrefix(entries[n].Name, below) {
				n++
			}
			h, err := r.writeFolder(entries[:n], below)
			if err != nil {
				return h, err
			}
			in.Mode, in.Hash = filemode.Dir, h
		}
		tree = append(tree, in)
		entries = entries[n:]
	}
	slices.SortFunc(tree, func(a, b treeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return r.objects.write(plumbing.TreeObject, encodeTree(tree))
}

// sortName is what a tree is sorted by: folders as if their names ended with a slash.
func sortName(e treeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}
