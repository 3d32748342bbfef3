package policy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/policy"
)

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

// The rules in the guide are valid, and do what the guide says.
func TestGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/guide/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range jsonBlock.FindAllStringSubmatch(string(guide), -1) {
		lines = append(lines, block[1])
	}
	p := newPolicy(t, lines...)
	for _, test := range []struct {
		tool, arguments string
		labels          []policy.Label
		want            policy.Effect
	}{
		{"files/read_text", `{}`, nil, allow},
		{"files/write_text", `{"path":"/home/ada/x"}`, nil, ask},
		{"files/write_text", `{"path":"/etc/x"}`, nil, deny},
		{"files/delete_file", `{}`, nil, deny},
		{"web/fetch", `{"url":"https://www.example.com/","method":"GET"}`, nil, allow},
		{"web/fetch", `{"url":"https://www.example.com/","method":"POST"}`, nil, ask},
		{"web/fetch", `{"url":"https://ada@example.com/","method":"GET"}`, nil, ask},
		{"mail/send", `{"to":["ada@example.com","bob@example.com"]}`, nil, allow},
		{"mail/send", `{"to":["ada@example.com","bob@example.org"]}`, nil, ask},
		{"mail/send", `{"to":["ada@example.com"]}`, []policy.Label{policy.LabelPrivate}, allow},
		{"mail/send", `{"to":["ada@example.com"]}`, []policy.Label{policy.LabelPrivate, policy.LabelUntrusted, policy.LabelSends}, ask},
		{"chat/post", `{"room":"team-a-announce"}`, nil, deny},
		{"chat/post", `{"room":"team-a"}`, nil, ask},
		{"db/drop_table", `{}`, nil, deny},
	} {
		q := call(test.tool, test.arguments)
		q.Labels = test.labels
		if v := p.Decide(q); v.Effect != test.want {
			t.Errorf("%s %s: %v, %s; want %v", test.tool, test.arguments, v.Effect, v.Why(), test.want)
		}
	}
	found := false
	for _, f := range p.Lint() {
		found = found || f.Rule.Name == "drop_table" && f.Other.Name == "drop_*"
	}
	if !found {
		t.Error("the rule that does nothing is not found")
	}
	for _, k := range policy.Kinds() {
		if !strings.Contains(string(guide), "| `"+string(k)+"` | ") {
			t.Errorf("the guide does not have the kind %s", k)
		}
	}
	_, short, _ := strings.Cut(string(guide), "\n## Short form\n")
	short, _, _ = strings.Cut(short, "\nClaude Code ignores")
	patterns := regexp.MustCompile("(?m)^[|] (`.*`) [|]").FindAllStringSubmatch(short, -1)
	for _, row := range patterns {
		for pattern := range strings.SplitSeq(row[1], ", ") {
			if _, err := policy.ParsePattern(policy.Deny, strings.Trim(pattern, "`"), policy.Source{}); err != nil {
				t.Error(err)
			}
		}
	}
	if len(patterns) < 7 {
		t.Errorf("the guide has the patterns %q", patterns)
	}
}
