package skills

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A snapshot is all skills at one time. It never changes.
type snapshot struct {
	skills []*entry // by URI
	byURI  map[string]*entry
	files  map[string]*file
	// dirs are the children of each directory, sorted by URI.
	dirs map[string][]*mcp.Resource
}

// An entry is a skill as it is told to clients.
type entry struct {
	skill Skill
	text  mcp.RawValue
}

// A file is a file of a skill.
type file struct {
	def  *mcp.Resource
	hash string // of the content; of a dynamic file ""
	data []byte // the content, or of a dynamic file nil
	// A dynamic file is read from files.
	files fs.FS
	path  string
	skill *Skill // of a dynamic file
}

// A loader makes a snapshot of a source.
type loader struct {
	opts     *Options
	snap     *snapshot
	hold     int64 // bytes of all files
	children map[string]map[string]*mcp.Resource
	errs     []error
}

// load makes a snapshot of what the source has now. The error tells everything that is
// wrong with any skill.
func load(ctx context.Context, source Source, opts *Options) (*snapshot, error) {
	l := &loader{
		opts: opts, children: make(map[string]map[string]*mcp.Resource),
		snap: &snapshot{byURI: make(map[string]*entry), files: make(map[string]*file)},
	}
	err := source.Skills(ctx, func(b Bundle) {
		if err := l.add(&b); err != nil {
			l.errs = append(l.errs, fmt.Errorf("skill %s: %w", shown(b.Path), err))
		}
	})
	if err := errors.Join(append(l.errs, err)...); err != nil {
		return nil, err
	}
	s := l.snap
	if err := s.complete(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.skills, func(a, b *entry) int { return cmp.Compare(a.skill.URI, b.skill.URI) })
	s.dirs = make(map[string][]*mcp.Resource, len(l.children))
	for dir, byURI := range l.children {
		list := make([]*mcp.Resource, 0, len(byURI))
		for _, def := range byURI {
			list = append(list, def)
		}
		slices.SortFunc(list, func(a, b *mcp.Resource) int { return cmp.Compare(a.URI, b.URI) })
		s.dirs[dir] = list
	}
	return s, nil
}

