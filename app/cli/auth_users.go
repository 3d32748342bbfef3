package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/store/records"
	"github.com/parley-mcp/parley/app/userauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

func databaseFlag(f *pflag.FlagSet, database *string) {
	f.StringVar(database, "database", "", "records of the authorization server: the `PATH` of an SQLite file, or postgres://…, with the password in $PGPASSWORD or $PGPASSFILE (default: "+databaseName+" in the program's folder)")
}

// databaseHint repeats the flag for a command that the person may copy,
// unless a password may be in it.
func databaseHint(database string) string {
	switch {
	case database == "":
		return ""
	case isURL(database):
		return " --database …"
	}
	return " --database " + word(database)
}

// openDatabase opens the records of the authorization server.
func openDatabase(ctx context.Context, dsn string) (*records.DB, error) {
	named := dsn != ""
	if !named {
		var err error
		if dsn, err = configPath(databaseName); err != nil {
			return nil, err
		}
	}
	db, err := records.Open(ctx, dsn, nil)
	switch {
	case err == nil:
		return db, nil
	case named:
		return nil, openingError(ctx, "--database", "the records", err)
	}
	return nil, fmt.Errorf("opening the records: %w", err)
}

// openingError is the error of opening a database that a flag names.
func openingError(ctx context.Context, flag, what string, err error) error {
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		return &unreachableError{fmt.Errorf("opening %s: %w", what, err)}
	case ctx.Err() == nil:
		return usagef("%s: %w", flag, err)
	}
	return fmt.Errorf("opening %s: %w", what, err)
}

// withDatabase opens the records for as long as fn runs.
func withDatabase(ctx context.Context, dsn string, fn func(db *records.DB) error) error {
	db, err := openDatabase(ctx, dsn)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

func (p *program) userCommand() *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Add, remove and list the users of the authorization server",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q; 'parley auth user --help' lists the commands", "auth user "+args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	databaseFlag(cmd.PersistentFlags(), &database)
	var file string
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user, or give one another password and sign the user out everywhere",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.addUser(cmd.Context(), database, args[0], file)
		},
	}
	add.Flags().StringVar(&file, "password-file", "", "`FILE` with the password (default: it is asked for)")
	remove := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a user, sign the user out everywhere, and revoke what the user granted",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDatabase(cmd.Context(), database, func(db *records.DB) error {
				err := db.RemoveUser(cmd.Context(), args[0])
				if errors.Is(err, issuer.ErrNotFound) {
					return usagef("there is no user %q; 'parley auth user list' lists them", args[0])
				}
				if err != nil {
					return err
				}
				return p.println("removed " + args[0])
			})
		},
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the users",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), database, func(db *records.DB) error {
				users, err := db.ListUsers(cmd.Context())
				if err != nil {
					return err
				}
				return p.printUsers(users)
			})
		},
	}
	cmd.AddCommand(add, remove, list)
	return cmd
}

// A listedUser is a user as JSON.
type listedUser struct {
	Name    string    `json:"name"`
	Subject string    `json:"subject"`
	Created time.Time `json:"created"`
}

func (p *program) printUsers(users []records.User) error {
	if p.json {
		all := make([]listedUser, 0, len(users))
		for _, u := range users {
			all = append(all, listedUser{u.Name, u.Subject, u.Created.UTC()})
		}
		return p.printJSON(struct {
			Users []listedUser `json:"users"`
		}{all})
	}
	var t table
	for _, u := range users {
		t.add(u.Name, "since "+u.Created.Local().Format(time.DateOnly))
	}
	return p.print(t.String())
}

func (p *program) addUser(ctx context.Context, database, name, file string) error {
	password, err := p.password(ctx, file)
	if err != nil {
		return err
	}
	hash, err := userauth.HashPassword(password)
	if err != nil {
		return usagef("%w", err)
	}
	return withDatabase(ctx, database, func(db *records.DB) error {
		_, err := db.AddUser(ctx, name, hash, time.Now())
		switch {
		case errors.Is(err, records.ErrExists):
			if err := db.SetPassword(ctx, name, hash); err != nil {
				return err
			}
			return p.println(name + " has another password now")
		case err != nil:
			return err
		}
		return p.println("added " + name)
	})
}

// password is a new password: from a file, or asked for twice.
func (p *program) password(ctx context.Context, file string) (string, error) {
	if file != "" {
		return secretFile("--password-file", file)
	}
	if !p.streams.InTerminal || p.streams.Secret == nil {
		return "", usagef("nobody can be asked for the password here; give --password-file, or run it at a terminal")
	}
	first, err := p.secret(ctx, "Password: ")
	if err != nil {
		return "", err
	}
	again, err := p.secret(ctx, "The same again: ")
	if err != nil {
		return "", err
	}
	if first != again {
		return "", usagef("the two are not the same")
	}
	return first, nil
}
