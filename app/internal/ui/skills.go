package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
)

// skillsWait is the longest that a command waits for servers that are starting.
const skillsWait = 10 * time.Second

// withSkills calls f with the catalog, once the servers that are starting are ready.
func (l *Commands) withSkills(ctx context.Context, f func(c *host.Catalog)) {
	h := l.Host
	l.Start(ctx, "listing skills", func(ctx context.Context) func() {
		catalog := h.Settle(ctx, skillsWait)
		return func() { f(catalog) }
	})
}

// listSkills lists the skills that have all the words, also those that cannot be loaded.
func (l *Commands) listSkills(ctx context.Context, rest string) {
	l.withSkills(ctx, func(c *host.Catalog) { l.printSkills(c, rest) })
}

func (l *Commands) printSkills(catalog *host.Catalog, rest string) {
	acting := l.Session.Snapshot().Skills
	wanted := strings.Fields(strings.ToLower(rest))
	var lines []Entry
	for _, k := range catalog.Skills {
		if hasAll(strings.ToLower(k.Server+" "+k.Name+" "+k.Description+" "+k.URI), wanted) {
			lines = append(lines, skillEntry(k, acting))
		}
	}
	lines = append(lines, said("%s.", firstOf(count(int64(len(lines)), "skill", "skills"), "No skills")))
	for i := range catalog.Servers {
		if s := &catalog.Servers[i]; s.SkillsErr != nil {
			lines = append(lines, said("Not all skills of server %s are here: %s.", name(s.Name), claim(s.SkillsErr.Error())))
		}
	}
	l.print(lines, limits{claim: 160})
}

// skillEntry is a skill in a list.
func skillEntry(k *host.Skill, acting []*host.SkillRecord) Entry {
	label := fmt.Sprintf("skill %s of server %s, %s", name(k.Name), name(k.Server), host.EscapeLine(k.URI))
	if k.Err != nil {
		return Entry{Kind: EntryWarning, Text: label + ", cannot be loaded: " + claim(k.Err.Error())}
	}
	if k.Hidden {
		label += ", which a rule denies"
	}
	if slices.ContainsFunc(acting, func(r *host.SkillRecord) bool { return r.Server == k.Server && r.URI == k.URI }) {
		label += ", which the model acts on"
	}
	return Entry{Kind: EntryClaim, Label: label, Text: claim(k.Description)}
}

// useSkill loads a skill by the person's wish: SERVER:NAME, or SERVER and a URI.
func (l *Commands) useSkill(ctx context.Context, rest string) {
	if l.Running() || l.Asking() {
		l.say("Something is under way; wait for it or cancel it first.")
		return
	}
	server, what, ok := cutServer(rest, l.Servers())
	if !ok {
		server, what, ok = strings.Cut(rest, " ")
	}
	if what = strings.TrimSpace(what); !ok || what == "" {
		l.say("Please write /skill SERVER:NAME, or /skill SERVER URI; /skills lists them.")
		return
	}
	l.withSkills(ctx, func(c *host.Catalog) { l.loadSkill(ctx, c, server, what) })
}

// loadSkill loads a skill by its name, if only one has it, or its URI.
func (l *Commands) loadSkill(ctx context.Context, catalog *host.Catalog, server, what string) {
	found := catalog.FindSkills(server, what)
	switch {
	case len(found) == 1:
		what = found[0].URI
	case len(found) > 1:
		lines := []Entry{said("Server %s has %d skills of that name; write /skill %s and one of their URIs.", name(server), len(found), name(server))}
		for _, k := range found {
			lines = append(lines, skillEntry(k, nil))
		}
		l.print(lines, limits{claim: 160})
		return
	case !strings.Contains(what, "://"):
		l.say("Server %s lists no skill %s; /skills lists them. One that is not listed is loaded by its URI.", name(server), name(what))
		return
	}
	l.Send(ctx, host.Input{Skill: &host.SkillInput{Server: server, URI: what}})
}

// skill words a skill that would be loaded.
func (p *Wording) skill(q *host.Question) {
	p.Title = fmt.Sprintf("The model wants to load the skill %s of server %s.", name(q.Name), name(q.Server))
	switch {
	case len(q.Changes) > 0:
		p.Title = fmt.Sprintf("Server %s has changed its skill %s since you agreed to it.", name(q.Server), name(q.Name))
	case q.Call == "":
		p.Title = fmt.Sprintf("This would be loaded: the skill %s of server %s.", name(q.Name), name(q.Server))
	}
	k := q.Skill
	if k == nil {
		return
	}
	p.fact("skill", host.EscapeLine(k.URI))
	p.claim("name", k.Name)
	p.claim("description", k.Description)
	if k.Dynamic {
		p.warn("its files are made anew each time: nobody can compare them with what you agree to now")
	} else {
		p.block("files (untrusted)", skillFiles(k))
	}
	if k.AllowedTools != "" {
		p.claim("it asks to use without a question", k.AllowedTools)
		p.warn("that is ignored: a skill gives no rights")
	}
}

// skillFiles lists the files of a skill, by their path in it, with their sizes.
func skillFiles(k *host.SkillEntry) string {
	folder := strings.TrimSuffix(k.URI, "SKILL.md")
	var b strings.Builder
	var total int64
	for _, f := range k.Files {
		total += f.Size
		fmt.Fprintf(&b, "%s  %d bytes\n", host.EscapeLine(strings.TrimPrefix(f.URI, folder)), f.Size)
	}
	fmt.Fprintf(&b, "%s, %d bytes", count(int64(len(k.Files)), "file", "files"), total)
	return b.String()
}

// skillLines words that the model acts on a skill, or that it has changed.
func skillLines(b *host.SkillRecord) []Entry {
	text := "The model acts on the skill %s of server %s from now on."
	if b.Changed {
		text = "The skill %s of server %s has changed: nothing of it is read until it is loaded anew."
	}
	return []Entry{said(text, name(b.URI), name(b.Server))}
}
