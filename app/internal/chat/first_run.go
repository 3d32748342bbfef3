package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// start opens a conversation at a terminal. Before the first one it says what is on this
// machine, and what to press.
func (g *group) start(chat *cobra.Command) error {
	ctx := chat.Context()
	if g.chosen(chat) {
		return chat.RunE(chat, nil)
	}
	cfg, err := config.Load(g.ConfigOptions())
	if err != nil {
		return err
	}
	if ownFile(cfg) {
		return chat.RunE(chat, nil)
	}
	first, err := g.firstRun(ctx, cfg)
	if errors.Is(err, errLeft) {
		return nil
	}
	if err != nil {
		return err
	}
	return chat.RunE(chat, first)
}

// choosing are the flags of a conversation that say which servers, session or model is meant.
var choosing = []string{"config", "resume", "model", "base-url"}

// chosen reports whether the command line leaves nothing to ask.
func (g *group) chosen(chat *cobra.Command) bool {
	found := len(g.Named) > 0
	chat.Flags().VisitAll(func(f *pflag.Flag) { found = found || f.Changed && slices.Contains(choosing, f.Name) })
	return found
}

// ownFile reports whether the person has a parley.jsonc.
func ownFile(cfg *config.Config) bool {
	return slices.ContainsFunc(cfg.Files, func(l config.Location) bool { return l.Scope == config.ScopeOwn })
}

// errLeft says that the person left before the conversation.
var errLeft = errors.New("the person left")

// discover finds what this machine has.
func (g *group) discover(ctx context.Context, cfg *config.Config) *discover.Found {
	return discover.Find(ctx, &discover.Options{Config: cfg, Ports: g.Streams.ModelPorts, Wait: g.Streams.ModelWait})
}

// firstRun says what was found, and asks how to begin if there is a choice. It returns the
// arguments of the conversation: the first message, if one was typed.
func (g *group) firstRun(ctx context.Context, cfg *config.Config) (first []string, err error) {
	found := g.discover(ctx, cfg)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	g.paragraph(serversLine(found))
	g.paragraph(modelsLine(found))
	g.paragraph(nextLine(found))
	if !g.Streams.ErrTerminal || !choices(found) {
		g.welcome = strings.Join([]string{serversLine(found), modelsLine(found), nextLine(found), tryLine}, "\n") // the screen hides what was said before it
		g.Named = []string{kit.Bundled}
		return nil, nil
	}
	for {
		line, err := g.AskLine(ctx, "Your choice, or a message: ")
		if errors.Is(err, io.EOF) {
			g.Note("")
			return nil, errLeft
		}
		if err != nil {
			return nil, err
		}
		switch line = strings.TrimSpace(line); line {
		case "":
			g.welcome = tryLine
			g.Named = []string{kit.Bundled}
			return nil, nil
		case "s", "S":
			return nil, nil
		case "i", "I":
			if done, err := g.setUp(ctx, &initFlags{}); done || err != nil {
				return nil, err
			}
			g.paragraph(nextLine(found))
		case "q", "/q", "/quit":
			return nil, errLeft
		default:
			if len(line) > 1 && !strings.HasPrefix(line, "/") {
				g.Named = []string{kit.Bundled}
				return []string{line}, nil
			}
			g.paragraph("There is no choice " + host.EscapeLine(kit.Shorten(line, kit.MaxName)) + " here; commands can be typed once the conversation is open, and q leaves.")
			g.paragraph(nextLine(found))
		}
	}
}

// choices reports whether there is anything to choose.
func choices(f *discover.Found) bool { return len(f.Clients)+len(f.Keys)+len(f.Local) > 0 }

// serversLine tells of the servers of other clients.
func serversLine(f *discover.Found) string {
	own, names, ofProject := 0, []string(nil), 0
	for i := range f.Clients {
		c := &f.Clients[i]
		ofProject += len(c.OfProject)
		if len(c.Servers) > 0 {
			own, names = own+len(c.Servers), append(names, c.Name)
		}
	}
	line := "Servers: no other MCP client on this machine has any"
	if own > 0 {
		line = fmt.Sprintf("Servers: %d in the files of %s", own, enumerate(names))
	}
	if ofProject > 0 {
		line += fmt.Sprintf("; %d of this project, each of which you are asked about", ofProject)
	}
	return line + "."
}

// modelsLine tells of keys and local models.
func modelsLine(f *discover.Found) string {
	var parts []string
	if len(f.Keys) > 0 {
		var names []string
		for _, k := range f.Keys {
			names = append(names, k.Variable)
		}
		parts = append(parts, enumerate(names)+map[bool]string{true: " is set", false: " are set"}[len(names) == 1])
	}
	for i := range f.Local {
		parts = append(parts, localText(&f.Local[i]))
	}
	if len(parts) == 0 {
		return "Models: no key is set, and no local model answers; the offline model needs neither."
	}
	return "Models: " + strings.Join(parts, "; ") + "."
}

// localText tells of one program that runs models.
func localText(l *discover.Local) string {
	text := fmt.Sprintf("%s at %s ", l.Kind, l.Address)
	switch n := len(l.Models); n {
	case 0:
		return text + "has no model yet"
	case 1:
		return text + "has " + kit.Shorten(l.Models[0], kit.MaxName)
	default:
		return text + fmt.Sprintf("has %s and %d more", kit.Shorten(l.Models[0], kit.MaxName), n-1)
	}
}

// nextLine says what to press.
func nextLine(f *discover.Found) string {
	if !choices(f) {
		return "You begin with the offline model and the built-in server; 'parley init' keeps that."
	}
	servers := ""
	if len(f.Clients) > 0 {
		servers = "s: your servers. "
	}
	return "Enter: offline model, built-in server. " + servers + "i: choose and keep it."
}

// tryLine is a message for a first conversation, which the offline model understands.
const tryLine = "Try: add 2 and 3"

// paragraph writes a text to standard error, in lines of the terminal's width that end with
// a word.
func (g *group) paragraph(text string) {
	width := 80
	if g.Streams.Width != nil {
		if w := g.Streams.Width(); w > 0 {
			width = max(w, 20)
		}
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			g.Note("%s", line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	g.Note("%s", line)
}

// enumerate joins names with commas and "and".
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
