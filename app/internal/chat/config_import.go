package chat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
)

func (st *settings) configImportCommand() *cobra.Command {
	var file string
	var replace bool
	cmd := &cobra.Command{
		Use:   "import NAME...",
		Short: "Copy servers from other clients' files to your own file",
		Long: `Copy servers from other clients' files to your own file, parley.jsonc, where you can
change, disable and label them. The other file does not change; if two entries have
the same name, yours takes precedence. Parley uses other clients' entries without
this command, too.

If an entry starts a reference server that Parley has built in, such as
"npx -y @modelcontextprotocol/server-memory", the copy can start the built-in one:
at a terminal Parley shows the difference and asks; --replace agrees to all.`,
		Example: `  parley config import notes
  parley config import memory time --replace`,
		Args: kit.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return st.WithConfig(cmd.Context(), file, func(cfg *config.Config, _ *local.DB) error {
				own, err := config.Load(st.ConfigOptions())
				if err != nil {
					return err
				}
				for _, name := range args {
					if err := st.importEntry(cmd.Context(), cfg, own.Own.Path, name, replace); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "use built-in servers in copies of reference servers")
	cmd.Flags().StringVar(&file, "config", "", "copy from this `FILE`")
	return cmd
}

// importEntry copies one entry.
func (st *settings) importEntry(ctx context.Context, cfg *config.Config, path, name string, replace bool) error {
	s := cfg.Server(name)
	switch {
	case s == nil:
		return kit.Usagef("unknown server %q; run 'parley config list' to list servers", name)
	case s.Source.Scope == config.ScopeOwn:
		return kit.Usagef("%q is in your own file already: %s", name, s.Source)
	case s.NeedsConsent:
		return kit.Usagef("%q is of a project (%s): its authors may change what it starts. 'parley config approve %s' agrees to it as it is; to make it yours, add it with 'parley config add'", name, s.Source, name)
	}
	e, err := entryOf(s)
	if err != nil {
		return kit.Usagef("%q of %s: %w; write it by hand, with variables as ${NAME}", name, s.Source, err)
	}
	if e, err = st.offerReplacement(ctx, name, e, replace); err != nil {
		return err
	}
	if err := config.Add(path, name, *e); err != nil {
		return err
	}
	st.Note("Copied the server %s of %s to %s.", host.EscapeLine(name), s.Source, path)
	return nil
}

// plainVariables are the clients that write variables as parley.jsonc does.
var plainVariables = []config.Client{config.ClientClaudeCode, config.ClientCopilot, config.ClientTBXark}

// entryOf writes an entry of another client as one of our own.
func entryOf(s *config.Server) (*config.Entry, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	e := &config.Entry{
		Type: string(s.Transport), Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, NoOAuth: s.NoOAuth,
		Versions: s.Versions, Disabled: s.Disabled, Labels: s.Labels,
	}
	if len(s.Env) == 0 {
		e.Env = nil // not an empty object
	}
	if len(s.Headers) > 0 {
		e.Headers = make(map[string]string, len(s.Headers))
		for _, h := range s.Headers {
			e.Headers[h.Name] = h.Value
		}
	}
	if s.OAuth != nil {
		e.OAuth = &config.EntryOAuth{
			ClientID: s.OAuth.ClientID, ClientSecret: s.OAuth.ClientSecret, Scopes: s.OAuth.Scopes,
			CallbackPort: s.OAuth.CallbackPort, MetadataURL: s.OAuth.MetadataURL,
		}
	}
	if s.ConnectTimeout > 0 || s.CallTimeout > 0 {
		e.Timeout = &config.EntryTimeout{Connect: config.Duration(s.ConnectTimeout), Call: config.Duration(s.CallTimeout)}
	}
	if len(s.AllowTools)+len(s.DenyTools) > 0 {
		e.Tools = &config.EntryTools{Allow: s.AllowTools, Deny: s.DenyTools}
	}
	if len(s.Inputs) > 0 {
		return nil, fmt.Errorf("it asks for values when it starts")
	}
	expanded, err := s.Expand(nil)
	if err != nil {
		return nil, err
	}
	if len(expanded.Env) != len(s.Env) {
		return nil, fmt.Errorf("it reads variables from a file")
	}
	e.Dir = expanded.Dir
	if slices.Contains(plainVariables, s.Source.Client) {
		return e, nil
	}
	for _, text := range slices.Concat([]string{s.Command, s.URL}, s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(e.Headers))) {
		if strings.Contains(text, "$") || strings.Contains(text, "{env:") || strings.Contains(text, "{file:") || strings.Contains(text, "{{") {
			return nil, fmt.Errorf("it has variables in the way of %s", s.Source.Client)
		}
	}
	return e, nil
}
