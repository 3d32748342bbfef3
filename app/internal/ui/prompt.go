package ui

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A promptFilling is a prompt of a server whose required arguments are asked for.
type promptFilling struct {
	line      *Line
	server    string
	prompt    *mcp.Prompt
	arguments map[string]string
	suggested []string // values that have numbers, of the argument that is asked for
}

// usePrompt uses a prompt: its name, a blank, key=value words.
func (l *Commands) usePrompt(ctx context.Context, server, text string) {
	if l.Running() || l.Asking() {
		l.say("Something is under way; wait for it or cancel it first.")
		return
	}
	promptName, rest, _ := strings.Cut(text, " ")
	arguments, err := Pairs(rest)
	if err != nil {
		l.say("The arguments of the prompt cannot be read: %s.", host.EscapeLine(err.Error()))
		return
	}
	h := l.Host
	l.Start(ctx, "reading the prompts of server "+name(server), func(taskCtx context.Context) func() {
		list, err := h.Prompts(taskCtx, server)
		return func() {
			if err != nil {
				l.say("The prompts of server %s cannot be read: %s.", name(server), claim(err.Error()))
				return
			}
			for _, p := range list {
				if p.Name == promptName {
					l.fillPrompt(ctx, server, p, arguments)
					return
				}
			}
			l.say("Server %s has no prompt %s; /prompts lists them.", name(server), name(promptName))
		}
	})
}

// fillPrompt uses a prompt, once it has all arguments that are required.
func (l *Commands) fillPrompt(ctx context.Context, server string, p *mcp.Prompt, arguments map[string]string) {
	if MissingArgument(p, arguments) != nil {
		l.Missing(ctx, server, p, arguments)
		return
	}
	l.Send(ctx, host.Input{Prompt: &host.PromptInput{Server: server, Name: p.Name, Arguments: arguments}})
}

// MissingArgument is the first required argument of a prompt that has no value, or nil.
func MissingArgument(p *mcp.Prompt, arguments map[string]string) *mcp.PromptArgument {
	for i := range p.Arguments {
		a := &p.Arguments[i]
		if _, given := arguments[a.Name]; a.Required && !given {
			return a
		}
	}
	return nil
}

// missing is the first required argument that has no value, or nil.
func (f *promptFilling) missing() *mcp.PromptArgument { return MissingArgument(f.prompt, f.arguments) }

// next asks for the argument that is missing, or uses the prompt.
func (f *promptFilling) next(ctx context.Context) {
	l := f.line
	f.suggested = nil
	a := f.missing()
	if a == nil {
		l.base = nil
		l.send(ctx, host.Input{Prompt: &host.PromptInput{Server: f.server, Name: f.prompt.Name, Arguments: f.arguments}})
		return
	}
	if text := claim(firstOf(a.Description, a.Title)); text != "" {
		l.print([]Entry{{Kind: EntryClaim, Label: "argument " + name(a.Name), Text: text}}, usualLimits)
	}
	l.say("? lists values, ?PART those that begin with PART; an empty line leaves the prompt.")
	l.base = &step{prompt: "Your value for " + name(a.Name) + ":", take: f.take}
}

// take takes a value, or lists values.
func (f *promptFilling) take(ctx context.Context, text string) {
	a := f.missing()
	part, asks := strings.CutPrefix(text, "?")
	switch {
	case a == nil || strings.TrimSpace(text) == "":
		f.line.base = nil
		f.line.say("The prompt was not used.")
		return
	case asks && !strings.HasPrefix(part, "?"):
		f.suggest(ctx, a, part)
		return
	case asks: // two stand for one
		text = part
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.suggested) {
		text = f.suggested[n-1]
	}
	f.arguments[a.Name] = text
	f.next(ctx)
}

// suggest asks the server for values, and lists them.
func (f *promptFilling) suggest(ctx context.Context, a *mcp.PromptArgument, part string) {
	params := &mcp.CompleteParams{Ref: mcp.PromptRef(f.prompt.Name), Argument: mcp.CompletionArgument{Name: a.Name, Value: part}}
	if len(f.arguments) > 0 {
		given := make(map[string]string, len(f.arguments))
		for k, v := range f.arguments {
			given[k] = v
		}
		params.Context = &mcp.CompletionContext{Arguments: given}
	}
	l := f.line
	h := l.host
	l.start(ctx, "asking for values", func(ctx context.Context) func() {
		c, err := h.Complete(ctx, f.server, params)
		return func() {
			switch {
			case err != nil:
				l.say("There are no suggestions: %s.", claim(err.Error()))
			case c == nil || len(c.Values) == 0:
				l.say("The server suggests nothing.")
			default:
				f.list(c)
			}
		}
	})
}

// list lists the values that a server suggests.
func (f *promptFilling) list(c *mcp.Completion) {
	f.suggested = c.Values
	var lines []Entry
	for i, v := range c.Values {
		lines = append(lines, Entry{Kind: EntryClaim, Label: fmt.Sprintf("value %d", i+1), Text: claim(v)})
	}
	if c.HasMore {
		lines = append(lines, said("There are more: type more of the value after the question mark."))
	}
	f.line.print(append(lines, said("Type a number, or a value.")), usualLimits)
}
