package policy

import (
	"fmt"
	"slices"
	"strings"
)

// ParsePattern reads a rule from its short form:
//
//	server/name          a tool, both with wildcards: "files/read_*", "*/delete_*", "files/*"
//	kind:server/name     another kind: "sampling:*/*", "resource:docs/https://example.com/*"
//	*                    every tool of every server; "kind:*" every action of that kind
//	mcp__server          every tool of a server, as Claude Code writes it
//	mcp__server__*       the same
//	mcp__server__name    one tool
//
// A rule with "mcp__" that allows must name its server: Claude Code ignores others. What Claude Code
// writes in parentheses has no meaning here, and is refused. Src becomes Rule.Source; errors begin
// with it.
func ParsePattern(e Effect, pattern string, src Source) (Rule, error) {
	r := Rule{Effect: e, Kind: KindTool, Source: src}
	err := r.setPattern(pattern)
	if err == nil {
		_, err = r.compile(newInterner())
	}
	if err != nil {
		return Rule{}, sourceError(src, "rule "+word(pattern), err)
	}
	return r, nil
}

func (r *Rule) setPattern(pattern string) error {
	if after, ok := strings.CutPrefix(pattern, "mcp__"); ok {
		return r.setToolName(after)
	}
	rest := pattern
	if kind, after, found := strings.Cut(pattern, ":"); found && !strings.Contains(kind, "/") {
		if !slices.Contains(kinds, Kind(kind)) {
			return unknownWord("kind", kind, kinds)
		}
		r.Kind, rest = Kind(kind), after
	}
	if rest == "*" {
		r.Server, r.Name = "*", "*"
		return nil
	}
	server, name, found := strings.Cut(rest, "/")
	if !found || server == "" || name == "" {
		return fmt.Errorf("%q has no server and name; write it as \"server/name\", \"server/*\" or \"*\"", pattern)
	}
	r.Server, r.Name = server, name
	return nil
}

// setToolName reads the short form of Claude Code after "mcp__".
func (r *Rule) setToolName(rest string) error {
	if strings.ContainsAny(rest, "()") {
		return fmt.Errorf("parentheses mean nothing for tools of servers; write the rule as an object with \"where\"")
	}
	server, name, found := strings.Cut(rest, "__")
	switch {
	case !found:
		name = "*"
	case name == "":
		return fmt.Errorf("the name of the tool is missing; write \"mcp__%s\" for all tools of the server", server)
	}
	switch {
	case server == "":
		return fmt.Errorf("the name of the server is missing; write it as \"mcp__server__tool\"")
	case r.Effect == Allow && strings.ContainsAny(server, "*?"):
		return fmt.Errorf("it allows tools of every server, which Claude Code ignores; write \"*\" if that is meant")
	}
	r.Server, r.Name = server, name
	return nil
}
