package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A Reason is the check that failed.
type Reason string

// The checks, in their order.
const (
	// ReasonUnlisted says that the entry has no such file. Nothing was sent.
	ReasonUnlisted Reason = "unlisted"
	// ReasonSize says that the file has another number of bytes.
	ReasonSize Reason = "size"
	// ReasonDigest says that the file has another digest.
	ReasonDigest Reason = "digest"
	// ReasonFrontmatter says that the frontmatter of SKILL.md is not that of the entry.
	ReasonFrontmatter Reason = "frontmatter"
)

// A VerifyError says that a file is not what the entry of its skill describes: it was
// changed on its way, or by the server since the entry was had. Nothing of the file is
// returned. [Get] has the entry as it is now; a person who approved the old one has to
// approve the new one.
//
// SEP-2640, Integrity and Verification.
type VerifyError struct {
	// URI is that of the file.
	URI string
	// Reason is the check that failed.
	Reason Reason
	// Detail says what was expected, and what came.
	Detail string
}

// Error names the file and what differs.
func (e *VerifyError) Error() string {
	return fmt.Sprintf("skills: %s is not what its skill's entry says: %s (%s)", e.URI, e.Detail, e.Reason)
}

// A Document is a SKILL.md that was loaded.
type Document struct {
	// URI is that of the file.
	URI string
	// Text is the whole file, with its frontmatter.
	Text string
	// Body is the text after the frontmatter.
	Body string
	// Verified says that the bytes are those of the entry's digest; false for dynamic
	// skills.
	Verified bool
}

// Content is a file of a skill that was read.
type Content struct {
	// URI is that of the file.
	URI string
	// MIMEType is what the server says of the type, perhaps nothing.
	MIMEType string
	// Data are the bytes of the file.
	Data []byte
	// Verified says that the bytes are those of the entry's digest; false for dynamic
	// skills.
	Verified bool
}

// Load reads the SKILL.md of an entry, and returns it if it is what the entry says: in
// size, digest and frontmatter, in that order. The frontmatter is compared member by
// member, numbers exactly, also of a dynamic skill. The caller keeps the entry for as
// long as the model sees the text, and reads other files with it.
//
// The error is a [VerifyError] for what differs, and that of [Skill.Check] for an
// entry that must not be loaded; nothing is sent then.
//
// SEP-2640, Frontmatter Verification.
func Load(ctx context.Context, c *client.Client, s *Skill) (*Document, error) {
	got, err := Read(ctx, c, s, s.URI)
	if err != nil {
		return nil, err
	}
	front, body, err := Frontmatter(got.Data)
	if err != nil {
		return nil, &VerifyError{URI: s.URI, Reason: ReasonFrontmatter, Detail: err.Error()}
	}
	if detail := difference(s.Frontmatter, front); detail != "" {
		return nil, &VerifyError{URI: s.URI, Reason: ReasonFrontmatter, Detail: detail}
	}
	return &Document{URI: s.URI, Text: string(got.Data), Body: string(body), Verified: got.Verified}, nil
}

// Read reads a file of an entry, by its URI ([Skill.Resolve] makes one of a relative
// path), and returns it if it is what the entry says: the entry lists it, and size and
// digest are right, in that order. The server is asked each time, whatever the client
// has kept. A file of a dynamic skill must lie in the skill's folder and have at most
// [MaxBytes]; nothing else of it can be checked.
//
// A SKILL.md that is read is no loaded skill: that is [Load]. The errors are those of
// Load.
//
// SEP-2640, Verification on Read; The Acting Window and the Held Entry.
func Read(ctx context.Context, c *client.Client, s *Skill, uri string) (*Content, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	listed, err := s.listed(uri)
	if err != nil {
		return nil, err
	}
	r, err := c.ReadResource(ctx, uri, &client.CallOptions{NoCache: true})
	if err != nil {
		return nil, err
	}
	if len(r.Contents) != 1 || r.Contents[0].URI != uri {
		return nil, fmt.Errorf("skills: reading %s: %w: it is not the one content of that URI", uri, client.ErrMalformed)
	}
	got := &Content{URI: uri, MIMEType: r.Contents[0].MIMEType, Data: r.Contents[0].Blob}
	if got.Data == nil {
		got.Data = []byte(r.Contents[0].Text)
	}
	if listed == nil {
		if len(got.Data) > MaxBytes {
			return nil, &LimitError{Name: uri, What: "bytes", Max: MaxBytes}
		}
		return got, nil
	}
	if err := listed.verify(got.Data); err != nil {
		return nil, err
	}
	got.Verified = true
	return got, nil
}

// listed returns what the entry says of a file; nil for one of a dynamic skill.
//
// SEP-2640: a host "MUST treat a read of an unlisted file within the skill as a
// verification failure".
func (s *Skill) listed(uri string) (*File, error) {
	if f, ok := s.file(uri); ok {
		return f, nil
	}
	dir, err := directoryOf(s.URI)
	if s.Dynamic && err == nil && checkURI(uri) == nil && strings.HasPrefix(uri, dir+"/") {
		return nil, nil
	}
	return nil, &VerifyError{URI: uri, Reason: ReasonUnlisted, Detail: "the entry of " + s.URI + " has no such file"}
}

// verify compares bytes with what an entry says of them.
func (f *File) verify(data []byte) error {
	if int64(len(data)) != f.Size {
		return &VerifyError{URI: f.URI, Reason: ReasonSize, Detail: fmt.Sprintf("it has %d bytes, not %d", len(data), f.Size)}
	}
	sum := sha256.Sum256(data)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != f.Digest {
		return &VerifyError{URI: f.URI, Reason: ReasonDigest, Detail: fmt.Sprintf("its digest is %s, not %s", got, f.Digest)}
	}
	return nil
}

// difference says where a frontmatter differs from that of an entry, or "".
func difference(want, got mcp.RawValue) string {
	w, err := strictjson.ParseObject(want, deep)
	if err != nil {
		return "that of the entry is no object"
	}
	g, err := strictjson.ParseObject(got, deep)
	if err != nil {
		return "that of the file is no object"
	}
	for name, value := range w.All() {
		own, ok := g.Member(name)
		switch {
		case !ok:
			return fmt.Sprintf("the file has no %q", name)
		case !strictjson.Equal(value, own):
			return fmt.Sprintf("%q is another value", name)
		}
	}
	for name := range g.All() {
		if _, ok := w.Member(name); !ok {
			return fmt.Sprintf("the entry has no %q", name)
		}
	}
	return ""
}
