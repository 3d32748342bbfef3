package chat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
)

// initFlags are the flags of 'parley init'.
type initFlags struct {
	model, baseURL string
	imports        []string
	yes            bool
}

// offlineModel is the model that needs nothing.
const offlineModel = "offline"

func (g *group) initCommand() *cobra.Command {
	var flags initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Choose your model and servers, and write your own file",
		Long: `List the models and servers found on this machine, ask which model and which
servers of other MCP clients to use, show the resulting file, and write it if you
agree: your own parley.jsonc. Parley keeps existing settings and comments. It never
writes a key to the file, and does not change the files of other programs. It shows
values that could be secret as ***.

A flag answers its question. With --yes Parley does not ask: settings without a flag
do not change; initially they are the offline model and the servers of all clients.`,
		Example: `  parley init
  parley init --model openai:gpt-5 --yes
  parley init --model offline --import cursor --import vscode --yes
  parley init --model openai:llama3.2 --base-url http://127.0.0.1:11434/v1 --import none`,
		Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := g.setUp(cmd.Context(), &flags)
			switch {
			case err != nil:
				return err
			case !done:
				return &kit.SilentError{Code: kit.ExitConsent}
			}
			g.paragraph("Next: 'parley' opens a conversation, 'parley config list' lists the servers, and 'parley config doctor --connect' tries them.")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.model, "model", "", "model for conversations: offline, or `PROVIDER:NAME` with anthropic, openai or gemini")
	f.StringVar(&flags.baseURL, "base-url", "", "`URL` of the provider, for example of a local model")
	f.StringArrayVar(&flags.imports, "import", nil, "use only the servers of this `CLIENT` (repeatable), of \"all\" or of \"none\"")
	f.BoolVarP(&flags.yes, "yes", "y", false, "write the file without asking")
	return cmd
}

// A setup is one run of 'parley init'.
type setup struct {
	p     *group
	flags *initFlags
	// own is the person's file as it is; found is what is on the machine.
	own   *config.Own
	found *discover.Found
	// ask says that the person is at a terminal, and is to be asked.
	ask bool
}

// setUp makes a choice of flags and answers, and writes it. It reports whether the file is as
// the person wants it.
func (g *group) setUp(ctx context.Context, flags *initFlags) (done bool, err error) {
	opts := g.ConfigOptions()
	opts.AllClients = true
	cfg, err := config.Load(opts)
	if err != nil {
		return false, err
	}
	s := &setup{p: g, flags: flags, own: cfg.Own, found: g.discover(ctx, cfg), ask: g.Streams.InTerminal && !flags.yes}
	if !s.ask && !flags.yes && flags.model == "" && len(flags.imports) == 0 {
		return false, kit.Usagef("cannot ask here; use --model or --import, and --yes to write the file")
	}
	choice, err := s.choose(ctx)
	if err != nil {
		return false, err
	}
	draft, err := config.NewDraft(cfg.Own.Path, choice)
	if err != nil {
		return false, kit.Usagef("%w", err)
	}
	if !draft.Changes() {
		g.Note("%s says so already: nothing is changed.", draft.Path)
		s.after(choice)
		return true, nil
	}
	return s.write(ctx, choice, draft)
}

// choose takes flags, and asks for what they do not say.
func (s *setup) choose(ctx context.Context) (*config.Choice, error) {
	c := &config.Choice{}
	if err := s.flagModel(c); err != nil {
		return nil, err
	}
	if err := s.flagImports(c); err != nil {
		return nil, err
	}
	if s.ask && len(s.flags.imports) == 0 {
		if err := s.askServers(ctx, c); err != nil {
			return nil, err
		}
	}
	if s.ask && s.flags.model == "" {
		if err := s.askModel(ctx, c); err != nil {
			return nil, err
		}
	}
	if !s.found.Own && c.Model == "" {
		c.Model = offlineModel
	}
	return c, nil
}

// write shows what would be written, and writes it if the person agrees.
func (s *setup) write(ctx context.Context, c *config.Choice, d *config.Draft) (done bool, err error) {
	would := "This would be your file " + d.Path + ":"
	if s.found.Own {
		would = "Your file " + d.Path + " would become:"
	}
	if s.flags.yes {
		would = "Your file " + d.Path + ":"
	}
	s.p.Note("%s", would)
	if err := s.p.Println(host.Escape(d.Shown())); err != nil {
		return false, err
	}
	switch {
	case s.flags.yes:
	case !s.ask:
		return false, kit.Usagef("cannot ask here, so nothing was written; add --yes to write the file")
	default:
		agreed, err := s.p.AskYes(ctx, "Write it? [y]es, [n]o: ")
		if err != nil {
			return false, fmt.Errorf("nothing was written: %w", err)
		}
		if !agreed {
			s.p.Note("Nothing was written.")
			return false, nil
		}
	}
	if err := d.Write(); err != nil {
		return false, err
	}
	s.p.Note("Written.")
	s.after(c)
	return true, nil
}

