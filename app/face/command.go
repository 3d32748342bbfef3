package face

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A command is what a line with a slash in front asks for.
type command struct {
	usage, help string
	run         func(l *Line, ctx context.Context, rest string)
}

// commands are the commands by name, in the order of /help.
func commands() []command {
	return []command{
		{"help", "says what can be typed", (*Line).help},
		{"cancel [CALL]", "cancels what is under way, or one call of it", (*Line).cancelCommand},
		{"tools [WORDS]", "lists tools, those whose name or description has the words", (*Line).listTools},
		{"servers", "says how the servers are", (*Line).listServers},
		{"retry SERVER", "starts a server again now", (*Line).retry},
		{"grants", "lists what you agreed to for longer than once", (*Line).listGrants},
		{"revoke ID", "takes a grant back", (*Line).revoke},
		{"prompts", "lists the prompts of the servers", (*Line).listPrompts},
		{"SERVER:PROMPT KEY=VALUE ...", "uses a prompt; what is missing is asked for", nil},
		{"attach PATH", "attaches a text or an image to your next message; /attach - takes all away", (*Line).attachFile},
		{"model [PROVIDER:NAME]", "says which model answers, or has another one go on", (*Line).model},
		{"skills [WORDS]", "lists skills of the servers, those that have the words", (*Line).listSkills},
		{"skill SERVER:NAME", "loads a skill for the model; SERVER URI names one that is not listed", (*Line).useSkill},
		{"history", "shows the session from its beginning", (*Line).history},
		{"fork N", "begins a session that has the records of this one up to number N", (*Line).fork},
		{"compact", "gives the model a summary in the place of the conversation until now", (*Line).compact},
		{"title [TEXT]", "shows or changes the title of the session", (*Line).title},
		{"quit", "ends this program; the session is kept", (*Line).quit},
	}
}

// command carries out a line without its slash.
func (l *Line) command(ctx context.Context, text string) {
	if server, rest, ok := cutServer(text, l.servers()); ok {
		l.usePrompt(ctx, server, rest)
		return
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	for _, c := range commands() {
		if first, _, _ := strings.Cut(c.usage, " "); first == word && c.run != nil {
			c.run(l, ctx, strings.TrimSpace(rest))
			return
		}
	}
	l.say("There is no command /%s; /help lists them. Two slashes begin a message with a slash.", name(word))
}

func (l *Line) help(context.Context, string) {
	l.say("What you type is sent to the model. @SERVER:URI in it attaches a resource; two slashes begin a message with a slash. Lines with one slash are commands:")
	var b strings.Builder
	for _, c := range commands() {
		b.WriteString(wrapLine("  /"+c.usage+": "+c.help, columnsOf(l.width())))
	}
	l.raw(b.String())
}

// model has another model go on with the session.
func (l *Line) model(ctx context.Context, text string) {
	session := l.session
	switch {
	case text == "":
		l.say("The model is %s.", modelName(session.Model()))
		return
	case l.opts.Model == nil:
		l.say("The model cannot be changed here.")
		return
	}
	l.start(ctx, "changing the model", func(ctx context.Context) func() {
		m, err := l.opts.Model(ctx, text)
		if err == nil {
			err = session.SetModel(m)
		}
		return func() {
			if err != nil {
				l.say("The model stays %s: %s.", modelName(session.Model()), host.EscapeLine(err.Error()))
				return
			}
			l.say("%s goes on with this conversation, which it is given as it stands.", modelName(session.Model()))
		}
	})
}

// modelName names a model and its provider.
func modelName(m host.ModelInfo) string {
	if m.Provider == "" || m.Offline {
		return name(m.Name)
	}
	return name(m.Name) + " of " + name(m.Provider)
}

func (l *Line) quit(context.Context, string) { l.over = true }

// cancelCommand cancels the run, or a call.
func (l *Line) cancelCommand(_ context.Context, call string) {
	switch {
	case call != "" && l.session.CancelCall(call):
		l.say("Cancelling call %s.", name(call))
	case call != "":
		l.say("No call %s is under way.", name(call))
	case l.running || l.task != nil:
		l.say("Cancelling.")
		l.cancel()
	default:
		l.say("Nothing is under way.")
	}
}

// listTools lists the tools that have all the words.
func (l *Line) listTools(_ context.Context, rest string) {
	catalog := l.host.Catalog()
	wanted := strings.Fields(strings.ToLower(rest))
	var lines []Entry
	for _, t := range catalog.Tools {
		text := strings.ToLower(t.Server + " " + t.Def.Name + " " + t.Def.Title + " " + t.Def.Description)
		if !hasAll(text, wanted) {
			continue
		}
		label := "tool " + name(t.Def.Name) + " of server " + name(t.Server)
		if t.Hidden {
			label += ", which a rule hides from the model"
		}
		lines = append(lines, Entry{Kind: EntryClaim, Label: label, Text: claim(firstOf(t.Def.Description, t.Def.Title))})
	}
	lines = append(lines, said("%s.", firstOf(count(int64(len(lines)), "tool", "tools"), "No tools")))
	for _, d := range catalog.Down {
		lines = append(lines, said("The tools of server %s are missing: %s.", name(d.Server), claim(d.Err.Error())))
	}
	l.print(lines, limits{claim: 160})
}

func hasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

func (l *Line) listServers(context.Context, string) {
	status := l.host.Status()
	if len(status) == 0 {
		l.say("There are no servers.")
	}
	for i := range status {
		s := &status[i]
		text := fmt.Sprintf("Server %s%s: %s", name(s.Name), origin(s.Origin), s.State)
		if tools := count(int64(s.Tools), "tool", "tools"); tools != "" {
			text += ", " + tools
		}
		if skills := count(int64(s.Skills), "skill", "skills"); skills != "" {
			text += ", " + skills
		}
		if s.Stale {
			text += ", not listed anew yet"
		}
		if s.Err != nil {
			text += "; " + claim(s.Err.Error())
		}
		l.say("%s.", text)
	}
}

func (l *Line) retry(_ context.Context, server string) {
	if err := l.host.Retry(server); err != nil {
		l.say("It was not started: %s.", claim(err.Error()))
		return
	}
	l.say("Server %s is being started.", name(server))
}

func (l *Line) listGrants(ctx context.Context, _ string) {
	grants, err := l.host.Grants(ctx)
	if err != nil {
		l.say("The grants cannot be read: %s.", claim(err.Error()))
		return
	}
	if len(grants) == 0 {
		l.say("There are no grants.")
	}
	for i := range grants {
		l.say("Grant %s", GrantText(&grants[i], l.opts.Now()))
	}
}

func (l *Line) revoke(ctx context.Context, id string) {
	err := l.host.Revoke(ctx, id)
	switch {
	case errors.Is(err, host.ErrNoGrant):
		l.say("There is no grant %s; /grants lists them.", name(id))
		return
	case err != nil:
		l.say("Nothing was taken back: %s.", claim(err.Error()))
		return
	}
	l.say("Grant %s is taken back.", name(id))
}

// history shows all records, as they are worded at the beginning.
func (l *Line) history(context.Context, string) {
	script := Transcript{Face: l.opts.Face}
	records := l.session.Snapshot().Records
	for i := range records {
		r := &records[i]
		lines := script.Add(r)
		if q, ok := r.Body.(*host.QuestionRecord); ok {
			lines = append(lines, said("You were asked: %s", NewWording(&q.Question).Title))
		}
		if len(lines) > 0 {
			l.say("Record %d.", r.N)
			l.print(lines, recordLimits)
		}
	}
	l.print(script.Flush(), recordLimits)
	l.say("%s.", firstOf(count(int64(len(records)), "record", "records"), "The session is empty"))
}

// fork goes on with a fork of the session.
func (l *Line) fork(ctx context.Context, rest string) {
	at, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		l.say("Please write the number of a record, as in /fork 12; /history shows them.")
		return
	}
	if l.busy() {
		l.say("Something is under way; wait for it or cancel it first.")
		return
	}
	old := l.session
	l.forking = true
	l.start(ctx, "forking the session", func(taskCtx context.Context) func() {
		forked, err := old.Fork(taskCtx, at)
		return func() {
			l.forking = false
			if forked == nil {
				l.say("No session was begun: %s.", claim(err.Error()))
				return
			}
			if err != nil {
				l.say("The session before was not closed as it should be: %s.", claim(err.Error()))
			}
			l.say("This is session %s now: a fork of %s after record %d.", name(forked.ID()), name(old.ID()), at)
			l.asking, l.waiting, l.script, l.named = nil, nil, Transcript{Face: l.opts.Face}, ""
			l.attach(ctx, forked, at)
		}
	})
}

