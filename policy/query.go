package policy

import (
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
)

// A Query is an action to be decided about. It is only read.
type Query struct {
	// Kind is the kind of action; empty means [KindTool].
	Kind Kind
	// Server is the server's name in this host or gateway, Name the action's name, see [Kind].
	Server, Name string
	// Arguments are a JSON object, or nil for none: those of the tool or prompt, {"uri": …} for a
	// resource or a page, {"url": …} for a question with a URL. Arguments that are no valid JSON
	// object, also those with a member twice, cannot be judged by any predicate.
	Arguments mcp.RawValue
	// Annotations are those of the tool, or nil.
	Annotations *mcp.ToolAnnotations
	// Trusted says that a person declared the server's own words to count: without it no hint holds.
	Trusted bool
	// Principal is the caller; nil means anonymous.
	Principal *principal.Principal
	// Groups are the caller's groups beside Principal.Groups.
	Groups []string
	// Client is the name of the client program; empty means Principal.Client.
	Client string
	// View is the name of the view of a gateway through which the action came, or empty.
	View string
	// Labels are those of the conversation and of the action.
	Labels []Label
	// Time is now. If it is zero, a rule with From or Until matches unless it allows.
	Time time.Time
	// Dir is the absolute path of the folder at which the server begins relative paths in the arguments
	// of tools and prompts. A Dir of Windows also says that the server runs there, and any other that it
	// does not. If Dir is empty, or not absolute, both are unknown.
	Dir string
}

// A Verdict is what a policy decides, and why.
type Verdict struct {
	// Effect is the decision.
	Effect Effect
	// Rule is the rule that decided, or nil if none matched. It must not be changed.
	Rule *Rule
	// Unjudged says which argument the rule could not judge, and why, or is empty. Such a rule
	// matches to be on the safe side. It has no values of arguments in it.
	Unjudged string
}

// Why returns in one line which rule decided, where it was written, and which argument could not be
// judged.
func (v Verdict) Why() string {
	if v.Rule == nil {
		return "no rule matches"
	}
	s := "rule: " + v.Rule.String()
	if v.Unjudged != "" {
		s += "; " + v.Unjudged
	}
	return s
}
