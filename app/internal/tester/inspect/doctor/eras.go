package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract/schemadiff"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/lists"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// eraLists are the lists that are compared, with the code of what is missing and the word for it.
var eraLists = []struct {
	kind          lists.Kind
	missing, word string
}{
	{lists.Tools, "MCP-ERA-001", "tool"},
	{lists.Prompts, "MCP-ERA-003", "prompt"},
	{lists.Resources, "MCP-ERA-005", "resource"},
	{lists.Templates, "MCP-ERA-005", "resource template"},
}

// eraCapabilities are the capabilities that every revision has. Completions, logging and extensions
// are not known to all of them.
var eraCapabilities = []string{
	mcp.CapTools, mcp.CapToolsListChanged, mcp.CapPrompts, mcp.CapPromptsListChanged,
	mcp.CapResources, mcp.CapResourcesListChanged, mcp.CapResourcesSubscribe,
}

// compareEras compares what is offered in all revisions with the newest one that is spoken.
func (e *examination) compareEras(ctx context.Context) {
	if len(e.offers) < 2 {
		return
	}
	newest := e.offers[0]
	again := &again{examination: e, version: newest.version}
	for _, o := range e.offers[1:] {
		e.otherCapabilities(newest, o)
		e.otherCapabilities(o, newest)
		for i := range eraLists {
			e.missing(ctx, again, i, newest, o)
		}
		e.otherTools(newest, o)
		e.otherPrompts(newest, o)
		e.otherTypes(newest, o)
	}
}

// otherCapabilities tells of those that one revision declares and another does not.
func (e *examination) otherCapabilities(from, in *offer) {
	for _, name := range eraCapabilities {
		if from.capabilities.Has(name) && !in.capabilities.Has(name) {
			e.found.add("MCP-ERA-006", contract.Path(append([]string{"capabilities"}, strings.Split(name, ".")...)...),
				fmt.Sprintf("%q is declared in %s, but not in other versions", name, from.version), "", in.version)
		}
	}
}

// An again is what the newest revision lists for another client: one that declares nothing. It is
// asked once, when something is missing in another revision.
type again struct {
	*examination

	version string
	asked   bool
	listed  map[string][]string // by method, as in offer; nil if it could not be asked
}

// lists asks, once.
func (a *again) lists(ctx context.Context, method string) (keys []string, ok bool) {
	if !a.asked {
		a.asked = true
		a.read(ctx)
	}
	keys, ok = a.listed[method]
	return keys, ok
}

func (a *again) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Revision)
	defer cancel()
	c, err := client.Connect(ctx, a.target.Dialer, a.options(a.version))
	if err != nil {
		return // told before, or the same would be told as in the revision itself
	}
	defer a.leave(c, a.version)
	a.listed = make(map[string][]string)
	for _, l := range eraLists {
		if !c.Capabilities().Has(l.kind.Capability) {
			a.listed[l.kind.Method] = nil
			continue
		}
		if list, err := lists.Read(ctx, lists.Of(c), l.kind, a.opts.Lists); err == nil {
			a.listed[l.kind.Method] = keysOf(l.kind, list.Items)
		}
	}
}

// missing tells of what one of two revisions lists and the other does not. It is not the fault of a
// revision if a client that declares nothing misses it in the newest one, too: the server offers it
// by what the client can do, which old revisions cannot say. Nor is it if the newest one lists now
// what it did not: the list has changed meanwhile.
func (e *examination) missing(ctx context.Context, a *again, i int, newest, o *offer) {
	l := &eraLists[i]
	here, ok := newest.listed[l.kind.Method]
	there, ok2 := o.listed[l.kind.Method]
	if !ok || !ok2 {
		return
	}
	for _, key := range without(here, there) {
		if plain, ok := a.lists(ctx, l.kind.Method); ok && !slices.Contains(plain, key) {
			e.found.add("MCP-ERA-008", contract.Path(l.kind.Member, key),
				fmt.Sprintf("the %s is listed in %s only for clients that accept input requests", l.word, newest.version), "", newest.version)
			continue
		}
		e.found.add(l.missing, contract.Path(l.kind.Member, key), fmt.Sprintf("the %s exists in %s, but not in other versions", l.word, newest.version), "", o.version)
	}
	for _, key := range without(there, here) {
		if plain, ok := a.lists(ctx, l.kind.Method); !ok || !slices.Contains(plain, key) {
			e.found.add(l.missing, contract.Path(l.kind.Member, key), fmt.Sprintf("the %s exists in %s, but not in other versions", l.word, o.version), "", newest.version)
		}
	}
}

