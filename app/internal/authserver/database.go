package authserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/app/internal/store/records"
)

func databaseFlag(f *pflag.FlagSet, dsn *string) {
	f.StringVar(dsn, "database", "", "records of the authorization server: the `PATH` of an SQLite file, or postgres://…, with the password in $PGPASSWORD or $PGPASSFILE (default: "+databaseName+" in the program's folder)")
}

// databaseHint repeats the flag for a command that the user may copy,
// unless a password may be in it.
func databaseHint(dsn string) string {
	switch {
	case dsn == "":
		return ""
	case kit.IsURL(dsn):
		return " --database …"
	}
	return " --database " + kit.SafeWord(dsn)
}

// openDatabase opens the records of the authorization server. o may be nil.
func openDatabase(ctx context.Context, dsn string, o *records.Options) (*records.DB, error) {
	named := dsn != ""
	dsn, err := databasePlace(dsn)
	if err != nil {
		return nil, err
	}
	db, err := records.Open(ctx, dsn, o)
	switch {
	case err == nil:
		return db, nil
	case named:
		return nil, kit.OpeningError(ctx, "--database", "the records", err)
	}
	return nil, fmt.Errorf("opening the records: %w", err)
}

// databasePlace is where the records are: what the flag says, or the program's folder.
func databasePlace(dsn string) (string, error) {
	if dsn != "" {
		return dsn, nil
	}
	return kit.Path(databaseName)
}

// needDatabase is an error if the database is a file that is not there. A command that reads or
// changes what is there would make an empty one of a mistyped path, and find nothing in it.
func needDatabase(dsn string) error {
	place, err := databasePlace(dsn)
	if err != nil {
		return err
	}
	missing, err := database.Missing(place)
	switch {
	case err != nil:
		return kit.Usagef("--database: %w", err)
	case missing != "":
		return kit.Usagef("database %s not found; name the right one with --database, or run 'parley auth user add NAME' or 'parley auth serve' to create one", kit.SafeWord(missing))
	}
	return nil
}

// beginsDatabase reports whether a verb of an operator may be the first that is done with a database.
func beginsDatabase(verb string) bool {
	switch verb {
	case "user add", "user invite", "client add", "resource add":
		return true
	}
	return false
}

// withOldDatabase is withDatabase for records that must be there already.
func withOldDatabase(ctx context.Context, dsn string, fn func(db *records.DB) error) error {
	if err := needDatabase(dsn); err != nil {
		return err
	}
	return withDatabase(ctx, dsn, fn)
}

// withDatabase opens the records for as long as fn runs.
func withDatabase(ctx context.Context, dsn string, fn func(db *records.DB) error) error {
	db, err := openDatabase(ctx, dsn, nil)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}
