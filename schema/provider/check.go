package provider

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/mcp"
)

// A Loss is something of a tool that a provider does not take. Its texts quote names of
// the tool, which are to be neutralised before they are shown.
type Loss struct {
	// What is refused or left out, as in the notes of Reduce.
	What string
	// Why is the provider's reason.
	Why string
	// Mend is what the author of the tool can do about it.
	Mend string
}

// Check returns what a provider does not take of a tool: what Reduce leaves out of its
// input schema, and a name that is refused. The error says that the schema is none.
func Check(t *mcp.Tool, p Profile) ([]Loss, error) {
	var list []Loss
	if l := p.refusesName(t.Name); l != nil {
		list = append(list, *l)
	}
	_, losses, err := reduce(t.InputSchema, p)
	return append(list, losses...), err
}

// A nameRule is what matches one of ToolNames, and in words.
type nameRule struct {
	pattern *regexp.Regexp
	words   string
}

var nameRules = sync.OnceValue(func() map[ToolNames]nameRule {
	return map[ToolNames]nameRule{
		ToolNamesPlain: {regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), "names of tools are 1 to 64 letters, digits, _ or -"},
		ToolNamesBegun: {regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`), "names of tools are 1 to 64 letters, digits, _, ., : or -, and begin with a letter or _"},
	}
})

// refusesName says why a tool cannot have its name, or returns nil.
func (p *Profile) refusesName(name string) *Loss {
	rule, ok := nameRules()[p.ToolNames]
	if !ok || rule.pattern.MatchString(name) {
		return nil
	}
	return &Loss{"the name " + schematext.Quote(name) + " is refused", rule.words, "rename the tool; until then hosts call it something else"}
}

// Reasons and mends of several losses.
const (
	whyLong     = "it is longer than is taken"
	mendShorter = "make the schema shorter"
	mendSay     = "none is needed where the server checks it; the description can tell it to the model"
)

// why says why a keyword is left out, and what can be done about it.
func (n *reduction) why(keyword string, value mcp.RawValue) (why, mend string) {
	root := []string{"oneOf", "anyOf", "allOf", "enum", "const", "not", "$ref"}
	text, err := schematext.Text(value)
	switch {
	case n.plain() && (keyword == "oneOf" || keyword == "anyOf"):
		return keyword + " is not taken for the arguments as a whole", "make one object of the alternatives, with fields that may be missing, or a tool of each"
	case n.plain() && slices.Contains(root, keyword):
		return keyword + " is not taken for the arguments as a whole", mendSay
	case !n.takes(keyword):
		return keyword + " is not taken", mendSay
	case keyword == "format" && err == nil:
		return "the format " + schematext.Quote(text) + " is not taken", mendSay
	case keyword == "enum" && n.tooMany(value):
		return fmt.Sprintf("at most %d values are listed", n.r.profile.MaxEnum), "make it a string, and name some values in the description"
	case keyword == "enum" && n.r.profile.Enums == EnumsStrings:
		return "listed values are strings", "list the values as strings"
	case keyword == "required":
		return "required fields must be described", "describe each in properties"
	case keyword == "pattern", keyword == "patternProperties":
		return "the pattern is not one that all take", "write it without what only some languages have, such as (?=...)"
	}
	return "it cannot stand beside the rest of the schema as it is taken", mendSay
}

// tooMany reports whether a list of values is longer than is taken.
func (n *reduction) tooMany(value mcp.RawValue) bool {
	list, err := schematext.Items(value)
	return err == nil && len(list) > n.r.profile.MaxEnum
}
