package config_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/policy"
)

const claudePermissions = `{
  "permissions": {
    "allow": [
      "Bash(git:* && LONG)",
      "mcp__github__get_*",
      "mcp__github__list_issues",
      "mcp__github__delete_branch",
      "mcp__memory",
      "mcp__files__*",
      "mcp__my_server__run",
      "mcp__a__b__c",
      "mcp__twin_s__go",
      "mcp__*",
      "*",
      "mcp__git*__push",
      "mcp__db__query(SELECT *)",
      "mcp__unknown__tool",
      "mcp__",
      "mcp__chat__send_message",
      "mcp__plugin_tools_docs__search"
    ],
    "ask": [
      "mcp__github__get_secret",
      "mcp__files__write_*",
      "mcp__*__publish",
      "WebFetch",
      "mcp__chat__send_file(big)"
    ],
    "deny": [
      "mcp__github__delete_*",
      "mcp__files__rm",
      "mcp__evil",
      "mcp__evil_two__*",
      "mcp__memory__delete_all",
      "mcp__db__drop(table)",
      "Read(./secrets/**)",
      "mcp__odd_name__stop"
    ]
  }
}`

const claudeTestServers = `{"mcpServers": {
  "github": {"command": "x"}, "memory": {"command": "x"}, "files": {"command": "x"},
  "my.server": {"command": "x"}, "a": {"command": "x"}, "a__b": {"command": "x"},
  "twin.s": {"command": "x"}, "twin s": {"command": "x"}, "db": {"command": "x"},
  "evil": {"command": "x"}, "evil two": {"command": "x"}, "chat": {"command": "x"}, "blog": {"command": "x"},
  "odd name": {"command": "x"}, "plain": {"command": "x"}
}}`

// The permissions of Claude Code decide as its documentation says: deny, then ask, then
// allow, however specific a rule is; and what has no meaning there allows nothing here.
func TestClaudeDecisions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/.claude.json", claudeTestServers)
	d.write("home/.claude/settings.json", strings.Replace(claudePermissions, "LONG", strings.Repeat("x", 3000), 1))
	d.write("home/project/.claude/settings.json", `{"permissions": {"allow": ["mcp__plain__go", "mcp__db__query"], "ask": ["mcp__memory__read_private"], "deny": ["mcp__files__format"]}}`)
	d.write("home/project/.claude/settings.local.json", `{"permissions": {"deny": ["mcp__chat__call"]}}`)
	d.write("system/etc/claude-code/managed-settings.json", `{"permissions": {"deny": ["mcp__github__get_org*"], "allow": ["mcp__github__fork"]}}`)
	p, err := policy.New(d.load().Rules)
	if err != nil {
		t.Fatal(err)
	}
	// Server, tool, effect, and the rule that decided as it was written.
	table := `
		github     get_issue            allow  mcp__github__get_*
		github     get_                 allow  mcp__github__get_*
		github     get_file_contents    allow  mcp__github__get_*
		github     get_secret           ask    mcp__github__get_secret
		github     get_organization     deny   mcp__github__get_org*
		github     get_orgs             deny   mcp__github__get_org*
		github     fork                 allow  mcp__github__fork
		github     list_issues          allow  mcp__github__list_issues
		github     list_issues2         ask    -
		github     list_pulls           ask    -
		github     delete_branch        deny   mcp__github__delete_*
		github     delete_repository    deny   mcp__github__delete_*
		github     delete.repository    deny   mcp__github__delete_*
		github     Delete_repository    ask    -
		github     push                 ask    -
		github     publish              ask    mcp__*__publish
		github     GET_ISSUE            ask    -
		gitlab     get_issue            ask    -
		gitlab     push                 ask    -
		GitHub     get_issue            ask    -
		memory     read                 allow  mcp__memory
		memory     write                allow  mcp__memory
		memory     delete_all           deny   mcp__memory__delete_all
		memory     delete.all           deny   mcp__memory__delete_all
		memory     delete_al            allow  mcp__memory
		memory     publish              ask    mcp__*__publish
		memory     read_private         ask    mcp__memory__read_private
		memory2    read                 ask    -
		files      read                 allow  mcp__files__*
		files      read_text            allow  mcp__files__*
		files      write_text           ask    mcp__files__write_*
		files      write                allow  mcp__files__*
		files      rm                   deny   mcp__files__rm
		files      rmdir                allow  mcp__files__*
		files      publish              ask    mcp__*__publish
		files      format               deny   mcp__files__format
		my.server  run                  allow  mcp__my_server__run
		my.server  runs                 ask    -
		my.server  publish              ask    mcp__*__publish
		my_server  run                  ask    -
		a          b__c                 ask    -
		a__b       c                    ask    -
		twin.s     go                   ask    -
		twin_s     go                   ask    -
		db         query                ask    -
		db         drop                 ask    mcp__db__drop
		db         select               ask    -
		evil       anything             deny   mcp__evil
		evil       get_x                deny   mcp__evil
		evil       publish              deny   mcp__evil
		evil2      anything             ask    -
		evil_two   anything             ask    -
		unknown    tool                 allow  mcp__unknown__tool
		unknown    tool2                ask    -
		unknown    publish              ask    mcp__*__publish
		chat       send_message         allow  mcp__chat__send_message
		chat       send_message_all     ask    -
		chat       send_file            ask    mcp__chat__send_file
		chat       call                 deny   mcp__chat__call
		blog       publish              ask    mcp__*__publish
		blog       publisher            ask    -
		blog       draft                ask    -
		plain      go                   ask    -
		plain      *                    ask    -
		plain      git                  ask    -
		plugin_tools_docs search        allow  mcp__plugin_tools_docs__search
	`
	calls := 0
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		calls++
		checkCall(t, p, fields[0], fields[1], fields[2], fields[3])
	}
	checkCall(t, p, "evil two", "anything", "deny", "mcp__evil_two__*")
	checkCall(t, p, "odd name", "stop", "deny", "mcp__odd_name__stop")
	checkCall(t, p, "twin s", "go", "ask", "-")
	if calls += 3; calls < 60 {
		t.Errorf("%d calls", calls)
	}
}

