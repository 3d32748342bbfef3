package panel_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/chat/tui/panel"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// patience ends a test that hangs; nothing else lasts so long, on a busy machine either.
const patience = 5 * time.Minute

var update = flag.Bool("update", false, "write the panels in testdata anew")

// A person sits at a panel and presses keys, each a second after the other.
type person struct {
	t     testing.TB
	panel *panel.Panel
	now   time.Time
	width int
	high  int
	opts  panel.Options
	// opened is what the editor was opened with.
	opened []string
}

// sit shows a question.
func sit(t testing.TB, q *host.Question, set ...func(*panel.Options)) *person {
	t.Helper()
	p := &person{t: t, now: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC), width: 80, high: 24}
	o := &panel.Options{Theme: style.NoColor(), Keys: style.DefaultKeys(), Now: func() time.Time { return p.now }, Face: "terminal"}
	for _, f := range set {
		f(o)
	}
	p.opts = *o
	p.panel = panel.New(q, o)
	p.look()
	p.now = p.now.Add(time.Second)
	return p
}

// editor keeps what it was opened with.
func (p *person) editor(text string) tea.Cmd {
	p.opened = append(p.opened, text)
	return nil
}

var named = map[string]rune{
	"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
	"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace,
	"delete": tea.KeyDelete,
}

// keyOf is a key by its name: y, enter, shift+tab, alt+left, ctrl+u, space.
func keyOf(name string) tea.KeyPressMsg {
	var k tea.Key
	if name == "+" {
		return tea.KeyPressMsg{Code: '+', Text: "+"}
	}
	parts := strings.Split(name, "+")
	for _, m := range parts[:len(parts)-1] {
		k.Mod |= map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[m]
	}
	last := parts[len(parts)-1]
	switch code, ok := named[last]; {
	case ok:
		k.Code = code
	case last == "space":
		k.Code, k.Text = tea.KeySpace, " "
	default:
		k.Code, _ = utf8.DecodeRuneInString(last)
		if k.Mod == 0 {
			k.Text = last
		}
	}
	return tea.KeyPressMsg(k)
}

// press presses keys, and returns the last outcome. An outcome before the last key is an
// error.
func (p *person) press(keys ...string) panel.Outcome {
	p.t.Helper()
	var out panel.Outcome
	for i, key := range keys {
		p.now = p.now.Add(time.Second)
		out, _ = p.panel.Update(keyOf(key))
		if i < len(keys)-1 && (out.Answer != nil || out.Aside) {
			p.t.Fatalf("key %d, %s, ended it: %+v", i, key, out)
		}
		p.look()
	}
	return out
}

// look is what the panel shows, without styles; it must be safe.
func (p *person) look() string {
	p.t.Helper()
	shown := p.panel.View(p.width, p.high)
	checkView(p.t, shown, p.width, p.high)
	return ansi.Strip(shown)
}

// checkView fails if a view does not fit, or holds a control character that is no part of
// a style.
func checkView(t testing.TB, shown string, width, height int) {
	t.Helper()
	plain := ansi.Strip(shown)
	lines := strings.Split(plain, "\n")
	if len(lines) > height {
		t.Errorf("%d lines in %d:\n%s", len(lines), height, plain)
	}
	for _, line := range lines {
		if w := style.Width(line); w > width {
			t.Errorf("%d columns in %d: %q", w, width, line)
		}
	}
	if rest := withoutSGR(shown); rest != host.Escape(rest) || strings.ContainsAny(rest, "\t\x1b") {
		t.Errorf("not safe to show: %q", rest)
	}
}

// withoutSGR removes escape sequences that set a style, and only these.
func withoutSGR(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		rest := strings.TrimLeft(after, "0123456789;:")
		if !strings.HasPrefix(rest, "m") {
			b.WriteString("\x1b[")
			s = after
			continue
		}
		s = rest[1:]
	}
}

// wants fails unless an outcome is this answer.
func wants(t testing.TB, got panel.Outcome, want host.Answer) {
	t.Helper()
	want.Face = "terminal"
	if got.Answer == nil {
		t.Fatalf("no answer, but %+v", got)
	}
	if diff := cmp.Diff(want, *got.Answer); diff != "" {
		t.Errorf("the answer: %s", diff)
	}
}

