package chat

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/losses"
	"github.com/parley-mcp/parley/app/internal/model"
)

// Every provider whose key is known has a client, which gets what is known of the model.
func TestModelProviders(t *testing.T) {
	known := discover.KnownKeys()
	if list := modelProviders(); len(list) != len(known) || len(list) != len(losses.Providers()) {
		t.Errorf("%d providers, %d known keys, and what %d take of tools", len(list), len(known), len(losses.Providers()))
	}
	for _, m := range losses.Providers() {
		if p, err := findProvider(m.ID); err != nil || !reflect.DeepEqual(p.schemas, m.Profile) {
			t.Errorf("what %s takes is not known of %+v: %v", m.Name, p, err)
		}
	}
	for _, k := range known {
		t.Setenv(k.Variable, "sk-test")
		name := k.Provider + ":some-model"
		none := 0
		own := &config.Own{Path: "/own", Models: map[string]config.ModelEntry{
			name:                    {Window: 7, InputPrice: 2, OutputPrice: 3},
			k.Provider + ":textual": {MaxImage: &none},
		}}
		p := &models{connect.New(&kit.Console{Streams: &kit.Streams{}})}
		for _, test := range []struct {
			name   string
			image  bool
			window int
		}{{name, true, 7}, {k.Provider + ":textual", false, 0}} {
			c, err := chooseModel(&modelFlags{name: test.name}, own)
			if err != nil {
				t.Fatal(err)
			}
			m, err := p.openModel(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			info := m.Info()
			if info.Provider != k.Provider || info.Name != c.name || info.Window != test.window || info.Offline ||
				(info.MaxImage > 0) != test.image || !reflect.DeepEqual(info.Schemas, c.provider.schemas) {
				t.Errorf("%s: %+v", test.name, info)
			}
			if list := sampleModels(m); len(list) != 2 || !list[1].Info().Offline {
				t.Errorf("%s: models for servers: %v", test.name, list)
			}
		}
	}
	if list := sampleModels(model.Offline{}); len(list) != 1 {
		t.Errorf("the offline model is offered %d times", len(list))
	}
}

// The address of the configured model counts for its provider alone; flags and single models
// come first.
func TestModelAddress(t *testing.T) {
	t.Parallel()
	own := &config.Own{
		Path: "/own", Model: "openai:a", BaseURL: "http://127.0.0.1:1/v1",
		Models: map[string]config.ModelEntry{"openai:c": {BaseURL: "http://127.0.0.1:2/v1", NoKey: true}},
	}
	for _, test := range []struct {
		flags      modelFlags
		want       string
		own, noKey bool
	}{
		{modelFlags{}, "http://127.0.0.1:1/v1", false, false},
		{modelFlags{name: "openai:b"}, "http://127.0.0.1:1/v1", false, false},
		{modelFlags{name: "openai:c"}, "http://127.0.0.1:2/v1", false, true},
		{modelFlags{name: "openai:c", baseURL: "https://api.openai.com/v1/"}, "https://api.openai.com/v1/", true, true},
		{modelFlags{name: "gemini:a"}, "https://generativelanguage.googleapis.com/v1beta", true, false},
		{modelFlags{baseURL: "http://127.0.0.1:3/v1", noKey: true}, "http://127.0.0.1:3/v1", false, true},
	} {
		c, err := chooseModel(&test.flags, own)
		if err != nil {
			t.Fatal(err)
		}
		if c.baseURL != test.want || c.own != test.own || c.entry.NoKey != test.noKey {
			t.Errorf("%+v: %s (%s), own %v, no key %v", test.flags, c.baseURL, c.addressed, c.own, c.entry.NoKey)
		}
	}
}

// A program of the person's own that gets no key gets none for its other models either.
func TestNoKeyOfAddress(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-test")
	own := &config.Own{
		Path: "/own", Model: "openai:a", BaseURL: "http://127.0.0.1:1/v1",
		Models: map[string]config.ModelEntry{"openai:a": {NoKey: true}, "openai:c": {BaseURL: "http://127.0.0.1:2/v1"}},
	}
	p := &models{connect.New(&kit.Console{Streams: &kit.Streams{}})}
	for name, want := range map[string]string{"openai:a": "", "openai:b": "", "openai:c": "sk-test"} {
		c, err := chooseModel(&modelFlags{name: name}, own)
		if err != nil {
			t.Fatal(err)
		}
		o, err := p.modelOptions(t.Context(), c)
		if err != nil || o.key != want {
			t.Errorf("%s at %s: key %q, %v", name, c.baseURL, o.key, err)
		}
	}
}

// With a file whose words about models cannot be read nothing goes to the provider's own
// address: they may have named another one.
func TestModelFault(t *testing.T) {
	t.Parallel()
	own := &config.Own{Path: "/own", ModelFault: errors.New("/own: line 3: models: it is wrong")}
	if _, err := chooseModel(&modelFlags{name: "openai:a"}, own); err == nil || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "--base-url") {
		t.Errorf("a hosted model: %v", err)
	}
	if c, err := chooseModel(&modelFlags{name: "openai:a", baseURL: "http://127.0.0.1:1/v1"}, own); err != nil || c.baseURL != "http://127.0.0.1:1/v1" {
		t.Errorf("an address that is given: %+v, %v", c, err)
	}
	if c, err := chooseModel(&modelFlags{name: "offline"}, own); err != nil || c.provider != nil {
		t.Errorf("the offline model: %+v, %v", c, err)
	}
}

