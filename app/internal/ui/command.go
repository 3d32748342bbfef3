package ui

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Commands carries out lines with a slash in front, for every face at which they are
// typed. The fields say what it needs of the face; all but SetTitle, Model, Sessions, Logs
// and Image must be set. Its methods belong to the goroutine of the face.
type Commands struct {
	Host Host
	// Session is the one that the face shows; the face changes it when it shows another.
	Session Session
	// Face is the name of the face in answers.
	Face string
	Now  func() time.Time
	// SetTitle changes the title of a session; nil: it cannot be changed.
	SetTitle func(ctx context.Context, session, title string) error
	// Model makes the model that a text names; nil: it cannot be changed.
	Model func(ctx context.Context, text string) (host.Model, error)
	// Print shows entries: so many bytes of each claim and block, 0 is everything.
	Print func(lines []Entry, claim, block int)
	// Start runs f beside the face, with a context in which servers may ask, and what it
	// returns in the goroutine of the face. One runs at a time.
	Start func(ctx context.Context, what string, f func(ctx context.Context) (after func()))
	// Running reports whether something can be cancelled, Asking whether a question is shown.
	Running, Asking func() bool
	Cancel          func()
	Send            func(ctx context.Context, in host.Input)
	// Sessions are those to which the face can go; nil: to none.
	Sessions Sessions
	// Opened shows another session.
	Opened func(ctx context.Context, s Session)
	// Logs are the last lines that a server logged, as they came; nil: they are not kept.
	Logs func(server string) []string
	// Image reads an image from the clipboard; nil: it cannot be read.
	Image func(ctx context.Context) (mcp.Content, error)
	// Forked shows a session which begins with the records of this one up to a number.
	Forked func(ctx context.Context, s Session, at int64)
	// Missing asks for the required arguments of a prompt that have no value.
	Missing func(ctx context.Context, server string, p *mcp.Prompt, arguments map[string]string)
	Quit    func()

	named    string // the title that was given here
	forking  bool
	attached mcp.Contents // to the next message
}

// A Command is one that can be typed.
type Command struct {
	// Usage is its name and what follows it; Help says what it does.
	Usage, Help string
	run         func(l *Commands, ctx context.Context, rest string)
}

// CommandList are the commands in the order of /help. Those in which a name is in
// capitals stand for others.
func CommandList() []Command {
	return []Command{
		{"help", "says what can be typed", (*Commands).help},
		{"cancel [CALL]", "cancels what is under way, or one call of it", (*Commands).cancelCommand},
		{"tools [WORDS]", "lists tools, those whose name or description has the words", (*Commands).listTools},
		{"servers", "says how the servers are", (*Commands).listServers},
		{"retry SERVER", "starts a server again now", (*Commands).retry},
		{"log SERVER", "shows what a server logged last", (*Commands).log},
		{"budget [NAME=VALUE ...]", "says what is used and left of the budget, or changes a limit", (*Commands).budget},
		{"grants", "lists what you agreed to for longer than once", (*Commands).listGrants},
		{"revoke ID", "takes a grant back", (*Commands).revoke},
		{"prompts", "lists the prompts of the servers", (*Commands).listPrompts},
		{"SERVER:PROMPT KEY=VALUE ...", "uses a prompt; what is missing is asked for", nil},
		{"attach PATH", "attaches a text or an image to your next message; /attach - takes all away", (*Commands).attachFile},
		{"image", "attaches the image of the clipboard to your next message", (*Commands).image},
		{"model [PROVIDER:NAME]", "says which model answers, or has another one go on", (*Commands).model},
		{"skills [WORDS]", "lists skills of the servers, those that have the words", (*Commands).listSkills},
		{"skill SERVER:NAME", "loads a skill for the model; SERVER URI names one that is not listed", (*Commands).useSkill},
		{"sessions [WORDS]", "lists sessions, those whose titles have the words", (*Commands).listSessions},
		{"open ID", "goes on with another session in the place of this one", (*Commands).open},
		{"new", "begins a session in the place of this one", (*Commands).begin},
		{"delete ID", "deletes a session that is not open and has no forks", (*Commands).delete},
		{"history", "shows the session from its beginning", (*Commands).history},
		{"fork N", "begins a session that has the records of this one up to number N", (*Commands).fork},
		{"compact", "gives the model a summary in the place of the conversation until now", (*Commands).compact},
		{"title [TEXT]", "shows or changes the title of the session", (*Commands).title},
		{"quit", "ends this program; the session is kept", (*Commands).quit},
	}
}

