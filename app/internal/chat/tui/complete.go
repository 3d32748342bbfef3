package tui

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// mostChoices is how many completions are shown at a time.
const mostChoices = 6

// A choice is a completion.
type choice struct{ text, help string }

// completion offers what a word can become. What servers list is asked for once for each
// message, and when it has come the list is made anew.
type completion struct {
	choices []choice
	word    int // the bytes before the cursor that a choice takes the place of
	at      int
	closed  string // the line for which the person closed the list

	prompts   map[string][]*mcp.Prompt
	resources map[string][]*mcp.Resource
	values    map[string][]string // by the line up to the value
	sessions  []host.SessionInfo
	asked     map[string]bool
}

func newCompletion() completion {
	return completion{
		prompts: make(map[string][]*mcp.Prompt), resources: make(map[string][]*mcp.Resource),
		values: make(map[string][]string), asked: make(map[string]bool),
	}
}

// A listedMsg brings what a server lists; set keeps it.
type listedMsg struct{ set func() }

// complete makes the list for what stands before the cursor.
func (m *screen) complete() {
	c := &m.completion
	c.choices = nil
	if m.editor.text() == "" { // the next message: servers may have started, or list others
		*c = newCompletion()
		return
	}
	line, ok := m.editor.before()
	if !ok || line == c.closed {
		return
	}
	c.closed = ""
	switch {
	case strings.HasPrefix(line, "//"):
	case strings.HasPrefix(line, "/"):
		m.completeCommand(line)
	default:
		if i := strings.LastIndexAny(line, " \t("); strings.HasPrefix(line[i+1:], "@") {
			m.completeResource(line[i+2:])
		}
	}
	c.at = min(c.at, max(len(c.choices)-1, 0))
}

// isPlain reports whether a text is seen as it is: nothing in it is invisible, or begins
// another line or word.
func isPlain(text string) bool {
	return host.EscapeLine(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) })
}

// offer keeps the choices that begin with a word, or have it. What servers name otherwise
// than it can be shown is not offered.
func (c *completion) offer(word string, list []choice) {
	c.word = len(word)
	lower := strings.ToLower(word)
	for _, strict := range []bool{true, false} {
		for _, ch := range list {
			text := strings.ToLower(ch.text)
			if begins := strings.HasPrefix(text, lower); begins == strict && text != lower && isPlain(ch.text) && (begins || strings.Contains(text, lower)) {
				c.choices = append(c.choices, ch)
			}
		}
	}
}

// completeCommand offers commands, prompts and their arguments.
func (m *screen) completeCommand(line string) {
	text := line[1:]
	server, rest, isPrompt := strings.Cut(text, ":")
	if isPrompt && slices.Contains(m.commands.Servers(), server) {
		m.completePrompt(server, rest)
		return
	}
	if word, arg, ok := strings.Cut(text, " "); ok {
		m.completeArgument(word, arg)
		return
	}
	var list []choice
	for _, cmd := range ui.CommandList() {
		if first, rest, _ := strings.Cut(cmd.Usage, " "); first == strings.ToLower(first) {
			if rest != "" {
				first += " "
			}
			list = append(list, choice{"/" + first, cmd.Help})
		}
	}
	for _, s := range m.commands.Servers() {
		list = append(list, choice{"/" + s + ":", "the prompts of server " + host.EscapeLine(s)})
	}
	m.completion.offer(line, list)
}

// completeArgument offers what follows a command.
func (m *screen) completeArgument(command, arg string) {
	var list []choice
	switch command {
	case "retry", "log":
		for _, s := range m.commands.Servers() {
			list = append(list, choice{s, "server"})
		}
	case "skill":
		for _, k := range m.host.Catalog().Skills {
			list = append(list, choice{k.Server + ":" + k.Name, k.Description})
		}
	case "cancel":
		for _, c := range m.log.runs() {
			list = append(list, choice{c.call.ID, c.name()})
		}
	}
	if command == "open" || command == "delete" {
		list = m.sessionChoices()
	}
	m.completion.offer(arg, list)
}

// sessionChoices are the sessions but for the one that is open, once they are known.
func (m *screen) sessionChoices() []choice {
	c, kept := &m.completion, m.opts.Sessions
	if kept == nil {
		return nil
	}
	m.list("sessions", func(ctx context.Context) func() {
		sessions, err := kept.List(ctx)
		if err != nil {
			return func() {}
		}
		return func() { c.sessions = sessions }
	})
	var list []choice
	for i := range c.sessions {
		if s := &c.sessions[i]; s.ID != m.session.ID() {
			list = append(list, choice{s.ID, ui.SessionText(s, m.opts.Now())})
		}
	}
	return list
}

