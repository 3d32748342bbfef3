package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/policy"
)

// Files as people really have them. Each stands beside a good one, which no other hides.
func TestFiles(t *testing.T) {
	t.Parallel()
	const good = `{"mcpServers":{"s":{"command":"x"}}}`
	tests := map[string]struct {
		text    string
		line    int
		problem string // empty: "s" is there
	}{
		"plain":                   {text: good},
		"empty":                   {text: "", problem: "this is no JSON", line: 1},
		"empty object":            {text: "{}", problem: "-"},
		"comments and commas":     {text: "// a\n{\"mcpServers\": { /* b */ \"s\": {\"command\": \"x\", \"args\": [\"//\", \"/*\",], }, },\n}\n// c"},
		"byte order mark":         {text: "\ufeff" + good},
		"carriage returns":        {text: "{\r\n\"mcpServers\":\r\n{\"s\":{\"command\":\"x\"}}\r\n}\r\n"},
		"command as array":        {text: `{"mcpServers":{"s":{"command":["x","y"]}}}`},
		"another client's key":    {text: `{"servers":{"s":{"command":"x"}}}`},
		"no key":                  {text: `{"s":{"command":"x"}}`},
		"null entries":            {text: `{"mcpServers":null}`, problem: "-"},
		"array":                   {text: "[]", problem: "expected an object, found an array", line: 1},
		"servers as array":        {text: "{\n\"mcpServers\":[]}", problem: "expected an object of servers, found an array", line: 2},
		"server without a name":   {text: "{\"mcpServers\":{\n\"\":{\"command\":\"x\"}}}", problem: "a server has no name", line: 2},
		"missing comma":           {text: "{\"mcpServers\":\n{\"s\":{\"command\":\"x\"\n\"args\":[]}}}", problem: "this is no JSON: look for a missing comma", line: 3},
		"text after it":           {text: good + "x", problem: "this is no JSON", line: 1},
		"cut off":                 {text: "{\"mcpServers\":{\"s\":\n{\"command\":\"s3cret", problem: "this is no JSON", line: 2},
		"duplicate key":           {text: "{\"mcpServers\":{\n\"s\":{\"command\":\"x\"},\n\"s\":{\"command\":\"s3cret\"}}}", problem: `the member "s" is there twice`, line: 3},
		"duplicate key inside":    {text: "{\"mcpServers\":{\"s\":{\"command\":\"x\",\n\"env\":{\"A\":\"s3cret\",\n\"A\":\"s3cret\"}}}}", problem: `the member "A" is there twice`, line: 3},
		"duplicate by escape":     {text: "{\"mcpServers\":{\"s\":{\"command\":\"x\",\n\"comm\\u0061nd\":\"y\"}}}", problem: `the member "command" is there twice`, line: 2},
		"not UTF-8":               {text: "{\"mcpServers\":{\"s\":{\"command\":\"\xff\"}}}", problem: "", line: 1},
		"half a surrogate":        {text: `{"mcpServers":{"s":{"command":"\ud800"}}}`, problem: "", line: 1},
		"too deep":                {text: "{\"a\":\n" + strings.Repeat("[", 100000), problem: "values are nested more than", line: 2},
		"brackets in strings":     {text: `{"mcpServers":{"s":{"command":"x","args":["` + strings.Repeat(`[\"`, 1000) + `"]}}}`},
		"brackets in comments":    {text: "//" + strings.Repeat("[", 1000) + "\n" + good},
		"unfinished comment":      {text: good + "/* ", problem: "this is no JSON", line: 1},
		"10 MB":                   {text: `{"a":"` + strings.Repeat("x", 10_000_000) + `",` + good[1:], problem: "the file cannot be read: the file is too large: at most 4194304 bytes"},
		"a word instead of value": {text: `{"mcpServers":{"s":{"command":s3cret}}}`, problem: "this is no JSON", line: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("home/.cursor/mcp.json", test.text)
			d.write("home/.claude.json", `{"mcpServers":{"other":{"command":"x"}}}`)
			c := d.load()
			if s := c.Server("other"); s == nil || s.Err != nil {
				t.Errorf("the other file is hidden: %v", s)
			}
			wantServer := test.problem == "" && test.line == 0
			if s := c.Server("s"); (s != nil) != wantServer || s != nil && s.Err != nil {
				t.Errorf("server %+v", s)
			}
			if test.problem == "-" || wantServer {
				if len(c.Problems) > 0 {
					t.Errorf("problems %v", c.Problems)
				}
				return
			}
			if len(c.Problems) != 1 {
				t.Fatalf("problems %v", c.Problems)
			}
			p := c.Problems[0]
			if !strings.HasPrefix(p.Text, test.problem) || p.Source.Line != test.line || p.Source.File != d.path("home/.cursor/mcp.json") {
				t.Errorf("problem %v, want line %d: %s", p, test.line, test.problem)
			}
			if strings.Contains(p.String(), "s3cret") {
				t.Errorf("the problem shows a value: %v", p)
			}
		})
	}
}

