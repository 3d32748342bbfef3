// Package discover finds what a machine has for a conversation: servers in the files of other
// MCP clients, keys of providers of models, and models that run locally. It asks nobody, writes
// nothing, and keeps no secret.
package discover

import (
	"context"
	"net"
	"os"
	"slices"
	"time"

	"github.com/parley-mcp/parley/app/internal/config"
)

// Found is what a machine has. It is not changed after it was made.
type Found struct {
	// Own says that the person has a parley.jsonc.
	Own bool
	// Clients are the other clients that have servers, in the order of config.Clients.
	Clients []Client
	// Keys are the variables of the environment that hold a key.
	Keys []Key
	// Local are the programs that run models here, in the order of the ports.
	Local []Local
}

// A Client is a program whose files name servers.
type Client struct {
	ID config.Client
	// Name is what people call the program, such as "Claude Desktop".
	Name string
	// Servers are the entries of the person's own files that are not switched off. Their names
	// are as they were written.
	Servers []*config.Server
	// OfProject are those of the project in which the person works. They start only after the
	// person agreed to each.
	OfProject []*config.Server
}

// A Key is a variable of the environment that holds the key of a provider. What it holds is
// never kept.
type Key struct {
	// Provider is the name as in PROVIDER:NAME of a model.
	Provider string
	// Name is what people call the provider.
	Name string
	// Variable is the name of the variable.
	Variable string
}

// KnownKeys lists the variables that Find looks at.
func KnownKeys() []Key {
	return []Key{
		{"anthropic", "Anthropic", "ANTHROPIC_API_KEY"},
		{"openai", "OpenAI", "OPENAI_API_KEY"},
		{"gemini", "Google Gemini", "GEMINI_API_KEY"},
	}
}

// DefaultWait is how long Find waits for local programs.
const DefaultWait = 300 * time.Millisecond

// Options say where Find looks. Zero fields are this machine.
type Options struct {
	// Config is what the files of all clients say. Nil is none.
	Config *config.Config
	// Env looks up a variable of the environment; nil is os.LookupEnv.
	Env func(string) (string, bool)
	// Ports are asked for models; nil is UsualPorts.
	Ports []Port
	// Dial connects to them; nil is that of net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wait is the most that all of them may take; 0 is DefaultWait.
	Wait time.Duration
}

// Find looks for all of it at once. It takes as long as the slowest port and never longer than
// Options.Wait; what did not answer by then, or not as such a program does, is not in Found.
func Find(ctx context.Context, o *Options) *Found {
	if o == nil {
		o = &Options{}
	}
	f := &Found{}
	if o.Config != nil {
		f.Own = slices.ContainsFunc(o.Config.Files, func(l config.Location) bool { return l.Scope == config.ScopeOwn })
		f.Clients = clients(o.Config)
	}
	env := o.Env
	if env == nil {
		env = os.LookupEnv
	}
	for _, k := range KnownKeys() {
		if value, _ := env(k.Variable); value != "" {
			f.Keys = append(f.Keys, k)
		}
	}
	f.Local = local(ctx, o)
	return f
}

// Servers returns the servers of the person's own files.
func (f *Found) Servers() []*config.Server {
	var all []*config.Server
	for i := range f.Clients {
		all = append(all, f.Clients[i].Servers...)
	}
	return all
}

// clients sorts the entries that can be used by their client.
func clients(cfg *config.Config) []Client {
	var found []Client
	for _, id := range config.Clients() {
		if id == config.ClientParley {
			continue
		}
		c := Client{ID: id, Name: ClientName(id)}
		for _, s := range cfg.Servers {
			switch {
			case s.Source.Client != id || s.Disabled:
			case s.NeedsConsent:
				c.OfProject = append(c.OfProject, s)
			default:
				c.Servers = append(c.Servers, s)
			}
		}
		if len(c.Servers)+len(c.OfProject) > 0 {
			found = append(found, c)
		}
	}
	return found
}

var clientNames = map[config.Client]string{
	config.ClientParley:        "Parley",
	config.ClientClaudeDesktop: "Claude Desktop",
	config.ClientClaudeCode:    "Claude Code",
	config.ClientVSCode:        "VS Code",
	config.ClientCopilot:       "GitHub Copilot CLI",
	config.ClientCursor:        "Cursor",
	config.ClientGoose:         "goose",
	config.ClientOpenCode:      "opencode",
	config.ClientCrush:         "Crush",
	config.ClientKit:           "Kit",
	config.ClientLibreChat:     "LibreChat",
	config.ClientInspector:     "MCP Inspector",
	config.ClientTBXark:        "mcp-proxy",
	config.ClientOther:         "another program",
}

// ClientName is what people call a client.
func ClientName(c config.Client) string {
	if name, ok := clientNames[c]; ok {
		return name
	}
	return string(c)
}
