package authserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/app/internal/store/seal"
	"github.com/parley-mcp/parley/app/internal/store/secrets"
	"github.com/parley-mcp/parley/oauth/login"
)

// secretsKeyName is the flag with the key of the secrets in the records.
const secretsKeyName = "secrets-key"

func secretsKeyFlag(f *pflag.FlagSet, source *string) {
	f.StringVar(source, secretsKeyName, "", "`SOURCE` of the key that encrypts private keys in the records: file:PATH, env:NAME, keyring or keyring:NAME (default: not encrypted)")
}

// keyringKey is the name of the key in the keyring of the system, before ":NAME" if it has one.
const keyringKey = "auth-secrets-key"

// readSecretsKey reads the key of a source, which a flag names. A keyring that does not have it
// makes it, if it may be new.
func readSecretsKey(ctx context.Context, flag, source string, fresh bool) (*seal.Key, error) {
	kind, name, named := strings.Cut(source, ":")
	var text string
	var err error
	switch {
	case kind == "file" && name != "":
		text, err = readKeyFile(name)
	case kind == "env" && name != "":
		var set bool
		if text, set = os.LookupEnv(name); !set {
			err = fmt.Errorf("$%s is not set", name)
		}
	case kind == "keyring" && (name != "" || !named):
		text, err = keyringText(ctx, strings.TrimSuffix(keyringKey+":"+name, ":"), fresh)
	default:
		return nil, kit.Usagef("--%s %q: must be file:PATH, env:NAME or keyring", flag, source)
	}
	var key *seal.Key
	if err == nil {
		key, err = seal.ParseKey(text)
	}
	if err != nil {
		return nil, kit.Usagef("--%s %s: %w", flag, source, err)
	}
	return key, nil
}

// readKeyFile reads a file with a key, which not every user may read.
func readKeyFile(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("file not found; run '(umask 077; openssl rand -hex 32 >%s)' to generate a key", kit.SafeWord(path))
	}
	if err != nil {
		return "", err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("readable by other users (mode %04o); run chmod 0600 on it", info.Mode().Perm())
	}
	const longest = 4096
	if !info.Mode().IsRegular() || info.Size() > longest {
		return "", errors.New("not a key file")
	}
	raw, err := os.ReadFile(path)
	return string(raw), err
}

// keyringText is a key in the keyring of the system.
func keyringText(ctx context.Context, name string, fresh bool) (text string, err error) {
	ring, err := secrets.Open(&secrets.Options{Kind: secrets.Keyring})
	if err != nil {
		return "", err
	}
	unlock, err := ring.Lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	raw, err := ring.Get(ctx, name)
	switch {
	case errors.Is(err, login.ErrNotFound) && fresh:
		_, text = seal.GenerateKey()
		return text, ring.Set(ctx, name, []byte(text))
	case errors.Is(err, login.ErrNotFound):
		return "", fmt.Errorf("there is no key %q in the %s", name, ring.Kind())
	}
	return string(raw), err
}

// withSecrets opens the records with the key of their secrets, for as long as fn runs. Without a
// source they must be in clear.
func withSecrets(ctx context.Context, dsn, source string, fn func(db *records.DB, stored *records.Secrets) error) error {
	db, stored, err := openSecretRecords(ctx, dsn, source, nil)
	if err != nil {
		return err
	}
	return errors.Join(fn(db, stored), db.Close())
}

// openSecretRecords opens the records with the key of their secrets, and says how they were stored
// before.
// o may be nil.
func openSecretRecords(ctx context.Context, dsn, source string, o *records.Options) (*records.DB, *records.Secrets, error) {
	db, err := openDatabase(ctx, dsn, o)
	if err != nil {
		return nil, nil, err
	}
	stored, err := db.Secrets(ctx)
	if err == nil && source == "" {
		if stored.DataKey == 0 {
			return db, stored, nil
		}
		err = kit.Usagef("the private keys in the records are encrypted%s; name its source with --%s", byKey(stored.Key), secretsKeyName)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, nil, err
	}
	key, err := readSecretsKey(ctx, secretsKeyName, source, stored.DataKey == 0)
	if err != nil {
		return nil, nil, err
	}
	place, err := databasePlace(dsn)
	if err == nil {
		var options records.Options
		if o != nil {
			options = *o
		}
		options.SecretsKey = key
		db, err = records.Open(ctx, place, &options)
	}
	switch {
	case errors.Is(err, seal.ErrWrongKey):
		return nil, nil, kit.Usagef("--%s %s: the private keys in the records are encrypted%s, and this is %s", secretsKeyName, source, byKey(stored.Key), key.ID())
	case err != nil:
		return nil, nil, fmt.Errorf("opening the records: %w", err)
	}
	return db, stored, nil
}

func byKey(id string) string {
	if id == "" {
		return ""
	}
	return " by the key " + id
}

// openServed opens the records for a server, and tells the operator how their secrets are stored.
func (g *group) openServed(ctx context.Context, dsn, source string, o *records.Options) (*records.DB, error) {
	db, before, err := openSecretRecords(ctx, dsn, source, o)
	switch {
	case err != nil:
	case source == "":
		g.Note("parley: private keys in the records are not encrypted; encrypt them with --%s", secretsKeyName)
	case before.DataKey == 0:
		g.Note("parley: the private keys in the records are now encrypted with the key from %s; without it they are lost", source)
	}
	return db, err
}