// YAML as goose, kit and LibreChat read it.
func TestYAML(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text    string
		line    int
		problem string
	}{
		"plain":           {text: "mcpServers:\n  s: {command: x}\n"},
		"byte order mark": {text: "\ufeffmcpServers:\n  s: {command: x}\n"},
		"comment":         {text: "# a\nmcpServers: # b\n  s:\n    command: x # c\n"},
		"merge":           {text: "base: &b {command: x, args: [a]}\nmcpServers:\n  s:\n    <<: *b\n    args: [b]\n"},
		"anchor":          {text: "base: &b [a]\nmcpServers:\n  s: {command: x, args: *b}\n"},
		"empty":           {text: "", problem: "-"},
		"comment alone":   {text: "# nothing\n", problem: "-"},
		"duplicate":       {text: "mcpServers:\n  s: {command: x}\n  s: {command: y}\n", problem: `the key "s" is there twice`, line: 3},
		"tab":             {text: "mcpServers:\n\ts: {command: x}\n", problem: "this is no YAML", line: 2},
		"two documents":   {text: "mcpServers: {}\n---\nmcpServers: {}\n", problem: "there is more than one document", line: 1},
		"list":            {text: "- a\n", problem: "expected an object, found an array", line: 1},
		"key is a list":   {text: "mcpServers:\n  ? [a]\n  : {command: x}\n", problem: "a key is no string", line: 2},
		"unknown anchor":  {text: "mcpServers: *s3cret\n", problem: "this is no YAML"},
		"alias bomb":      {text: bomb(), problem: "", line: -1},
		"alias of itself": {text: "mcpServers: &a\n  s: *a\n", problem: "", line: -1},
		"too deep":        {text: "a: " + strings.Repeat("[", 100000), problem: "", line: -1},
		"deep blocks":     {text: "a:\n  " + strings.Repeat("- ", 200000), problem: "", line: -1},
		"not UTF-8":       {text: "mcpServers: {s: {command: \xff}}", problem: "the text is not UTF-8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("home/.mcphost.yml", test.text)
			c := d.load()
			if test.problem == "" && test.line == 0 || test.problem == "-" {
				if s := c.Server("s"); (s != nil) != (test.problem == "") || s != nil && (s.Err != nil || s.Command != "x") || len(c.Problems) > 0 {
					t.Errorf("server %+v, problems %v", s, c.Problems)
				}
				return
			}
			if len(c.Problems) != 1 {
				t.Fatalf("problems %v", c.Problems)
			}
			p := c.Problems[0]
			if !strings.HasPrefix(p.Text, test.problem) || test.line >= 0 && p.Source.Line != test.line {
				t.Errorf("problem %v, want line %d: %s", p, test.line, test.problem)
			}
			if strings.Contains(p.String(), "s3cret") {
				t.Errorf("the problem shows a value: %v", p)
			}
		})
	}
}

// bomb is YAML that would be 10^9 values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := range 9 {
		next, this := string(rune('1'+i)), string(rune('0'+i))
		b.WriteString("a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+this+", ", 10), ", ") + "]\n")
	}
	return b.String()
}

func (d *desk) link(target, name string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Symlink(target, d.path(name)); err != nil {
		d.t.Fatal(err)
	}
}

// A person may keep files elsewhere and link to them. A project's link stays in the project.
func TestLinks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("home/dotfiles/cursor.json", `{"mcpServers":{"linked":{"command":"x"}}}`)
	d.write("home/project/conf/mcp.json", `{"mcpServers":{"inside":{"command":"x"}}}`)
	d.link("../dotfiles/cursor.json", "home/.cursor/mcp.json")
	d.link("conf/mcp.json", "home/project/.mcp.json")
	d.link("../../dotfiles/cursor.json", "home/project/.vscode/mcp.json")
	d.link(d.path("home/dotfiles"), "home/project/.agents")
	d.write("home/dotfiles/mcp.json", `{"outside":{"command":"x"}}`)
	c := d.load()
	for _, name := range []string{"linked", "inside"} {
		if s := c.Server(name); s == nil || s.Err != nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if c.Server("outside") != nil || len(c.Problems) != 2 {
		t.Fatalf("problems %v", c.Problems)
	}
	for _, p := range c.Problems {
		if !strings.Contains(p.Text, "the file is outside of the project") {
			t.Errorf("problem %v", p)
		}
	}
}

