package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/policy"
)

// A naming is how a client writes the names of server and tool as one.
type naming struct {
	// before stands before the server, between after it.
	before, between string
	// clean is what the client makes of a server's name.
	clean func(string) string
	// question says that "?" is a wildcard.
	question bool
	// splits says that a name can be split without knowing the servers.
	splits bool
	// whole says that the name of a server alone is all of its tools.
	whole bool
}

var (
	claudeNaming   = &naming{before: "mcp__", between: "__", clean: cleanName, splits: true, whole: true}
	opencodeNaming = &naming{between: "_", clean: cleanName, question: true}
	crushNaming    = &naming{before: "mcp_", between: "_", clean: func(s string) string { return s }}
	gooseNaming    = &naming{between: "__", clean: gooseName, splits: true}
)

// cleanName replaces what the names of tools for models may not have.
func cleanName(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, s)
}

// gooseName is the key that goose makes of the name of an extension.
func gooseName(s string) string {
	return cleanName(strings.ToLower(strings.Join(strings.Fields(s), "")))
}

// A pair is globs of server and tool.
type pair struct{ server, tool string }

// pairs are what a name with wildcards means for the servers that are known. For a rule that
// restricts they are all that it may mean; one that allows must mean one server alone.
func (n *naming) pairs(servers []*Server, name string, restricts bool) ([]pair, error) {
	if !restricts {
		return n.allowed(servers, name)
	}
	if name == "*" {
		return []pair{{"*", "*"}}, nil
	}
	var found []pair
	for _, s := range servers {
		for _, rest := range n.tools(s, name) {
			found = append(found, pair{policy.Quote(s.Name), policyGlob(rest, n.question, true)})
		}
	}
	server, tool, ok := n.split(name)
	if ok && (len(found) == 0 || strings.Contains(server, "*")) {
		found = append(found, pair{policyGlob(server, n.question, true), policyGlob(tool, n.question, true)})
	}
	return slices.Compact(found), nil
}

// allowed is the meaning of a name in a rule that allows.
func (n *naming) allowed(servers []*Server, name string) ([]pair, error) {
	var known []*Server
	for _, s := range servers {
		prefix := n.prefix(s)
		if strings.HasPrefix(name, prefix) || n.whole && name+n.between == prefix {
			known = append(known, s)
		}
	}
	if len(known) > 1 {
		// A server whose name is written as it is goes before those that are made to look
		// like it.
		exact := slices.DeleteFunc(slices.Clone(known), func(s *Server) bool { return n.clean(s.Name) != s.Name })
		if len(exact) != 1 || slices.ContainsFunc(known, func(s *Server) bool { return n.clean(s.Name) != exact[0].Name }) {
			return nil, fmt.Errorf("the name may mean a tool of several servers, such as %q and %q, and allows none", known[0].Name, known[1].Name)
		}
		known = exact
	}
	if len(known) == 1 {
		rest := n.tools(known[0], name)
		if len(rest) == 0 {
			return nil, nil // the name ends where that of a tool would begin
		}
		return []pair{{policy.Quote(known[0].Name), policyGlob(rest[0], n.question, false)}}, nil
	}
	server, tool, ok := n.split(name)
	if !ok || strings.Contains(server, "*") {
		return nil, nil
	}
	return []pair{{policy.Quote(server), policyGlob(tool, n.question, false)}}, nil
}

func (n *naming) prefix(s *Server) string { return n.before + n.clean(s.Name) + n.between }

// tools are globs of the tools of a server that a name means.
func (n *naming) tools(s *Server, name string) []string {
	prefix := n.prefix(s)
	if n.whole && name+n.between == prefix {
		return []string{"*"}
	}
	return slices.DeleteFunc(residuals(name, prefix, n.question), func(rest string) bool { return rest == "" })
}

// split takes a name apart at the first separator. Without one it may mean all tools.
func (n *naming) split(name string) (server, tool string, ok bool) {
	if name == "*" {
		return "*", "*", true
	}
	rest, ok := strings.CutPrefix(name, n.before)
	if !ok || !n.splits || rest == "" {
		return "", "", false
	}
	server, tool, found := strings.Cut(rest, n.between)
	if !found {
		if !n.whole {
			return "", "", false
		}
		tool = "*"
	}
	return server, tool, server != "" && tool != ""
}

// named adds the rules that a name means. It reports whether there are any, or a problem
// was told.
func (f *file) named(n *naming, effect policy.Effect, name string, line int) bool {
	found, err := n.pairs(f.l.config.Servers, name, effect != policy.Allow)
	if err != nil {
		f.l.problem(f.source(line), "", "%q: %v", name, err)
		return true
	}
	for _, p := range found {
		f.rule(policy.Rule{
			Effect: effect, Kind: policy.KindTool, Server: p.server, Name: p.tool,
			Source: policy.Source{File: f.Path, Line: line, Text: name},
		})
	}
	return len(found) > 0
}