// secretsPause is how often a server looks whether the data key was replaced, or the records encrypted.
const secretsPause = time.Second

// watchSecrets ends the server if another process encrypts its records, and reads new data keys
// while it can.
func (g *group) watchSecrets(ctx context.Context, db *records.DB, end context.CancelCauseFunc) {
	ticker := time.NewTicker(secretsPause)
	defer ticker.Stop()
	for told := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := db.CheckSecrets(ctx)
		switch {
		case errors.Is(err, records.ErrSealed):
			end(kit.Usagef("another process encrypted the private keys in the records; start this one with --%s too", secretsKeyName))
			return
		case err != nil && ctx.Err() == nil && err.Error() != told:
			told = err.Error()
			g.ServerLogger().ErrorContext(ctx, "looking for a new data key", "error", told)
		}
	}
}

// A secretsReport is how the secrets are stored, as JSON.
type secretsReport struct {
	Encrypted bool       `json:"encrypted"`
	Key       string     `json:"key,omitzero"`
	DataKey   int64      `json:"dataKey,omitzero"`
	Created   *time.Time `json:"created,omitzero"`
}

func (r *secretsReport) text() string {
	if !r.Encrypted {
		return "the private keys in the records are not encrypted\n"
	}
	return fmt.Sprintf("the private keys in the records are encrypted%s\ndata key %d, since %s\n", byKey(r.Key), r.DataKey, r.Created.Format(time.DateOnly))
}

func (g *group) printSecrets(ctx context.Context, db *records.DB) error {
	s, err := db.Secrets(ctx)
	if err != nil {
		return err
	}
	report := &secretsReport{Encrypted: s.DataKey > 0, Key: s.Key, DataKey: s.DataKey}
	if report.Encrypted {
		report.Created = &s.Created
	}
	if g.JSON {
		return g.PrintJSON(report)
	}
	return g.Print(report.text())
}

func (g *group) secretsCommand() *cobra.Command {
	const short = "Show and rotate the key that encrypts private keys in the records of the authorization server"
	cmd := &cobra.Command{
		Use: "secrets", Short: short,
		Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var dsn string
	databaseFlag(cmd.PersistentFlags(), &dsn)
	cmd.AddCommand(&cobra.Command{
		Use: "show", Short: "Show whether the private keys in the records are encrypted, and by which key",
		Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withOldDatabase(cmd.Context(), dsn, func(db *records.DB) error { return g.printSecrets(cmd.Context(), db) })
		},
	}, g.rotateSecretsCommand(&dsn))
	g.JSONFlag(cmd)
	return cmd
}

// A secretsRotation is what is to be rotated.
type secretsRotation struct {
	old, next string
	reseal    bool
}

func (g *group) rotateSecretsCommand(dsn *string) *cobra.Command {
	var r secretsRotation
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the key that encrypts the private keys in the records, while servers run",
		Long: `Replace the key that encrypts the private keys in the records. This key encrypts a
data key, which encrypts the private keys, so the replacement is immediate and running
servers are not affected. Start them with the new key next time.

With --reseal, also replace the data key and encrypt everything again. Use it if
someone might have both the old key and a copy of the records. Running servers read
the new data key within 2 seconds. If the command is interrupted, run it again.`,
		Example: `  parley auth secrets rotate --secrets-key file:old.key --new-secrets-key file:new.key`,
		Args:    kit.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.rotateSecrets(cmd.Context(), *dsn, &r) },
	}
	f := cmd.Flags()
	secretsKeyFlag(f, &r.old)
	f.StringVar(&r.next, "new-"+secretsKeyName, "", "`SOURCE` of the new key, in the same form")
	f.BoolVar(&r.reseal, "reseal", false, "also replace the data key and encrypt everything again")
	return cmd
}

func (g *group) rotateSecrets(ctx context.Context, dsn string, r *secretsRotation) error {
	if r.old == "" || r.next == "" && !r.reseal {
		return kit.Usagef("missing keys; name the current key with --%s, and the new one with --new-%s, or use --reseal", secretsKeyName, secretsKeyName)
	}
	err := withOldDatabase(ctx, dsn, func(db *records.DB) error {
		stored, err := db.Secrets(ctx)
		if err == nil && stored.DataKey == 0 {
			err = kit.Usagef("the private keys in the records are not encrypted; start a server with --%s to encrypt them", secretsKeyName)
		}
		return err
	})
	if err != nil {
		return err
	}
	return withSecrets(ctx, dsn, r.old, func(db *records.DB, stored *records.Secrets) error {
		flag, source := "new-"+secretsKeyName, r.next
		if source == "" {
			flag, source = secretsKeyName, r.old
		}
		to, err := readSecretsKey(ctx, flag, source, true)
		if err != nil {
			return err
		}
		if !r.reseal && to.ID() == stored.Key {
			return kit.Usagef("--new-%s %s is the current key; generate another one, such as with '(umask 077; openssl rand -hex 32 >new.key)'", secretsKeyName, r.next)
		}
		if _, err := db.RotateSecrets(ctx, to, &records.RotateOptions{Reseal: r.reseal}); err != nil {
			return err
		}
		return g.printSecrets(ctx, db)
	})
}
