package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/losses"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	schemas "github.com/parley-mcp/parley/schema/provider"
)

// A modelProvider is one whose models can be used.
type modelProvider struct {
	name     string // as in PROVIDER:NAME
	title    string // as people call it
	variable string // of the environment, with the key
	baseURL  string // its own address
	maxImage int    // bytes of one image that it takes at its own address
	schemas  schemas.Profile
	open     func(o *modelOptions) (host.Model, error)
	list     func(ctx context.Context, o *modelOptions) ([]provider.Model, error)
	window   func(ctx context.Context, o *modelOptions) (int, error) // of the model, in tokens; 0: unknown
}

// modelOptions are what every provider's client takes.
type modelOptions struct {
	model, key, baseURL string
	info                host.ModelInfo
	waiting             func(reason error, wait time.Duration)
}

// modelProviders are all providers.
func modelProviders() []*modelProvider {
	list := []*modelProvider{anthropicProvider(), openaiProvider(), geminiProvider()}
	for _, m := range list {
		for _, k := range discover.KnownKeys() {
			if k.Provider == m.name {
				m.title, m.variable = k.Name, k.Variable
			}
		}
		for _, known := range losses.Providers() {
			if known.ID == m.name {
				m.schemas = known.Profile
			}
		}
	}
	return list
}

// findProvider finds a provider by its name.
func findProvider(name string) (*modelProvider, error) {
	var names []string
	for _, m := range modelProviders() {
		if m.name == name {
			return m, nil
		}
		names = append(names, m.name)
	}
	return nil, kit.Usagef("unknown provider %q; must be one of %s; servers that speak OpenAI's format, such as Ollama, are openai with --base-url",
		typedName(name), enumerate(names))
}

// typedName is the name of a provider or model that is none, as it can be shown: a key may
// have been typed in its place.
func typedName(name string) string {
	return kit.Shorten(host.EscapeLine(host.Redact(name)), kit.MaxName)
}

// modelFlags are the flags that choose a model.
type modelFlags struct {
	name, baseURL string
	noKey         bool
	by            string // what was typed; default --model
}

// A chosenModel is a model that was chosen, and why.
type chosenModel struct {
	provider *modelProvider // nil is the offline model
	name     string         // without the provider
	baseURL  string
	entry    config.ModelEntry
	// own says that the address is the provider's own, which needs a key.
	own bool
	// whence says what chose the model, addressed what chose the address.
	whence, addressed string
}

// chooseModel finds what is to be used: by the flag, by the person's file, or else the
// offline model. It uses no network and reads no key.
func chooseModel(flags *modelFlags, own *config.Own) (*chosenModel, error) {
	name, whence := flags.name, "by "+cmp.Or(flags.by, "--model")
	if name == "" {
		name, whence = own.Model, "by "+own.Path
	}
	if name == "" && flags.baseURL != "" {
		return nil, kit.Usagef("--base-url requires --model PROVIDER:NAME, such as --model openai:llama3.2")
	}
	if name == "" {
		return &chosenModel{name: offlineModel, whence: "since no model is configured"}, nil
	}
	if name == offlineModel {
		if flags.baseURL != "" {
			return nil, kit.Usagef("--base-url: the offline model has no address")
		}
		return &chosenModel{name: offlineModel, whence: whence}, nil
	}
	if own.ModelFault != nil && flags.baseURL == "" {
		return nil, kit.Usagef("%w; until that is corrected, no language model is used without --base-url: what was meant for one address would go to another",
			own.ModelFault)
	}
	providerName, modelName, found := strings.Cut(name, ":")
	if !found || modelName == "" || host.EscapeLine(modelName) != modelName {
		return nil, kit.Usagef("the model %q (%s) is none: write offline, or PROVIDER:NAME such as openai:gpt-5; 'parley model list PROVIDER' lists what a provider has",
			typedName(name), whence)
	}
	p, err := findProvider(providerName)
	if err != nil {
		return nil, fmt.Errorf("the model %s (%s): %w", typedName(name), whence, err)
	}
	c := &chosenModel{provider: p, name: modelName, whence: whence, entry: own.Models[name]}
	c.address(flags, own)
	c.entry.NoKey = c.entry.NoKey || flags.noKey
	return c, nil
}

