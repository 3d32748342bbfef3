package policy_test

import (
	"fmt"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

func Example() {
	allow, err := policy.ParsePattern(policy.Allow, "files/*", policy.Source{File: "--allow"})
	if err != nil {
		fmt.Println(err)
		return
	}
	deny, err := policy.ParseRule(mcp.RawValue(`{
		"effect": "deny", "server": "files", "name": "write_*",
		"where": {"/path": {"inside": "/etc"}}, "reason": "The configuration is not yours."
	}`), policy.Source{File: "rules.json", Line: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := policy.New([]policy.Rule{allow, deny})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"notes.md", "../../etc/hosts", "$HOME/notes.md"} {
		v := p.Decide(&policy.Query{
			Server: "files", Name: "write_text", Dir: "/home/ada",
			Arguments: mcp.RawValue(`{"path": "` + path + `"}`),
		})
		fmt.Println(v.Effect, v.Why())
	}
	// Output:
	// allow rule: allow files/*, from --allow
	// deny rule: deny files/write_* where /path inside /etc, from rules.json:3
	// deny rule: deny files/write_* where /path inside /etc, from rules.json:3; argument /path could not be judged: the path begins with '~', '$' or '%'
}

func ExamplePolicy_Explain() {
	var rules []policy.Rule
	for i, text := range []string{
		`{"effect": "allow", "server": "mail", "name": "send", "where": {"/to/*": {"glob": "*@example.com"}}}`,
		`{"effect": "ask", "labels": ["untrusted-input", "private-data", "can-send-out"]}`,
		`{"effect": "deny", "server": "mail", "name": "delete_*"}`,
	} {
		rule, err := policy.ParseRule(mcp.RawValue(text), policy.Source{File: "rules.json", Line: i + 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		rules = append(rules, rule)
	}
	p, err := policy.New(rules)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := p.Explain(&policy.Query{
		Server: "mail", Name: "send", Arguments: mcp.RawValue(`{"to": ["ada@example.com", "bob@example.org"]}`),
		Labels: []policy.Label{policy.LabelPrivate},
	})
	fmt.Println(x.Verdict.Effect, x.Verdict.Why())
	for _, c := range x.Considered {
		fmt.Printf("%v: %v (%s)\n", c.Rule.Source, c.Result, c.Detail)
	}
	// Output:
	// ask no rule matches
	// rules.json:1: argument does not match (argument /to/*)
	// rules.json:2: label is missing (untrusted-input)
	// rules.json:3: another name ()
}

func ExamplePolicy_Lint() {
	var rules []policy.Rule
	for _, pattern := range []string{"files/read_*", "files/read_text"} {
		rule, err := policy.ParsePattern(policy.Allow, pattern, policy.Source{})
		if err != nil {
			fmt.Println(err)
			return
		}
		rules = append(rules, rule)
	}
	p, err := policy.New(rules)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range p.Lint() {
		fmt.Println(f)
	}
	// Output:
	// allow files/read_text: is redundant with allow files/read_*
}

// A tool that a stranger called "*" is one tool, not all.
func ExampleQuote() {
	rule, err := policy.ParsePattern(policy.Allow, "files/"+policy.Quote("*"), policy.Source{File: "grant 17"})
	fmt.Println(rule.String(), err)
	// Output: allow files/[*], from grant 17 <nil>
}
