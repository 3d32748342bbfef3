package skills

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// Options are what is not required of a catalog. Nil, and each zero field, means the
// default that is told.
type Options struct {
	// Prefix is what the URIs of skills begin with, before their paths: a scheme and
	// "://", perhaps with segments that end with a slash. Default "skill://".
	Prefix string
	// MaxFiles and MaxBytes are the most files of a skill, and bytes of all its files
	// together. Below 0 is no limit; above the defaults a client may refuse to load the
	// skill. Defaults [MaxFiles] and [MaxBytes].
	MaxFiles int
	MaxBytes int64
	// MaxMemory is the most bytes of all files of the catalog together, which are kept in
	// memory. Below 0 is no limit. Default 256 MiB.
	MaxMemory int64
	// Cache is how long entries, directories and files stay fresh. Whatever it says,
	// clients compare digests. Default: stale at once, private.
	Cache server.Cache
	// Revisions are those in which skills are offered; in others files are ordinary
	// resources. The specification is written for those without a handshake;
	// server.AllRevisions is for hosts that want skills in the others too, where results
	// have no ttlMs and cacheScope. Default server.Stateless.
	Revisions server.Revisions
	// NoDirectories leaves out resources/directory/read. Default false.
	NoDirectories bool
	// Logger takes warnings about skills. Default slog.Default.
	Logger *slog.Logger
}

// defaultMemory is the default of Options.MaxMemory.
const defaultMemory = 256 << 20

// with returns the options with their defaults.
func (o *Options) with() (*Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	if own.Prefix == "" {
		own.Prefix = "skill://"
	}
	if own.MaxFiles == 0 {
		own.MaxFiles = MaxFiles
	}
	if own.MaxBytes == 0 {
		own.MaxBytes = MaxBytes
	}
	if own.MaxMemory == 0 {
		own.MaxMemory = defaultMemory
	}
	if own.Logger == nil {
		own.Logger = slog.Default()
	}
	if !strings.HasSuffix(own.Prefix, "/") || checkURI(own.Prefix+"a") != nil {
		return nil, fmt.Errorf("skills: the prefix %q is not one such as skill:// or skill://acme/", own.Prefix)
	}
	return &own, nil
}

// A Catalog is the skills that a server offers. Its methods may be called by many
// goroutines at once.
//
// The bytes of all files are kept in memory: what is read is what was digested, also
// when a file has changed since, until [Catalog.Reload].
type Catalog struct {
	srv    *server.Server
	source Source
	opts   *Options

	loading sync.Mutex // held while the source is read
	now     atomic.Pointer[snapshot]
}

// Enable has a server offer the skills of a source: it declares the extension and the
// capability resources, and serves skills/list, skills/get, resources/directory/read and
// every file as a resource. It belongs before the first request, once for each server;
// [Join] makes one of several sources.
//
// The error tells everything that is wrong with the skills; nothing is offered then.
// opts may be nil.
//
// SEP-2640, Capability Negotiation.
func Enable(s *server.Server, source Source, opts *Options) (*Catalog, error) {
	if source == nil {
		return nil, errors.New("skills: the source is nil; use skills.Dir or skills.FS")
	}
	own, err := opts.with()
	if err != nil {
		return nil, err
	}
	c := &Catalog{srv: s, source: source, opts: own}
	c.now.Store(new(snapshot))
	if err := c.Reload(context.Background()); err != nil {
		return nil, err
	}
	if len(c.now.Load().skills) == 0 {
		own.Logger.Warn("there is no skill: no folder has a file " + skillFile)
	}
	s.Extend(c.extension())
	return c, nil
}

// extension is what the server declares and serves.
func (c *Catalog) extension() server.Extension {
	// SEP-2640: methods serve every client that saw the declaration, and none has
	// a header Mcp-Name.
	options := server.MethodOptions{Anyone: true, Cache: &c.opts.Cache, Revisions: c.opts.Revisions}
	target := options
	target.Target = "uri"
	e := server.Extension{
		ID:        ID,
		Revisions: c.opts.Revisions,
		Resources: true,
		Methods: []*server.ExtensionMethod{
			server.Method(methodList, c.list).With(options),
			server.Method(methodGet, c.get).With(target),
		},
	}
	if !c.opts.NoDirectories {
		e.Settings = settings{DirectoryRead: true}
		e.Methods = append(e.Methods, server.Method(methodDirectory, c.directory).With(target))
	}
	return e
}

