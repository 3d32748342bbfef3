package gogit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// Commits, tags and trees are decoded and encoded here: the package of go-git that does it also verifies
// signatures, and brings OpenPGP and its ciphers into the program.

// A Commit is a commit, without its signature and the headers that the server does not show.
type Commit struct {
	Hash, TreeHash    plumbing.Hash
	ParentHashes      []plumbing.Hash
	Author, Committer Signature
	Message           string
}

// A Signature is who made a commit, and when.
type Signature struct {
	Name, Email string
	When        time.Time
}

// A treeEntry is what a tree has under a name.
type treeEntry struct {
	Name string
	Mode filemode.FileMode
	Hash plumbing.Hash
}

// headers are the lines in front of the message of a commit or a tag.
type headers string

// next takes the next line if it has the key.
func (h *headers) next(key string) (value string, ok bool) {
	line, rest, _ := strings.Cut(string(*h), "\n")
	found, value, _ := strings.Cut(line, " ")
	if found != key {
		return "", false
	}
	*h = headers(rest)
	return value, true
}

// headerOf returns the headers of a commit or a tag, and its message.
func headerOf(content []byte) (headers, string) {
	head, message, _ := strings.Cut(string(content), "\n\n")
	return headers(head), message
}

// objectName is the value of a header that has to be the name of an object.
func objectName(key, value string) (plumbing.Hash, error) {
	if !plumbing.IsHash(value) {
		return plumbing.ZeroHash, fmt.Errorf("its header %q is missing or damaged", key)
	}
	return plumbing.NewHash(value), nil
}

// decodeCommit reads a commit. As with git, a header that is not in its place is passed over, except for
// the tree.
func decodeCommit(h plumbing.Hash, content []byte) (c *Commit, err error) {
	c = &Commit{Hash: h}
	var in headers
	in, c.Message = headerOf(content)
	tree, _ := in.next("tree")
	if c.TreeHash, err = objectName("tree", tree); err != nil {
		return nil, err
	}
	for {
		name, ok := in.next("parent")
		if !ok {
			break
		}
		parent, err := objectName("parent", name)
		if err != nil {
			return nil, err
		}
		c.ParentHashes = append(c.ParentHashes, parent)
	}
	author, _ := in.next("author")
	committer, _ := in.next("committer")
	c.Author, c.Committer = decodeSignature(author), decodeSignature(committer)
	return c, nil
}

// decodeSignature reads "NAME <EMAIL> SECONDS ZONE", or as much of it as is there.
func decodeSignature(text string) (s Signature) {
	from, to := strings.LastIndexByte(text, '<'), strings.LastIndexByte(text, '>')
	if from < 0 || to < from {
		return s
	}
	s.Name, s.Email = strings.Trim(text[:from], " "), text[from+1:to]
	seconds, zone, _ := strings.Cut(strings.TrimPrefix(text[to+1:], " "), " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s
	}
	s.When = time.Unix(at, 0).UTC()
	const digits = len("+0000")
	if len(zone) < digits {
		return s
	}
	hours, errHours := strconv.Atoi(zone[:3])
	minutes, errMinutes := strconv.Atoi(zone[3:digits])
	if errHours != nil || errMinutes != nil {
		return s
	}
	if zone[0] == '-' {
		minutes = -minutes
	}
	s.When = s.When.In(time.FixedZone("", (hours*60+minutes)*60))
	return s
}

func (s Signature) encode() string {
	return fmt.Sprintf("%s <%s> %d %s", s.Name, s.Email, max(s.When.Unix(), 0), s.When.Format("-0700"))
}

func (c *Commit) encode() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "tree %s\n", c.TreeHash)
	for _, parent := range c.ParentHashes {
		fmt.Fprintf(&out, "parent %s\n", parent)
	}
	fmt.Fprintf(&out, "author %s\ncommitter %s\n\n%s", c.Author.encode(), c.Committer.encode(), c.Message)
	return out.Bytes()
}

// tagged is the object that a tag is of.
func tagged(content []byte) (plumbing.Hash, error) {
	in, _ := headerOf(content)
	name, _ := in.next("object")
	h, err := objectName("object", name)
	for _, key := range []string{"type", "tag"} {
		if _, ok := in.next(key); !ok && err == nil {
			err = fmt.Errorf("its header %q is missing", key)
		}
	}
	return h, err
}

// decodeTree reads a tree: for each entry "MODE NAME", NUL and the bytes of the object's name.
func decodeTree(content []byte) ([]treeEntry, error) {
	var list []treeEntry
	for in := bytes.NewBuffer(content); in.Len() > 0; {
		mode, errMode := in.ReadString(' ')
		name, errName := in.ReadString(0)
		var e treeEntry
		_, errHash := io.ReadFull(in, e.Hash[:])
		if errors.Join(errMode, errName, errHash) != nil || len(name) == 1 {
			return nil, errDamaged
		}
		m, err := filemode.New(mode[:len(mode)-1])
		if err != nil {
			return nil, errDamaged
		}
		e.Name, e.Mode = name[:len(name)-1], entryMode(m)
		list = append(list, e)
	}
	return list, nil
}

// entryMode is one of the modes that git uses now: trees of older versions have others.
func entryMode(m filemode.FileMode) filemode.FileMode {
	switch m & 0o170000 {
	case filemode.Dir:
		return filemode.Dir
	case 0o100000:
		if m&0o111 != 0 {
			return filemode.Executable
		}
		return filemode.Regular
	case filemode.Symlink:
		return filemode.Symlink
	}
	return filemode.Submodule
}

func encodeTree(list []treeEntry) []byte {
	var out bytes.Buffer
	for _, e := range list {
		fmt.Fprintf(&out, "%o %s\x00%s", uint32(e.Mode), e.Name, e.Hash[:])
	}
	return out.Bytes()
}