func (l *Line) compact(ctx context.Context, _ string) {
	session := l.session
	l.start(ctx, "writing a summary", func(ctx context.Context) func() {
		err := session.Compact(ctx)
		return func() {
			if err != nil {
				l.say("There is no summary: %s.", claim(err.Error()))
			}
		}
	})
}

func (l *Line) title(ctx context.Context, rest string) {
	switch {
	case rest == "":
		l.say("Session %s: %s", name(l.session.ID()), firstOf(claim(l.named), claim(l.session.Info().Title), "it has no title"))
	case l.opts.SetTitle == nil:
		l.say("The title cannot be changed here.")
	default:
		if err := l.opts.SetTitle(ctx, l.session.ID(), rest); err != nil {
			l.say("The title was not changed: %s.", claim(err.Error()))
			return
		}
		l.named = rest
		l.say("The title is %s now.", claim(rest))
	}
}

// listPrompts lists the prompts of the servers that are ready.
func (l *Line) listPrompts(ctx context.Context, _ string) {
	h, status := l.host, l.host.Status()
	l.start(ctx, "listing prompts", func(ctx context.Context) func() {
		var lines []Entry
		for i := range status {
			if status[i].State != host.StateReady {
				continue
			}
			server := status[i].Name
			list, err := h.Prompts(ctx, server)
			if err != nil {
				lines = append(lines, said("The prompts of server %s are missing: %s.", name(server), claim(err.Error())))
			}
			for _, p := range list {
				lines = append(lines, Entry{Kind: EntryClaim, Label: "/" + name(server) + ":" + name(p.Name) + argumentNames(p), Text: claim(firstOf(p.Description, p.Title))})
			}
		}
		return func() {
			if len(lines) == 0 {
				lines = []Entry{said("There are no prompts.")}
			}
			l.print(lines, limits{claim: 160})
		}
	})
}

// argumentNames are the arguments of a prompt, those that may be left out in brackets.
func argumentNames(p *mcp.Prompt) string {
	var b strings.Builder
	for i := range p.Arguments {
		text := name(p.Arguments[i].Name) + "="
		if !p.Arguments[i].Required {
			text = "[" + text + "]"
		}
		b.WriteString(" " + text)
	}
	return b.String()
}
