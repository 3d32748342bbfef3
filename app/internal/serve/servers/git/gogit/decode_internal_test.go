package gogit

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

const (
	nameA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	nameB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// A commit of any program is read, with headers that this one does not know and with some missing.
func TestDecodeCommit(t *testing.T) {
	at := time.Unix(1700000000, 0)
	ada := Signature{"Ada", "ada@example.com", at.In(time.FixedZone("", -90*60))}
	bob := Signature{"Bob <B", "bob", at.UTC()}
	tree, parent := plumbing.NewHash(nameA), plumbing.NewHash(nameB)
	for text, want := range map[string]*Commit{
		"tree " + nameA + "\nparent " + nameB + "\nparent " + nameA + "\nauthor Ada <ada@example.com> 1700000000 -0130\ncommitter Bob <B <bob> 1700000000 +0000\n\nfirst\n\nsecond\n": {
			TreeHash: tree, ParentHashes: []plumbing.Hash{parent, tree}, Author: ada, Committer: bob, Message: "first\n\nsecond\n",
		},
		"tree " + nameA + "\nauthor Ada <ada@example.com> 1700000000 -0130\ncommitter Bob <B <bob> 1700000000\ngpgsig -----BEGIN\n \n more\n -----END\nparent " + nameB + "\n\ntext": {
			TreeHash: tree, Author: ada, Committer: bob, Message: "text",
		},
		"tree " + nameA + "\ncommitter Bob <B <bob> 1700000000 +00\n": {TreeHash: tree, Committer: bob},
		"tree " + nameA + "\nauthor Ada":                              {TreeHash: tree},
		"tree " + nameA + "\nauthor Ada <ada@example.com> soon +0100\n\n": {
			TreeHash: tree, Author: Signature{Name: "Ada", Email: "ada@example.com"},
		},
		"":                                      nil,
		"\ntree " + nameA:                       nil,
		"tree " + nameA[1:]:                     nil,
		"author Ada <> 0 +0000\ntree " + nameA:  nil,
		"tree " + nameA + "\nparent\nauthor A":  nil,
		"tree " + nameA + "\nparent " + "x\n\n": nil,
	} {
		got, err := decodeCommit(plumbing.ZeroHash, []byte(text))
		if want == nil && err == nil || want != nil && err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		same := cmp.Comparer(func(a, b time.Time) bool { return a.Format(time.RFC3339) == b.Format(time.RFC3339) })
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestDecodeTag(t *testing.T) {
	for text, ok := range map[string]bool{
		"object " + nameA + "\ntype commit\ntag v1\ntagger Ada <> 0 +0000\n\nobject": true,
		"object " + nameA + "\ntype commit\ntag v1":                                  true,
		"object " + nameA + "\ntag v1\ntype commit\n":                                false,
		"object " + nameA + "\n\ntype commit\ntag v1\n":                              false,
		"type commit\nobject " + nameA + "\ntag v1\n":                                false,
		"object x\ntype commit\ntag v1\n":                                            false,
		"":                                                                           false,
	} {
		h, err := tagged([]byte(text))
		if (err == nil) != ok || ok && h != plumbing.NewHash(nameA) {
			t.Errorf("%q: %s, %v", text, h, err)
		}
	}
}

func TestDecodeTree(t *testing.T) {
	h := plumbing.NewHash(nameA)
	entry := func(head string) string { return head + "\x00" + string(h[:]) }
	for text, want := range map[string][]treeEntry{
		"": nil,
		entry("100664 a b") + entry("40000 b") + entry("100755 c"): {{"a b", filemode.Regular, h}, {"b", filemode.Dir, h}, {"c", filemode.Executable, h}},
		entry("120000 a") + entry("160000 b"):                      {{"a", filemode.Symlink, h}, {"b", filemode.Submodule, h}},
	} {
		got, err := decodeTree([]byte(text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"100644", "100644 a", "100644 a\x00", entry("100644 a")[:20], entry("100644 "), entry(" a"), entry("99 a"), entry("100644a")} {
		if got, err := decodeTree([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// What was read and written again reads the same: a repository may be of a stranger.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("tree " + nameA + "\nparent " + nameB + "\nauthor Ada <a@b> 1700000000 -0130\ncommitter B <b> 0 +0000\n\ntext\n"))
	f.Add([]byte("object " + nameA + "\ntype commit\ntag v1\n\n"))
	f.Add([]byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa40000 b\x00bbbbbbbbbbbbbbbbbbbb"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, err := tagged(content); err == nil && !bytes.HasPrefix(content, []byte("object ")) {
			t.Error("a tag without an object")
		}
		if c, err := decodeCommit(plumbing.ZeroHash, content); err == nil {
			again, err := decodeCommit(plumbing.ZeroHash, c.encode())
			anyTime := cmp.Comparer(func(_, _ time.Time) bool { return true }) // zones of days, and times before 1970
			if diff := cmp.Diff(c, again, anyTime); err != nil || diff != "" {
				t.Errorf("%q: %v\n%s", content, err, diff)
			}
		}
		if list, err := decodeTree(content); err == nil {
			again, err := decodeTree(encodeTree(list))
			if diff := cmp.Diff(list, again); err != nil || diff != "" {
				t.Errorf("%q: %v\n%s", content, err, diff)
			}
		}
	})
}
