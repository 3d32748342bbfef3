package config

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/policy"
)

// claudeSettings reads the permissions of Claude Code, and which servers it may start.
func claudeSettings(f *file) {
	f.claudeLimits("allowedMcpServers", false)
	f.claudeLimits("deniedMcpServers", true)
	f.claudeChoices(f.root)
	if only := f.root.get("allowManagedPermissionRulesOnly"); f.Scope == ScopeManaged && only.is(kindBool) && only.text == "true" {
		f.l.managedOnly = f.source(only.line)
	}
	permissions := f.root.get("permissions")
	if permissions == nil || permissions.kind == kindNull {
		return
	}
	if permissions.kind != kindObject {
		f.problem(permissions, "permissions: expected an object, found %s", permissions.kind)
		f.askAll(permissions.line)
		return
	}
	if mode := permissions.get("defaultMode"); mode.is(kindString) && mode.text == "bypassPermissions" {
		f.problem(mode, "the mode bypassPermissions is not taken over: what no rule allows is asked for")
	}
	for _, effect := range []policy.Effect{policy.Deny, policy.Ask, policy.Allow} {
		list := permissions.get(effect.String())
		if list == nil || list.kind == kindNull {
			continue
		}
		for _, n := range f.names("permissions."+effect.String(), list, effect, isClaudeMCP) {
			f.later(func() { f.claudeRule(effect, n.text, n.line) })
		}
	}
}

// names reads a list of rules that are names, and returns those that concern servers. Where
// a list that restricts cannot be read, everything is asked for.
func (f *file) names(key string, list *node, effect policy.Effect, concerns func(string) bool) []*node {
	var names []*node
	_, err := list.array()
	for _, item := range list.items {
		if err != nil || !concerns(item.text) {
			continue
		}
		if names = append(names, item); len(names) > maxRules {
			err = at(list, "there are more than %d rules", maxRules)
		} else if len(item.text) > maxName {
			err = at(item, "a rule is longer than %d bytes", maxName)
		}
	}
	if err == nil {
		return names
	}
	f.wrong(list, fmt.Errorf("%s: %w", key, err))
	if effect != policy.Allow {
		f.askAll(list.line)
	}
	return nil
}

// isClaudeMCP knows rules about servers, and those about everything.
func isClaudeMCP(rule string) bool {
	tool, _, _ := strings.Cut(rule, "(")
	return tool == "*" || strings.HasPrefix(tool, claudeNaming.before)
}

// claudeRule adds a rule of Claude Code that concerns servers.
func (f *file) claudeRule(effect policy.Effect, name string, line int) {
	allows := effect == policy.Allow
	source := f.source(line)
	tool, _, parentheses := strings.Cut(name, "(")
	server, _, _ := strings.Cut(strings.TrimPrefix(tool, claudeNaming.before), claudeNaming.between)
	switch {
	case parentheses && allows:
		f.l.problem(source, "", "%q: a rule about a server's tool has no parentheses, and allows nothing: "+
			"write a rule with where into parley.jsonc to allow some arguments", name)
	case parentheses:
		f.l.problem(source, "", "%q: a rule about a server's tool has no parentheses; the tool is asked for: "+
			"write a rule with where into parley.jsonc to deny some arguments", name)
		f.named(claudeNaming, policy.Ask, tool, line)
	case allows && (tool == "*" || strings.Contains(server, "*")):
		f.l.problem(source, "", "%q: a rule that allows names one server; it allows nothing: write mcp__SERVER__*", name)
	case allows && f.l.managedOnly.File != "" && f.Scope != ScopeManaged:
		f.l.problem(source, "", "%q allows nothing: the administrator lets only managed rules allow (%s)", name, f.l.managedOnly)
	case !f.named(claudeNaming, effect, name, line):
		f.l.problem(source, "", "%q names no server: write mcp__SERVER or mcp__SERVER__TOOL", name)
	}
}