// checkCall checks effect and rule of one call, and that the explanation names the rule.
func checkCall(t *testing.T, p *policy.Policy, server, tool, effect, rule string) {
	t.Helper()
	q := &policy.Query{Server: server, Name: tool}
	v := p.Decide(q)
	text := "-"
	if v.Rule != nil {
		text = v.Rule.Source.Text
	}
	if v.Effect.String() != effect || text != rule {
		t.Errorf("%s/%s: %s by %s, want %s by %s", server, tool, v.Effect, text, effect, rule)
	}
	if v.Rule != nil && (v.Rule.Source.Line == 0 || p.Explain(q).Verdict.Rule.Source != v.Rule.Source) {
		t.Errorf("%s/%s: rule %v is not told with its place", server, tool, v.Rule.Source)
	}
}

// Each rule that does not do what was written is told of, with its line.
func TestClaudeProblems(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/.claude.json", claudeTestServers)
	d.write("home/.claude/settings.json", claudePermissions)
	checkProblems(t, d.load(), map[int]string{
		11: `"mcp__a__b__c": the name may mean a tool of several servers`,
		12: `"mcp__twin_s__go": the name may mean a tool of several servers`,
		13: `"mcp__*": a rule that allows names one server; it allows nothing`,
		14: `"*": a rule that allows names one server; it allows nothing`,
		15: `"mcp__git*__push": a rule that allows names one server`,
		16: `"mcp__db__query(SELECT *)": a rule about a server's tool has no parentheses, and allows nothing`,
		18: `"mcp__" names no server`,
		27: `"mcp__chat__send_file(big)": a rule about a server's tool has no parentheses; the tool is asked for`,
		35: `"mcp__db__drop(table)": a rule about a server's tool has no parentheses; the tool is asked for`,
	})
}

