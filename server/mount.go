package server

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/mcp"
)

// A Feature is something that a server offers: what Tool, RawTool, Resource,
// Text, Template, Directory, Prompt and their like make.
type Feature interface {
	// check says why the feature cannot be served, or nil.
	check() error
	// register makes the feature ready for a server, and puts it among those
	// that are added to it.
	register(s *Server, to *addition) error
}

// Add offers features, replacing those of the same name or URI that were added
// before, and tells clients that the lists changed. It panics if a feature
// cannot be served, or if two of features have the same name or URI;
// [Server.TryAdd] returns an error. Many features are added fastest in one call.
func (s *Server) Add(features ...Feature) {
	if err := s.TryAdd(features...); err != nil {
		panic("server: " + err.Error())
	}
}

// TryAdd is [Server.Add] with an error in the place of a panic: then none of the
// features has been added.
func (s *Server) TryAdd(features ...Feature) error {
	s.mustBeMade()
	var a addition
	for i, f := range features {
		if v := reflect.ValueOf(f); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("feature %d of %d is nil", i+1, len(features))
		}
		if err := f.check(); err != nil {
			return err
		}
		if err := f.register(s, &a); err != nil {
			return err
		}
	}
	if err := a.checkNeeds(s); err != nil {
		return err
	}
	if s.tools.put(a.tools) {
		s.hub.listChanged(KindTool)
	}
	if s.prompts.put(a.prompts) {
		s.hub.listChanged(KindPrompt)
	}
	changed := s.resources.put(a.resources)
	changed = s.templates.put(a.templates) || changed
	if s.dirs.put(a.dirs) || changed {
		s.hub.listChanged(KindResource)
	}
	return nil
}

// addition is what one call of Add brings, by name or URI.
type addition struct {
	tools     map[string]*tool
	prompts   map[string]*prompt
	resources map[string]*resource
	templates map[string]*template
	dirs      map[string]*directory
}

// added puts a feature among those that are added.
func added[T any](to *map[string]T, what, name string, feature T) error {
	if *to == nil {
		*to = make(map[string]T)
	}
	if _, twice := (*to)[name]; twice {
		return fmt.Errorf("two features are the %s %q; leave one out, or add them in two calls if the second is to replace the first", what, name)
	}
	(*to)[name] = feature
	return nil
}

// RemoveTools stops offering tools by name and reports whether any was there.
func (s *Server) RemoveTools(names ...string) bool {
	return s.removed(s.tools.remove(names...), KindTool)
}

// RemovePrompts stops offering prompts by name and reports whether any was there.
func (s *Server) RemovePrompts(names ...string) bool {
	return s.removed(s.prompts.remove(names...), KindPrompt)
}

// RemoveResources stops offering resources by URI, and templates and
// directories by template and prefix, and reports whether any was there.
func (s *Server) RemoveResources(uris ...string) bool {
	any := s.resources.remove(uris...)
	any = s.templates.remove(uris...) || any
	any = s.dirs.remove(uris...) || any
	return s.removed(any, KindResource)
}

func (s *Server) removed(any bool, k Kind) bool {
	if any {
		s.hub.listChanged(k)
	}
	return any
}

// mount is another server whose features appear under a prefix.
type mount struct {
	prefix string
	srv    *Server
}

// Mount offers the features of another server too: its tools and prompts as
// prefix_name, a tool's with at most 128 characters (what is longer is cut and ends
// in a digest), its resources under prefix+URI ("gh+file:///x"), also where a
// result of it links or embeds a resource that it offers, or a tool names the page
// that shows its results. Pages keep their scheme: "ui://gh+x". The other
// server's middleware and visibility hold for them, inside those of s, and its
// change notices reach the clients of s. The prefix follows the rules of URI
// schemes: a letter, then letters, digits, "-" or ".". A feature of s itself
// hides a mounted one of the same name. It panics if the prefix is unusable, if s
// is mounted in other or is other itself, and after the first request.
func (s *Server) Mount(prefix string, other *Server) {
	s.mustBeNew("Mount")
	if prefix == "" || strings.Trim(strings.ToLower(prefix), "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || prefix[0] < 'A' {
		panic("server.Mount: the prefix must be a letter followed by letters, digits, - or .: " + prefix)
	}
	if slices.ContainsFunc(s.mounts, func(m *mount) bool { return m.prefix == prefix }) {
		panic("server.Mount: two servers under the prefix " + prefix)
	}
	switch {
	case other == nil:
		panic("server.Mount: the server under the prefix " + prefix + " is nil")
	case other.holds(s):
		panic("server.Mount: the server would be mounted in itself under the prefix " + prefix)
	}
	s.mounts = append(s.mounts, &mount{prefix: prefix, srv: other})
	other.hub.mu.Lock()
	defer other.hub.mu.Unlock()
	other.hub.parents = append(other.hub.parents, func(n notice) {
		if uri, ok := strings.CutPrefix(n.topic, topicURI); ok {
			s.ResourceUpdated(mounted(prefix+"+", uri))
			return
		}
		s.hub.publish(n)
	})
}