// settings are those of the extension.
type settings struct {
	DirectoryRead bool `json:"directoryRead,omitzero"`
}

// Reload reads the source again. All skills are replaced at once, and clients that want
// to know are told that the resources changed. On an error, which tells everything that
// is wrong with the skills, the catalog stays as it is.
func (c *Catalog) Reload(ctx context.Context) error {
	c.loading.Lock()
	defer c.loading.Unlock()
	next, err := load(ctx, c.source, c.opts)
	if err != nil {
		return err
	}
	last := c.now.Load()
	if last.same(next) {
		return nil
	}
	// What is read, listed and digested comes from the snapshot alone. So new resources
	// come before it and do not exist until it is there, and old ones go after it.
	features := make([]server.Feature, 0, len(next.files))
	for uri, f := range next.files {
		features = append(features, c.resource(uri, f))
	}
	if err := c.srv.TryAdd(features...); err != nil {
		return fmt.Errorf("skills: %w", err)
	}
	c.now.Store(next)
	var gone []string
	for uri, f := range last.files {
		now := next.files[uri]
		if now == nil {
			gone = append(gone, uri)
		}
		if now == nil || now.hash != f.hash {
			c.srv.ResourceUpdated(uri)
		}
	}
	c.srv.RemoveResources(gone...)
	c.srv.ResourcesChanged()
	return nil
}

// same reports whether clients would see the same skills. Of dynamic ones they would:
// their files are read from where the newest load found them.
func (s *snapshot) same(other *snapshot) bool {
	if len(s.skills) != len(other.skills) || len(s.skills) == 0 {
		return false
	}
	for i, e := range s.skills {
		o := other.skills[i]
		if o.skill.Dynamic || string(e.text) != string(o.text) {
			return false
		}
	}
	for dir := range s.dirs { // an empty one is in no entry
		if other.dirs[dir] == nil {
			return false
		}
	}
	return len(s.dirs) == len(other.dirs)
}

// resource is a file as a resource.
func (c *Catalog) resource(uri string, f *file) server.Feature {
	r := server.Resource(uri, f.def.Name, func(ctx context.Context) (mcp.ResourceContents, error) {
		return c.read(ctx, uri)
	})
	return r.With(server.ResourceOptions{
		Description: f.def.Description, MIMEType: f.def.MIMEType, Size: f.def.Size, Cache: &c.opts.Cache,
	})
}

// read returns the bytes that the digest of a file is of.
func (c *Catalog) read(_ context.Context, uri string) (mcp.ResourceContents, error) {
	f := c.now.Load().files[uri]
	if f == nil {
		return mcp.ResourceContents{}, server.ErrNotFound
	}
	data := f.data
	if f.skill != nil {
		var err error
		if data, err = c.readDynamic(f); err != nil {
			return mcp.ResourceContents{}, err
		}
	}
	if isText(data) {
		return mcp.ResourceContents{MIMEType: f.def.MIMEType, Text: string(data)}, nil
	}
	return mcp.ResourceContents{MIMEType: f.def.MIMEType, Blob: data}, nil
}

// readDynamic reads a file of a dynamic skill. The frontmatter of its SKILL.md must be
// that of the entry: clients refuse any other.
func (c *Catalog) readDynamic(f *file) ([]byte, error) {
	data, err := readFile(f.files, f.path, c.opts.MaxBytes)
	if errors.Is(err, errTooLong) {
		return nil, &LimitError{Name: f.def.URI, What: "bytes", Max: c.opts.MaxBytes, Option: "Options.MaxBytes"}
	}
	if err != nil || f.path != skillFile {
		return data, err
	}
	if front, _, err := Frontmatter(data); err != nil || !strictjson.Equal(front, f.skill.Frontmatter) {
		return nil, mcp.NewError(mcp.CodeInternalError, "the frontmatter of %s is not that of its entry any more: the server must load its skills again", f.def.URI)
	}
	return data, nil
}