// checkProblems checks that each line has a problem that begins so, and no other has one.
func checkProblems(t *testing.T, c *config.Config, want map[int]string) {
	t.Helper()
	got := map[int]string{}
	for _, p := range c.Problems {
		got[p.Source.Line] += p.Text
	}
	for line, text := range want {
		if !strings.HasPrefix(got[line], text) {
			t.Errorf("line %d: problem %q, want %q", line, got[line], text)
		}
	}
	for line, text := range got {
		if want[line] == "" {
			t.Errorf("line %d: problem %q", line, text)
		}
	}
}

// The permissions of other clients, each in its own naming and order.
func TestOtherDecisions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, text string
		calls      string // server/tool effect
		problems   map[int]string
	}{
		"opencode, the last rule restricts": {
			file:  "home/.config/opencode/opencode.json",
			text:  "{\"mcp\":{\"s\":{\"type\":\"local\",\"command\":[\"x\"]}},\n\"permission\":{\"s_*\":\"allow\",\n\"s_rm*\":\"deny\",\n\"s_w?\":\"ask\"}}",
			calls: "s/read allow, s/rm deny, s/rmdir deny, s/wx ask, s/wxy allow, t/read ask",
		},
		"opencode, the last rule would allow": {
			file: "home/.config/opencode/opencode.json",
			text: "{\"mcp\":{\"s\":{\"type\":\"local\",\"command\":[\"x\"]}},\n\"permission\":{\"s_*\":\"deny\",\n\"s_read\":\"allow\",\n\"s_list\":\"ask\"}}",
			// In opencode s_read would be allowed and s_list asked for.
			calls: "s/read deny, s/list deny, s/x deny",
			problems: map[int]string{
				3: `"s_read" allows nothing: "s_*" on line 2 restricts what it names`,
				4: `"s_list" does not lift the denial: "s_*" on line 2`,
			},
		},
		"opencode, allow after ask of everything": {
			file:     "home/.config/opencode/opencode.json",
			text:     "{\"mcp\":{\"s\":{\"type\":\"local\",\"command\":[\"x\"]}},\n\"permission\":{\"*\":\"ask\",\n\"s_read\":\"allow\"}}",
			calls:    "s/read ask, s/x ask",
			problems: map[int]string{3: `"s_read" allows nothing: "*" on line 2 restricts`},
		},
		"opencode, all": {
			file:     "home/.config/opencode/opencode.json",
			text:     "{\"mcp\":{\"s\":{\"type\":\"local\",\"command\":[\"x\"]}},\n\"permission\":\"allow\"}",
			calls:    "s/read ask, t/x ask",
			problems: map[int]string{2: `"*": a rule that allows names one server`},
		},
		"opencode, deny all": {
			file:  "home/.config/opencode/opencode.json",
			text:  "{\"permission\":\"deny\"}",
			calls: "s/read deny, t/x deny",
		},
		"opencode, patterns": {
			file:  "home/.config/opencode/opencode.json",
			text:  "{\"mcp\":{\"s\":{\"type\":\"local\",\"command\":[\"x\"]}},\"permission\":{\"s_a\":{\"*\":\"allow\",\"x\":\"deny\"},\"s_b\":{\"x\":\"allow\"},\"bash\":\"deny\"}}",
			calls: "s/a allow, s/b ask, bash/x ask",
		},
		"opencode, action unknown": {
			file:     "home/.config/opencode/opencode.json",
			text:     "{\"mcp\":{\"s\":{\"type\":\"local\",\"command\":[\"x\"]}},\n\"permission\":{\"s_a\":\"allow\",\n\"s_b\":\"never\"}}",
			calls:    "s/a ask, s/b ask",
			problems: map[int]string{3: "permission: an action is allow, ask or deny"},
		},
		"opencode, tools": {
			file:  "home/.config/opencode/opencode.json",
			text:  "{\"mcp\":{\"s\":{\"type\":\"local\",\"command\":[\"x\"]},\"s_t\":{\"type\":\"local\",\"command\":[\"x\"]}},\"tools\":{\"s_t*\":false,\"s_u\":true}}",
			calls: "s/t deny, s/tt deny, s/u ask, s_t/x deny, s/x ask",
		},
		"cursor": {
			file:     "home/.cursor/permissions.json",
			text:     "{\"mcpAllowlist\":[\"a:read_*\",\n\"*:x\",\n\"b:*\",\n\"plain\"]}",
			calls:    "a/read_x allow, a/write ask, a/x ask, b/anything allow",
			problems: map[int]string{2: `"*:x" allows nothing`, 4: `"plain" allows nothing`},
		},
		"goose": {
			file:  "home/.config/goose/permission.yaml",
			text:  "user:\n  always_allow: [a__read, a__both]\n  ask_before: [a__both]\n  never_allow: [b__drop]\nsmart_approve:\n  always_allow: [a__smart]\n",
			calls: "a/read allow, a/both ask, b/drop deny, a/smart ask, a/x ask",
		},
		"crush": {
			file:     "home/.config/crush/crush.json",
			text:     "{\"mcp\":{\"git\":{\"command\":\"x\"},\"git_hub\":{\"command\":\"x\"}},\"permissions\":{\"allowed_tools\":[\"bash\",\"mcp_git_log\",\n\"mcp_git_hub_x\",\n\"mcp_else_x\"]}}",
			calls:    "git/log allow, git/hub_x ask, git_hub/x ask, else/x ask, git/diff ask",
			problems: map[int]string{2: `"mcp_git_hub_x": the name may mean a tool of several servers`, 3: `"mcp_else_x" allows nothing`},
		},
		"own": {
			file:  "home/.config/parley/parley.jsonc",
			text:  "{\"rules\":[{\"effect\":\"allow\",\"server\":\"a\",\"name\":\"r*\"},\n{\"effect\":\"deny\",\"name\":\"rm\"}]}",
			calls: "a/read allow, a/rm deny, b/rm deny, b/read ask",
		},
		"own, a rule that cannot be read": {
			file:     "home/.config/parley/parley.jsonc",
			text:     "{\"rules\":[{\"effect\":\"allow\",\"server\":\"a\",\"name\":\"r*\"},\n{\"effect\":\"deny\",\"naem\":\"rm\"}]}",
			calls:    "a/read ask, a/rm ask",
			problems: map[int]string{2: ""},
		},
		"own, rules misspelled": {
			file:     "home/.config/parley/parley.jsonc",
			text:     "{\"rules\":[{\"effect\":\"allow\",\"server\":\"a\"}],\n\"rule\":[{\"effect\":\"deny\",\"server\":\"a\"}]}",
			calls:    "a/read ask",
			problems: map[int]string{2: `there is no member "rule"; did you mean "rules"?`},
		},
		"a file with rules that cannot be read": {
			file:     "home/.config/opencode/opencode.json",
			text:     "{\"permission\":{\"s_*\":\"allow\"}\n,,}",
			calls:    "s/a ask",
			problems: map[int]string{2: "this is no JSON"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write(test.file, test.text)
			if path.Base(test.file) != "parley.jsonc" {
				// A rule of the person's own that allows everything else would be seen.
				d.write("home/.config/parley/parley.jsonc", `{"servers":{"z":{"command":"z"}}}`)
			}
			c := d.load()
			p, err := policy.New(c.Rules)
			if err != nil {
				t.Fatal(err)
			}
			for call := range strings.SplitSeq(test.calls, ", ") {
				name, effect, _ := strings.Cut(call, " ")
				server, tool, _ := strings.Cut(name, "/")
				if v := p.Decide(&policy.Query{Server: server, Name: tool}); v.Effect.String() != effect {
					t.Errorf("%s: %s (%s), want %s", name, v.Effect, v.Why(), effect)
				}
			}
			for line, text := range test.problems {
				found := false
				for _, p := range c.Problems {
					found = found || p.Source.Line == line && strings.HasPrefix(p.Text, text)
				}
				if !found {
					t.Errorf("line %d: no problem %q in %v", line, text, c.Problems)
				}
			}
			if len(c.Problems) != len(test.problems) {
				t.Errorf("problems %v", c.Problems)
			}
		})
	}
}