// golden compares a view with a file of testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s (go test -update writes it anew):\n%s", path, diff)
	}
}

func callQuestion() *host.Question {
	tool := policy.Rule{Effect: policy.Allow, Kind: policy.KindTool, Server: "files", Name: "write_file"}
	inside, server := tool, tool
	inside.Where = []policy.Predicate{{Pointer: "/path", Op: policy.OpInside, Dirs: []string{"/home/ada"}}}
	server.Name = ""
	return &host.Question{
		ID: "q7", Kind: host.QuestionCall, Server: "files", Origin: "/home/ada/.mcp.json", Call: "c1", Name: "write_file",
		Tool: &mcp.Tool{
			Name: "write_file", Title: "Write", Description: "Writes a file.\nAsks nobody.",
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(false), DestructiveHint: new(true)},
		},
		Arguments: mcp.RawValue(`{"path":"/home/ada/notes.txt","text":"Dear Bob,\n\nthank you.\n","options":{"mode":420,"tags":["a","b"]},"token":"ghp_0123"}`),
		Secrets:   []host.Secret{{Pointer: "/token", Why: "the name says that it is secret"}},
		Why:       "no rule matches",
		Offers: []host.Offer{
			{Scope: host.ScopePattern, Text: "this tool where path is inside /home/ada", Rule: inside},
			{Scope: host.ScopeTool, Text: "this tool with any arguments", Rule: tool},
			{Scope: host.ScopeServer, Text: "all tools of this server", Rule: server},
		},
	}
}

func callsQuestion() *host.Question {
	q := callQuestion()
	q.Kind, q.Call, q.Arguments, q.Offers, q.Secrets = host.QuestionCalls, "", nil, q.Offers[1:2], nil
	q.Batch = []host.BatchedCall{
		{Call: "c1", Arguments: mcp.RawValue(`{"path":"a.txt","text":"\u001b[2Jone"}`)},
		{Call: "c2", Arguments: mcp.RawValue(`{"path":"b.txt","password":"x"}`), Secrets: []host.Secret{{Pointer: "/password", Why: "the name says that it is secret"}}},
	}
	return q
}

func changeQuestion() *host.Question {
	q := callQuestion()
	q.Kind, q.Arguments, q.Offers, q.Secrets, q.Why = host.QuestionChange, nil, nil, nil, "the server has changed this tool since you agreed to it"
	q.Changes = []host.Change{
		{Path: "description", Kind: host.ChangeEdited, Before: "Writes a file.", After: "Writes a file.\nAsks nobody."},
		{Path: `input field "mode"`, Kind: host.ChangeAdded, After: `{"type":"integer"}`},
	}
	return q
}

func sampleQuestion() *host.Question {
	return &host.Question{
		ID: "q8", Kind: host.QuestionSample, Server: "bank", Name: "sampling", Why: "servers may not use the model unasked",
		Sample: &mcp.CreateMessageParams{
			MaxTokens: 100, SystemPrompt: "You are a poet.",
			Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("Summarize the year.\nIn verse.")}}},
		},
		Models: []string{"small", "large"},
		Offers: []host.Offer{{Scope: host.ScopeServer, Text: "this server, any text of this kind", Rule: policy.Rule{Effect: policy.Allow, Kind: policy.KindSampling, Server: "bank"}}},
	}
}

func sampledQuestion() *host.Question {
	return &host.Question{
		ID: "q9", Kind: host.QuestionSampled, Server: "bank", Name: "sampling", Why: "the answer goes to a server",
		Sampled: &mcp.CreateMessageResult{Model: "small", Role: mcp.RoleAssistant, StopReason: "endTurn", Content: mcp.Contents{mcp.Text("Rain, then sun.")}},
		Offers:  []host.Offer{{Scope: host.ScopeServer, Text: "this server, any text of this kind", Rule: policy.Rule{Effect: policy.Allow, Kind: policy.KindSampling, Server: "bank"}}},
	}
}

