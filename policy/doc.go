// Package policy decides whether an action may be done: the call of a tool with its arguments, the
// reading of a resource, a server's use of the model. A host asks it before it acts for a model, a
// gateway before it forwards a request.
//
//	allow, _ := policy.ParsePattern(policy.Allow, "files/*", policy.Source{File: "--allow"})
//	deny, err := policy.ParseRule([]byte(`{
//		"effect": "deny", "server": "files", "name": "write_*",
//		"where": {"/path": {"inside": "/etc"}}, "reason": "The configuration is not yours."
//	}`), policy.Source{File: "rules.json", Line: 3})
//	...
//	p, err := policy.New([]policy.Rule{allow, deny})
//	...
//	v := p.Decide(&policy.Query{Server: "files", Name: "write_text", Arguments: arguments, Dir: "/home/ada"})
//	fmt.Println(v.Effect, v.Why()) // deny rule: deny files/write_* where /path inside /etc, from rules.json:3
//
// A rule has an effect, globs of server and name, and conditions: predicates over arguments ([Predicate]),
// hints of the tool, the caller, labels of the conversation, time. Of the rules that match, the one with
// the strongest effect decides, in whatever order they are: [Deny], [Approve], [Ask], [Allow]; where none
// matches, the person is asked. What cannot be judged is never allowed by a rule, and always matched by
// those that restrict.
//
// [Policy.Explain] tells of every rule why it did not decide, [Policy.Lint] which rules are useless.
//
// The package has no clock, reads no files and starts no goroutine: [Query] has all that counts. It
// compares texts, so that a server that follows a symbolic link, or resolves a name to an address that it
// should not reach, must keep its own bounds.
package policy