// without is a list without what another one has, too.
func without(list, other []string) []string {
	has := make(map[string]bool, len(other))
	for _, key := range other {
		has[key] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(key string) bool { return has[key] })
}

// told are the effects of changes that touch no arguments.
var told = []schemadiff.Effect{
	schemadiff.Described, schemadiff.Titled, schemadiff.Defaulted, schemadiff.Carried, schemadiff.Annotated,
}

// otherTools tells of tools that take other arguments.
func (e *examination) otherTools(newest, o *offer) {
	here := make(map[string]*tool, len(o.tools))
	for _, t := range o.tools {
		here[t.name] = t
	}
	for _, t := range newest.tools {
		if other := here[t.name]; other != nil && differs(t, other) {
			e.found.add("MCP-ERA-002", t.path("inputSchema"), fmt.Sprintf("the schema differs from the one in %s", newest.version), "", o.version)
		}
	}
}

// differs reports whether two tools take other arguments.
func differs(a, b *tool) bool {
	before, err := json.Marshal(a.input)
	after, err2 := json.Marshal(b.input)
	if err != nil || err2 != nil || string(before) == string(after) {
		return false
	}
	changes, err := schemadiff.Compare(before, after)
	if err != nil {
		return false // told with the schema
	}
	return slices.ContainsFunc(changes, func(c schemadiff.Change) bool { return !slices.Contains(told, c.Effect) })
}

// otherPrompts tells of prompts that take other arguments.
func (e *examination) otherPrompts(newest, o *offer) {
	here := make(map[string]*mcp.Prompt, len(o.prompts))
	for _, p := range o.prompts {
		here[p.Name] = p
	}
	for _, p := range newest.prompts {
		other := here[p.Name]
		if other == nil {
			continue
		}
		if why := argumentsDiffer(p, other); why != "" {
			e.found.add("MCP-ERA-004", contract.Path("prompts", p.Name, "arguments"), fmt.Sprintf("compared with %s, %s", newest.version, why), "", o.version)
		}
	}
}

// argumentsDiffer says how the arguments of a prompt differ from those that it should have; "" if
// they do not.
func argumentsDiffer(want, got *mcp.Prompt) string {
	required := make(map[string]bool, len(got.Arguments))
	for _, a := range got.Arguments {
		required[a.Name] = a.Required
	}
	for _, a := range want.Arguments {
		must, ok := required[a.Name]
		switch {
		case !ok:
			return fmt.Sprintf("the argument %q is missing", a.Name)
		case must != a.Required:
			return fmt.Sprintf("whether the argument %q is required differs", a.Name)
		}
		delete(required, a.Name)
	}
	for _, a := range got.Arguments {
		if _, ok := required[a.Name]; ok {
			return fmt.Sprintf("the argument %q is new", a.Name)
		}
	}
	return ""
}

// otherTypes tells of resources and templates that have another type.
func (e *examination) otherTypes(newest, o *offer) {
	for _, l := range eraLists {
		if l.kind.Capability != mcp.CapResources {
			continue
		}
		for _, uri := range newest.listed[l.kind.Method] {
			is, ok := o.types[uri]
			if was := newest.types[uri]; ok && !sameType(was, is) {
				e.found.add("MCP-ERA-007", contract.Path(l.kind.Member, uri), fmt.Sprintf("the type is %q here, but in %s it is %q", is, newest.version, was), "", o.version)
			}
		}
	}
}
