package authserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	auditlog "github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/records"
)

// adminNouns are the nouns of the verbs of an operator, with what people do with them.
var adminNouns = []struct{ noun, short string }{
	{"user", "Add, list, disable and remove the users of the authorization server"},
	{"group", "Put users of the authorization server into groups, which can have their own scopes"},
	{"client", "Add, list, disable and remove the clients in the database of the authorization server"},
	{"resource", "Add, list and remove the MCP servers in the database that tokens are issued for"},
	{"session", "List the browsers that are signed in to the authorization server, and sign them out"},
	{"grant", "List and revoke the grants of the authorization server"},
	{"consent", "List and revoke the consents that users gave at the authorization server"},
	{"key", "List, rotate, retire and revoke the keys with which the authorization server signs access tokens"},
}

// adminFlags say where an operator acts.
type adminFlags struct {
	database  string
	admin     string
	keyFile   string
	auditFile string
	auditKey  string // a file
}

// addAdmin adds the flags that lead to a server.
func (f *adminFlags) addAdmin(set *pflag.FlagSet) {
	set.StringVar(&f.admin, "admin", "", "act through the server with this --admin `ADDRESS`: unix:PATH, or HOST:PORT with --admin-key-file")
	set.StringVar(&f.keyFile, "admin-key-file", "", "`FILE` with the server's administration key")
}

// adminCommands are the commands of an operator, one for each noun.
func (g *group) adminCommands() []*cobra.Command {
	var commands []*cobra.Command
	for _, n := range adminNouns {
		flags := &adminFlags{}
		cmd := &cobra.Command{
			Use:   n.noun,
			Short: n.short,
			Long: kit.Wrap(n.short+".") + `

Without --admin, the command works directly on the records. A running server can have
them open too: it sees the changes at its next request, or within 2 seconds.`,
			Args: kit.NoCommand,
			RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		}
		f := cmd.PersistentFlags()
		databaseFlag(f, &flags.database)
		flags.addAdmin(f)
		f.StringVar(&flags.auditFile, "audit-file", "", "`FILE` to append changes to, as JSON lines; with --admin the server's own audit records them")
		f.StringVar(&flags.auditKey, "audit-key-file", "", "`FILE` with the audit file's key, if its server uses one")
		for _, v := range admin.Verbs() {
			if path, ok := strings.CutPrefix(v.Path, n.noun+" "); ok {
				cmd.AddCommand(g.verbCommand(flags, v, path))
			}
		}
		commands = append(commands, cmd)
	}
	return commands
}

