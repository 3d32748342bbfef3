package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/secrets"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// settings are what the program remembers of how the person signs in. They
// hold no secret.
type settings struct {
	// Store is the kind of store for tokens; empty is the default.
	Store string `json:"store,omitzero"`
	// AllowHosts are hosts with private addresses that may be asked for
	// metadata and tokens.
	AllowHosts []string `json:"allowHosts,omitzero"`
}

const settingsName = "signin.json"

func readSettings() (settings, error) {
	var set settings
	path, err := kit.Path(settingsName)
	if err != nil {
		return set, err
	}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return set, nil
	case err != nil:
		return set, fmt.Errorf("reading the settings: %w", err)
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return set, fmt.Errorf("reading the settings: %s: %w", path, err)
	}
	return set, nil
}

// remember keeps what the flags of a sign-in changed.
func (s settings) remember() error {
	path, err := kit.Path(settingsName)
	if err != nil {
		return err
	}
	slices.Sort(s.AllowHosts)
	s.AllowHosts = slices.Compact(s.AllowHosts)
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	// Whole or not at all, whatever ends the program. CreateTemp makes files for
	// their owner alone.
	f, err := os.CreateTemp(filepath.Dir(path), "."+settingsName+".*")
	if err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the settings: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// openSecrets opens the store for tokens, and says where that is.
func (in *SignIns) openSecrets(kind string) (login.Store, string, error) {
	store, err := secrets.Open(&secrets.Options{Kind: kind, Passphrase: func() (string, error) { return in.passphrase(kind) }})
	if err != nil {
		return nil, "", fmt.Errorf("opening the token store: %w", err)
	}
	return store, store.Kind(), nil
}

// passphrase is that of the encrypted file. It is asked for if the person chose
// that file; otherwise it may be missing.
func (in *SignIns) passphrase(kind string) (string, error) {
	if phrase := in.Streams.Passphrase; phrase != "" || kind != secrets.Encrypted {
		return phrase, nil
	}
	if !in.Streams.InTerminal || in.Streams.Secret == nil {
		return "", fmt.Errorf("the tokens are encrypted; set $%s, or run the command in a terminal", kit.PassphraseVariable)
	}
	return in.AskSecret(context.Background(), "Passphrase for your tokens: ")
}

// A KnownClient is what a client is known by at an authorization server: the
// person, or the server's operator, registered it beforehand.
type KnownClient struct {
	Issuer   string `json:"issuer"`
	ID       string `json:"id"`
	Secret   string `json:"secret,omitzero"`
	Document bool   `json:"document,omitzero"`
}

// clientsName is the entry of the store for them.
const clientsName = "cli.clients"

func readClients(ctx context.Context, store login.Store) ([]KnownClient, error) {
	raw, err := store.Get(ctx, clientsName)
	if errors.Is(err, login.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the token store: %w", err)
	}
	var list []KnownClient
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("reading the token store: the list of clients is damaged") // the cause may repeat a secret
	}
	return list, nil
}

// changeClients changes the list of clients in the store, alone.
func changeClients(ctx context.Context, store login.Store, change func([]KnownClient) []KnownClient) error {
	unlock, err := store.Lock(ctx, clientsName)
	if err != nil {
		return fmt.Errorf("writing the token store: %w", err)
	}
	defer unlock()
	list, err := readClients(ctx, store)
	if err != nil {
		return err
	}
	changed := change(slices.Clone(list))
	switch {
	case slices.Equal(list, changed):
		return nil
	case len(changed) == 0:
		err = store.Delete(ctx, clientsName)
	default:
		var raw []byte
		if raw, err = json.Marshal(changed); err == nil {
			err = store.Set(ctx, clientsName, raw)
		}
	}
	if err != nil {
		return fmt.Errorf("writing the token store: %w", err)
	}
	return nil
}

// credentials are clients as the library takes them; the last one counts for
// an issuer.
func credentials(list []KnownClient) []login.Credentials {
	var all []login.Credentials
	seen := make(map[string]bool)
	for _, c := range slices.Backward(list) {
		if seen[c.Issuer] {
			continue
		}
		seen[c.Issuer] = true
		made := login.Credentials{Issuer: c.Issuer, ClientID: c.ID, Secret: c.Secret, Document: c.Document}
		if c.Document {
			made.Method = oauth.AuthNone
		}
		all = append(all, made)
	}
	return all
}

// brokenStore is a store that could not be opened.
type brokenStore struct{ err error }

func (b brokenStore) Get(context.Context, string) ([]byte, error)  { return nil, b.err }
func (b brokenStore) Set(context.Context, string, []byte) error    { return b.err }
func (b brokenStore) Delete(context.Context, string) error         { return b.err }
func (b brokenStore) Names(context.Context) ([]string, error)      { return nil, b.err }
func (b brokenStore) Lock(context.Context, string) (func(), error) { return nil, b.err }

// Remember stores how the user signed in, by the options of the command login, for later commands.
func (in *SignIns) Remember(ctx context.Context, t *Tokens) error {
	if made := in.Login.Client; made != nil {
		if err := changeClients(ctx, t.Store, func(list []KnownClient) []KnownClient {
			list = slices.DeleteFunc(list, func(c KnownClient) bool { return oauth.SameIssuer(c.Issuer, made.Issuer) })
			return append(list, *made)
		}); err != nil {
			return err
		}
	}
	if in.Login.Store == "" && len(in.Login.AllowHosts) == 0 {
		return nil
	}
	set, err := readSettings()
	if err != nil {
		return err
	}
	set.Store = cmp.Or(in.Login.Store, set.Store)
	set.AllowHosts = append(set.AllowHosts, in.Login.AllowHosts...)
	return set.remember()
}

// Secrets opens the store of the kind that the user chose, and returns its kind for people.
func (in *SignIns) Secrets() (store login.Store, kind string, err error) {
	set, err := readSettings()
	if err != nil {
		return nil, "", err
	}
	return in.openSecrets(set.Store)
}
