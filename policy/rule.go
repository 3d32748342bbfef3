package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// An Effect is what a rule says about the actions that it matches. Deny is the strongest, then
// Approve, then Ask, then Allow.
type Effect uint8

// The effects.
const (
	// Ask means that the person is asked. It is the effect where no rule matches.
	Ask Effect = iota
	// Allow means that the action may be done without a question.
	Allow
	// Approve means that another person than the caller must agree. A host with one person treats
	// it as Ask.
	Approve
	// Deny means that the action is refused.
	Deny
)

var effectNames = []string{"ask", "allow", "approve", "deny"}

// byStrength lists the effects, the strongest first.
var byStrength = [...]Effect{Deny, Approve, Ask, Allow}

// String returns the effect as a word: "ask", "allow", "approve" or "deny".
func (e Effect) String() string { return wordOf(effectNames, int(e), "Effect") }

// MarshalText returns the effect as a word. It fails for a number that is no effect.
func (e Effect) MarshalText() ([]byte, error) {
	if int(e) >= len(effectNames) {
		return nil, fmt.Errorf("no such effect: %d; use a constant of package policy", e)
	}
	return []byte(effectNames[e]), nil
}

// UnmarshalText reads a word as String returns it.
func (e *Effect) UnmarshalText(text []byte) error {
	i := slices.Index(effectNames, string(text))
	if i < 0 {
		return unknownWord("effect", string(text), effectNames)
	}
	*e = Effect(i)
	return nil
}

// A Kind is the kind of an action.
type Kind string

// The kinds.
const (
	// KindTool is the call of a tool; the name is the tool's.
	KindTool Kind = "tool"
	// KindPrompt is the use of a prompt; the name is the prompt's.
	KindPrompt Kind = "prompt"
	// KindResource is the reading of a resource; the name is its URI.
	KindResource Kind = "resource"
	// KindSampling is a server's use of the model; the names are "request", before the model is
	// called, and "answer", before its answer is sent to the server.
	KindSampling Kind = "sampling"
	// KindElicitation is a server's question to the person; the names are "form" and "url".
	KindElicitation Kind = "elicitation"
	// KindRoots is a server's request for the roots; the name is "list".
	KindRoots Kind = "roots"
	// KindSkill is the loading of a skill; the name is the URI of its SKILL.md.
	KindSkill Kind = "skill"
	// KindApp is the display of a server's page; the name is its URI.
	KindApp Kind = "app"
)

var kinds = []Kind{
	KindTool, KindPrompt, KindResource, KindSampling, KindElicitation, KindRoots, KindSkill, KindApp,
}

// Kinds returns all kinds.
func Kinds() []Kind { return slices.Clone(kinds) }

// A Hint is something that the annotations of a tool say.
type Hint string

// The hints, see [mcp.ToolAnnotations]. An annotation that is absent has the specification's default:
// not read-only, destructive, not idempotent, open world.
const (
	// HintReadOnly says that the tool changes nothing.
	HintReadOnly Hint = "read-only"
	// HintNotDestructive says that the tool adds at most. It holds for a tool that is read-only.
	HintNotDestructive Hint = "not-destructive"
	// HintIdempotent says that a second call with the same arguments changes nothing more.
	HintIdempotent Hint = "idempotent"
	// HintClosedWorld says that the tool does not deal with the world outside.
	HintClosedWorld Hint = "closed-world"
)

var hints = []Hint{HintReadOnly, HintNotDestructive, HintIdempotent, HintClosedWorld}

// A Label says what a conversation has come into contact with.
type Label string

// The labels.
const (
	// LabelUntrusted says that the conversation has text of strangers in it.
	LabelUntrusted Label = "untrusted-input"
	// LabelPrivate says that the conversation has private data in it.
	LabelPrivate Label = "private-data"
	// LabelSends says that the action can send data out.
	LabelSends Label = "can-send-out"
	// LabelRuns says that the action runs code on this machine.
	LabelRuns Label = "runs-code"
)

var labels = []Label{LabelUntrusted, LabelPrivate, LabelSends, LabelRuns}

// A Source is where a rule was written.
type Source struct {
	// File is the name of a file, or another origin: "--allow", "grant 17".
	File string
	// Line is the line in File, from 1; 0 if it is unknown.
	Line int
	// Text is the rule as it was written there, such as "mcp__files__*", or empty.
	Text string
}

// String returns "file:line", or what is known of it; it is empty for the zero Source.
func (s Source) String() string {
	if s.Line == 0 {
		return s.File
	}
	return s.File + ":" + strconv.Itoa(s.Line)
}