// verbCommand makes the command of a verb: its parameters are arguments and flags.
func (g *group) verbCommand(flags *adminFlags, v *admin.Verb, name string) *cobra.Command {
	read := make(map[string]func(ctx context.Context) (any, error)) // by the name of the parameter
	use, arguments := name, []admin.Field{}
	for _, field := range v.Fields {
		if field.Arg != "" {
			use += " " + field.Arg
			arguments = append(arguments, field)
		}
	}
	cmd := &cobra.Command{Use: use, Short: v.Short, Args: kit.UsageArgs(cobra.ExactArgs(len(arguments)))}
	for _, field := range v.Fields {
		if field.Arg == "" {
			read[field.Name] = g.verbFlag(cmd.Flags(), field)
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		parameters := make(map[string]any)
		for i, field := range arguments {
			parameters[field.Name] = args[i]
		}
		for name, value := range read {
			given, err := value(cmd.Context())
			if err != nil {
				return err
			}
			if given != nil {
				parameters[name] = given
			}
		}
		return g.administer(cmd.Context(), flags, v, parameters)
	}
	g.JSONFlag(cmd)
	return cmd
}

// verbFlag adds the flag of a parameter, and returns what reads it: nil if it was not given.
func (g *group) verbFlag(f *pflag.FlagSet, field admin.Field) func(ctx context.Context) (any, error) {
	name := strings.ReplaceAll(field.Name, "_", "-")
	given := func(value func() any) func(context.Context) (any, error) {
		return func(context.Context) (any, error) {
			switch {
			case f.Changed(name):
				return value(), nil
			case field.Required:
				return nil, kit.Usagef("missing --%s", name)
			}
			return nil, nil
		}
	}
	switch field.Kind {
	case admin.Secret:
		file := f.String(name+"-file", "", "`FILE` with "+field.Help+" (default: ask)")
		return func(ctx context.Context) (any, error) { return g.password(ctx, *file) }
	case admin.SecretFile, admin.File:
		file := f.String(name+"-file", "", "`FILE` with "+field.Help)
		return func(context.Context) (any, error) {
			switch {
			case *file == "":
				return nil, nil
			case field.Kind == admin.SecretFile:
				return kit.ReadSecret("--"+name+"-file", *file)
			}
			return textFile("--"+name+"-file", *file)
		}
	case admin.Flag:
		value := f.Bool(name, false, field.Help)
		return given(func() any { return *value })
	case admin.Number:
		value := f.Int(name, 0, field.Help)
		return given(func() any { return *value })
	case admin.List:
		value := f.StringArray(name, nil, field.Help+" (repeatable)")
		return given(func() any { return *value })
	case admin.Text:
		value := f.String(name, "", field.Help)
		return given(func() any { return *value })
	}
	panic(fmt.Sprintf("unknown kind %d", field.Kind)) // the kinds are those of package admin
}

// textFile reads a file of a flag that holds a text.
func textFile(flag, path string) (string, error) {
	const longest = 128 << 10
	file, err := os.Open(path)
	if err != nil {
		return "", kit.Usagef("%s: %w", flag, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(file, longest+1))
	switch {
	case err != nil:
		return "", kit.Usagef("%s: %w", flag, err)
	case len(raw) > longest || !utf8.Valid(raw) || len(bytes.TrimSpace(raw)) == 0:
		return "", kit.Usagef("%s %s: must be text of 1 to %d bytes", flag, path, longest)
	}
	return string(raw), nil
}

// administer does a verb, on the records or through a server, and shows the result.
func (g *group) administer(ctx context.Context, flags *adminFlags, v *admin.Verb, parameters map[string]any) error {
	raw, err := json.Marshal(parameters)
	if err != nil {
		return kit.Usagef("cannot encode the parameters: %w", err)
	}
	var result admin.Result
	if flags.admin == "" {
		result, err = g.onRecords(ctx, flags, v, raw)
	} else {
		result, err = throughServer(ctx, flags, v, raw)
	}
	switch {
	case errors.As(err, new(*admin.Error)):
		return kit.Usagef("%w", err)
	case err != nil:
		return err
	case g.JSON:
		return g.PrintJSON(result)
	}
	return g.Print(result.Text())
}

// onRecords does a verb on the records.
func (g *group) onRecords(ctx context.Context, flags *adminFlags, v *admin.Verb, raw []byte) (result admin.Result, err error) {
	if flags.keyFile != "" {
		return nil, kit.Usagef("--admin-key-file requires --admin")
	}
	options := &admin.Options{}
	if flags.auditKey != "" && flags.auditFile == "" {
		return nil, kit.Usagef("--audit-key-file requires --audit-file")
	}
	if !beginsDatabase(v.Path) {
		if err := needDatabase(flags.database); err != nil {
			return nil, err
		}
	}
	if flags.auditFile != "" {
		key, opening := auditKey(flags.auditKey)
		if opening != nil {
			return nil, opening
		}
		audit, opening := g.openAudit(flags.auditFile, &auditlog.Options{Key: key})
		if opening != nil {
			return nil, opening
		}
		defer func() { err = errors.Join(err, audit.Close()) }()
		options.Audit = audit.act
	}
	err = withDatabase(ctx, flags.database, func(db *records.DB) error {
		result, err = admin.New(db, options).Run(ctx, admin.Self(), v, raw)
		return err
	})
	return result, err
}

// throughServer does a verb through the API of a server.
func throughServer(ctx context.Context, flags *adminFlags, v *admin.Verb, raw []byte) (admin.Result, error) {
	if flags.database != "" || flags.auditFile != "" || flags.auditKey != "" {
		return nil, kit.Usagef("--database and --audit-file cannot be used with --admin: the server has its own")
	}
	client, err := flags.client()
	if err != nil {
		return nil, err
	}
	result, err := client.Run(ctx, v, raw)
	return result, reachedError(err)
}

// client is one of the API of the server of --admin.
func (f *adminFlags) client() (*admin.Client, error) {
	key, err := adminKey(f.admin, f.keyFile)
	if err != nil {
		return nil, err
	}
	client, err := admin.NewClient(f.admin, key)
	if err != nil {
		return nil, kit.Usagef("--admin %q: %w", f.admin, err)
	}
	return client, nil
}

// reachedError is an error of a client of the API, which may be that there is no server, or none any more.
func reachedError(err error) error {
	if errors.As(err, new(*net.OpError)) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &kit.UnreachableError{Err: err}
	}
	return err
}

// adminKey reads the key that goes with an address of an administration.
func adminKey(address, file string) (string, error) {
	switch {
	case admin.IsSocket(address) && file != "":
		return "", kit.Usagef("--admin %s: --admin-key-file cannot be used with a socket, whose permissions control access", address)
	case admin.IsSocket(address):
		return "", nil
	case file == "":
		return "", kit.Usagef("--admin %s requires --admin-key-file, because every user of this machine can reach a port", address)
	}
	key, err := kit.ReadSecret("--admin-key-file", file)
	if err == nil && len(key) < admin.MinKey {
		err = kit.Usagef("--admin-key-file: the key must have at least %d bytes; run 'openssl rand -hex 32' to generate one", admin.MinKey)
	}
	return key, err
}

// startAdmin serves the administration of the records until stop is called, if there is an
// address for it.
func (g *group) startAdmin(ctx context.Context, flags *adminFlags, db *records.DB, o *admin.Options) (stop func(), err error) {
	if flags.admin == "" {
		if flags.keyFile != "" {
			return nil, kit.Usagef("--admin-key-file requires --admin")
		}
		return func() {}, nil
	}
	key, err := adminKey(flags.admin, flags.keyFile)
	if err != nil {
		return nil, err
	}
	ln, err := admin.Listen(ctx, flags.admin)
	if err != nil {
		return nil, kit.Usagef("--admin %s: %w", flags.admin, err)
	}
	handler := admin.NewHandler(admin.New(db, o), &admin.HandlerOptions{Key: key, Logger: g.ServerLogger()})
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := admin.Serve(ctx, ln, handler); err != nil {
			g.Note("parley: %v", err)
		}
	}()
	at := flags.admin
	if !admin.IsSocket(at) {
		at = ln.Addr().String()
	}
	g.Note("parley: administration at %s; 'parley auth user list --admin %s'", at, at)
	return func() { end(); <-ended }, nil
}

// password is a new password: from a file, or asked for twice.
func (g *group) password(ctx context.Context, file string) (string, error) {
	if file != "" {
		return kit.ReadSecret("--password-file", file)
	}
	if !g.Streams.InTerminal || g.Streams.Secret == nil {
		return "", kit.Usagef("missing password: there is no terminal to ask at; use --password-file, or run the command at a terminal")
	}
	first, err := g.AskSecret(ctx, "Password: ")
	if err != nil {
		return "", err
	}
	again, err := g.AskSecret(ctx, "Repeat: ")
	if err != nil {
		return "", err
	}
	if first != again {
		return "", kit.Usagef("the two passwords differ")
	}
	return first, nil
}
