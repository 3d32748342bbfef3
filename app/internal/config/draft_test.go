package config_test

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
)

// What is chosen is put into a new file, or into one that is there, whose comments and other
// members stay.
func TestDraft(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		choice        config.Choice
	}{
		"new": {
			choice: config.Choice{Model: "offline"},
			after: `{
  "$schema": "` + config.SchemaURL + `",
  "model": "offline"
}
`,
		},
		"all": {
			choice: config.Choice{
				Model: "openai:qwen3", BaseURL: "http://127.0.0.1:11434/v1", NoKey: true,
				Import:  map[config.Client]bool{config.ClientCursor: false, config.ClientVSCode: true},
				Servers: map[string]config.Entry{"b": {URL: "https://b.example/mcp"}, "a": {Command: "a", Args: []string{"x", "y"}}},
			},
			after: `{
  "$schema": "` + config.SchemaURL + `",
  "model": "openai:qwen3",
  "baseUrl": "http://127.0.0.1:11434/v1",
  "models": {
    "openai:qwen3": {
      "noKey": true
    }
  },
  "import": {
    "cursor": false
  },
  "servers": {
    "a": {
      "command": "a",
      "args": ["x", "y"]
    },
    "b": {
      "url": "https://b.example/mcp"
    }
  }
}
`,
		},
		"kept": {
			before: `{
  // mine
  "roots": ["/work"], // here
  "model": "openai:x",
  "baseUrl": "http://127.0.0.1:1/v1",
  "import": {"cursor": false, "goose": false},
}
`,
			choice: config.Choice{Model: "gemini:y", Import: map[config.Client]bool{config.ClientCursor: true, config.ClientKit: false}},
			after: `{
  // mine
  "roots": ["/work"], // here
  "model": "gemini:y",
  "import": {"cursor": true, "goose": false,
    "kit": false
  },
}
`,
		},
		"without a base URL": {
			before: "{\n  \"model\": \"openai:x\",\n  \"baseUrl\": \"http://127.0.0.1:1/v1\"\n}\n",
			choice: config.Choice{Model: "offline"},
			after:  "{\n  \"model\": \"offline\"\n}\n",
		},
		"a model that is known": {
			before: "{\n  \"models\": {\"openai:x\": {\"window\": 4096, \"noKey\": false}}\n}\n",
			choice: config.Choice{Model: "openai:x", NoKey: true},
			after:  "{\n  \"models\": {\"openai:x\": {\"window\": 4096, \"noKey\": true}},\n  \"model\": \"openai:x\"\n}\n",
		},
		"nothing": {before: "{\n  \"model\": \"offline\"\n}\n", after: "{\n  \"model\": \"offline\"\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			const file = "home/.config/parley/parley.jsonc"
			if test.before != "" {
				d.write(file, test.before)
			}
			draft, err := config.NewDraft(d.path(file), &test.choice)
			if err != nil {
				t.Fatal(err)
			}
			if string(draft.Before) != test.before || string(draft.After) != test.after {
				t.Errorf("the draft of\n%s\nis\n%s\nwant\n%s", draft.Before, draft.After, test.after)
			}
			if got, want := draft.Changes(), test.before != test.after; got != want {
				t.Errorf("it changes something: %v, want %v", got, want)
			}
			if _, err := os.Stat(d.path(file)); test.before == "" && err == nil {
				t.Error("a draft was written before it was agreed to")
			}
			if err := draft.Write(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(d.path(file))
			if err != nil || string(text) != test.after {
				t.Errorf("written: %s, %v", text, err)
			}
			if c := d.load(); len(c.Problems) > 0 {
				t.Errorf("what was written has problems: %v", c.Problems)
			}
		})
	}
}

