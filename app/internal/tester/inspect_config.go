package tester

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// inspectedServer is the server that is inspected, with the roots that its entry in the file of
// --config has.
func (in *inspector) inspectedServer(ctx context.Context, flags *inspectFlags, t connect.Target) (host.Server, []mcp.Root, error) {
	if flags.config == "" {
		s, err := in.TargetServer(ctx, t)
		return s, nil, err
	}
	var s host.Server
	var roots []mcp.Root
	err := in.WithConfig(ctx, flags.config, func(cfg *config.Config, db *local.DB) error {
		entry, err := entryInFile(cfg, flags.config, in.Named)
		if err != nil {
			return err
		}
		if entry, err = in.Expanded(ctx, entry, in.Streams.InTerminal, db); err != nil {
			return kit.Usagef("--config %s: %w", flags.config, err)
		}
		if entry.Headers, err = in.overHeaders(entry); err != nil {
			return err
		}
		for _, r := range entry.Roots {
			roots = append(roots, mcp.Root{URI: r.URI, Name: r.Name})
		}
		if err := checkRoots(roots); err != nil {
			return kit.Usagef("--config: server %q: roots: %w", entry.Name, err)
		}
		s, err = in.Startable(ctx, entry)
		if in.Protocol != "" {
			s.Versions = []string{in.Protocol}
		}
		return err
	})
	return s, roots, err
}

// entryInFile is the entry of the file that is meant.
func entryInFile(cfg *config.Config, file string, named []string) (*config.Server, error) {
	names := make([]string, 0, len(cfg.Servers))
	for _, s := range cfg.Servers {
		names = append(names, s.Name)
	}
	all := kit.Shorten(host.EscapeLine(strings.Join(names, ", ")), kit.MaxMessage)
	switch {
	case len(names) == 0:
		return nil, kit.Usagef("--config %s: no server in the file", file)
	case len(named) > 1:
		return nil, kit.Usagef("--server can be used only once")
	case len(named) == 0 && len(names) > 1:
		return nil, kit.Usagef("--config %s has %d servers; name one with --server: %s", file, len(names), all)
	case len(named) == 0:
		return cfg.Servers[0], nil
	}
	entry := cfg.Server(named[0])
	if entry == nil {
		return nil, kit.Usagef("--config %s has no server %q; it has: %s", file, named[0], all)
	}
	return entry, nil
}

// overHeaders are the headers of an entry, with those of the command line in their place.
func (in *inspector) overHeaders(entry *config.Server) ([]config.Header, error) {
	if len(in.Headers) == 0 {
		return entry.Headers, nil
	}
	if entry.URL == "" {
		return nil, kit.Usagef("--header requires a server at a URL")
	}
	u, err := url.Parse(entry.URL)
	if err != nil {
		return nil, connect.NoURL(entry.URL, err)
	}
	header, err := in.Header(u)
	if err != nil {
		return nil, kit.Usagef("%w", err)
	}
	given, err := header(context.Background())
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(entry.Headers), func(h config.Header) bool { return len(given.Values(h.Name)) > 0 })
	for name, values := range given {
		for _, value := range values {
			list = append(list, config.Header{Name: name, Value: value})
		}
	}
	return list, nil
}

// checkRoots refuses what clients may not call a root.
func checkRoots(list []mcp.Root) error {
	for i, r := range list {
		if u, err := url.Parse(r.URI); err != nil || u.Scheme != "file" {
			return fmt.Errorf("item %d: uri must begin with file://", i)
		}
	}
	return nil
}
