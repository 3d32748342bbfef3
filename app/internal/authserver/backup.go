package authserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/app/internal/store/records"
)

// A saved is what came of a backup or of restoring one, as JSON.
type saved struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Sessions and Grants are how many ended with --sign-out.
	Sessions *int `json:"sessions,omitzero"`
	Grants   *int `json:"grants,omitzero"`
	// Encrypted says that the private keys in it are, and Key by which key, if that is known.
	Encrypted bool   `json:"encrypted"`
	Key       string `json:"key,omitzero"`
}

// noteSecrets notes how the private keys in a database are stored.
func (s *saved) noteSecrets(ctx context.Context, db *records.DB) error {
	stored, err := db.Secrets(ctx)
	if err == nil {
		s.Encrypted, s.Key = stored.DataKey > 0, stored.Key
	}
	return err
}

func (g *group) backupCommand() *cobra.Command {
	var dsn string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the records of the authorization server to a file, while it runs",
		Long: `Back up the records of the authorization server, an SQLite file, to a new file. The
backup is a consistent snapshot, and Parley checks it before giving it its name.
Servers keep running. The backup contains the server's private keys, unencrypted
unless the server uses --secrets-key: protect it like the keys.

To back up a PostgreSQL database, use pg_dump.`,
		Example: `  parley auth backup issuer-$(date +%F).backup`,
		Args:    kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return withOldDatabase(ctx, dsn, func(db *records.DB) error {
				if err := db.Backup(ctx, args[0]); err != nil {
					return savingError(err, "FILE")
				}
				report := &saved{}
				if err := report.noteSecrets(ctx, db); err != nil {
					return err
				}
				return g.printSaved("saved to", args[0], report)
			})
		},
	}
	databaseFlag(cmd.Flags(), &dsn)
	g.JSONFlag(cmd)
	return cmd
}

func (g *group) restoreCommand() *cobra.Command {
	var dsn string
	var signOut bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the records of an authorization server from a backup",
		Long: `Check a file that 'parley auth backup' wrote, and create a new SQLite file from it.
The new file must not exist yet: stop the servers, and move the old file and the
files next to it ("-wal", "-shm") away.

Anything revoked, disabled or removed since the backup becomes valid again: repeat
those changes, or end all sessions and grants with --sign-out.`,
		Example: `  parley auth restore issuer-2026-11-24.backup --sign-out`,
		Args:    kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.restore(cmd.Context(), args[0], dsn, signOut)
		},
	}
	databaseFlag(cmd.Flags(), &dsn)
	cmd.Flags().BoolVar(&signOut, "sign-out", false, "end all sessions and revoke all grants")
	g.JSONFlag(cmd)
	return cmd
}

func (g *group) restore(ctx context.Context, file, dsn string, signOut bool) error {
	target, err := databasePlace(dsn)
	if err != nil {
		return err
	}
	if err := records.Restore(ctx, file, target); err != nil {
		return savingError(err, "--database")
	}
	report := &saved{}
	// To open it brings its tables up to date.
	err = withDatabase(ctx, target, func(db *records.DB) (err error) {
		if signOut {
			var sessions, grants int
			sessions, grants, err = db.EndAll(ctx)
			report.Sessions, report.Grants = &sessions, &grants
		}
		return errors.Join(err, report.noteSecrets(ctx, db))
	})
	if err != nil {
		return err
	}
	if err := g.printSaved("restored to", strings.TrimPrefix(target, "sqlite:"), report); err != nil {
		return err
	}
	if signOut {
		g.Note("parley: users, clients and keys are restored as of the backup; repeat later changes that disabled, removed or revoked any")
		return nil
	}
	g.Note("parley: anything revoked, disabled or removed since the backup is valid again; repeat those changes, or restore with --sign-out")
	return nil
}

func (g *group) printSaved(what, file string, report *saved) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("looking at what was written: %w", err)
	}
	report.File, report.Bytes = file, info.Size()
	if g.JSON {
		return g.PrintJSON(report)
	}
	text := fmt.Sprintf("%s %s (%d bytes, checked)\n", what, kit.SafeWord(file), report.Bytes)
	if report.Encrypted {
		text += fmt.Sprintf("its private keys are encrypted%s: a server needs this key too (--%s)\n", byKey(report.Key), secretsKeyName)
	}
	if report.Sessions != nil {
		text += fmt.Sprintf("ended: %d sessions, %d grants\n", *report.Sessions, *report.Grants)
	}
	return g.Print(text)
}

// savingError is an error of a backup, with what to do about it.
func savingError(err error, where string) error {
	switch {
	case errors.Is(err, database.ErrExists) && where == "--database":
		return kit.Usagef("%w; stop the servers that use it and move it away, or name another file with --database", err)
	case errors.Is(err, database.ErrExists), errors.Is(err, database.ErrNoFile), errors.Is(err, database.ErrNoTables), errors.Is(err, os.ErrNotExist):
		return kit.Usagef("%w", err)
	}
	return err
}

// A schemaReport is what there is to migrate, as JSON.
type schemaReport struct {
	Version    int      `json:"version"`
	Newest     int      `json:"newest"`
	Statements []string `json:"statements"`
	Done       bool     `json:"done"`
}

func (g *group) migrateCommand() *cobra.Command {
	var dsn string
	var dry bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables of the authorization server up to date",
		Long: `Bring the tables of the authorization server's database up to date, as every
command that opens it does. With --dry-run, print the statements without running
them. Parley rejects tables of a newer version: to go back, restore a backup.`,
		Example: `  parley auth migrate --dry-run --database postgres://parley@db.internal/parley`,
		Args:    kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.migrate(cmd.Context(), dsn, dry)
		},
	}
	databaseFlag(cmd.Flags(), &dsn)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the statements without running them")
	g.JSONFlag(cmd)
	return cmd
}

func (g *group) migrate(ctx context.Context, dsn string, dry bool) error {
	target, err := databasePlace(dsn)
	if err != nil {
		return err
	}
	tables, err := records.Inspect(ctx, target)
	if err != nil {
		return kit.OpeningError(ctx, "--database", "the records", err)
	}
	report := &schemaReport{Version: tables.Version, Newest: tables.Newest, Statements: append([]string{}, tables.Statements...)}
	if !dry && tables.Version < tables.Newest {
		if err := withDatabase(ctx, target, func(*records.DB) error { return nil }); err != nil {
			return err
		}
		report.Done = true
	}
	switch {
	case g.JSON:
		return g.PrintJSON(report)
	case tables.Version == tables.Newest:
		return g.Print(fmt.Sprintf("the tables are of version %d, the newest\n", tables.Version))
	case report.Done:
		return g.Print(fmt.Sprintf("brought the tables from version %d to %d\n", tables.Version, tables.Newest))
	}
	text := fmt.Sprintf("the tables are of version %d, the newest is %d; 'parley auth migrate' would execute:\n", tables.Version, tables.Newest)
	for _, statement := range tables.Statements {
		text += "  " + strings.Join(strings.Fields(statement), " ") + ";\n"
	}
	return g.Print(text)
}