// after says what the choice needs, and what it leaves out.
func (s *setup) after(c *config.Choice) {
	provider, _, _ := strings.Cut(c.Model, ":")
	for _, k := range discover.KnownKeys() {
		if k.Provider == provider && c.BaseURL == "" && !slices.Contains(s.found.Keys, k) {
			s.p.paragraph(fmt.Sprintf("The model needs a key of %s: set %s, or let 'parley model key set %s' keep it.", k.Name, k.Variable, k.Provider))
		}
	}
	for _, client := range slices.Sorted(maps.Keys(c.Import)) {
		if !c.Import[client] {
			s.p.paragraph(fmt.Sprintf("The files of %s are left out, with the permissions in them: \"import\" says so.", discover.ClientName(client)))
		}
	}
}

// flagModel takes --model and --base-url.
func (s *setup) flagModel(c *config.Choice) error {
	if s.flags.baseURL != "" && s.flags.model == "" {
		return kit.Usagef("--base-url requires --model")
	}
	if s.flags.model == "" {
		return nil
	}
	if err := checkModel(s.flags.model); err != nil {
		return kit.Usagef("--model: %w", err)
	}
	if s.flags.baseURL != "" {
		if err := checkBaseURL(s.flags.baseURL); err != nil {
			return kit.Usagef("--base-url: %w", err)
		}
		if s.flags.model == offlineModel {
			return kit.Usagef("--base-url: the offline model has no address")
		}
	}
	s.setModel(c, s.flags.model, s.flags.baseURL)
	return nil
}

// hosted reports whether a name is one of OpenAI's own models, but for those that anybody may
// run. Any program, also that of another user, may listen at a usual port and list such a
// name; it would be given the conversations.
func hosted(name string) bool {
	if strings.HasPrefix(name, "gpt-oss") {
		return false
	}
	begins := func(with string) bool { return strings.HasPrefix(name, with) }
	return slices.ContainsFunc([]string{"gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"}, begins)
}

// setModel sets the model. One that a program on this machine has is that one, unless an
// address is given or the name is one of the provider's own; it gets no key, since it listed
// its models without.
func (s *setup) setModel(c *config.Choice, model, baseURL string) {
	c.Model, c.BaseURL = model, baseURL
	name, ok := strings.CutPrefix(model, "openai:")
	if !ok || baseURL != "" || hosted(name) {
		return
	}
	for _, l := range s.found.Local {
		if slices.Contains(l.Models, name) {
			c.BaseURL, c.NoKey = l.BaseURL, true
			s.p.Note("%s is the model of that name that %s has at %s.", model, l.Kind, l.Address)
			return
		}
	}
}

// checkModel returns nil for the name of a model. What is wrong is not shown: it may be a key.
func checkModel(model string) error {
	if model == offlineModel {
		return nil
	}
	var providers []string
	provider, name, _ := strings.Cut(model, ":")
	for _, k := range discover.KnownKeys() {
		providers = append(providers, k.Provider)
	}
	if !slices.Contains(providers, provider) || name == "" || host.EscapeLine(model) != model || strings.ContainsAny(model, " ") {
		return fmt.Errorf("write %s, or PROVIDER:NAME with one of %s, such as openai:gpt-5", offlineModel, enumerate(providers))
	}
	return nil
}

// checkBaseURL returns nil for the address of a provider. A key would go unencrypted over http.
func checkBaseURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("write a whole URL, such as http://127.0.0.1:11434/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("a URL with a user, a password or a query may hold a secret, which is not written into a file: leave it out")
	case u.Scheme == "http" && !oauth.LoopbackHost(u.Hostname()):
		return errors.New("what you say would go unencrypted over http to another machine: write https")
	}
	return nil
}

// flagImports takes --import.
func (s *setup) flagImports(c *config.Choice) error {
	if len(s.flags.imports) == 0 {
		return nil
	}
	c.Import = make(map[config.Client]bool)
	for i := range s.found.Clients {
		c.Import[s.found.Clients[i].ID] = slices.Contains(s.flags.imports, "all")
	}
	for _, name := range s.flags.imports {
		if name == "all" || name == "none" {
			if len(s.flags.imports) > 1 {
				return kit.Usagef("--import %s: give it alone", name)
			}
			continue
		}
		if _, ok := c.Import[config.Client(name)]; !ok {
			return s.noClient(name)
		}
		c.Import[config.Client(name)] = true
	}
	return nil
}

// noClient says which clients there are.
func (s *setup) noClient(name string) error {
	known := make([]string, 0, len(config.Clients()))
	for _, c := range config.Clients()[1:] {
		known = append(known, string(c))
	}
	if !slices.Contains(known, name) {
		return kit.Usagef("--import: there is no client %q; the clients are %s", name, enumerate(known))
	}
	var found []string
	for i := range s.found.Clients {
		found = append(found, string(s.found.Clients[i].ID))
	}
	if len(found) == 0 {
		return kit.Usagef("--import: %s has no servers on this machine, nor has another client", name)
	}
	return kit.Usagef("--import: %s has no servers on this machine; these have: %s", name, enumerate(found))
}