// completePrompt offers the prompts of a server, or values of an argument.
func (m *screen) completePrompt(server, rest string) {
	c, h := &m.completion, m.host
	prompts, ok := c.prompts[server]
	if !ok {
		m.list("prompts "+server, func(ctx context.Context) func() {
			list, err := h.Prompts(ctx, server)
			if err != nil {
				return func() {}
			}
			return func() { c.prompts[server] = list }
		})
		return
	}
	name, args, hasArgs := strings.Cut(rest, " ")
	if !hasArgs {
		list := make([]choice, len(prompts))
		for i, p := range prompts {
			list[i] = choice{p.Name, firstOf(p.Description, p.Title)}
			if len(p.Arguments) > 0 {
				list[i].text += " "
			}
		}
		c.offer(name, list)
		return
	}
	i := slices.IndexFunc(prompts, func(p *mcp.Prompt) bool { return p.Name == name })
	if i < 0 {
		return
	}
	word := args[strings.LastIndex(args, " ")+1:]
	argument, value, hasValue := strings.Cut(word, "=")
	if hasValue {
		m.completeValue(server, name, argument, value, strings.TrimSuffix(args, word))
		return
	}
	var list []choice
	for _, a := range prompts[i].Arguments {
		if !strings.Contains(" "+args, " "+a.Name+"=") {
			list = append(list, choice{a.Name + "=", firstOf(a.Description, a.Title)})
		}
	}
	c.offer(word, list)
}

// completeValue offers the values that a server suggests for an argument.
func (m *screen) completeValue(server, prompt, argument, value, before string) {
	c, h := &m.completion, m.host
	key := server + "\x00" + prompt + "\x00" + before + argument + "=" + value
	values, ok := c.values[key]
	if !ok {
		params := &mcp.CompleteParams{Ref: mcp.PromptRef(prompt), Argument: mcp.CompletionArgument{Name: argument, Value: value}}
		if given, err := ui.Pairs(before); err == nil && len(given) > 0 {
			params.Context = &mcp.CompletionContext{Arguments: given}
		}
		m.list("values "+key, func(ctx context.Context) func() {
			got, err := h.Complete(ctx, server, params)
			if err != nil || got == nil {
				return func() {}
			}
			return func() { c.values[key] = got.Values }
		})
		return
	}
	list := make([]choice, 0, len(values))
	for _, v := range values {
		quoted := v
		if strings.ContainsAny(v, " \t\"") {
			quoted = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
		}
		list = append(list, choice{quoted, ""})
	}
	c.offer(value, list)
}

// completeResource offers servers, and their resources.
func (m *screen) completeResource(word string) {
	server, uri, ok := strings.Cut(strings.TrimPrefix(word, `"`), ":")
	c := &m.completion
	if !ok || !slices.Contains(m.commands.Servers(), server) {
		var list []choice
		for _, s := range m.commands.Servers() {
			list = append(list, choice{s + ":", "the resources of server " + host.EscapeLine(s)})
		}
		c.offer(word, list)
		return
	}
	resources, known := c.resources[server]
	if !known {
		if read := m.opts.Resources; read != nil {
			m.list("resources "+server, func(ctx context.Context) func() {
				list, err := read(ctx, server)
				if err != nil {
					return func() {}
				}
				return func() { c.resources[server] = list }
			})
		}
		return
	}
	var list []choice
	for _, r := range resources {
		if !strings.ContainsAny(r.URI, " \t") {
			list = append(list, choice{r.URI, firstOf(r.Title, r.Name)})
		}
	}
	c.offer(uri, list)
}

// list asks for something of a server, once for each message.
func (m *screen) list(what string, f func(ctx context.Context) (set func())) {
	if m.completion.asked[what] {
		return
	}
	m.completion.asked[what] = true
	m.run(func(ctx context.Context) any { return listedMsg{f(ctx)} })
}

// accept takes the choice that is marked.
func (m *screen) accept() {
	c := &m.completion
	ch := c.choices[c.at]
	m.editor.replaceWord(c.word, ch.text)
	c.at = 0
	m.complete()
}

// completionView draws the list.
func (m *screen) completionView(width int) []string {
	c := &m.completion
	from := max(0, min(c.at-mostChoices/2, len(c.choices)-mostChoices))
	var out []string
	for i := from; i < min(len(c.choices), from+mostChoices); i++ {
		ch := c.choices[i]
		text := "  " + host.EscapeLine(ch.text)
		line := style.Fit(text, width)
		if help := host.EscapeLine(ch.help); help != "" && style.Width(line) < width-leastColumns {
			line = style.Fit(line+"  "+help, width)
		}
		if i == c.at {
			out = append(out, m.theme.Selected.Render(style.Pad("▸"+strings.TrimPrefix(line, " "), width)))
			continue
		}
		out = append(out, m.theme.Dim.Render(line))
	}
	return out
}

// firstOf is the first text that is not empty.
func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