func formQuestion() *host.Question {
	return &host.Question{
		ID: "q10", Kind: host.QuestionForm, Server: "db", Name: "form", Why: "the server asks you",
		Form: &mcp.ElicitParams{Message: "Who \x1b[2J are you?", RequestedSchema: &mcp.ElicitSchema{
			Required: []string{"name", "news"},
			Properties: mcp.Properties{
				{Name: "name", Schema: mcp.PrimitiveSchema{Type: "string", Title: "Your name", Description: "As on\nyour card", MinLength: new(int64(2))}},
				{Name: "colour", Schema: mcp.PrimitiveSchema{Type: "string", OneOf: []mcp.EnumOption{{Const: "r", Title: "Red"}, {Const: "g", Title: "Green"}}}},
				{Name: "age", Schema: mcp.PrimitiveSchema{Type: "integer", Minimum: new(18.0), Default: mcp.RawValue("30")}},
				{Name: "news", Schema: mcp.PrimitiveSchema{Type: "boolean"}},
				{Name: "born", Schema: mcp.PrimitiveSchema{Type: "string", Format: "date"}},
				{Name: "password", Schema: mcp.PrimitiveSchema{Type: "string"}},
			},
		}},
	}
}

func pageQuestion() *host.Question {
	return &host.Question{
		ID: "q11", Kind: host.QuestionPage, Server: "bank", Name: "page", Why: "the server asks you",
		Form: &mcp.ElicitParams{Message: "Pay, please.", URL: "https://pay.example.com@evil.example/now?x=1"},
		Page: &client.ElicitPage{URL: "https://pay.example.com@evil.example/now?x=1", Host: "evil.example", Warnings: []string{"the address names a user"}},
	}
}

func rootsQuestion() *host.Question {
	return &host.Question{
		ID: "q12", Kind: host.QuestionRoots, Server: "files", Name: "roots", Why: "no rule matches",
		Roots:  []mcp.Root{{URI: "file:///home/ada/b", Name: "B"}, {URI: "file:///home/ada/a"}, {URI: "file:///srv"}},
		Offers: []host.Offer{{Scope: host.ScopeServer, Text: "tell this server of the chosen directories from now on", Rule: policy.Rule{Effect: policy.Allow, Kind: policy.KindRoots, Server: "files"}}},
	}
}

func useQuestion() *host.Question {
	return &host.Question{
		ID: "q13", Kind: host.QuestionUse, Server: "bank", Name: "prompt advise", Why: "no rule matches",
		Arguments: mcp.RawValue(`{"topic":"loans"}`),
	}
}

func messageQuestion() *host.Question {
	return &host.Question{
		ID: "q14", Kind: host.QuestionMessage, Server: "bank", ByPage: "ui://bank/chart", Why: "no rule matches",
		Content: mcp.Contents{mcp.Text("Buy now.\nIt is cheap.")},
	}
}

func appQuestion() *host.Question {
	return &host.Question{
		ID: "q15", Kind: host.QuestionApp, Server: "bank", Name: "ui://bank/chart", Why: "no rule matches",
		Warnings: []string{`the page can load from, or send to, "https://api.example.com"`},
		Offers:   []host.Offer{{Scope: host.ScopeArguments, Text: "this page, as long as it does not change", Rule: policy.Rule{Effect: policy.Allow, Kind: policy.KindApp, Server: "bank", Name: "ui://bank/chart"}}},
	}
}

func skillQuestion() *host.Question {
	return &host.Question{
		ID: "q16", Kind: host.QuestionSkill, Server: "docs", Call: "c4", Name: "skill://docs/pdf", Why: "no rule matches",
		Skill: &host.SkillEntry{URI: "skill://docs/pdf", Name: "pdf", Description: "Makes pages."},
	}
}

func signInQuestion() *host.Question {
	return &host.Question{
		ID: "q17", Kind: host.QuestionSignIn, Server: "bank", Call: "c4", Why: "you have signed in, and this needs more scopes",
		SignIn: &host.SignIn{
			Resource: "https://bank.example/mcp", Issuer: "https://login.example", Scopes: []string{"read", "pay"}, More: true,
			Previous: "https://other.example",
		},
	}
}

// questions are one of each kind.
func questions() map[string]*host.Question {
	return map[string]*host.Question{
		"call": callQuestion(), "calls": callsQuestion(), "change": changeQuestion(), "sample": sampleQuestion(), "sampled": sampledQuestion(),
		"form": formQuestion(), "page": pageQuestion(), "roots": rootsQuestion(), "use": useQuestion(), "message": messageQuestion(),
		"app": appQuestion(), "skill": skillQuestion(), "sign-in": signInQuestion(),
	}
}