// An entry that cannot be started says why, shows no values, and leaves the others alone.
func TestEntries(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ entry, want string }{
		"no object":           {`"x"`, "expected an object, found a string"},
		"empty":               {`{}`, "neither command nor url"},
		"http without url":    {`{"type":"http"}`, "of type http and has no url: add one"},
		"stdio without":       {`{"type":"stdio","url":"https://a.example/s3cret"}`, "no command"},
		"both":                {`{"command":"x","url":"https://a.example/"}`, "a command and a url: remove one"},
		"unknown type":        {`{"type":"carrier-pigeon","command":"x"}`, `there is no transport "carrier-pigeon"`},
		"type is a number":    {`{"type":1,"command":"x"}`, "type (line 2): expected a string, found a number"},
		"args is a string":    {`{"command":"x","args":"s3cret"}`, "args (line 2): expected an array of strings, found a string"},
		"args has an object":  {`{"command":"x","args":[{"a":"s3cret"}]}`, "args (line 2): expected a string, found an object"},
		"empty command array": {`{"command":[]}`, "command (line 2): the array is empty"},
		"env is an array":     {`{"command":"x","env":["A=s3cret"]}`, "env (line 2): expected an object"},
		"env has null":        {`{"command":"x","env":{"A":null}}`, "the value of A must be a string"},
		"env name":            {`{"command":"x","env":{"A=B":"s3cret"}}`, `"A=B" is no variable`},
		"NUL":                 {`{"command":"x","args":["s3cret\u0000"]}`, "has a NUL character"},
		"header name":         {`{"url":"https://a.example/","headers":{"A B":"s3cret"}}`, `"A B" is no header`},
		"header value":        {`{"url":"https://a.example/","headers":{"A":"s3cret\r\nB: c"}}`, `"A" is no header`},
		"header without":      {`{"url":"https://a.example/","headers":["s3cret"]}`, `a header is written as "Name: value"`},
		"no URL":              {`{"url":"s3cret"}`, "url: it is no URL with a host"},
		"file URL":            {`{"url":"file://host/etc/s3cret"}`, "url: its scheme is unknown"},
		"websocket as http":   {`{"type":"http","url":"wss://a.example/s3cret"}`, "ws:// and wss:// are for the type websocket"},
		"negative timeout":    {`{"command":"x","timeout":-1}`, "timeout (line 2): the number must be from 0"},
		"long timeout":        {`{"command":"x","timeout":1e11}`, "timeout (line 2): the timeout is longer than"},
		"timeout is a word":   {`{"command":"x","timeout":"soon"}`, `timeout (line 2): expected a duration such as "30s"`},
		"disabled is a word":  {`{"command":"x","disabled":"yes"}`, "disabled (line 2): expected true or false"},
		"port":                {`{"url":"https://a.example/","oauth":{"callbackPort":70000}}`, "callbackPort: expected a port"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("home/.claude.json", "{\"mcpServers\":{\n\"s\":"+test.entry+",\n\"other\":{\"command\":\"x\"}}}")
			c := d.load()
			if err := d.server(c, "other").Err; err != nil {
				t.Error(err)
			}
			s := d.server(c, "s")
			if s.Err == nil || !strings.Contains(s.Err.Error(), test.want) || strings.Contains(s.Err.Error(), "s3cret") {
				t.Errorf("error %v, want %q", s.Err, test.want)
			}
			if s.Source.Line != 2 || len(c.Problems) > 0 {
				t.Errorf("source %v, problems %v", s.Source, c.Problems)
			}
			if _, err := s.Expand(nil); !errors.Is(err, s.Err) {
				t.Errorf("Expand: %v", err)
			}
			if name == "disabled is a word" && !s.Disabled {
				t.Error("an entry that may be switched off is on")
			}
		})
	}
}

