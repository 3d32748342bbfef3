package gogit

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/parley-mcp/parley/mcp"
)

// byDate is a queue of commits, the newest first.
type byDate []*queued

type queued struct {
	commit *Commit
	order  int // of those with the same date, what came first
}

func (q byDate) Len() int { return len(q) }
func (q byDate) Less(i, j int) bool {
	a, b := q[i].commit.Committer.When.Unix(), q[j].commit.Committer.When.Unix()
	return a > b || a == b && q[i].order < q[j].order
}
func (q byDate) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byDate) Push(x any)   { *q = append(*q, x.(*queued)) } // only this package pushes
func (q *byDate) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// history calls f for the commits that can be reached, the newest first, until it says stop.
func (r *base) history(from plumbing.Hash, f func(*Commit) (more bool)) error {
	shallow := r.grafts()
	seen := map[plumbing.Hash]bool{from: true}
	var queue byDate
	order := 0
	push := func(h plumbing.Hash) error {
		c, err := r.readCommit(h)
		if err != nil {
			return err
		}
		order++
		heap.Push(&queue, &queued{c, order})
		return nil
	}
	if err := push(from); err != nil {
		return err
	}
	for len(queue) > 0 {
		c := heap.Pop(&queue).(*queued).commit // as above
		if !f(c) {
			return nil
		}
		if shallow[c.Hash] {
			continue
		}
		for _, parent := range c.ParentHashes {
			if seen[parent] {
				continue
			}
			seen[parent] = true
			if err := push(parent); err != nil {
				return err
			}
		}
	}
	return nil
}

// grafts are the commits whose parents a shallow clone does not have.
func (r *base) grafts() map[plumbing.Hash]bool {
	text, err := readInRoot(r.shared, "shallow")
	if err != nil {
		return nil
	}
	out := make(map[plumbing.Hash]bool)
	for line := range strings.Lines(string(text)) {
		out[plumbing.NewHash(strings.TrimSpace(line))] = true
	}
	return out
}

// reach is the set of commits that can be reached from one.
func (r *base) reach(from plumbing.Hash) (map[plumbing.Hash]bool, error) {
	set := make(map[plumbing.Hash]bool)
	err := r.history(from, func(c *Commit) bool {
		set[c.Hash] = true
		return true
	})
	return set, err
}

// apart counts the commits that only one of two can reach.
func (r *base) apart(a, b plumbing.Hash) (ahead, behind int, err error) {
	if a == b {
		return 0, 0, nil
	}
	ours, err := r.reach(a)
	if err != nil {
		return 0, 0, err
	}
	theirs, err := r.reach(b)
	if err != nil {
		return 0, 0, err
	}
	both := 0
	for h := range ours {
		if theirs[h] {
			both++
		}
	}
	return len(ours) - both, len(theirs) - both, nil
}

// Log lists commits from HEAD on, at most so many, -1 being all, and between two times, a zero one
// being none.
func (r *base) Log(most int, since, until time.Time) ([]*Commit, error) {
	_, head, err := r.head()
	if err != nil {
		return nil, err
	}
	if head.IsZero() {
		return nil, mcp.Errorf("the current branch has no commits yet")
	}
	var out []*Commit
	if most == 0 {
		return nil, nil
	}
	err = r.history(head, func(c *Commit) bool {
		when := c.Committer.When
		if (since.IsZero() || !when.Before(since)) && (until.IsZero() || !when.After(until)) {
			out = append(out, c)
		}
		return len(out) != most
	})
	return out, err
}