// complete checks that each skill has the files of those that are within it, which may
// come from other sources.
//
// SEP-2640, Resources: "When resources is an array, it MUST be complete."
func (s *snapshot) complete() error {
	has := make(map[string]map[string]bool) // files of skills that others are within
	for _, inner := range s.skills {
		dir := strings.TrimSuffix(inner.skill.URI, "/"+skillFile)
		for i := strings.LastIndexByte(dir, '/'); i > 0; i = strings.LastIndexByte(dir, '/') {
			dir = dir[:i]
			outer := s.byURI[dir+"/"+skillFile]
			if outer == nil || outer.skill.Dynamic {
				continue
			}
			own := has[dir]
			if own == nil {
				own = make(map[string]bool, len(outer.skill.Files))
				for _, f := range outer.skill.Files {
					own[f.URI] = true
				}
				has[dir] = own
			}
			if err := inner.within(outer, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// within checks that the files of a skill are among those of the skill it is in.
func (e *entry) within(outer *entry, files map[string]bool) error {
	missing := !files[e.skill.URI] || e.skill.Dynamic
	for _, f := range e.skill.Files {
		missing = missing || !files[f.URI]
	}
	if missing {
		return fmt.Errorf("skills: %s is within %s, which does not have all its files: put it into the same folder, or elsewhere", e.skill.URI, outer.skill.URI)
	}
	return nil
}

// add reads one skill.
func (l *loader) add(b *Bundle) error {
	if err := checkPath(b.Path); err != nil {
		return err
	}
	if b.Files == nil {
		return errors.New("its file system is nil")
	}
	root := l.opts.Prefix + escapePath(b.Path)
	e := &entry{skill: Skill{URI: root + "/" + skillFile, Dynamic: b.Dynamic}}
	if l.snap.byURI[e.skill.URI] != nil {
		return errors.New("two sources have a skill of this path; move one of them")
	}
	read := &reading{loader: l, bundle: b, entry: e, root: root}
	if err := walk(b.Files, read.one); err != nil {
		return err
	}
	if read.main == nil {
		return fmt.Errorf("it has no %s", skillFile)
	}
	l.ancestors(root)
	if e.skill.Files != nil {
		slices.SortFunc(e.skill.Files, func(a, b File) int { return cmp.Compare(a.URI, b.URI) })
	}
	text, err := encodeSkill(&e.skill)
	if err != nil {
		return err
	}
	e.text = text
	l.snap.byURI[e.skill.URI] = e
	l.snap.skills = append(l.snap.skills, e)
	return nil
}

// checkPath refuses a path that cannot be part of a URI.
func checkPath(p string) error {
	if !fs.ValidPath(p) || p == "." {
		return errors.New("the path is not one such as acme/refunds")
	}
	return checkFileName(p)
}

// checkFileName refuses names that are misleading, or not the same on all systems.
func checkFileName(p string) error {
	if !utf8.ValidString(p) || strings.Contains(p, `\`) || strings.ContainsFunc(p, misleading) {
		return &FileError{Path: p, Reason: "the name holds a backslash or a character that is not shown; rename it"}
	}
	return nil
}

// reading is one skill while it is read.
type reading struct {
	*loader

	bundle *Bundle
	entry  *entry
	root   string // URI
	main   *file
	count  int
	total  int64
}

// one takes a file or directory of the skill.
func (r *reading) one(p string, d fs.DirEntry) error {
	if err := checkFileName(p); err != nil {
		return err
	}
	uri := r.root + "/" + escapePath(p)
	if d.IsDir() {
		r.child(uri, &mcp.Resource{URI: uri, Name: path.Base(p), MIMEType: mimeDirectory})
		r.directory(uri)
		return nil
	}
	if r.count++; r.opts.MaxFiles >= 0 && r.count > r.opts.MaxFiles {
		return &LimitError{Name: "it", What: "files", Max: int64(r.opts.MaxFiles), Option: "Options.MaxFiles"}
	}
	data, err := r.read(p)
	if err != nil {
		return err
	}
	f := &file{def: &mcp.Resource{URI: uri, Name: path.Base(p), MIMEType: mimeOf(p, data)}}
	if r.bundle.Dynamic {
		f.files, f.path, f.skill = r.bundle.Files, p, &r.entry.skill
	} else {
		sum := sha256.Sum256(data)
		f.hash, f.data = "sha256:"+hex.EncodeToString(sum[:]), data
		f.def.Size = new(int64(len(data)))
		r.entry.skill.Files = append(r.entry.skill.Files, File{URI: uri, Digest: f.hash, Size: int64(len(data))})
	}
	if path.Base(p) == skillFile {
		if err := r.skillFile(p, f, data); err != nil {
			return err
		}
	}
	return r.take(f)
}

// take puts a file into the snapshot. One of a nested skill is there already, or comes
// again: it must be the same.
func (r *reading) take(f *file) error {
	old := r.snap.files[f.def.URI]
	if old == nil {
		r.hold += int64(len(f.data))
		if r.opts.MaxMemory >= 0 && r.hold > r.opts.MaxMemory {
			return &LimitError{Name: "the catalog", What: "bytes", Max: r.opts.MaxMemory, Option: "Options.MaxMemory"}
		}
		r.snap.files[f.def.URI] = f
		r.child(f.def.URI, f.def)
		return nil
	}
	if old.hash != f.hash {
		return &FileError{Path: f.def.URI, Reason: "it changed while the skills were read, or two sources have it; load them again"}
	}
	return nil
}

// skillFile reads the frontmatter of a SKILL.md. That of a nested skill is a supporting
// file here, and is only told of by name and description, if it has them.
func (r *reading) skillFile(p string, f *file, data []byte) error {
	f.def.MIMEType = mimeMarkdown
	front, _, err := Frontmatter(data)
	own := Skill{URI: f.def.URI, Frontmatter: front}
	if p != skillFile {
		if err == nil && own.Name() != "" {
			f.def.Name, f.def.Description = own.Name(), own.Description()
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", skillFile, err)
	}
	if err := checkFrontmatter(&own, path.Base(r.bundle.Path)); err != nil {
		return fmt.Errorf("%s: %w", skillFile, err)
	}
	r.warnReserved(&own)
	f.def.Name, f.def.Description = own.Name(), own.Description()
	r.main, r.entry.skill.Frontmatter = f, front
	return nil
}

// maxDescription is the longest description, in characters.
const maxDescription = 1024

// checkFrontmatter refuses what the specification of Agent Skills refuses.
func checkFrontmatter(s *Skill, folder string) error {
	name, description := s.Name(), s.Description()
	if err := checkName(name); err != nil {
		return fmt.Errorf("frontmatter: %w", err)
	}
	if name != folder {
		return fmt.Errorf("frontmatter: the name %q is not that of its folder, %q; rename one of them", name, folder)
	}
	if strings.TrimSpace(description) == "" {
		return errors.New("frontmatter: it has no description; say in a sentence what the skill is for and when to use it")
	}
	if n := utf8.RuneCountInString(description); n > maxDescription {
		return fmt.Errorf("frontmatter: the description has %d characters, more than %d; move details below the frontmatter", n, maxDescription)
	}
	return nil
}

// reservedKeys begins keys of metadata that extensions of the protocol define.
const reservedKeys = "io.modelcontextprotocol/"

// warnReserved warns of keys that this extension does not define.
func (l *loader) warnReserved(s *Skill) {
	o, err := strictjson.ParseObject(s.Frontmatter, deep)
	if err != nil {
		return
	}
	metadata, _ := o.Object("metadata")
	for key := range metadata.All() {
		if strings.HasPrefix(key, reservedKeys) {
			l.opts.Logger.Warn("a key of a skill's metadata is reserved for extensions of the protocol", "skill", s.URI, "key", key)
		}
	}
}

// read reads a file, within what the skill may still have.
func (r *reading) read(p string) ([]byte, error) {
	limit := int64(-1)
	if r.opts.MaxBytes >= 0 {
		limit = r.opts.MaxBytes - r.total
	}
	data, err := readFile(r.bundle.Files, p, limit)
	if errors.Is(err, errTooLong) {
		return nil, &LimitError{Name: "it", What: "bytes", Max: r.opts.MaxBytes, Option: "Options.MaxBytes"}
	}
	r.total += int64(len(data))
	return data, err
}

var errTooLong = errors.New("the file is too long")

// readFile reads an ordinary file of at most limit bytes; below 0 is no limit.
func readFile(files fs.FS, p string, limit int64) ([]byte, error) {
	f, err := files.Open(p)
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &FileError{Path: p, Reason: "it is no ordinary file any more; load the skills again"}
	}
	// What was a file when the folder was listed may have become a link since.
	if now, err := fs.Lstat(files, p); err == nil && !now.Mode().IsRegular() {
		return nil, &FileError{Path: p, Reason: "it became a symbolic link; put the file itself there"}
	}
	r := io.Reader(f)
	if limit >= 0 {
		r = io.LimitReader(f, limit+1)
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("skills: reading %s: %w", p, err)
	}
	if limit >= 0 && int64(data.Len()) > limit {
		return nil, errTooLong
	}
	return bytes.Clone(data.Bytes()), nil // without the room that the buffer has left
}

// directory notes that a directory exists.
func (l *loader) directory(uri string) {
	if l.children[uri] == nil {
		l.children[uri] = make(map[string]*mcp.Resource)
	}
}

// child notes a child of its directory.
func (l *loader) child(uri string, def *mcp.Resource) {
	dir := uri[:strings.LastIndexByte(uri, '/')]
	l.directory(dir)
	l.children[dir][uri] = def
}

// ancestors notes the directories that lead to a skill.
func (l *loader) ancestors(root string) {
	l.directory(root)
	for strings.Contains(root[len(l.opts.Prefix):], "/") {
		name := root[strings.LastIndexByte(root, '/')+1:]
		l.child(root, &mcp.Resource{URI: root, Name: name, MIMEType: mimeDirectory})
		root = root[:strings.LastIndexByte(root, '/')]
	}
}