// What a project says restricts, and allows once the person has agreed to that very text.
func TestApproved(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/project/.parley.jsonc", `{"rules":[{"effect":"allow","server":"a"},{"effect":"deny","server":"b"}]}`)
	q := &policy.Query{Server: "a", Name: "x"}
	effect := func() policy.Effect {
		p, err := policy.New(d.load().Rules)
		if err != nil {
			t.Fatal(err)
		}
		if v := p.Decide(&policy.Query{Server: "b", Name: "x"}); v.Effect != policy.Deny {
			t.Errorf("b: %v", v.Effect)
		}
		return p.Decide(q).Effect
	}
	if got := effect(); got != policy.Ask {
		t.Errorf("not approved: %v", got)
	}
	pending := d.load().Pending
	if len(pending) != 1 || pending[0].File != d.load().Files[0] || len(pending[0].Rules) != 1 || pending[0].Rules[0].Server != "a" {
		t.Errorf("%+v is pending, want the rule that allows", pending)
	}
	digest := d.load().Files[0].Digest
	d.options.Approved = func(_, text string, _ *policy.Rule) bool { return text == digest }
	if got := effect(); got != policy.Allow {
		t.Errorf("approved: %v", got)
	}
	if pending := d.load().Pending; len(pending) > 0 {
		t.Errorf("%+v is pending although it is approved", pending)
	}
	d.write("home/project/.parley.jsonc", `{"rules":[{"effect":"allow"},{"effect":"deny","server":"b"}]}`)
	if got := effect(); got != policy.Ask {
		t.Errorf("changed since: %v", got)
	}
}

