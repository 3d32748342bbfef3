package config

import (
	"fmt"

	"github.com/parley-mcp/parley/policy"
)

// An opencodeRule is one of opencode's permissions: a glob of names and an action. Of those
// that match, the last counts.
type opencodeRule struct {
	name   string
	effect policy.Effect
	line   int
}

// opencodePermissions reads permission, and tools that are switched off.
func opencodePermissions(f *file) {
	if tools := f.root.get("tools"); tools.is(kindObject) {
		if err := tools.bounded(); err != nil {
			f.wrong(tools, fmt.Errorf("tools: %w", err))
			f.askAll(tools.line)
			return
		}
		for _, m := range tools.members {
			if m.value.kind == kindBool && m.value.text == "false" {
				f.later(func() { f.named(opencodeNaming, policy.Deny, m.name, m.line) })
			}
		}
	}
	permission := f.root.get("permission")
	if permission == nil || permission.kind == kindNull {
		return
	}
	rules, err := opencodeRules(permission)
	if err != nil {
		f.wrong(permission, fmt.Errorf("permission: %w", err))
		f.askAll(permission.line)
		return
	}
	f.later(func() {
		for i, r := range rules {
			f.opencodeRule(r, rules[:i])
		}
	})
}

// opencodeRules reads an action for everything, or actions by name.
func opencodeRules(n *node) ([]opencodeRule, error) {
	if n.kind == kindString {
		effect, err := opencodeEffect(n)
		return []opencodeRule{{"*", effect, n.line}}, err
	}
	if n.kind != kindObject {
		return nil, at(n, "expected an object, found %s", n.kind)
	}
	if err := n.bounded(); err != nil {
		return nil, err
	}
	var rules []opencodeRule
	for _, m := range n.members {
		action := m.value
		if action.kind == kindObject {
			// Patterns are matched with what a tool of opencode's own is about, such as a
			// shell command. Tools of servers have "*", so that the pattern "*" alone matches.
			if action = action.get("*"); action == nil {
				continue
			}
		}
		effect, err := opencodeEffect(action)
		if err != nil {
			return nil, err
		}
		rules = append(rules, opencodeRule{m.name, effect, m.line})
	}
	return rules, nil
}

// bounded refuses an object whose members are too many rules, or too long.
func (n *node) bounded() error {
	if len(n.members) > maxRules {
		return at(n, "there are more than %d rules", maxRules)
	}
	for _, m := range n.members {
		if len(m.name) > maxName {
			return at(&node{line: m.line}, "a rule is longer than %d bytes", maxName)
		}
	}
	return nil
}

func opencodeEffect(n *node) (policy.Effect, error) {
	switch {
	case n.kind == kindString && n.text == "allow":
		return policy.Allow, nil
	case n.kind == kindString && n.text == "ask":
		return policy.Ask, nil
	case n.kind == kindString && n.text == "deny":
		return policy.Deny, nil
	default:
		return policy.Deny, at(n, "an action is allow, ask or deny")
	}
}

// opencodeRule adds a rule. In the order of package policy a rule that restricts more wins
// wherever it stands; one that allows after it cannot be expressed, and allows nothing.
func (f *file) opencodeRule(r opencodeRule, earlier []opencodeRule) {
	concerns, err := opencodeNaming.pairs(f.l.config.Servers, r.name, true)
	if err != nil || len(concerns) == 0 {
		return // a tool of opencode's own
	}
	if r.effect == policy.Allow && r.name == "*" {
		f.l.problem(f.source(r.line), "", "%q: a rule that allows names one server; it allows nothing: write SERVER_*", r.name)
		return
	}
	for _, e := range earlier {
		if r.effect == policy.Deny || e.effect == policy.Allow || e.effect == r.effect || !overlap(r.name, e.name) {
			continue
		}
		what := "allows nothing"
		if r.effect == policy.Ask {
			what = "does not lift the denial"
		}
		f.l.problem(f.source(r.line), "", "%q %s: %q on line %d restricts what it names, and the last rule does not win here",
			r.name, what, e.name, e.line)
		if r.effect == policy.Allow {
			return
		}
	}
	if !f.named(opencodeNaming, r.effect, r.name, r.line) && r.effect == policy.Allow {
		f.l.problem(f.source(r.line), "", "%q allows nothing: a rule that allows names one server, as SERVER_*", r.name)
	}
}
