package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
)

func (ms *models) modelFlags(f *pflag.FlagSet, m *modelFlags) {
	f.StringVar(&m.name, "model", "", "model to use: offline, or `PROVIDER:NAME` such as openai:gpt-5")
	f.StringVar(&m.baseURL, "base-url", "", "`URL` of the model's provider, such as http://127.0.0.1:11434/v1")
	f.BoolVar(&m.noKey, "no-key", false, "do not send a key to the model's provider")
}

func (ms *models) modelCommand() *cobra.Command {
	var flags modelFlags
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Show which model is used, and store providers' keys",
		Long: `Show which model chat and run would use, the setting that selects it, and the
address of its provider. --model takes precedence over your parley.jsonc; the default
is the offline model. Parley sends nothing.

Parley reads a provider's key from the environment (ANTHROPIC_API_KEY,
OPENAI_API_KEY, GEMINI_API_KEY), or uses the one stored by 'parley model key set'.`,
		Example: `  parley model
  parley model list openai
  parley model key set anthropic
  parley chat --model openai:llama3.2 --base-url http://127.0.0.1:11434/v1`,
		Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ms.WithConfig(cmd.Context(), "", func(cfg *config.Config, _ *local.DB) error {
				return ms.showModel(cmd.Context(), &flags, cfg.Own)
			})
		},
	}
	ms.modelFlags(cmd.PersistentFlags(), &flags)
	ms.JSONFlag(cmd) // not those below it
	key := &cobra.Command{
		Use: "key", Short: "Store or remove a provider's key", Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	key.AddCommand(&cobra.Command{
		Use: "set PROVIDER", Short: "Store a key, read without echo",
		Long: `Store a provider's key in the token store: the system keyring, or a file of yours.
Parley asks for the key without echoing it, or reads one line from a pipe. A key in
the environment takes precedence over a stored key.

With --base-url the key is for the server at that URL: Parley sends it to no other
address, and it takes precedence over the environment.`,
		Example: `  parley model key set openai
  parley model key set openai --base-url https://openrouter.ai/api/v1
  parley model key set anthropic < key.txt`,
		Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ms.setModelKey(cmd.Context(), args[0], flags.baseURL)
		},
	}, &cobra.Command{
		Use: "remove PROVIDER", Short: "Remove a stored key", Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ms.removeModelKey(cmd.Context(), args[0], flags.baseURL)
		},
	})
	list := &cobra.Command{
		Use: "list [PROVIDER]", Short: "List a provider's models",
		Long: `List a provider's models, and mark the one in use. Without PROVIDER, list the models
of the provider in use, or else of each provider that has a key.`,
		Args: kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ms.WithConfig(cmd.Context(), "", func(cfg *config.Config, _ *local.DB) error {
				return ms.listModels(cmd.Context(), &flags, cfg.Own, strings.Join(args, ""))
			})
		},
	}
	ms.JSONFlag(list)
	cmd.AddCommand(list, key)
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
func (ms *models) showModel(ctx context.Context, flags *modelFlags, own *config.Own) error {
	c, err := chooseModel(flags, own)
	if err != nil {
		return err
	}
	shown := &shownModel{Model: c.String(), ChosenBy: c.whence}
	key := "none is needed"
	if c.provider != nil {
		if _, err := ms.openModel(ctx, c); err != nil {
			return err
		}
		shown.BaseURL, shown.AddressBy = c.baseURL, c.addressed
		shown.Window, shown.InputPrice, shown.OutputPrice = c.entry.Window, c.entry.InputPrice, c.entry.OutputPrice
		if shown.Key, key, err = ms.keyWords(ctx, c); err != nil {
			return err
		}
	}
	if ms.JSON {
		return ms.PrintJSON(shown)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (%s)\n", shown.Model, shown.ChosenBy)
	if c.provider == nil {
		b.WriteString("    a small planner that needs no key and no network; --model PROVIDER:NAME uses a language model\n")
		return ms.Print(host.Escape(b.String()))
	}
	fmt.Fprintf(&b, "    address  %s (%s)\n    key      %s\n", shown.BaseURL, shown.AddressBy, key)
	if shown.InputPrice > 0 || shown.OutputPrice > 0 {
		fmt.Fprintf(&b, "    prices   %g dollars for a million tokens that are sent, %g for those of answers\n", shown.InputPrice, shown.OutputPrice)
	}
	if shown.Window > 0 {
		fmt.Fprintf(&b, "    window   %d tokens\n", shown.Window)
	}
	return ms.Print(host.Escape(b.String()))
}

// A listedModel is a model in the JSON of 'model list'.
type listedModel struct {
	Model  string `json:"model"`
	Title  string `json:"title,omitzero"`
	Window int    `json:"window,omitzero"`
	InUse  bool   `json:"inUse,omitzero"`
}

// listModels asks providers for what they have.
func (ms *models) listModels(ctx context.Context, flags *modelFlags, own *config.Own, name string) error {
	used, err := chooseModel(flags, own)
	if err != nil && (name == "" || flags.name != "") {
		return err // else the model in use is the one to be found
	}
	anyOf := func(m *modelProvider) *chosenModel {
		if used != nil && used.provider != nil && used.provider.name == m.name {
			return used
		}
		c := &chosenModel{provider: m, name: "*", entry: config.ModelEntry{NoKey: flags.noKey}}
		c.address(flags, own)
		return c
	}
	asked, err := ms.askedProviders(ctx, used, name, anyOf)
	if err != nil {
		return err
	}
	list := []listedModel{}
	for _, c := range asked {
		models, err := ms.askModels(ctx, c)
		if err != nil {
			return err
		}
		for _, found := range models {
			list = append(list, listedModel{
				Model: c.provider.name + ":" + found.ID, Title: found.Name, Window: found.Window,
				InUse: c == used && found.ID == c.name,
			})
		}
	}
	if ms.JSON {
		return ms.PrintJSON(struct {
			Models []listedModel `json:"models"`
		}{list})
	}
	var t kit.Table
	for _, m := range list {
		about := m.Title
		if m.Window > 0 {
			about = strings.TrimSpace(fmt.Sprintf("%s %d tokens", about, m.Window))
		}
		if m.InUse {
			about = strings.TrimSpace("in use  " + about)
		}
		t.Add(m.Model, about)
	}
	return ms.Print(t.String())
}

// askedProviders are those that a list is about, each with the address that anyOf gives it.
func (ms *models) askedProviders(ctx context.Context, used *chosenModel, name string, anyOf func(*modelProvider) *chosenModel) ([]*chosenModel, error) {
	if name != "" {
		m, err := findProvider(name)
		if err != nil {
			return nil, err
		}
		return []*chosenModel{anyOf(m)}, nil
	}
	if used.provider != nil {
		return []*chosenModel{used}, nil
	}
	var list []*chosenModel
	for _, m := range modelProviders() {
		c := anyOf(m)
		place := m.keyPlace(c.baseURL)
		key, _, err := ms.modelKey(ctx, &place)
		if err != nil {
			return nil, err
		}
		if key != "" {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, kit.Usagef("the offline model is in use, and there is no key of a provider: write 'parley model list PROVIDER', with --base-url for a server of your own, or keep a key with 'parley model key set PROVIDER'")
	}
	return list, nil
}

// askModels asks one provider.
func (ms *models) askModels(ctx context.Context, c *chosenModel) ([]provider.Model, error) {
	o, err := ms.modelOptions(ctx, c)
	if err != nil {
		return nil, err
	}
	models, err := c.provider.list(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(models) == 0 {
		ms.Note("parley: %s has no models", c.provider.name)
	}
	return models, nil
}
