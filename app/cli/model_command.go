package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/config"
	"github.com/parley-mcp/parley/app/model/provider"
	"github.com/parley-mcp/parley/app/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth/login"
)

func (p *program) modelFlags(f *pflag.FlagSet, m *modelFlags) {
	f.StringVar(&m.name, "model", "", "the model: offline, or `PROVIDER:NAME` such as openai:gpt-5")
	f.StringVar(&m.baseURL, "base-url", "", "`URL` of the model's provider, such as http://127.0.0.1:11434/v1")
	f.BoolVar(&m.noKey, "no-key", false, "send no key to the model's provider")
}

func (p *program) modelCommand() *cobra.Command {
	var flags modelFlags
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Show which model would be used, and why; keep keys of providers",
		Long: `Show which model chat and run would use, what chose it, and where its provider
is. --model counts before your parley.jsonc; without either it is the offline
model. Nothing is sent.

The key of a provider is taken from the environment (ANTHROPIC_API_KEY,
OPENAI_API_KEY, GEMINI_API_KEY), or from where 'parley model key set' keeps it.`,
		Example: `  parley model
  parley model list openai
  parley model key set anthropic
  parley chat --model openai:llama3.2 --base-url http://127.0.0.1:11434/v1`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withConfig(cmd.Context(), "", func(cfg *config.Config, _ *local.DB) error {
				return p.showModel(cmd.Context(), &flags, cfg.Own)
			})
		},
	}
	p.modelFlags(cmd.PersistentFlags(), &flags)
	key := &cobra.Command{
		Use: "key", Short: "Keep or remove the key of a provider", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	key.AddCommand(&cobra.Command{
		Use: "set PROVIDER", Short: "Keep a key, which is asked for without being shown",
		Long: `Keep the key of a provider in the same store as tokens: the keyring of the
system, or a file of yours. It is asked for without being shown; from a pipe it
is one line. A key in the environment counts before it.`,
		Example: `  parley model key set openai
  parley model key set anthropic < key.txt`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return p.setModelKey(cmd.Context(), args[0]) },
	}, &cobra.Command{
		Use: "remove PROVIDER", Short: "Remove a key that was kept", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return p.removeModelKey(cmd.Context(), args[0]) },
	})
	cmd.AddCommand(&cobra.Command{
		Use: "list [PROVIDER]", Short: "Ask a provider for its models",
		Long: `Ask a provider which models it has, and mark the one in use. Without PROVIDER it
is that of the model in use, or else each one for which there is a key.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withConfig(cmd.Context(), "", func(cfg *config.Config, _ *local.DB) error {
				return p.listModels(cmd.Context(), &flags, cfg.Own, strings.Join(args, ""))
			})
		},
	}, key)
	return cmd
}

// modelTitle names a model for people.
func modelTitle(m host.ModelInfo) string {
	if m.Offline || m.Provider == "" {
		return host.EscapeLine(m.Name)
	}
	return host.EscapeLine("model " + m.Name + " of " + m.Provider)
}

// A shownModel is what 'parley model' tells as JSON.
type shownModel struct {
	Model       string    `json:"model"`
	ChosenBy    string    `json:"chosenBy"`
	BaseURL     string    `json:"baseUrl,omitzero"`
	AddressBy   string    `json:"baseUrlBy,omitzero"`
	Key         keySource `json:"key,omitzero"`
	Window      int       `json:"window,omitzero"`
	InputPrice  float64   `json:"inputPrice,omitzero"`
	OutputPrice float64   `json:"outputPrice,omitzero"`
}

// showModel tells which model would be used.
func (p *program) showModel(ctx context.Context, flags *modelFlags, own *config.Own) error {
	c, err := chooseModel(flags, own)
	if err != nil {
		return err
	}
	shown := &shownModel{Model: c.String(), ChosenBy: c.whence}
	key := "none is needed"
	if c.provider != nil {
		if _, err := p.openModel(ctx, c); err != nil {
			return err
		}
		shown.BaseURL, shown.AddressBy = c.baseURL, c.addressed
		shown.Window, shown.InputPrice, shown.OutputPrice = c.entry.Window, c.entry.InputPrice, c.entry.OutputPrice
		if shown.Key, key, err = p.keyWords(ctx, c); err != nil {
			return err
		}
	}
	if p.json {
		return p.printJSON(shown)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (%s)\n", shown.Model, shown.ChosenBy)
	if c.provider == nil {
		b.WriteString("    a small planner that needs no key and no network; --model PROVIDER:NAME uses a language model\n")
		return p.print(host.Escape(b.String()))
	}
	fmt.Fprintf(&b, "    address  %s (%s)\n    key      %s\n", shown.BaseURL, shown.AddressBy, key)
	if shown.InputPrice > 0 || shown.OutputPrice > 0 {
		fmt.Fprintf(&b, "    prices   %g dollars for a million tokens that are sent, %g for those of answers\n", shown.InputPrice, shown.OutputPrice)
	}
	if shown.Window > 0 {
		fmt.Fprintf(&b, "    window   %d tokens\n", shown.Window)
	}
	return p.print(host.Escape(b.String()))
}

// keyWords says where the key of a model would be from.
func (p *program) keyWords(ctx context.Context, c *chosenModel) (keySource, string, error) {
	if c.entry.NoKey {
		return keyNone, "none is sent", nil
	}
	_, from, err := p.modelKey(ctx, c.provider)
	switch from {
	case keyEnv:
		return from, c.provider.variable + " of the environment", err
	case keyStore:
		return from, "the one that 'parley model key set' kept", err
	case keyNone:
	}
	return keyNone, "none", err
}

// setModelKey keeps the key of a provider.
func (p *program) setModelKey(ctx context.Context, name string) error {
	m, err := findProvider(name)
	if err != nil {
		return err
	}
	set, err := readSettings()
	if err != nil {
		return err
	}
	store, kind, err := p.openSecrets(set.Store)
	if err != nil {
		return err
	}
	text, err := p.readKey(ctx, m)
	if err != nil {
		return err
	}
	key, err := checkedKey(text)
	if err != nil {
		return usagef("nothing is kept: %w", err)
	}
	if key == "" {
		return usagef("no key was given; nothing is changed")
	}
	if err := store.Set(ctx, keyName(m.name), []byte(key)); err != nil {
		return fmt.Errorf("keeping the key of %s: %w", m.title, err)
	}
	p.note("The key of %s is kept (%s).", m.title, kind)
	if os.Getenv(m.variable) != "" {
		p.note("parley: %s is set, and counts before it", m.variable)
	}
	return nil
}

// readKey asks for a key without showing it, or reads the one line of a pipe.
func (p *program) readKey(ctx context.Context, m *modelProvider) (string, error) {
	if p.streams.InTerminal {
		if p.streams.Secret == nil {
			return "", usagef("a key cannot be asked for here without being shown: give it through a pipe, or set %s", m.variable)
		}
		return p.secret(ctx, fmt.Sprintf("Key of %s (not shown): ", m.title))
	}
	var key string
	for size := 0; ; {
		line, err := p.keyboard().line(ctx)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return "", fmt.Errorf("reading the key: %w", err)
		}
		line = strings.TrimSpace(line)
		if size += len(line); size > maxKey {
			return strings.Repeat("x", maxKey+1), nil // checkedKey refuses the length
		}
		if line != "" && key != "" {
			return "", usagef("nothing is kept: more than one line was given, and a key is one line")
		}
		if line != "" {
			key = line
		}
		if ended {
			return key, nil
		}
	}
}

// removeModelKey removes the key of a provider from the store.
func (p *program) removeModelKey(ctx context.Context, name string) error {
	m, err := findProvider(name)
	if err != nil {
		return err
	}
	store, err := p.keyStore()
	if err != nil {
		return err
	}
	if _, err := store.Get(ctx, keyName(m.name)); errors.Is(err, login.ErrNotFound) {
		return usagef("no key of %s is kept; 'parley model' shows what is used", m.title)
	}
	if err := store.Delete(ctx, keyName(m.name)); err != nil {
		return fmt.Errorf("removing the key of %s: %w", m.title, err)
	}
	p.note("The key of %s is removed.", m.title)
	if os.Getenv(m.variable) != "" {
		p.note("parley: %s is still set, and is used", m.variable)
	}
	return nil
}

// A listedModel is a model in the JSON of 'model list'.
type listedModel struct {
	Model  string `json:"model"`
	Title  string `json:"title,omitzero"`
	Window int    `json:"window,omitzero"`
	InUse  bool   `json:"inUse,omitzero"`
}

// listModels asks providers for what they have.
func (p *program) listModels(ctx context.Context, flags *modelFlags, own *config.Own, name string) error {
	used, err := chooseModel(flags, own)
	if err != nil && (name == "" || flags.name != "") {
		return err // else the model in use is the one to be found
	}
	asked, err := p.askedProviders(ctx, used, name)
	if err != nil {
		return err
	}
	list := []listedModel{}
	for _, m := range asked {
		c := &chosenModel{provider: m, name: "*", entry: config.ModelEntry{NoKey: flags.noKey}}
		if used != nil && used.provider != nil && used.provider.name == m.name {
			c = used
		} else {
			c.address(flags, own)
		}
		models, err := p.askModels(ctx, c)
		if err != nil {
			return err
		}
		for _, found := range models {
			list = append(list, listedModel{
				Model: m.name + ":" + found.ID, Title: found.Name, Window: found.Window,
				InUse: c == used && found.ID == c.name,
			})
		}
	}
	if p.json {
		return p.printJSON(struct {
			Models []listedModel `json:"models"`
		}{list})
	}
	var t table
	for _, m := range list {
		about := m.Title
		if m.Window > 0 {
			about = strings.TrimSpace(fmt.Sprintf("%s %d tokens", about, m.Window))
		}
		if m.InUse {
			about = strings.TrimSpace("in use  " + about)
		}
		t.add(m.Model, about)
	}
	return p.print(t.String())
}

// askedProviders are those that a list is about.
func (p *program) askedProviders(ctx context.Context, used *chosenModel, name string) ([]*modelProvider, error) {
	if name != "" {
		m, err := findProvider(name)
		return []*modelProvider{m}, err
	}
	if used.provider != nil {
		return []*modelProvider{used.provider}, nil
	}
	var list []*modelProvider
	for _, m := range modelProviders() {
		key, _, err := p.modelKey(ctx, m)
		if err != nil {
			return nil, err
		}
		if key != "" {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil, usagef("the offline model is in use, and there is no key of a provider: write 'parley model list PROVIDER', with --base-url for a server of your own, or keep a key with 'parley model key set PROVIDER'")
	}
	return list, nil
}

// askModels asks one provider.
func (p *program) askModels(ctx context.Context, c *chosenModel) ([]provider.Model, error) {
	o, err := p.modelOptions(ctx, c)
	if err != nil {
		return nil, err
	}
	models, err := c.provider.list(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(models) == 0 {
		p.note("parley: %s has no models", c.provider.name)
	}
	return models, nil
}