// An entry of a project does not get the rules of the person's server of that name.
func TestHiddenServer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/.claude.json", `{"mcpServers":{"github":{"url":"https://github.example/mcp"}}}`)
	d.write("home/.claude/settings.json", `{"permissions":{"allow":["mcp__github"],"deny":["mcp__github__rm"]}}`)
	decide := func() policy.Effect {
		p, err := policy.New(d.load().Rules)
		if err != nil {
			t.Fatal(err)
		}
		return p.Decide(&policy.Query{Server: "github", Name: "read"}).Effect
	}
	if got := decide(); got != policy.Allow {
		t.Errorf("without a project: %v", got)
	}
	d.write("home/project/.mcp.json", `{"mcpServers":{"github":{"url":"https://github.example/mcp"}}}`)
	if got := decide(); got != policy.Allow {
		t.Errorf("the same entry: %v", got)
	}
	d.write("home/project/.mcp.json", `{"mcpServers":{"github":{"url":"https://evil.example/mcp"}}}`)
	if got := decide(); got != policy.Ask {
		t.Errorf("another entry: %v", got)
	}
}

// The administrator's rules and limits hold for one file alone too, and for servers that are
// in no file. Attack: a file of the person's own in the place of all others.
func TestManagedAlways(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("system/etc/claude-code/managed-settings.json", `{
		"permissions": {"deny": ["mcp__a__rm"]},
		"allowedMcpServers": [{"serverCommand": ["x", "y"]}, {"serverUrl": "https://a.example/*"}],
		"deniedMcpServers": [{"serverUrl": "https://a.example/evil"}]
	}`)
	d.write("one.json", `{"mcpServers": {"a": {"command": "x", "args": ["y"]}, "b": {"command": "z"}}}`)
	one, err := config.LoadFile(d.path("one.json"), d.options)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Server("a").Err; err != nil {
		t.Errorf("the server that is allowed: %v", err)
	}
	if err := one.Server("b").Err; err == nil || !strings.Contains(err.Error(), "not among allowedMcpServers") {
		t.Errorf("the server that is not: %v", err)
	}
	managed, err := config.LoadManaged(d.options)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*config.Config{"one file": one, "the command line": managed} {
		p, err := policy.New(c.Rules)
		if err != nil {
			t.Fatal(err)
		}
		if v := p.Decide(&policy.Query{Server: "a", Name: "rm"}); v.Effect != policy.Deny {
			t.Errorf("%s: %v", name, v.Effect)
		}
		for text, s := range map[string]*config.Server{
			"":                      {Transport: config.TransportStdio, Command: "x", Args: []string{"y"}},
			"allowedMcpServers":     {Transport: config.TransportStdio, Command: "x"},
			"deniedMcpServers":      {Transport: config.TransportHTTP, URL: "https://a.example/evil"},
			"not among allowedMcpS": {Transport: config.TransportHTTP, URL: "https://b.example/"},
		} {
			if err := c.Permits(s); text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
				t.Errorf("%s: %v for %v, want %q", name, err, s.Address(), text)
			}
		}
	}
}