// claudeChoices reads what the person answered Claude Code about servers of a project. A
// server that was refused there is off here; one that was accepted is not accepted here.
func (f *file) claudeChoices(n *node) {
	refused, accepted, off := n.get("disabledMcpjsonServers"), n.get("enabledMcpjsonServers"), n.get("disabledMcpServers")
	all := n.get("enableAllProjectMcpServers")
	f.l.deferred = append(f.l.deferred, func() {
		for _, s := range f.l.config.Servers {
			if s.Source.Client != ClientClaudeCode {
				continue
			}
			ofProject := s.Source.Scope == ScopeProject
			if line := off.lineOf(s.Name); line > 0 || ofProject && refused.lineOf(s.Name) > 0 {
				s.Disabled = true
				s.note(fmt.Sprintf("switched off for Claude Code in %s", f.source(max(line, refused.lineOf(s.Name)))))
			}
			line := accepted.lineOf(s.Name)
			if line == 0 && all.is(kindBool) && all.text == "true" {
				line = all.line
			}
			if ofProject && line > 0 && !f.Foreign {
				s.note(fmt.Sprintf("accepted for Claude Code in %s, which is no consent here", f.source(line)))
			}
		}
	})
}

// lineOf is the line of a text in an array, or 0. It may be called on nil.
func (n *node) lineOf(text string) int {
	if n == nil {
		return 0
	}
	for _, item := range n.items {
		if item.kind == kindString && item.text == text {
			return item.line
		}
	}
	return 0
}

// cursorPermissions reads tools that Cursor calls without a question.
func cursorPermissions(f *file) {
	list := f.root.get("mcpAllowlist")
	if list == nil {
		return
	}
	for _, n := range f.names("mcpAllowlist", list, policy.Allow, func(string) bool { return true }) {
		name, line := n.text, n.line
		server, tool, ok := strings.Cut(name, ":")
		if !ok || server == "" || tool == "" || strings.Contains(server, "*") {
			f.l.problem(f.source(line), "", "%q allows nothing: a rule that allows names one server, as server:tool or server:*", name)
			continue
		}
		f.later(func() {
			f.rule(policy.Rule{
				Effect: policy.Allow, Kind: policy.KindTool, Server: policy.Quote(server), Name: policyGlob(tool, false, false),
				Source: policy.Source{File: f.Path, Line: line, Text: name},
			})
		})
	}
}

// crushPermissions reads tools that crush calls without a question. Those of servers are
// named mcp_SERVER_TOOL.
func crushPermissions(f *file) {
	list := orEmpty(f.root.get("permissions")).get("allowed_tools")
	if list == nil {
		return
	}
	ofServer := func(name string) bool { return strings.HasPrefix(name, crushNaming.before) }
	for _, n := range f.names("permissions.allowed_tools", list, policy.Allow, ofServer) {
		f.later(func() {
			if !f.named(crushNaming, policy.Allow, n.text, n.line) {
				f.l.problem(f.source(n.line), "", "%q allows nothing: it names no server that is known", n.text)
			}
		})
	}
}

// goosePermissions reads what the person told goose about single tools. What a model told
// it (smart_approve) is not read.
func goosePermissions(f *file) {
	user := f.root.get("user")
	if user == nil {
		return
	}
	for _, level := range []struct {
		key    string
		effect policy.Effect
	}{{"never_allow", policy.Deny}, {"ask_before", policy.Ask}, {"always_allow", policy.Allow}} {
		list := user.get(level.key)
		if list == nil || list.kind == kindNull {
			continue
		}
		for _, n := range f.names("user."+level.key, list, level.effect, isGooseTool) {
			f.later(func() { f.named(gooseNaming, level.effect, n.text, n.line) })
		}
	}
}

// isGooseTool knows tools of extensions. Other names are parts of goose, and none has
// wildcards.
func isGooseTool(name string) bool {
	return strings.Contains(name, gooseNaming.between) && !strings.Contains(name, "*")
}