// address finds where the provider is. The address of the configured model counts for all
// models of its provider: what was meant for a machine of the person's own goes to no other.
func (c *chosenModel) address(flags *modelFlags, own *config.Own) {
	ownProvider, _, _ := strings.Cut(own.Model, ":")
	switch {
	case flags.baseURL != "":
		c.baseURL, c.addressed = flags.baseURL, "by --base-url"
	case c.entry.BaseURL != "":
		c.baseURL, c.addressed = c.entry.BaseURL, "by models in "+own.Path
	case own.BaseURL != "" && ownProvider == c.provider.name:
		c.baseURL, c.addressed = own.BaseURL, "by baseUrl in "+own.Path
		c.entry.NoKey = c.entry.NoKey || own.Models[own.Model].NoKey // one place, one word about its key
	default:
		c.baseURL, c.addressed = c.provider.baseURL, "the provider's own"
	}
	c.own = strings.TrimRight(c.baseURL, "/") == c.provider.baseURL
}

// String is the model as it is chosen.
func (c *chosenModel) String() string {
	if c.provider == nil {
		return c.name
	}
	return c.provider.name + ":" + c.name
}

// modelOptions are those of the client of a chosen model, with its key.
func (ms *models) modelOptions(ctx context.Context, c *chosenModel) (*modelOptions, error) {
	o := &modelOptions{model: c.name, baseURL: c.baseURL, waiting: ms.waitingForModel}
	e := &c.entry
	o.info = host.ModelInfo{Window: e.Window, Schemas: c.provider.schemas, InputPrice: e.InputPrice, OutputPrice: e.OutputPrice}
	switch {
	case e.MaxImage != nil:
		o.info.MaxImage = *e.MaxImage
	case c.own:
		o.info.MaxImage = c.provider.maxImage
	}
	if e.NoKey {
		return o, ms.checkAddress(c, false)
	}
	place := c.provider.keyPlace(c.baseURL)
	var err error
	if o.key, _, err = ms.modelKey(ctx, &place); err != nil {
		return nil, err
	}
	if o.key == "" && c.own {
		return nil, kit.Usagef("%s needs a key: set %s, or keep one with '%s'; '--model offline' needs none",
			c.provider.title, c.provider.variable, place.command("set"))
	}
	return o, ms.checkAddress(c, true) // http to another machine is for those who say that no key is sent
}

// checkAddress checks where a model is.
func (ms *models) checkAddress(c *chosenModel, withKey bool) error {
	_, err := provider.BaseURL(c.baseURL, withKey)
	if err == nil {
		return nil
	}
	if _, without := provider.BaseURL(c.baseURL, false); without == nil {
		return kit.Usagef("%w (%s), or send none with --no-key", err, c.addressed)
	}
	return kit.Usagef("%w (%s)", err, c.addressed)
}

// waitingForModel tells the person that a provider wants a pause.
func (ms *models) waitingForModel(reason error, wait time.Duration) {
	ms.Note("parley: trying again in %s: %s", wait.Round(100*time.Millisecond), kit.ErrorText(reason))
}

// openModel makes the client of a chosen model. Nothing is sent.
func (ms *models) openModel(ctx context.Context, c *chosenModel) (host.Model, error) {
	m, _, err := ms.clientOf(ctx, c)
	return m, err
}

// clientOf makes the client of a chosen model, and tells its options: nil of the offline model.
func (ms *models) clientOf(ctx context.Context, c *chosenModel) (host.Model, *modelOptions, error) {
	if c.provider == nil {
		return model.Offline{}, nil, nil
	}
	o, err := ms.modelOptions(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	m, err := c.provider.open(o)
	if err != nil {
		return nil, nil, kit.Usagef("the model %s: %w", c, err)
	}
	return m, o, nil
}

// sampleModels are those that servers may have, with consent.
func sampleModels(chosen host.Model) []host.Model {
	return slices.CompactFunc([]host.Model{chosen, model.Offline{}}, func(a, b host.Model) bool {
		return a.Info().Offline && b.Info().Offline
	})
}

// modelNamed finds a model by what the person types in a conversation.
func (ms *models) modelNamed(flags *modelFlags, own *config.Own, w *modelWindows) func(ctx context.Context, name string) (host.Model, error) {
	return func(ctx context.Context, name string) (host.Model, error) {
		other := *flags
		other.name, other.by = name, "/model"
		if !sameProvider(name, cmp.Or(flags.name, own.Model)) {
			other.baseURL, other.noKey = "", false // they were meant for another provider
		}
		c, err := chooseModel(&other, own)
		if err != nil {
			return nil, err
		}
		return ms.talkTo(ctx, c, w)
	}
}

// sameProvider reports whether two models are of one provider.
func sameProvider(a, b string) bool {
	of, _, _ := strings.Cut(a, ":")
	other, _, _ := strings.Cut(b, ":")
	return of == other
}
