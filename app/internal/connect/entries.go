package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// HostOptions returns the options of a host by the flags of all commands.
func (c *Connector) HostOptions() (*host.Options, error) {
	opts := &host.Options{
		Info:         mcp.Implementation{Name: "parley", Version: kit.Version()},
		SampleModels: []host.Model{model.Offline{}},
		Extensions:   append([]client.Extension{tasks.Client(nil)}, c.Extensions...),
		Logger:       c.Logger(),
	}
	var err error
	if opts.Roots, err = c.Roots(); err != nil {
		return nil, err
	}
	if opts.LogLevel, err = c.Level(); err != nil {
		return nil, err
	}
	if opts.LogLevel != "" {
		opts.OnLog = c.Output.show
	}
	return opts, nil
}

// ConfiguredServers returns the servers of the configuration that can be started, and the rules
// of their entries. It counts those that are left out, beside those that wait for consent.
func (c *Connector) ConfiguredServers(ctx context.Context, cfg *config.Config, attended bool, store host.Store) (servers []host.Server, rules []policy.Rule, failed int) {
	for _, entry := range cfg.Servers {
		if entry.Disabled {
			continue
		}
		if c.Protocol != "" {
			entry.Versions = []string{c.Protocol}
		}
		s, err := c.configured(ctx, entry, attended, store)
		if err != nil {
			if !errors.As(err, new(*notAgreedError)) {
				failed++
			}
			c.Note("parley: ignoring server %s of %s: %s", host.EscapeLine(entry.Name), host.EscapeLine(entry.Source.String()), kit.ErrorText(err))
			continue
		}
		servers = append(servers, s)
		rules = append(rules, EntryRules(entry)...)
	}
	return servers, rules, failed
}

// configured makes the server of an entry.
func (c *Connector) configured(ctx context.Context, entry *config.Server, attended bool, store host.Store) (host.Server, error) {
	entry, err := c.Expanded(ctx, entry, attended, store)
	if err != nil {
		return host.Server{}, err
	}
	return c.Startable(ctx, entry)
}

// Expanded returns an entry that the person agreed to, with the values of its inputs.
func (c *Connector) Expanded(ctx context.Context, entry *config.Server, attended bool, store host.Store) (*config.Server, error) {
	if entry.Err != nil {
		return nil, entry.Err
	}
	if entry.NeedsConsent {
		if err := c.approveEntry(ctx, entry, attended, store); err != nil {
			return nil, err
		}
	}
	inputs, err := c.inputs(ctx, entry, attended)
	if err != nil {
		return nil, err
	}
	started, err := entry.Expand(inputs)
	if err != nil {
		return nil, err
	}
	managed, err := c.managedRules()
	if err != nil {
		return nil, err
	}
	return started, managed.Permits(started) // inputs may have made it another one
}

// Startable returns the server of an expanded entry.
func (c *Connector) Startable(ctx context.Context, entry *config.Server) (s host.Server, err error) {
	s = host.Server{
		Name: entry.Name, Key: serverKey(entry), Origin: entry.Source.String(), Dir: EntryFolder(entry), Trusted: entry.Trusted,
		Labels: entry.Labels, Versions: versionsOf(entry.Versions), OnlyTools: entry.AllowTools,
		ConnectTimeout: entry.ConnectTimeout, CallTimeout: entry.CallTimeout,
	}
	for _, t := range entry.ToolLabels {
		s.ToolLabels = append(s.ToolLabels, host.ToolLabels{Tools: t.Tools, Labels: t.Labels})
	}
	s.Dialer, err = c.entryDialer(ctx, entry)
	return s, err
}

// serverKey is the key of an entry, to which grants and pins are bound. An entry of a project
// has that project's file in it: the same words, such as ./server, start something else in
// another one.
func serverKey(entry *config.Server) string {
	if entry.NeedsConsent {
		return entry.Digest + " " + entry.Source.File
	}
	return entry.Digest
}

// versionsOf spells out "modern" and "legacy" in a list of protocol versions.
func versionsOf(list []string) []string {
	var versions []string
	kinds := map[string]client.Revisions{"modern": client.Stateless, "legacy": client.Handshake}
	for _, v := range list {
		kind, ok := kinds[v]
		if !ok {
			versions = append(versions, v)
			continue
		}
		for _, known := range kit.Versions() {
			if kind.Has(known) {
				versions = append(versions, known)
			}
		}
	}
	return versions
}

// inputs asks the person for the values that an entry needs.
func (c *Connector) inputs(ctx context.Context, entry *config.Server, attended bool) (map[string]string, error) {
	values := make(map[string]string)
	for _, in := range entry.Inputs {
		if !attended {
			if in.Default != "" && !in.Password {
				values[in.ID] = in.Default
				continue
			}
			return nil, fmt.Errorf("cannot ask for the value %q here; run 'parley chat' to enter it", in.ID)
		}
		about := in.Description
		if about == "" {
			about = in.ID
		}
		if len(in.Options) > 0 {
			about += " (" + strings.Join(in.Options, ", ") + ")"
		}
		ask := fmt.Sprintf("Server %s needs a value: %s: ", host.EscapeLine(entry.Name), host.EscapeLine(about))
		var line string
		var err error
		if in.Password && c.Streams.Secret != nil {
			c.NotePart("%s", ask)
			line, err = c.Streams.Secret(ctx)
		} else {
			line, err = c.AskLine(ctx, ask)
		}
		if err != nil {
			return nil, err
		}
		if in.Password {
			c.Note("")
		}
		if line == "" {
			line = in.Default
		}
		values[in.ID] = line
	}
	return values, nil
}