// Run carries out a line without its slash.
func (l *Commands) Run(ctx context.Context, text string) {
	if server, rest, ok := cutServer(text, l.Servers()); ok {
		l.usePrompt(ctx, server, rest)
		return
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	for _, c := range CommandList() {
		if first, _, _ := strings.Cut(c.Usage, " "); first == word && c.run != nil {
			c.run(l, ctx, strings.TrimSpace(rest))
			return
		}
	}
	l.say("There is no command /%s; /help lists them. Two slashes begin a message with a slash.", name(word))
}

// Message sends what the person says. Two slashes in front stand for one.
func (l *Commands) Message(ctx context.Context, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if strings.HasPrefix(text, "//") {
		text = text[1:]
	}
	resources, unknown := Resources(text, l.Servers())
	for _, server := range unknown {
		l.say("No server is called %s, so that nothing of it is attached.", name(server))
	}
	l.Send(ctx, host.Input{Text: text, Attached: l.attached, Resources: resources})
}

// Sent notes that the session took an input: what was attached to it is not attached to the
// next one.
func (l *Commands) Sent(in host.Input) {
	if len(in.Attached) > 0 {
		l.attached = nil
	}
}

// model has another model go on with the session.
func (l *Commands) model(ctx context.Context, text string) {
	session := l.Session
	switch {
	case text == "":
		l.say("The model is %s.", modelName(session.Model()))
		return
	case l.Model == nil:
		l.say("The model cannot be changed here.")
		return
	}
	l.Start(ctx, "changing the model", func(ctx context.Context) func() {
		m, err := l.Model(ctx, text)
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

// Servers are the names of the servers.
func (l *Commands) Servers() []string {
	status := l.Host.Status()
	names := make([]string, len(status))
	for i := range status {
		names[i] = status[i].Name
	}
	return names
}

// Forking reports whether the session is being forked: its end then is none of the face.
func (l *Commands) Forking() bool { return l.forking }

// say shows a sentence of the program. Names in it are escaped by the caller.
func (l *Commands) say(format string, args ...any) { l.print([]Entry{said(format, args...)}, limits{}) }

// print shows entries.
func (l *Commands) print(lines []Entry, limit limits) {
	if len(lines) > 0 {
		l.Print(lines, limit.claim, limit.block)
	}
}

func (l *Commands) help(context.Context, string) {
	lines := []Entry{said("What you type is sent to the model. @SERVER:URI in it attaches a resource; two slashes begin a message with a slash. Lines with one slash are commands:")}
	for _, c := range CommandList() {
		lines = append(lines, said("  /%s: %s", c.Usage, c.Help))
	}
	l.print(lines, limits{})
}

func (l *Commands) quit(context.Context, string) { l.Quit() }

// cancelCommand cancels the run, or a call.
func (l *Commands) cancelCommand(_ context.Context, call string) {
	switch {
	case call != "" && l.Session.CancelCall(call):
		l.say("Cancelling call %s.", name(call))
	case call != "":
		l.say("No call %s is under way.", name(call))
	case l.Running():
		l.say("Cancelling.")
		l.Cancel()
	default:
		l.say("Nothing is under way.")
	}
}

// listTools lists the tools that have all the words.
func (l *Commands) listTools(_ context.Context, rest string) {
	catalog := l.Host.Catalog()
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
	l.print(append(lines, wrongParts(l.Host.Status())...), limits{claim: 160})
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

func (l *Commands) listGrants(ctx context.Context, _ string) {
	grants, err := l.Host.Grants(ctx)
	if err != nil {
		l.say("The grants cannot be read: %s.", claim(err.Error()))
		return
	}
	if len(grants) == 0 {
		l.say("There are no grants.")
	}
	for i := range grants {
		l.say("Grant %s", GrantText(&grants[i], l.Now()))
	}
}

func (l *Commands) revoke(ctx context.Context, id string) {
	if id == "" {
		l.say("Please write which grant, as in /revoke ID; /grants lists them.")
		return
	}
	err := l.Host.Revoke(ctx, id)
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
func (l *Commands) history(context.Context, string) {
	script := Transcript{Face: l.Face}
	records := l.Session.Snapshot().Records
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
func (l *Commands) fork(ctx context.Context, rest string) {
	at, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		l.say("Please write the number of a record, as in /fork 12; /history shows them.")
		return
	}
	if l.Running() {
		l.say("Something is under way; wait for it or cancel it first.")
		return
	}
	old := l.Session
	l.forking = true
	l.Start(ctx, "forking the session", func(taskCtx context.Context) func() {
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
			l.Session, l.named = forked, ""
			l.Forked(ctx, forked, at)
		}
	})
}

func (l *Commands) compact(ctx context.Context, _ string) {
	session := l.Session
	l.Start(ctx, "writing a summary", func(ctx context.Context) func() {
		before := len(session.Snapshot().Records)
		err := session.Compact(ctx)
		after := len(session.Snapshot().Records)
		return func() {
			switch {
			case err != nil:
				l.say("There is no summary: %s.", claim(err.Error()))
			case after == before:
				l.say("There is nothing to summarize yet.")
			}
		}
	})
}

func (l *Commands) title(ctx context.Context, rest string) {
	switch {
	case rest == "":
		l.say("Session %s: %s", name(l.Session.ID()), firstOf(claim(l.named), claim(l.Session.Info().Title), "it has no title"))
	case l.SetTitle == nil:
		l.say("The title cannot be changed here.")
	default:
		if err := l.SetTitle(ctx, l.Session.ID(), rest); err != nil {
			l.say("The title was not changed: %s.", claim(err.Error()))
			return
		}
		l.named = rest
		l.say("The title is %s now.", claim(rest))
	}
}

// listPrompts lists the prompts of the servers that are ready.
func (l *Commands) listPrompts(ctx context.Context, _ string) {
	h, status := l.Host, l.Host.Status()
	l.Start(ctx, "listing prompts", func(ctx context.Context) func() {
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
			l.print(append(lines, wrongParts(h.Status())...), limits{claim: 160})
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
