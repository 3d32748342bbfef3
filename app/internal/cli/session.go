package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/face"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
)

func (p *program) sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "List, export and delete the sessions of chat and run",
		Args:  kit.NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{
		Use: "list", Short: "List the sessions, the one used last first", Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error { return p.listSessions(cmd.Context(), db) })
		},
	}
	export := &cobra.Command{
		Use: "export ID", Short: "Write a session as lines of JSON: what it is, then each record", Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.WithStore(func(db *local.DB) error {
				id, err := findSession(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return db.Export(cmd.Context(), id, p.JSONOut())
			})
		},
	}
	remove := &cobra.Command{
		Use: "delete ID", Short: "Delete a session that has no forks; the audit log stays", Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.WithStore(func(db *local.DB) error {
				id, err := findSession(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				if err := p.deleteSession(cmd.Context(), db, id); err != nil {
					return err
				}
				p.Note("The session %s is deleted.", id)
				return nil
			})
		},
	}
	cmd.AddCommand(list, export, remove)
	return cmd
}

func (p *program) listSessions(ctx context.Context, db *local.DB) error {
	list, err := lastUsedFirst(ctx, db)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(struct {
			Sessions []host.SessionInfo `json:"sessions"`
		}{list})
	}
	var t kit.Table
	for _, s := range list {
		about := s.Used.Local().Format(time.DateTime) + "  " + s.Title
		if s.Parent != "" {
			about += fmt.Sprintf(" (fork of %s after record %d)", s.Parent, s.At)
		}
		t.Add(s.ID, about)
	}
	return p.Print(t.String())
}

func (p *program) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history [ID]",
		Short: "Show what happened in a session; without ID in the one used last",
		Args:  kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := "last"
			if len(args) == 1 {
				id = args[0]
			}
			return connect.WithStore(func(db *local.DB) error { return p.history(cmd.Context(), db, id) })
		},
	}
}

// history shows the records of a session.
func (p *program) history(ctx context.Context, db *local.DB, id string) error {
	id, err := findSession(ctx, db, id)
	if err != nil {
		return err
	}
	records, err := host.History(ctx, db, id)
	if err != nil {
		return err
	}
	if p.JSON {
		v := &view{p: p}
		for i := range records {
			v.json(&records[i])
		}
		return v.err
	}
	width := 0 // unknown
	if p.Streams.Width != nil {
		width = p.Streams.Width()
	}
	return p.Print(face.Text(records, width))
}

func (p *program) grantsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List what you agreed to for longer than once, and take it back",
		Args:  kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error { return p.listGrants(cmd.Context(), db) })
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "revoke ID...", Short: "Take grants back, at once and for all sessions", Args: kit.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.WithStore(func(db *local.DB) error {
				h := host.New(&host.Options{Store: db})
				defer func() { _ = h.Close() }() // it has no servers
				for _, id := range args {
					if err := h.Revoke(cmd.Context(), id); errors.Is(err, host.ErrNoGrant) {
						return kit.Usagef("there is no grant %q; 'parley grants' lists them", id)
					} else if err != nil {
						return err
					}
					p.Note("The grant %s is revoked.", host.EscapeLine(id))
				}
				return nil
			})
		},
	})
	return cmd
}

func (p *program) listGrants(ctx context.Context, db *local.DB) error {
	list, err := db.Grants(ctx)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(struct {
			Grants []host.Grant `json:"grants"`
		}{list})
	}
	var b strings.Builder
	for i := range list {
		id, about, _ := strings.Cut(face.GrantText(&list[i], time.Now()), ": ")
		b.WriteString(id + "  " + about + "\n")
	}
	return p.Print(b.String())
}

func (p *program) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show and verify the log of all decisions and calls",
		Args:  kit.NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "verify",
		Short: "Check that no entry of the audit log was changed, removed or put in between",
		Args:  kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error {
				n, err := db.VerifyAudit(cmd.Context())
				if err != nil {
					p.Note("parley: %s", kit.ErrorText(err))
					return &kit.SilentError{Code: kit.ExitContract}
				}
				return p.Println(fmt.Sprintf("%d entries, all as they were written", n))
			})
		},
	}, &cobra.Command{
		Use:   "list",
		Short: "Write the audit log, the oldest entry first",
		Args:  kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error { return p.listAudit(cmd.Context(), db) })
		},
	})
	return cmd
}

func (p *program) listAudit(ctx context.Context, db *local.DB) error {
	const page = 500
	for from := int64(1); ; {
		list, err := db.AuditEntries(ctx, from, page)
		if err != nil {
			return err
		}
		for i := range list {
			e := &list[i]
			if p.JSON {
				err = p.PrintJSON(e)
			} else {
				err = p.Println(host.EscapeLine(fmt.Sprintf("%d %s %s %s %s/%s %s", e.N, e.Time.Local().Format(time.DateTime), e.Event, e.Kind, e.Server, e.Name, e.Why)))
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
