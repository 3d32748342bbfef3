package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
)

// Bounds of a directory's listing. What is beyond them can still be read.
const (
	maxDirFiles = 10_000
	maxDirDepth = 32
	// dirFresh is how long a listing is used before the disk is asked again.
	dirFresh = time.Second
)

// A DirectoryFeature is a directory of files on its way into a server.
type DirectoryFeature struct {
	d    *directory
	opts ResourceOptions
	// conflict is the error of options that With was given twice.
	conflict error
}

type directory struct {
	prefix string
	root   *os.Root
	opts   ResourceOptions
	at     []mountPoint
	mount  string // what mounting put in front of the prefix

	mu     sync.Mutex
	listed time.Time
	files  map[string]*resource
}

func (d *directory) under(s *Server, prefix string) (string, *directory) {
	m := &directory{prefix: d.prefix, root: d.root, opts: d.opts, at: s.mountedAt(d.at, prefix+"+"), mount: prefix + "+" + d.mount}
	return mounted(m.mount, m.prefix), m
}

// With sets options for all files and returns the feature. Size and Watch are
// ignored: they come from the disk. A later call adds to them, as for a resource.
func (f *DirectoryFeature) With(o ResourceOptions) *DirectoryFeature {
	f.conflict = errors.Join(f.conflict, mergeOptions(&f.opts, o))
	return f
}

// Directory offers the regular files below root as resources whose URI is
// prefix, an absolute URI that ends with "/", and their path. Nothing outside
// of root can be reached: paths are decoded once, checked, and opened through
// root, which follows no link out of it. Files whose name begins with "." are
// neither listed nor read. While a client subscribes to a file, its size and
// time are looked at every second.
//
// The size is checked before the bytes are read. It panics if prefix is no such
// URI; [NewDirectory] returns an error.
func Directory(prefix string, root *os.Root) *DirectoryFeature {
	return must(NewDirectory(prefix, root))
}

// NewDirectory is [Directory] with an error in the place of a panic.
func NewDirectory(prefix string, root *os.Root) (*DirectoryFeature, error) {
	if err := checkURI(prefix); err != nil || !strings.HasSuffix(prefix, "/") {
		return nil, fmt.Errorf("directory %q: the prefix must be an absolute URI that ends with a slash", clip(prefix))
	}
	if root == nil {
		return nil, fmt.Errorf("directory %q: nil root; open one with os.OpenRoot", clip(prefix))
	}
	return &DirectoryFeature{d: &directory{prefix: prefix, root: root}}, nil
}

func (f *DirectoryFeature) check() error {
	return checkOptions("directory "+f.d.prefix, f.conflict, f.opts.Meta, f.opts.Scopes)
}

func (f *DirectoryFeature) register(s *Server, to *addition) error {
	// A copy: the same feature may be added again, or to another server.
	d := &directory{prefix: f.d.prefix, root: f.d.root, opts: f.opts, at: []mountPoint{{srv: s}}}
	return added(&to.dirs, "directory", d.prefix, d)
}

// dotLookalikes are characters that look like a dot or a slash.
const dotLookalikes = "\u2024\uff0e\u2215\uff0f\u29f8\u2044\uff3c\u2216\u29f5"

// filePath gives the path below the root that a URI names.
func (d *directory) filePath(uri string) (string, error) {
	rest, ok := strings.CutPrefix(uri, mounted(d.mount, d.prefix))
	if !ok {
		return "", fs.ErrNotExist
	}
	p, err := url.PathUnescape(rest)
	if err != nil {
		return "", errors.New("the path is not percent-encoded right")
	}
	switch {
	case !fs.ValidPath(p) || p == ".": // no "..", no empty element, no leading slash
		return "", errors.New("the path leaves its directory")
	case !utf8.ValidString(p), strings.ContainsAny(p, "\\:\x00"+dotLookalikes), hasControl(p):
		return "", errors.New("the path holds a character that is not allowed")
	}
	for element := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(element, ".") {
			return "", fs.ErrNotExist // hidden files
		}
	}
	return p, nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// findFile looks a URI up among the directories, the first in order that has
// it. A file that exists but is hidden from the caller is nil.
func (c *Call) findFile(uri string) (f *found, exists bool) {
	dirs := c.srv.allDirs()
	for _, k := range dirs.keys {
		d := dirs.byKey[k]
		p, err := d.filePath(uri)
		if err != nil {
			continue
		}
		info, err := d.root.Stat(p)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if !c.seesAt(d.item(p), d.at) {
			return nil, true
		}
		return &found{
			mime: d.mimeOf(p), cache: d.opts.Cache, scopes: d.opts.Scopes, at: d.at,
			read:  func(c *Call) (*mcp.ReadResourceResult, error) { return d.read(c, p) },
			watch: func(ctx context.Context, changed func()) { d.poll(ctx, p, info, changed) },
		}, true
	}
	return nil, false
}