// A Rule says what happens to the actions that it matches: those for which each of its members
// holds. A member with its zero value holds always.
//
// Server, Name and the members that are lists of globs are matched by character, with letter case:
// "*" stands for any characters, also none, "?" for one, "[*]" and "[?]" for the characters "*" and
// "?" themselves ([Quote]), everything else for itself.
type Rule struct {
	// Effect is what happens.
	Effect Effect
	// Kind is the kind of action; empty means [KindTool].
	Kind Kind
	// Server and Name are globs of the server's name in this host or gateway and of the action's
	// name (see [Kind]); empty means "*".
	Server, Name string
	// Where are predicates over the arguments; all must hold. See [Predicate].
	Where []Predicate
	// Hints are what the annotations of the tool must say; all must hold. They are the server's
	// own words: no hint holds, whatever the effect, unless [Query.Trusted] is set. Only rules of
	// KindTool have hints.
	//
	// spec 2026-07-28, server/tools: clients "MUST consider tool annotations to be untrusted unless
	// they come from trusted servers".
	Hints []Hint
	// Subjects, Issuers, Groups, Clients and Views are lists of globs that say whose actions the
	// rule is about: one glob of each list that is not empty must match. Nothing matches what the
	// query does not know: an anonymous caller has no subject, not even for "*".
	Subjects, Issuers, Groups, Clients, Views []string
	// Labels must all be in [Query.Labels].
	Labels []Label
	// From and Until say when the rule holds: from From on, and before Until. Zero means no bound.
	From, Until time.Time
	// Reason is what a refusal tells the caller, or empty.
	Reason string
	// Source is where the rule was written.
	Source Source
}

// An Op is the operation of a Predicate.
type Op uint8

// The operations. The zero Op is none: New refuses it.
const (
	// OpEquals compares with Values.
	OpEquals Op = iota + 1
	// OpGlob matches a string with Globs.
	OpGlob
	// OpInside looks for a path in Dirs.
	OpInside
	// OpHost looks for the host of a URL in Hosts.
	OpHost
	// OpRange compares a number with Min and Max.
	OpRange
)

var opNames = []string{"", "equals", "glob", "inside", "host", "range"}

// String returns the operation as a word.
func (o Op) String() string { return wordOf(opNames, int(o), "Op") }

// A Predicate is a condition on one argument. Only the fields of its Op are set.
//
// # The argument
//
// Pointer is a JSON pointer (RFC 6901) into the arguments. Absent arguments are an empty object. A
// segment "*" stands for every element of an array or every member of an object.
//
// An argument that is absent does not fulfil a predicate. One that is present may be impossible to
// judge: it has the wrong type for the operation, it is a path or a URL of which it is not known how the
// server reads it, a container on the way to it has another type, an object on the way has a
// member whose name differs in letter case only, which some servers take for the same, or "*" stands
// for more than 1,000 values. Then the rule takes the safe side:
//
//	                              a rule that allows     a rule that asks, approves or denies
//	argument absent               does not match         does not match
//	it fulfils the predicate      matches                matches
//	it does not                   does not match         does not match
//	it cannot be judged           does not match         matches
//	"*": some fulfil it, not all  does not match         matches
//	"*": some cannot be judged    does not match         matches
//	"*": no element               does not match         does not match
//
// # The operations
//
// OpEquals: the argument is one of Values as JSON values: numbers by value, members in any order. A
// type that none of Values has is not judged: some servers take "true" for true.
//
// OpGlob: the argument is a string, and one of Globs matches all of it; see [Rule] for globs.
//
// OpInside: the argument is a path, or a URI with the scheme "file", that is one of Dirs or lies
// beneath one. Dirs are absolute. The paths are compared without "." and "..", segment by segment. A
// relative path begins at [Query.Dir]. A path with a drive letter is one of Windows, where both
// slashes separate. Not judged are, among others:
//
//   - paths relative to an unknown folder, and those that begin with "~", "$" or "%";
//   - those that leave the root by "..", have a NUL, or begin or end with a blank, a quote, or a
//     character that is not seen;
//   - those that are inside only if letter case, the Unicode form of letters (NFC, NFD), the kind of a
//     space (U+00A0, U+202F) and characters that are not seen are ignored;
//   - file URIs in arguments of tools and prompts, unless they are inside, or are not, also as the
//     relative path that a server without URIs reads;
//   - paths with a drive letter for a server that does not run on Windows; for one that does, paths
//     that begin with a drive as its shells write it ("/c/data", "/mnt/c/data"), network paths, and names that Windows
//     changes.
//
// The comparison is one of texts: symbolic links are not followed, and a server must keep its own bounds.
//
// OpHost: the argument is a URL whose host is one of Hosts: a name, "*." and a name for all names
// beneath it, but not itself, "*" for any host, or an address (IPv6 in brackets); each may be followed
// by ":" and a port, otherwise every port matches. Names are written in ASCII ("xn--..."). Not judged
// are URLs whose scheme is not http, https, ws, wss or ftp, without a host, with user information,
// backslashes, blanks or control characters, with hosts that are not ASCII, and with unusual spellings
// of IPv4 addresses.
//
// OpRange: the argument is a number, at least Min and at most Max, compared exactly.
type Predicate struct {
	// Pointer is where the argument is, "" for all arguments.
	Pointer string
	// Op is the operation.
	Op Op
	// Values are the JSON values of OpEquals.
	Values []mcp.RawValue
	// Globs are those of OpGlob, Dirs the folders of OpInside, Hosts those of OpHost.
	Globs, Dirs, Hosts []string
	// Min and Max are the JSON numbers of OpRange, both included; nil means no bound.
	Min, Max mcp.RawValue
}