// Members that look like known ones are noted, others are not.
func TestTypos(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"comand": "command", "arg": "args", "Command": "command", "heders": "headers", "head_ers": "headers", "disable": "disabled",
		"timeot": "timeout", "serverurl": "serverUrl", "x-mine": "", "notes": "", "startupOrder": "", "trust": "", "sse": "",
	} {
		d := newDesk(t)
		d.write("home/.cursor/mcp.json", `{"mcpServers":{"s":{"url":"https://a.example/","`+key+`":"s3cret"}}}`)
		notes := strings.Join(d.server(d.load(), "s").Notes, "; ")
		if want == "" && notes != "" || want != "" && !strings.Contains(notes, `did you mean "`+want+`"?`) || strings.Contains(notes, "s3cret") {
			t.Errorf("%s: notes %q, want %q", key, notes, want)
		}
	}
}

// Lists of addresses show no secrets.
func TestAddress(t *testing.T) {
	t.Parallel()
	tests := []struct{ entry, want string }{
		{`{"url":"https://ada:pw@a.example:8443/mcp/x?key=k#f"}`, "https://a.example:8443/mcp/x"},
		{`{"url":"https://a.example/@scope/x"}`, "https://a.example/@scope/x"},
		{`{"url":"https://ada:p/w@a.example/"}`, "https://***"},
		{`{"url":"https://${U}:${P}@${HOST}/mcp?k=${K}"}`, "https://${HOST}/mcp"},
		{`{"command":"x","args":["--api-key","k","--token=k","-v","--url","https://u:p@a.example/?k=k"]}`, "x --api-key *** --token=*** -v --url https://a.example/"},
		{`{"command":"x","args":["--header","Authorization: Bearer k","--db","a=b"]}`, "x --header Authorization: *** --db a=b"},
		{`{"command":"x","args":["--GITHUB_TOKEN=k","API_KEY=k","--keyboard","us"]}`, "x --GITHUB_TOKEN=*** API_KEY=*** --keyboard us"},
	}
	for _, test := range tests {
		d := newDesk(t)
		d.write("home/.claude.json", `{"mcpServers":{"s":`+test.entry+`}}`)
		if got := d.server(d.load(), "s").Address(); got != test.want {
			t.Errorf("%s: %s, want %s", test.entry, got, test.want)
		}
	}
}

// Variables of a file.
func TestEnvFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		want  map[string]string
		fails string
	}{
		"plain":         {text: "A=1\nB = two words \n", want: map[string]string{"A": "1", "B": "two words"}},
		"comments":      {text: "# c\n\nA=1 # c\nB=a#b\n", want: map[string]string{"A": "1", "B": "a#b"}},
		"export":        {text: "export A=1\r\nB=2\r\n", want: map[string]string{"A": "1", "B": "2"}},
		"quotes":        {text: "A=\"x\\ty\\\"z\"\nB='a\\n$X'\nC=\"\"\n", want: map[string]string{"A": "x\ty\"z", "B": `a\n$X`, "C": ""}},
		"lines":         {text: "A=\"-----\nkey\n-----\"\nB=2", want: map[string]string{"A": "-----\nkey\n-----", "B": "2"}},
		"after quotes":  {text: "A='x' # c\nB=2", want: map[string]string{"A": "x", "B": "2"}},
		"not expanded":  {text: "A=${HOME}\n", want: map[string]string{"A": "${HOME}"}},
		"the last":      {text: "A=1\nA=2\n", want: map[string]string{"A": "2"}},
		"no sign":       {text: "A=1\ns3cret\n", fails: "line 2: write NAME=value"},
		"no name":       {text: "=s3cret\n", fails: "line 1: write NAME=value"},
		"no quote":      {text: "A=1\nB=\"s3cret\n", fails: "line 2: the value of B has no closing quote"},
		"not UTF-8":     {text: "A=\xff", fails: "not UTF-8"},
		"too large":     {text: strings.Repeat("#", 300<<10), fails: "too large"},
		"too many":      {text: strings.Repeat("A=1\n", 2000), fails: "more than 1000 variables"},
		"line of error": {text: "A=\"1\n2\"\nB\n", fails: "line 3: write NAME=value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("home/project/.env", test.text)
			d.write("home/project/.cursor/mcp.json", `{"mcpServers":{"s":{"command":"x","envFile":"${workspaceFolder}/.env"}}}`)
			e, err := d.server(d.load(), "s").Expand(nil)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range test.want {
				if got, ok := e.Env[name]; got != want || !ok {
					t.Errorf("%s=%q, want %q", name, got, want)
				}
			}
			if len(e.Env) != len(test.want) {
				t.Errorf("env %v", e.Env)
			}
		})
	}
}