// lostFile reports whether a URI names a place for a file that the caller would
// see: a file that a client subscribed to and that is gone.
func (c *Call) lostFile(uri string) bool {
	for _, d := range c.srv.allDirs().byKey {
		p, err := d.filePath(uri)
		if err == nil && c.seesAt(d.item(p), d.at) {
			return true
		}
	}
	return false
}

// item is a file as the directory's own server knows it.
func (d *directory) item(p string) Item {
	return Item{Kind: KindResource, Name: d.prefix + encodePath(p), Labels: d.opts.Labels, Scopes: d.opts.Scopes}
}

// mimeOf is the type of a file by its name; "" is for the contents to tell.
func (d *directory) mimeOf(p string) string {
	if d.opts.MIMEType != "" {
		return d.opts.MIMEType
	}
	return mime.TypeByExtension(path.Ext(p))
}

// read reads a regular file of at most MaxResource bytes.
func (d *directory) read(c *Call, p string) (*mcp.ReadResourceResult, error) {
	f, err := d.root.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading a resource: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading a resource: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotFound
	}
	limit := c.srv.limits.MaxResource
	if limit >= 0 && info.Size() > int64(limit) {
		return nil, tooLarge(limit)
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+1))
	r := io.Reader(f)
	if limit >= 0 { // the file may grow while it is read
		r = io.LimitReader(f, int64(limit)+1)
	}
	if _, err := data.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("reading a resource: %w", err)
	}
	return one(fileContents(data.Bytes(), d.mimeOf(p))), nil
}

// fileContents makes text of what is text, and a blob of the rest.
func fileContents(data []byte, mimeType string) mcp.ResourceContents {
	if utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
		return mcp.ResourceContents{MIMEType: mimeType, Text: string(data)}
	}
	return mcp.ResourceContents{MIMEType: mimeType, Blob: data}
}

// poll calls changed whenever the file is not what it was. last is what it was
// before the subscriber was told of success, so that no change is missed.
func (d *directory) poll(ctx context.Context, p string, last fs.FileInfo, changed func()) {
	var lastErr error
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now, err := d.root.Stat(p)
		same := (err == nil) == (lastErr == nil)
		if same && err == nil {
			same = now.Size() == last.Size() && now.ModTime().Equal(last.ModTime()) && os.SameFile(now, last)
		}
		last, lastErr = now, err
		if !same {
			changed()
		}
	}
}

// list gives the files as resources, by their URI.
func (d *directory) list() map[string]*resource {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files != nil && time.Since(d.listed) < dirFresh {
		return d.files
	}
	d.listed = time.Now()
	d.files = make(map[string]*resource)
	// An unreadable part is left out; the rest is still worth listing.
	_ = fs.WalkDir(d.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case p == ".":
			return nil
		case strings.HasPrefix(e.Name(), "."), e.IsDir() && strings.Count(p, "/") >= maxDirDepth:
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case len(d.files) >= maxDirFiles:
			return fs.SkipAll
		case !e.Type().IsRegular():
			return nil
		}
		d.add(p, e)
		return nil
	})
	return d.files
}

// add makes a resource of a file, if its name can be one.
func (d *directory) add(p string, e fs.DirEntry) {
	uri := d.prefix + encodePath(p)
	if _, err := (&directory{prefix: d.prefix}).filePath(uri); err != nil {
		return
	}
	info, err := e.Info()
	if err != nil {
		return
	}
	def := &mcp.Resource{URI: mounted(d.mount, uri), Name: p, MIMEType: d.mimeOf(p), Size: new(info.Size())}
	def.Annotations, def.Icons, def.Meta = d.opts.Annotations, d.opts.Icons, d.opts.Meta
	o := offered{item: d.item(p), at: d.at, texts: new(encodings)}
	r := &resource{offered: o, def: def, cache: d.opts.Cache}
	r.read = func(c *Call) (*mcp.ReadResourceResult, error) { return d.read(c, p) }
	r.watch = func(ctx context.Context, changed func()) { d.poll(ctx, p, info, changed) }
	d.files[def.URI] = r
}

// encodePath percent-encodes each element of a path.
func encodePath(p string) string {
	elements := strings.Split(p, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}
