package chat

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
)

func (st *settings) configApproveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve [NAME | FILE]",
		Short: "Approve the servers and rules of project files",
		Long: `Show the servers and rules of project files that need your approval, and ask for it:
the servers that the files would start, and the rules that allow calls without
approval. NAME selects one server, FILE the rules of one file; the default is all
of them. If an approved entry changes, Parley asks again. Rules of a project that
ask or deny apply without approval.`,
		Example: `  parley config approve
  parley config approve docs
  parley config approve .parley.jsonc`,
		Args: kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return st.WithConfig(cmd.Context(), "", func(cfg *config.Config, db *local.DB) error {
				list, err := approvals(cmd.Context(), cfg, db, args)
				if err != nil {
					return err
				}
				return st.approveAll(cmd.Context(), list, db, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	return cmd
}

// approveAll shows what waits, and asks about each.
func (st *settings) approveAll(ctx context.Context, list []connect.Approval, store host.Store, yes bool) error {
	if len(list) == 0 {
		st.Note("Nothing needs your approval.")
	}
	refused := false
	for i := range list {
		st.Note("%s", list[i].About)
		if !yes && st.Streams.InTerminal {
			agreed, err := st.AskYes(ctx, "Approve it? [y]es, [n]o: ")
			if err != nil {
				return err
			}
			if refused = refused || !agreed; !agreed {
				continue
			}
		}
		if yes || st.Streams.InTerminal {
			if err := list[i].Keep(ctx, store); err != nil {
				return err
			}
		}
	}
	switch {
	case len(list) > 0 && !yes && !st.Streams.InTerminal:
		return kit.Usagef("cannot ask for approval here; add --yes to approve")
	case refused:
		return &kit.SilentError{Code: kit.ExitConsent}
	}
	return nil
}

// approvals lists what waits for the person, or what they named.
func approvals(ctx context.Context, cfg *config.Config, store host.Store, named []string) ([]connect.Approval, error) {
	if len(named) == 0 {
		return pendingApprovals(ctx, cfg, store)
	}
	if s := cfg.Server(named[0]); s != nil {
		if !s.NeedsConsent {
			return nil, kit.Usagef("%q is in your own file (%s) and does not need approval", named[0], s.Source)
		}
		a, _, err := connect.EntryApproval(ctx, s, store)
		return []connect.Approval{a}, err
	}
	path, err := filepath.Abs(named[0])
	if err != nil {
		return nil, kit.Usagef("%q: %w", named[0], err)
	}
	same := func(other string) bool { return sameFile(path, other) }
	if i := slices.IndexFunc(cfg.Pending, func(r config.PendingRules) bool { return same(r.File.Path) }); i >= 0 {
		a, err := connect.RulesApproval(ctx, &cfg.Pending[i], store)
		return []connect.Approval{a}, err
	}
	if slices.ContainsFunc(cfg.Files, func(f config.Location) bool { return same(f.Path) }) {
		return nil, nil
	}
	return nil, kit.Usagef("unknown server or file %q; run 'parley config list' to list servers, or 'parley config doctor' to list files", named[0])
}

// sameFile compares absolute paths, with links resolved where that is possible.
func sameFile(a, b string) bool {
	for _, path := range []*string{&a, &b} {
		if resolved, err := filepath.EvalSymlinks(*path); err == nil {
			*path = resolved
		}
	}
	return a == b
}

// pendingApprovals lists all that waits for the person.
func pendingApprovals(ctx context.Context, cfg *config.Config, store host.Store) ([]connect.Approval, error) {
	var list []connect.Approval
	for _, s := range cfg.Servers {
		if !s.NeedsConsent || s.Disabled || s.Err != nil {
			continue
		}
		a, agreed, err := connect.EntryApproval(ctx, s, store)
		if err != nil {
			return nil, err
		}
		if !agreed {
			list = append(list, a)
		}
	}
	for i := range cfg.Pending {
		a, err := connect.RulesApproval(ctx, &cfg.Pending[i], store)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}