// A file that changed since it was shown is not written, nor is one that cannot be read.
func TestDraftOfChangedFile(t *testing.T) {
	d := newDesk(t)
	path := d.path("home/.config/parley/parley.jsonc")
	draft, err := config.NewDraft(path, &config.Choice{Model: "offline"})
	if err != nil {
		t.Fatal(err)
	}
	d.write("home/.config/parley/parley.jsonc", `{"roots": []}`)
	if err := draft.Write(); !errors.Is(err, config.ErrChanged) {
		t.Errorf("a changed file: %v, want ErrChanged", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != `{"roots": []}` {
		t.Errorf("the file is now %s, %v", text, err)
	}
	for _, bad := range []string{`{"model": `, `[]`, `{"import": 1}`, `{"models": 1}`, `{"models": {"openai:x": 1}}`, `{"servers": {"a": {"command": "b"}}}`} {
		d.write("home/.config/parley/parley.jsonc", bad)
		_, err := config.NewDraft(path, &config.Choice{
			Model: "openai:x", NoKey: true, Import: map[config.Client]bool{config.ClientKit: false},
			Servers: map[string]config.Entry{"a": {Command: "b"}},
		})
		if err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if _, err := config.NewDraft(path+".other", &config.Choice{Servers: map[string]config.Entry{"a": {}}}); err == nil {
		t.Error("an entry without a command: no error")
	}
}

// The files of clients that are left out are read where that is asked for.
func TestAllClients(t *testing.T) {
	d := newDesk(t)
	d.write("home/.config/parley/parley.jsonc", `{"import": {"cursor": false}, "baseUrl": "http://127.0.0.1:1/v1"}`)
	d.write("home/.cursor/mcp.json", `{"mcpServers": {"hidden": {"command": "x"}}}`)
	c := d.load()
	if c.Server("hidden") != nil || c.Own.BaseURL != "http://127.0.0.1:1/v1" {
		t.Errorf("it has %v, and the base URL %q", c.Servers, c.Own.BaseURL)
	}
	d.options.AllClients = true
	if c := d.load(); c.Server("hidden") == nil || !maps.Equal(c.Own.Import, map[config.Client]bool{config.ClientCursor: false}) || !slices.ContainsFunc(c.Files, func(l config.Location) bool { return l.Client == config.ClientCursor }) {
		t.Errorf("it has %v of %v", c.Servers, c.Files)
	}
}

// What is shown of a file has no secret in it; what is written is as it was chosen.
func TestDraftHidesSecrets(t *testing.T) {
	d := newDesk(t)
	const file = "home/.config/parley/parley.jsonc"
	d.write(file, `{
  // mine
  "baseUrl": "http://ada:hidden-1@127.0.0.1:1/v1",
  "servers": {
    "old": {"command": ["run", "--token", "hidden-2"], "env": {"A": "hidden-3", "B": "${B}", "C": ""}, "oauth": {"clientSecret": "hidden-4", "clientId": "shown"}},
    "odd": 7,
  },
}
`)
	draft, err := config.NewDraft(d.path(file), &config.Choice{Servers: map[string]config.Entry{
		"new":  {URL: "https://new.example/mcp?key=hidden-5", Headers: map[string]string{"Authorization": "Bearer hidden-6", "X-Team": "Bearer ${T}"}},
		"args": {Command: "run", Args: []string{"--api-key=hidden-7", "--verbose"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  // mine
  "baseUrl": "http://127.0.0.1:1/v1",
  "servers": {
    "old": {"command": ["run", "--token", "***"], "env": {"A": "***", "B": "${B}", "C": ""}, "oauth": {"clientSecret": "***", "clientId": "shown"}},
    "odd": 7,
    "args": {
      "command": "run",
      "args": ["--api-key=***", "--verbose"]
    },
    "new": {
      "url": "https://new.example/mcp",
      "headers": {
        "Authorization": "***",
        "X-Team": "Bearer ${T}"
      }
    },
  },
}
`
	if got := draft.Shown(); got != want {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
	for _, secret := range []string{"hidden-1", "hidden-2", "hidden-3", "hidden-4", "hidden-5", "hidden-6", "hidden-7"} {
		if !strings.Contains(string(draft.After), secret) {
			t.Errorf("what is written has no %s", secret)
		}
	}
}

// An entry may hold secrets if something of it would be hidden.
func TestMayHoldSecrets(t *testing.T) {
	for _, test := range []struct {
		entry config.Entry
		want  bool
	}{
		{config.Entry{Command: "run", Args: []string{"--fast", "<b>"}, Env: map[string]string{"T": "${T}"}}, false},
		{config.Entry{URL: "https://a.example/mcp"}, false},
		{config.Entry{Command: "run", Env: map[string]string{"T": "x"}}, true},
		{config.Entry{Command: "run", Args: []string{"--token", "x"}}, true},
		{config.Entry{URL: "https://a.example/mcp?key=x"}, true},
		{config.Entry{URL: "https://a.example/mcp", OAuth: &config.EntryOAuth{ClientID: "a", ClientSecret: "x"}}, true},
	} {
		if got := test.entry.MayHoldSecrets(); got != test.want {
			t.Errorf("%+v: %v, want %v", test.entry, got, test.want)
		}
	}
}
