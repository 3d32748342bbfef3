package contract

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract/schemadiff"
)

// A Class says what a change does to the clients of a server.
type Class string

// The classes.
const (
	// Breaking changes make clients fail that worked.
	Breaking Class = "breaking"
	// Risky changes make a model act differently, or are of unknown effect.
	Risky Class = "risky"
	// Safe changes leave alone what worked.
	Safe Class = "safe"
)

// Classes are all classes, the worst first.
func Classes() []Class { return []Class{Breaking, Risky, Safe} }

// AtLeast reports whether a class is as bad as another.
func (c Class) AtLeast(other Class) bool {
	return slices.Index(Classes(), c) <= slices.Index(Classes(), other)
}

// maxShown is how many bytes of a value a change has.
const maxShown = 400

// A Change is one difference between two contracts.
type Change struct {
	// Path is the place in the lock as a JSONPath (RFC 9535). A place in a schema is named as
	// if it had no references.
	Path string `json:"path"`
	// Class is what it does to clients.
	Class Class `json:"class"`
	// Before and After are the values there, shortened; one is empty where there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Why says why it is of that class.
	Why string `json:"why"`
}

// plainName is a name that a JSONPath has after a dot.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var pathEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// Path is the JSONPath of names from the root.
func Path(names ...string) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, name := range names {
		if plainName.MatchString(name) {
			b.WriteString("." + name)
		} else {
			b.WriteString("['" + pathEscapes.Replace(name) + "']")
		}
	}
	return b.String()
}

// shown shortens a value.
func shown(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// A verdict is a class and its reason.
type verdict struct {
	class Class
	why   string
}

// A rule is the verdict on a change of a schema of arguments and on one of results.
type rule struct{ input, output verdict }

var unknownEffect = verdict{Risky, "what this means is not known here"}

// rules are the verdicts on changes of schemas. What a server takes may widen, and what it gives
// may narrow.
var rules = map[schemadiff.Effect]rule{
	schemadiff.Narrows: {
		verdict{Breaking, "values are refused that were taken: a call that was right fails now"},
		verdict{Safe, "what is returned is still what was promised"},
	},
	schemadiff.Widens: {
		verdict{Safe, "every value that was taken is still taken"},
		verdict{Breaking, "something may be returned that the promise ruled out"},
	},
	schemadiff.Differs: {
		verdict{Breaking, "not every value that was taken is known to be taken still"},
		verdict{Breaking, "what may be returned is not what was promised"},
	},
	schemadiff.MemberAdded: {
		verdict{Safe, "the new argument may be left out"},
		verdict{Safe, "the result may have had more members before, too"},
	},
	schemadiff.MemberAddedClosed: {
		verdict{Safe, "the new argument may be left out"},
		verdict{Breaking, "the promise was that there are no other members (additionalProperties: false)"},
	},
	schemadiff.MemberRequired: {
		verdict{Breaking, "the new argument must be given: a call of before has none"},
		verdict{Safe, "the result may have had more members before, too"},
	},
	schemadiff.MemberRequiredClosed: {
		verdict{Breaking, "the new argument must be given: a call of before has none"},
		verdict{Breaking, "the promise was that there are no other members (additionalProperties: false)"},
	},
	schemadiff.MemberRemoved: {
		verdict{Breaking, "an argument that callers give is not there any more"},
		verdict{Risky, "a member that was sometimes there is not promised any more"},
	},
	schemadiff.MemberLost: {
		verdict{Breaking, "an argument that callers give is not there any more"},
		verdict{Breaking, "a member that was always there is not promised any more"},
	},
	schemadiff.MemberRenamed: {
		verdict{Breaking, "an argument seems to have got another name: callers give the old one"},
		verdict{Breaking, "a member seems to have got another name: callers read the old one"},
	},
	schemadiff.Described: {
		verdict{Risky, "the model writes arguments by this text"},
		verdict{Safe, "no caller must do anything else for it"},
	},
	schemadiff.Titled: {
		verdict{Safe, "a text for people"},
		verdict{Safe, "a text for people"},
	},
	schemadiff.Defaulted: {
		verdict{Risky, "a call without this argument may do something else"},
		verdict{Safe, "no caller must do anything else for it"},
	},
	schemadiff.Carried: {
		verdict{Breaking, "the argument is repeated in another header, or in none: a call with the headers of before is refused"},
		unknownEffect,
	},
	schemadiff.Annotated: {unknownEffect, unknownEffect},
}

// order sorts changes: the worst first, then by path.
func order(list []Change) {
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Classes(), a.Class), slices.Index(Classes(), b.Class)),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After),
		)
	})
}