// holds reports whether s is a server, or has it mounted at any depth.
func (s *Server) holds(inner *Server) bool {
	return s == inner || slices.ContainsFunc(s.mounts, func(m *mount) bool { return m.srv.holds(inner) })
}

// A mountPoint is a server that offers a feature, and what mounting put in front of
// the feature's name there. Each feature has its own server's mount point first, and
// then those of the servers that it reaches callers through.
type mountPoint struct {
	srv    *Server
	prefix string
	uris   string // what mounting put in front of the URIs of its first server
}

// mountedAt adds the mount point of a feature in s, where at is where it was mounted
// from, and prefix ends in "_" or "+".
func (s *Server) mountedAt(at []mountPoint, prefix string) []mountPoint {
	last := at[len(at)-1]
	return append(slices.Clone(at), mountPoint{srv: s, prefix: prefix + last.prefix, uris: prefix[:len(prefix)-1] + "+" + last.uris})
}

// mountedTool is the name of a tool under a prefix that ends in "_". Clients, and the
// models behind them, take no more than maxToolName characters. Some reject the whole
// list for a longer name. An error is no alternative: tools come and go while a server
// runs, and the prefix and the name often have two authors. The name is made of all
// prefixes and the tool's own name, so that Visible of each server in between is asked
// about the tool's name there. The specification does not limit names of prompts, so
// these stay as they are.
//
// spec 2026-07-28, server/tools, Tool Names: SHOULD be 1 to 128 characters.
func mountedTool(prefix, name string) string {
	full := prefix + name
	if prefix == "" || len(full) <= maxToolName {
		return full
	}
	return cutName(full, full)
}

// own is what a feature of s has in common with all features.
func (s *Server) own(k Kind, name string, labels, scopes []string) offered {
	return offered{item: Item{Kind: k, Name: name, Labels: labels, Scopes: scopes}, at: []mountPoint{{srv: s}}, texts: new(encodings)}
}

// mounted is what a copy of a feature has in common with it in s.
func (s *Server) mounted(f listed, prefix string) offered {
	o := f.common()
	return offered{item: o.item, at: s.mountedAt(o.at, prefix), texts: new(encodings)}
}

// within runs next, a feature, inside the middleware of the servers that it was
// mounted from, the innermost nearest to it.
func (c *Call) within(at []mountPoint, next Func) (Result, error) {
	if len(at) == 1 {
		return next(c)
	}
	for i, p := range at[:len(at)-1] {
		p.srv.freeze()
		next = p.srv.mapping(next)
		for _, mw := range slices.Backward(p.srv.middleware) {
			next = mw(next)
		}
		if len(p.srv.middleware) > 0 {
			next = p.srv.mapping(next) // errors of the middleware
		}
		next = p.srv.renaming(next, strings.TrimSuffix(at[i+1].uris, p.uris))
	}
	return next(c)
}

// mapping has Options.MapError of a mounted server see the errors of next that
// would be hidden.
func (s *Server) mapping(next Func) Func {
	if s.opts.MapError == nil {
		return next
	}
	return func(c *Call) (Result, error) {
		res, err := next(c)
		if err == nil || c.needsInput() || !c.hides(err) {
			return res, err
		}
		if m := s.opts.MapError(c, err); m != nil {
			err = m
		}
		return res, err
	}
}

// hides reports whether the caller would not learn what a feature's error says.
func (c *Call) hides(err error) bool {
	if c.row.Name == mcp.MethodToolsCall {
		res, shown := c.shownByTool(err)
		return res == nil && shown == nil
	}
	return c.srv.shown(c, err) == nil
}

// filters reports whether lists depend on the caller.
func (s *Server) filters() bool {
	return s.visible != nil || len(s.viewers) > 0 || s.varies.Load() || slices.ContainsFunc(s.mounts, func(m *mount) bool { return m.srv.filters() })
}

// seesAt reports whether the caller may see an item: by the rules of its own
// server and its extensions, and by those of each server it was mounted in, which
// knows it under the name that it has there.
func (c *Call) seesAt(it Item, at []mountPoint) bool {
	for _, p := range at {
		seen := it
		switch seen.Name = p.prefix + it.Name; it.Kind {
		case KindResource, KindTemplate:
			seen.Name = mounted(p.prefix, it.Name)
		case KindTool:
			seen.Name = mountedTool(p.prefix, it.Name)
		case KindPrompt:
		}
		if p.srv.visible != nil && !p.srv.visible(c, seen) {
			return false
		}
		if !p.srv.shownByExtensions(c, seen) {
			return false
		}
	}
	return true
}

