package server

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
)

// encodedCapabilities are capabilities with their texts.
func encodedCapabilities(list []Capability) ([]Capability, error) {
	own := slices.Clone(list)
	for i := range own {
		entry := &own[i]
		if entry.Name == "" || wire.KnowsMember(reflect.TypeFor[mcp.ServerCapabilities](), entry.Name) {
			return nil, fmt.Errorf("%q is no name for a capability of an extension", entry.Name)
		}
		var err error
		if entry.text, err = encodedOrEmpty(entry.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name, err)
		}
		if entry.identified = entry.text; entry.Identified != nil {
			if entry.identified, err = encodedObject(entry.Identified); err != nil {
				return nil, fmt.Errorf("%s: %w", entry.Name, err)
			}
		}
	}
	return own, nil
}

// declare adds what the extension declares to a caller in a revision.
func (e *Extension) declare(caps *mcp.ServerCapabilities, f *revision.Facts, caller *principal.Principal) {
	if e.Revisions.include(f) {
		if caps.Extensions == nil {
			caps.Extensions = make(map[string]mcp.RawValue)
		}
		caps.Extensions[e.ID] = e.settings
	}
	for _, own := range e.Capabilities {
		if !own.Revisions.include(f) {
			continue
		}
		if caps.Extra == nil {
			caps.Extra = make(map[string]mcp.RawValue)
		}
		caps.Extra[own.Name] = own.identified
		if caller.Anonymous() {
			caps.Extra[own.Name] = own.text
		}
	}
}

// extendsResources reports whether an extension of a revision is about resources.
func (s *Server) extendsResources(f *revision.Facts) bool {
	return slices.ContainsFunc(s.extensions, func(e *Extension) bool { return e.Resources && e.Revisions.include(f) })
}

// shownByExtensions reports whether no extension of s hides an item from the caller.
func (s *Server) shownByExtensions(c *Call, it Item) bool {
	for _, visible := range s.viewers {
		if !visible(c, it) {
			return false
		}
	}
	return true
}

// withMembers adds what extensions add to the entry of a tool.
func (c *Call) withMembers(f listed, entry mcp.RawValue) mcp.RawValue {
	t, ok := f.(*tool)
	if !ok || len(c.srv.toolMembers) == 0 {
		return entry
	}
	it := t.item
	it.Name = t.def.Name
	for _, e := range c.srv.toolMembers {
		c.srv.guard(func() {
			members := e.ToolMembers(it, t.def, c.Revisions())
			longer, err := withMembers(entry, members)
			if err != nil {
				c.srv.log.Error("members of a tool's entry left out", "extension", e.ID, "tool", it.Name, "err", err)
				return
			}
			entry = longer
		})
	}
	return entry
}

// withMembers adds members to the text of an object.
func withMembers(text mcp.RawValue, members map[string]any) (mcp.RawValue, error) {
	o, err := wire.ParseObject(text, wire.Limits{Depth: maxDefinitionDepth})
	if err != nil || len(members) == 0 {
		return text, err
	}
	own := append([]byte{}, text[:len(text)-1]...)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, ok := o.Member(name); ok {
			return nil, fmt.Errorf("the entry has a member %q already", name)
		}
		value, err := wire.Marshal(members[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		own = append(wire.AppendString(append(own, ','), name), ':')
		own = append(own, value...)
	}
	return append(own, '}'), nil
}
