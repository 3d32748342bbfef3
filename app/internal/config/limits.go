package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/policy"
)

// A serverLimit is one of Claude Code's lists of servers. A list that denies holds for the
// servers of all files; so does one of the administrator that allows. Other lists that
// allow hold for Claude Code's own servers.
type serverLimit struct {
	denies  bool
	scope   Scope
	foreign bool
	source  Source
	entries []limitEntry
}

// A limitEntry names servers by name, URL or command.
type limitEntry struct {
	name, url string
	command   []string
	line      int
}

// claudeLimits reads a list of servers. A denial that cannot be read denies all servers of
// Claude Code's files, as nobody knows which one it means.
func (f *file) claudeLimits(key string, denies bool) {
	list := f.root.get(key)
	if list == nil || list.kind == kindNull {
		return
	}
	limit := serverLimit{denies: denies, scope: f.Scope, foreign: f.Foreign, source: f.source(list.line)}
	if list.kind != kindArray {
		f.problem(list, "%s: expected an array, found %s; nothing of Claude Code is started until it is corrected", key, list.kind)
		limit.denies = false
		f.l.limits = append(f.l.limits, limit)
		return
	}
	if len(list.items) > maxRules {
		f.problem(list, "%s: there are more than %d elements; nothing of Claude Code is started until it is corrected", key, maxRules)
		limit.denies = false
		f.l.limits = append(f.l.limits, limit)
		return
	}
	for _, item := range list.items {
		e := limitEntry{name: orEmpty(item.get("serverName")).text, url: orEmpty(item.get("serverUrl")).text, line: item.line}
		if words := item.get("serverCommand"); words != nil {
			e.command, _ = words.list()
		}
		if len(e.url) > maxName && !denies {
			f.problem(item, "%s: a URL is longer than %d bytes, and allows nothing", key, maxName)
			continue
		} else if len(e.url) > maxName {
			e.url = e.url[:maxName-1] + "*" // denies more
		}
		if e.name == "" && e.url == "" && len(e.command) == 0 {
			f.problem(item, "%s: an element has serverName, serverUrl or serverCommand; this one has none and names no server", key)
			continue
		}
		limit.entries = append(limit.entries, e)
	}
	f.l.limits = append(f.l.limits, limit)
}

// limitServers refuses servers that a list denies, or that no list allows. What would be
// started counts, with the values of variables; what inputs make of it, see Config.Permits.
func (l *loader) limitServers() {
	for _, s := range l.config.Servers {
		started := s
		if e, err := s.Expand(nil); err == nil {
			started = e
		}
		for i := range l.limits {
			if err := cmp.Or(l.limits[i].denied(s), l.limits[i].denied(started)); err != nil {
				s.Err = err
			}
		}
		if source, refused := l.notAllowed(started); refused && s.Err == nil {
			s.Err = fmt.Errorf("it is not among allowedMcpServers (%s): add it to that list to start it", source)
		}
	}
}

// denied is the error for a server that the list denies, or nil.
func (l *serverLimit) denied(s *Server) error {
	e := l.match(s)
	if !l.denies || e == nil {
		return nil
	}
	return fmt.Errorf("it is denied by deniedMcpServers (%s:%d): take it off that list to start it", l.source.File, e.line)
}

// Permits returns nil if the administrator's limits let a server be started that is in no
// file, or that Expand returned. Its name, transport, command, arguments and URL count.
func (c *Config) Permits(s *Server) error {
	for i := range c.limits {
		limit := &c.limits[i]
		if limit.scope != ScopeManaged {
			continue
		}
		if err := limit.denied(s); err != nil {
			return err
		}
		if !limit.denies && !limit.allows(s) {
			return fmt.Errorf("it is not among allowedMcpServers (%s): add it to that list to start it", limit.source)
		}
	}
	return nil
}

// notAllowed reports whether a list that allows leaves the server out. The lists of the
// person are one list; those of others stand for themselves.
func (l *loader) notAllowed(s *Server) (by Source, refused bool) {
	own := serverLimit{}
	for _, limit := range l.limits {
		switch {
		case limit.denies || limit.scope != ScopeManaged && s.Source.Client != ClientClaudeCode:
		case limit.scope != ScopeManaged && !limit.foreign:
			own.entries, own.source = append(own.entries, limit.entries...), limit.source
		case !limit.allows(s):
			return limit.source, true
		}
	}
	return own.source, own.source.File != "" && !own.allows(s)
}

// allows reports whether a list has the server. If it names commands, a process must have
// one of them, and if it names URLs, any other server one of those: its name is not enough.
func (l *serverLimit) allows(s *Server) bool {
	narrowed := *l
	narrowed.entries = slices.Clone(l.entries)
	process := s.Transport == TransportStdio
	byPlace := func(e limitEntry) bool { return process && len(e.command) > 0 || !process && e.url != "" }
	if slices.ContainsFunc(l.entries, byPlace) {
		narrowed.entries = slices.DeleteFunc(narrowed.entries, func(e limitEntry) bool { return !byPlace(e) })
	}
	return narrowed.match(s) != nil
}

// match returns the first entry that names the server, or nil.
func (l *serverLimit) match(s *Server) *limitEntry {
	command := append([]string{s.Command}, s.Args...)
	for i := range l.entries {
		e := &l.entries[i]
		if e.name != "" && e.name == s.Name || e.url != "" && s.URL != "" && len(s.URL) <= maxURL && matches(e.url, s.URL) ||
			len(e.command) > 0 && s.Command != "" && slices.Equal(e.command, command) {
			return e
		}
	}
	return nil
}

// noteBorrowed tells of entries of a project to which rules apply that the person may have
// written for another server of that name.
func (l *loader) noteBorrowed() {
	for _, s := range l.config.Servers {
		if !s.NeedsConsent {
			continue
		}
		for i := range l.config.Rules {
			r := &l.config.Rules[i]
			if r.Effect == policy.Allow && r.Server == policy.Quote(s.Name) {
				s.note(fmt.Sprintf("rules that allow hold for it by its name, such as %s", r.Source))
				break
			}
		}
	}
}
