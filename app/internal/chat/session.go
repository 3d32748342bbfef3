package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

func (g *group) sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "List, export and delete the sessions of chat and run",
		Args:  kit.NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{
		Use: "list", Short: "List the sessions, most recently used first", Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error { return g.listSessions(cmd.Context(), db) })
		},
	}
	export := &cobra.Command{
		Use: "export ID", Short: "Print a session as lines of JSON: a description, then each record", Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.WithStore(func(db *local.DB) error {
				id, err := findSession(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return db.Export(cmd.Context(), id, g.JSONOut())
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
				if err := g.deleteSession(cmd.Context(), db, id); err != nil {
					return err
				}
				g.Note("Deleted the session %s.", id)
				return nil
			})
		},
	}
	g.JSONFlag(list)
	cmd.AddCommand(list, export, remove)
	return cmd
}

func (g *group) listSessions(ctx context.Context, db *local.DB) error {
	list, err := lastUsedFirst(ctx, db)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(struct {
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
	return g.Print(t.String())
}

func (g *group) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history [ID]",
		Short: "Show what happened in a session (default: the last one used)",
		Args:  kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := "last"
			if len(args) == 1 {
				id = args[0]
			}
			return connect.WithStore(func(db *local.DB) error { return g.history(cmd.Context(), db, id) })
		},
	}
	g.JSONFlag(cmd)
	return cmd
}

// history shows the records of a session.
func (g *group) history(ctx context.Context, db *local.DB, id string) error {
	id, err := findSession(ctx, db, id)
	if err != nil {
		return err
	}
	records, err := host.History(ctx, db, id)
	if err != nil {
		return err
	}
	if g.JSON {
		v := &view{p: g}
		for i := range records {
			v.json(&records[i])
		}
		return v.err
	}
	width := 0 // unknown
	if g.Streams.Width != nil {
		width = g.Streams.Width()
	}
	return g.Print(ui.Text(records, width))
}