// The variables of a file are named, without their values, and another value is another digest.
func TestEnvFileNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/project/.vscode/mcp.json", `{"servers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env"}}}`)
	d.write("home/project/.env", "A=1\nB=2\n")
	before := d.load().Server("a")
	if !slices.Equal(before.EnvFileNames, []string{"A", "B"}) || before.EnvFile != "${workspaceFolder}/.env" {
		t.Errorf("%q of %q", before.EnvFileNames, before.EnvFile)
	}
	d.write("home/project/.env", "A=1\nB=3\n")
	if after := d.load().Server("a"); after.Digest == before.Digest {
		t.Error("another value has the same digest")
	}
}

// What the person agreed to are rules, not a text: names that other files of the project make
// into rules later wait for them. Attack: a rule about a server that no file names yet is shown
// to nobody; once the file is approved, another file names the server.
func TestApprovedRulesAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/project/crush.json", `{"mcp": {"a": {"command": "x"}}, "permissions": {"allowed_tools": ["mcp_a_read", "mcp_b_write"]}}`)
	var agreed []string
	for _, p := range d.load().Pending {
		for i := range p.Rules {
			agreed = append(agreed, p.File.Digest+p.Rules[i].Server+"/"+p.Rules[i].Name)
		}
	}
	d.options.Approved = func(_, digest string, r *policy.Rule) bool {
		return slices.Contains(agreed, digest+r.Server+"/"+r.Name)
	}
	d.write("home/project/.mcp.json", `{"mcpServers": {"b": {"command": "y"}}}`)
	c := d.load()
	p, err := policy.New(c.Rules)
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[[2]string]policy.Effect{{"a", "read"}: policy.Allow, {"b", "write"}: policy.Ask} {
		if v := p.Decide(&policy.Query{Server: call[0], Name: call[1]}); v.Effect != want {
			t.Errorf("%v: %v, want %v", call, v.Effect, want)
		}
	}
	if len(c.Pending) != 1 || len(c.Pending[0].Rules) != 1 || c.Pending[0].Rules[0].Server != "b" {
		t.Errorf("%+v is pending, want the rule about b", c.Pending)
	}
}

// The administrator's limits see what would be started, not the variables that stand for it.
// Attack: a person keeps a denied address in a variable.
func TestManagedLimitsSeeThroughVariables(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env["WHERE"], d.env["BASE"] = "https://a.example/evil", "https://a.example"
	d.write("system/etc/claude-code/managed-settings.json", `{
		"allowedMcpServers": [{"serverUrl": "https://a.example/*"}],
		"deniedMcpServers": [{"serverUrl": "https://a.example/evil"}]
	}`)
	d.write("home/.config/parley/parley.jsonc", `{"servers": {"bad": {"url": "${WHERE}"}, "good": {"url": "${BASE}/mcp"}}}`)
	c := d.load()
	if err := d.server(c, "bad").Err; err == nil || !strings.Contains(err.Error(), "deniedMcpServers") {
		t.Errorf("the address that is denied: %v", err)
	}
	if err := d.server(c, "good").Err; err != nil {
		t.Errorf("the address that is allowed: %v", err)
	}
}
