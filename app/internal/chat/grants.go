package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

func (st *settings) grantsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List and revoke remembered approvals",
		Args:  kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error { return st.listGrants(cmd.Context(), db) })
		},
	}
	st.JSONFlag(cmd) // not those below it
	cmd.AddCommand(&cobra.Command{
		Use: "revoke ID...", Short: "Revoke remembered approvals, immediately and in all sessions", Args: kit.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.WithStore(func(db *local.DB) error {
				h := host.New(&host.Options{Store: db})
				defer func() { _ = h.Close() }() // it has no servers
				for _, id := range args {
					if err := h.Revoke(cmd.Context(), id); errors.Is(err, host.ErrNoGrant) {
						return kit.Usagef("unknown grant %q; run 'parley grants' to list remembered approvals", id)
					} else if err != nil {
						return err
					}
					st.Note("Revoked the grant %s.", host.EscapeLine(id))
				}
				return nil
			})
		},
	})
	return cmd
}

func (st *settings) listGrants(ctx context.Context, db *local.DB) error {
	list, err := db.Grants(ctx)
	if err != nil {
		return err
	}
	if st.JSON {
		return st.PrintJSON(struct {
			Grants []host.Grant `json:"grants"`
		}{list})
	}
	var b strings.Builder
	for i := range list {
		id, about, _ := strings.Cut(ui.GrantText(&list[i], time.Now()), ": ")
		b.WriteString(id + "  " + about + "\n")
	}
	return st.Print(b.String())
}