// Files that are made to be slow are cut short, on the safe side.
func TestHostileSizes(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const n = 100_000
	long := strings.Repeat("*a", 100_000)
	tests := map[string]struct{ file, text, problem string }{
		"servers":      {".mcp.json", `{"mcpServers":{` + list(n, `"s%d":{"url":"x"}`) + `}}`, "there are more than 500 servers"},
		"long name":    {".mcp.json", `{"mcpServers":{"` + long + `":{"command":"x"}}}`, "a server has no name, or one of more than 256 bytes"},
		"unknown":      {".mcp.json", `{"mcpServers":{"s":{` + list(n, `"command%d":0`) + `}}}`, ""},
		"variables":    {".mcp.json", `{"mcpServers":{"s":{"command":"x","args":["` + strings.Repeat("${", 1_000_000) + `"]}}}`, ""},
		"braces":       {"opencode.json", `{"mcp":{"s":{"command":["x","` + strings.Repeat("{", 1_000_000) + `"]}}}`, ""},
		"own tools":    {".claude/settings.json", `{"permissions":{"deny":[` + list(n, `"Bash(s%d)"`) + `]}}`, ""},
		"rules":        {".claude/settings.json", `{"permissions":{"deny":[` + list(n, `"mcp__s%d"`) + `]}}`, "permissions.deny: there are more than 2000 rules"},
		"long rule":    {".claude/settings.json", `{"permissions":{"deny":["mcp__` + long + `"]}}`, "permissions.deny: a rule is longer than 256 bytes"},
		"server list":  {".claude/settings.json", `{"deniedMcpServers":[` + list(n/2, `{"serverUrl":"https://%d"}`) + `]}`, "deniedMcpServers: there are more than 2000 elements"},
		"permissions":  {"opencode.json", `{"permission":{` + list(n, `"s%d*":"deny"`) + `}}`, "permission: there are more than 2000 rules"},
		"tools":        {"opencode.json", `{"tools":{` + list(n, `"s%d*":false`) + `}}`, "tools: there are more than 2000 rules"},
		"own rules":    {".parley.jsonc", `{"rules":[` + list(n/2, `{"effect":"deny","server":"s%d"}`) + `]}`, "there are more than 2000 rules"},
		"own unknown":  {".parley.jsonc", `{` + list(n, `"rulesx%d":1`) + `}`, "there is no member"},
		"environment":  {".vscode/mcp.json", `{"servers":{"s":{"command":"x","env":{` + list(n, `"A%d":"${env:SET}"`) + `}}}}`, ""},
		"inputs":       {".vscode/mcp.json", `{"inputs":[` + list(n/2, `{"id":"%d"}`) + `],"servers":{"s":{"command":"x"}}}`, ""},
		"header lines": {".kit.yml", "mcpServers: {s: {url: 'https://a.example', headers: [" + list(n, `"A: %d"`) + "]}}", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.env["SET"] = "x"
			d.write("home/project/"+test.file, test.text)
			d.write("home/.claude.json", `{"mcpServers":{"other":{"command":"x"}}}`)
			d.write("home/.claude/settings.json", `{"permissions":{"allow":["mcp__other"]}}`)
			c := d.load()
			if d.server(c, "other").Err != nil && name != "server list" {
				t.Error("another server has an error")
			}
			if test.problem == "" {
				if len(c.Problems) > 0 {
					t.Errorf("problems %v", c.Problems[0])
				}
				return
			}
			if len(c.Problems) == 0 || !strings.HasPrefix(c.Problems[0].Text, test.problem) {
				t.Errorf("problems %.300v", c.Problems)
			}
			if strings.Contains(test.problem, "rule") {
				p, err := policy.New(c.Rules)
				if err != nil {
					t.Fatal(err)
				}
				if v := p.Decide(&policy.Query{Server: "other", Name: "x"}); v.Effect != policy.Ask {
					t.Errorf("rules are missing, and a call is %v", v.Effect)
				}
			}
		})
	}
}

// What is wrong with a file that was given is an error with its line.
func TestLoadFileErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a.json", "{\n,")
	d.write("b.json", "[]")
	for name, want := range map[string]string{"a.json": "a.json:2: this is no JSON", "b.json": "expected an object", "none.json": "no such file", "home": "no regular file"} {
		_, err := config.LoadFile(d.path(name), d.options)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), d.path(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