// A key that is typed in the place of a name is not shown.
func TestKeyForName(t *testing.T) {
	t.Parallel()
	const secret = "sk-proj-abcdefghij0123456789abcdefghij0123456789"
	_, provider := findProvider(secret)
	_, model := chooseModel(&modelFlags{name: secret}, &config.Own{})
	_, both := chooseModel(&modelFlags{name: secret + ":x"}, &config.Own{})
	for _, err := range []error{provider, model, both} {
		if err == nil || strings.Contains(err.Error(), "abcdef") || !strings.Contains(err.Error(), "[redacted: OpenAI API key]") {
			t.Errorf("got %v", err)
		}
	}
}

// A key that is no key is refused without being shown.
func TestCheckedKey(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"sk-a\nsk-b", "sk a", "sk-\x1b[31m", "sk-\u202e", "sk-ä", strings.Repeat("k", maxKey+1)} {
		key, err := checkedKey(bad)
		if err == nil || key != "" || strings.Contains(err.Error(), bad[:4]) {
			t.Errorf("%.20q: %q, %v", bad, key, err)
		}
	}
	if key, err := checkedKey(" sk-good\r\n"); err != nil || key != "sk-good" {
		t.Errorf("got %q, %v", key, err)
	}
}

// Addresses of one origin have one key. The provider's own origin has the provider's.
func TestKeyPlace(t *testing.T) {
	t.Parallel()
	m, err := findProvider("openai")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"https://api.openai.com/v1":        "model.key.openai",
		" HTTPS://API.openai.com:443/v2/":  "model.key.openai",
		"http://api.openai.com/v1":         "model.key.openai@http://api.openai.com",
		"https://api.openai.com:8443":      "model.key.openai@https://api.openai.com:8443",
		"https://api.openai.com.evil.test": "model.key.openai@https://api.openai.com.evil.test",
		"https://OpenRouter.ai/api/v1":     "model.key.openai@https://openrouter.ai",
		"http://[::1]:11434/v1":            "model.key.openai@http://[::1]:11434",
	} {
		if place := m.keyPlace(address); place.entry() != want {
			t.Errorf("%s: %s, want %s", address, place.entry(), want)
		}
	}
	place := m.keyPlace("https://a%E2%80%AEb.example")
	if text := place.String() + place.command("set"); strings.Contains(text, "\u202e") {
		t.Errorf("%q can be shown", text)
	}
}