// Branches lists branches as `git branch` does: the local ones, the remote ones or all, and only those
// that have one commit and do not have another, unless these are "". References that are damaged follow.
func (r *base) Branches(kind, contains, notContains string, out io.Writer) error {
	keep, err := r.branchFilter(contains, notContains)
	if err != nil {
		return err
	}
	refs, broken, err := r.references()
	if err != nil {
		return err
	}
	head, at, err := r.headName()
	if err != nil {
		return err
	}
	list := func(line string, at plumbing.Hash) error {
		ok, err := keep(at)
		if err == nil && ok {
			_, err = io.WriteString(out, line+"\n")
		}
		return err
	}
	if head != "" {
		names, _, _ := r.follow(head) // one that is damaged is listed as such
		head = names[len(names)-1]
	} else if kind != "remote" {
		how, name := r.detached(at)
		if err := list("* (HEAD detached "+how+" "+name+")", at); err != nil {
			return err
		}
	}
	others, err := r.elsewhere()
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if err := r.step("reading branches"); err != nil {
			return err
		}
		end, at, err := r.endOf(ref)
		line, ok := branchLine(ref, end, head, others, kind)
		switch {
		case !ok, errors.Is(err, plumbing.ErrReferenceNotFound): // not asked for, or it leads to a branch that is gone
			continue
		case err != nil:
			broken = append(broken, ref.Name())
			continue
		}
		if err := list(line, at); err != nil {
			return err
		}
	}
	for _, name := range broken {
		if _, err := fmt.Fprintf(out, "warning: ignoring broken ref %s\n", name); err != nil {
			return err
		}
	}
	return nil
}

// endOf returns the reference that has the name of the object that ref stands for, and the object.
func (r *base) endOf(ref *plumbing.Reference) (end plumbing.ReferenceName, at plumbing.Hash, err error) {
	if ref.Type() != plumbing.SymbolicReference {
		return ref.Name(), ref.Hash(), nil
	}
	names, at, err := r.follow(ref.Name())
	return names[len(names)-1], at, err
}

// branchLine is the line of a branch, if the kind is to be shown. end is the reference that it leads to, or
// itself; others are checked out in other working trees.
func branchLine(ref *plumbing.Reference, end, head plumbing.ReferenceName, others map[plumbing.ReferenceName]string, kind string) (line string, ok bool) {
	name, symbolic := ref.Name(), ref.Type() == plumbing.SymbolicReference
	switch {
	case name.IsBranch() && kind != "remote":
		line = "  " + name.Short()
		if _, elsewhere := others[name]; name == head {
			line = "* " + name.Short()
		} else if elsewhere {
			line = "+ " + name.Short()
		}
		if symbolic {
			line += " -> " + end.Short()
		}
		return line, true
	case name.IsRemote() && kind != "local":
		line = "  " + strings.TrimPrefix(string(name), "refs/remotes/")
		if kind == "all" {
			line = "  " + strings.TrimPrefix(string(name), "refs/")
		}
		if symbolic {
			line += " -> " + strings.TrimPrefix(string(ref.Target()), "refs/remotes/")
		}
		return line, true
	}
	return "", false
}

// branchFilter makes the test that commits of branches have to pass.
func (r *base) branchFilter(contains, notContains string) (func(plumbing.Hash) (bool, error), error) {
	var known [2]map[plumbing.Hash]bool // nil for a commit that is not asked for
	for i, rev := range []string{contains, notContains} {
		if rev == "" {
			continue
		}
		c, err := r.Find(rev)
		if err != nil {
			return nil, err
		}
		known[i] = map[plumbing.Hash]bool{c.Hash: true}
	}
	return func(tip plumbing.Hash) (bool, error) {
		for i, commits := range known {
			if commits == nil {
				continue
			}
			has, err := r.leadsTo(tip, commits)
			if err != nil || has != (i == 0) {
				return false, err
			}
		}
		return true, nil
	}, nil
}

// leadsTo reports whether a commit is, or has among its ancestors, one that known says true of. It
// fills known in on the way, so that no commit is read twice.
func (r *base) leadsTo(tip plumbing.Hash, known map[plumbing.Hash]bool) (bool, error) {
	shallow := r.grafts()
	parents := make(map[plumbing.Hash][]plumbing.Hash)
	for stack := []plumbing.Hash{tip}; len(stack) > 0; {
		h := stack[len(stack)-1]
		if _, ok := known[h]; ok {
			stack = stack[:len(stack)-1]
			continue
		}
		list, read := parents[h]
		if !read {
			c, err := r.readCommit(h)
			if err != nil {
				return false, err
			}
			if !shallow[h] {
				list = c.ParentHashes
			}
			parents[h] = list
		}
		has, open := false, 0
		for _, p := range list {
			yes, ok := known[p]
			has = has || yes
			if !ok {
				open++
				if !read {
					stack = append(stack, p)
				}
			}
		}
		if has || open == 0 || read {
			known[h] = has
		}
	}
	return known[tip], nil
}
