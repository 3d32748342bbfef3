package ui_test

import (
	"errors"
	"testing"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

// pdfEntry is a skill as a server tells of it.
func pdfEntry() host.SkillEntry {
	return host.SkillEntry{
		URI: "skill://pdf/SKILL.md", Name: "pdf", Description: "Fills\x1b[2K forms.\nAnd \u202emore.", AllowedTools: `"Bash(*)"`,
		Files: []host.SkillFile{
			{URI: "skill://pdf/SKILL.md", Digest: "sha256:1", Size: 120}, {URI: "skill://pdf/references/FORMS.md", Digest: "sha256:2", Size: 1880},
		},
	}
}

// skillServers are servers with skills: two of one name, one that is invalid.
func skillServers() *fakeHost {
	h := servers()
	h.status[0].SkillsErr = errors.New("it lists more than 2000 skills")
	other := pdfEntry()
	other.URI = "skill://acme/pdf/SKILL.md"
	h.skills = []*host.Skill{
		{Server: "db", SkillEntry: host.SkillEntry{URI: "skill://only/SKILL.md", Name: "only", Description: "The only one."}, Hidden: true},
		{Server: "files", SkillEntry: other},
		{Server: "files", SkillEntry: pdfEntry()},
		{Server: "files", SkillEntry: host.SkillEntry{URI: "skill://bad/SKILL.md"}, Err: errors.New("resources is missing\x1b[2J")},
	}
	return h
}

// Skills are listed with what tells them apart, and loaded by the name that one server has
// once, or by the URI.
func TestLineSkills(t *testing.T) {
	t.Parallel()
	golden(t, "skills", talk(t, skillServers(), newSession(func(*session, host.Input) {}), nil, "/skills", "/skills only", "/skill files:pdf",
		"/skill", "/skill files:none", "/quit"))
	for line, want := range map[string]string{
		"/skill none skill://x/SKILL.md": "none skill://x/SKILL.md", "/skill files:skill://pdf/SKILL.md": "files skill://pdf/SKILL.md",
		"/skill db:only": "db skill://only/SKILL.md", "/skill files skill://unlisted/SKILL.md": "files skill://unlisted/SKILL.md",
	} {
		s := newSession(func(*session, host.Input) {})
		talk(t, skillServers(), s, nil, line)
		if len(s.sent) != 1 || s.sent[0].Skill.Server+" "+s.sent[0].Skill.URI != want {
			t.Errorf("%s: sent %+v", line, s.sent)
		}
	}
}

// The records of a skill say on what the model acts, and that it has changed.
func TestSkillRecords(t *testing.T) {
	t.Parallel()
	k := host.SkillRecord{Server: "files", URI: "skill://pdf\u202e/SKILL.md"}
	changed := k
	changed.Changed = true
	got := ui.Text([]host.Record{{N: 1, Body: &k}, {N: 2, Body: &changed}}, 400)
	want := `The model acts on the skill skill://pdf\u{202e}/SKILL.md of server files from now on.` + "\n" +
		`The skill skill://pdf\u{202e}/SKILL.md of server files has changed: nothing of it is read until it is loaded anew.` + "\n"
	if got != want {
		t.Errorf("got %q", got)
	}
}

// The question about a skill shows its files, what it asks for, and what has changed.
func TestSkillWording(t *testing.T) {
	t.Parallel()
	entry := pdfEntry()
	grant := host.Offer{Scope: host.ScopeSkill, Text: "load this skill, as long as none of its files changes", Rule: policy.Rule{Kind: policy.KindSkill}}
	dynamic := host.SkillEntry{URI: entry.URI, Name: "pdf", Description: "d", Dynamic: true}
	for name, q := range map[string]host.Question{
		"skill": {Call: "c1", Skill: &entry, Why: "no rule matches", Offers: []host.Offer{grant}, Warnings: []string{`The server "db" has a skill "pdf" too.`}},
		"skill-changed": {
			Call: "c1", Skill: &entry, Why: "the server has changed this skill since you agreed to it", Offers: []host.Offer{grant},
			Changes: []host.Change{{Path: `file "skill://pdf/SKILL.md"`, Kind: host.ChangeEdited, Before: "1 byte", After: "2 bytes"}},
		},
		"skill-dynamic": {Call: "", Skill: &dynamic, Why: "rule: ask skill:files/*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q.Kind, q.Server, q.Origin, q.Name = host.QuestionSkill, "files", "/home/ada/.mcp.json", entry.URI
			s := newSession(func(s *session, _ host.Input) { s.ask(q) })
			shown := talk(t, servers(), s, &ui.LineOptions{}, "Fill it in.", "n")
			golden(t, name, shown)
			checkPlain(t, shown)
		})
	}
}

// A grant for a skill says for which one it counts.
func TestSkillGrantText(t *testing.T) {
	t.Parallel()
	g := host.Grant{ID: "g1", Rule: policy.Rule{Server: "shell", Name: "run"}, Skill: &host.GrantSkill{Server: "files", URI: "skill://pdf/SKILL.md"}}
	want := "g1: tool run of server shell, while the model acts on the skill skill://pdf/SKILL.md of server files as it was then; until you take it back."
	if got := ui.GrantText(&g, noon); got != want {
		t.Errorf("got %q", got)
	}
}
