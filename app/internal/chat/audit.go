package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
)

func (st *settings) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show and verify the log of all decisions and calls",
		Args:  kit.NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "verify",
		Short: "Check that no entry of the audit log was changed, removed or inserted",
		Args:  kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error {
				n, err := db.VerifyAudit(cmd.Context())
				if err != nil {
					st.Note("parley: %s", kit.ErrorText(err))
					return &kit.SilentError{Code: kit.ExitContract}
				}
				return st.Println(fmt.Sprintf("%d entries, all unchanged", n))
			})
		},
	})
	list := &cobra.Command{
		Use:   "list",
		Short: "Print the audit log, oldest entry first",
		Args:  kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error { return st.listAudit(cmd.Context(), db) })
		},
	}
	st.JSONFlag(list)
	cmd.AddCommand(list)
	return cmd
}

func (st *settings) listAudit(ctx context.Context, db *local.DB) error {
	const page = 500
	for from := int64(1); ; {
		list, err := db.AuditEntries(ctx, from, page)
		if err != nil {
			return err
		}
		for i := range list {
			e := &list[i]
			if st.JSON {
				err = st.PrintJSON(e)
			} else {
				err = st.Println(host.EscapeLine(fmt.Sprintf("%d %s %s %s %s/%s %s", e.N, e.Time.Local().Format(time.DateTime), e.Event, e.Kind, e.Server, e.Name, e.Why)))
			}
			if err != nil {
				return err
			}
			from = e.N + 1
		}
		if len(list) < page {
			return nil
		}
	}
}