// seesOffered reports whether the caller may see a feature.
func (c *Call) seesOffered(f listed) bool {
	if t, ok := f.(*tool); ok && !t.shownTo(c) {
		return false
	}
	o := f.common()
	return c.seesAt(o.item, o.at)
}

// A mountable feature can be offered by another server too.
type mountable[T any] interface {
	// under is a copy of the feature as s offers it, with its key there.
	under(s *Server, prefix string) (key string, copied T)
}

// merged caches the features of a server and of those mounted in it.
type merged[T mountable[T]] struct {
	mu    sync.Mutex
	stamp []uint64
	now   *snapshot[T]
}

// get returns the merged snapshot of s, made anew if a part has changed: its
// own features, and those of each mounted server that part gives.
func (m *merged[T]) get(s *Server, own *snapshot[T], part func(*Server) *snapshot[T]) *snapshot[T] {
	if len(s.mounts) == 0 {
		return own
	}
	return m.merge(s, own, part)
}

// merge is get for a server with mounts.
func (m *merged[T]) merge(s *Server, own *snapshot[T], part func(*Server) *snapshot[T]) *snapshot[T] {
	stamp := []uint64{own.generation}
	parts := make([]*snapshot[T], len(s.mounts))
	for i, mt := range s.mounts {
		parts[i] = part(mt.srv)
		stamp = append(stamp, parts[i].generation)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil && slices.Equal(stamp, m.stamp) {
		return m.now
	}
	items := maps.Clone(own.byKey)
	if items == nil {
		items = make(map[string]T)
	}
	sum := own.generation
	for i, mt := range s.mounts {
		sum += parts[i].generation
		for _, t := range parts[i].byKey {
			k, v := t.under(s, mt.prefix)
			if _, own := own.byKey[k]; !own { // what is mounted never takes the place of what is not
				items[k] = v
			}
		}
	}
	m.stamp = stamp
	m.now = &snapshot[T]{generation: sum, keys: slices.Sorted(maps.Keys(items)), byKey: items}
	return m.now
}

func (s *Server) allTools() *snapshot[*tool] {
	return s.merge.tools.get(s, s.tools.load(), (*Server).allTools)
}

func (s *Server) allPrompts() *snapshot[*prompt] {
	return s.merge.prompts.get(s, s.prompts.load(), (*Server).allPrompts)
}

func (s *Server) allTemplates() *snapshot[*template] {
	return s.merge.templates.get(s, s.templates.load(), (*Server).allTemplates)
}

func (s *Server) allDirs() *snapshot[*directory] {
	return s.merge.dirs.get(s, s.dirs.load(), (*Server).allDirs)
}

// allResources is the static resources and the files of directories.
func (s *Server) allResources() *snapshot[*resource] { return s.withFiles(s.resourcesWithoutFiles()) }

func (s *Server) resourcesWithoutFiles() *snapshot[*resource] {
	return s.merge.resources.get(s, s.resources.load(), (*Server).resourcesWithoutFiles)
}

// withFiles adds the files of directories, whose listing changes by itself.
func (s *Server) withFiles(snap *snapshot[*resource]) *snapshot[*resource] {
	dirs := s.allDirs()
	if len(dirs.keys) == 0 {
		return snap
	}
	items := make(map[string]*resource)
	for _, d := range dirs.byKey {
		maps.Copy(items, d.list())
	}
	maps.Copy(items, snap.byKey)
	return &snapshot[*resource]{generation: snap.generation, keys: slices.Sorted(maps.Keys(items)), byKey: items}
}

// checkOptions checks what all features have in common.
func checkOptions(what string, conflict error, m mcp.Meta, scopes []string) error {
	if conflict != nil {
		return fmt.Errorf("%s: %w", what, conflict)
	}
	if err := checkMeta(what, m); err != nil {
		return err
	}
	return checkScopes(what, scopes)
}

// checkMeta refuses a `_meta` key that the specification reserves (ruling 27).
func checkMeta(what string, m mcp.Meta) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if err := mcp.ValidMetaKey(k); err != nil {
			return fmt.Errorf("%s: _meta key %s: %w", what, k, err)
		}
		if mcp.ReservedMetaKey(k) {
			return fmt.Errorf("%s: _meta key %s is reserved for the protocol; use a prefix of your own, such as com.example/", what, k)
		}
	}
	return nil
}

// warnIcons warns of icons that clients must refuse (ruling 28).
func (s *Server) warnIcons(what string, icons []mcp.Icon) {
	for _, i := range icons {
		if !strings.HasPrefix(i.Src, "https://") && !strings.HasPrefix(i.Src, "data:") {
			s.log.Warn("icon will be refused by clients: its src is neither https nor data", "feature", what, "src", clip(i.Src))
		}
	}
}
