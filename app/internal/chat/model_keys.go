package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth/login"
)

// keySource says where a key is from.
type keySource string

const (
	keyNone  keySource = "none"
	keyEnv   keySource = "environment"
	keyStore keySource = "store"
)

// A keyPlace is what a key is for: a provider at its own address, or a server elsewhere that
// speaks its format.
type keyPlace struct {
	provider *modelProvider
	origin   string // empty: the provider's own
}

// keyPlace is what the key for an address is for.
func (m *modelProvider) keyPlace(address string) keyPlace {
	origin := provider.Origin(address)
	if origin == provider.Origin(m.baseURL) {
		origin = ""
	}
	return keyPlace{m, origin}
}

// entry is the name of the key in the store.
func (k *keyPlace) entry() string {
	name := "model.key." + k.provider.name
	if k.origin != "" {
		name += "@" + k.origin
	}
	return name
}

// String names the key for people.
func (k *keyPlace) String() string {
	if k.origin != "" {
		return "key of " + k.provider.name + " for " + host.EscapeLine(k.origin)
	}
	return "key of " + k.provider.title
}

// command is the command that does something with the key.
func (k *keyPlace) command(verb string) string {
	text := "parley model key " + verb + " " + k.provider.name
	if k.origin != "" {
		text += " --base-url " + host.EscapeLine(k.origin)
	}
	return text
}

// modelKey finds a key. For the provider's own address that is the one of the environment, or
// else the kept one. For another address the one that was kept for it counts first, since that
// of the environment may be meant for the provider; the provider's kept key never goes there.
func (ms *models) modelKey(ctx context.Context, k *keyPlace) (key string, from keySource, err error) {
	finds := []func(context.Context, *keyPlace) (string, keySource, error){environmentKey, ms.keptKey}
	if k.origin != "" {
		finds[0], finds[1] = finds[1], finds[0]
	}
	for _, find := range finds {
		if key, from, err = find(ctx, k); key != "" || err != nil {
			return key, from, err
		}
	}
	return "", keyNone, nil
}

// environmentKey is the key of the environment, if there is one.
func environmentKey(_ context.Context, k *keyPlace) (string, keySource, error) {
	key, err := checkedKey(os.Getenv(k.provider.variable))
	if err != nil {
		return "", keyEnv, kit.Usagef("%s: %w", k.provider.variable, err)
	}
	return key, keyEnv, nil
}

// keptKey is the key of the store, if there is one.
func (ms *models) keptKey(ctx context.Context, k *keyPlace) (string, keySource, error) {
	store, err := ms.keyStore()
	if err != nil {
		return "", keyNone, err
	}
	raw, err := store.Get(ctx, k.entry())
	if errors.Is(err, login.ErrNotFound) {
		return "", keyNone, nil
	}
	if err != nil {
		return "", keyNone, fmt.Errorf("reading the %s: %w", k, err)
	}
	key, err := checkedKey(string(raw))
	if err != nil {
		return "", keyStore, kit.Usagef("the kept %s: %w; '%s' sets another one", k, err, k.command("set"))
	}
	return key, keyStore, nil
}

// keyStore opens the store of keys, which is that of tokens.
func (ms *models) keyStore() (login.Store, error) {
	store, _, err := ms.SignIns.Secrets()
	return store, err
}

// maxKey bounds a key, in bytes.
const maxKey = 4 << 10

// checkedKey is a key without the blanks around it. The error does not show it.
func checkedKey(key string) (string, error) {
	if len(key) > maxKey {
		return "", fmt.Errorf("the key has %d bytes, and a key has at most %d; was something else copied?", len(key), maxKey)
	}
	return provider.Key(key)
}

// keyWords says where the key of a model would be from.
func (ms *models) keyWords(ctx context.Context, c *chosenModel) (keySource, string, error) {
	if c.entry.NoKey {
		return keyNone, "none is sent", nil
	}
	place := c.provider.keyPlace(c.baseURL)
	_, from, err := ms.modelKey(ctx, &place)
	switch from {
	case keyEnv:
		return from, c.provider.variable + " of the environment", err
	case keyStore:
		return from, "the one that '" + place.command("set") + "' kept", err
	case keyNone:
	}
	return keyNone, "none", err
}

// typedPlace is what a key is for that the person names.
func typedPlace(name, baseURL string) (keyPlace, error) {
	m, err := findProvider(name)
	if err != nil || baseURL == "" {
		return keyPlace{provider: m}, err
	}
	address, err := provider.BaseURL(baseURL, true)
	if err != nil {
		return keyPlace{}, kit.Usagef("%w (by --base-url)", err)
	}
	return m.keyPlace(address), nil
}

// setModelKey keeps a key.
func (ms *models) setModelKey(ctx context.Context, name, baseURL string) error {
	place, err := typedPlace(name, baseURL)
	if err != nil {
		return err
	}
	store, kind, err := ms.SignIns.Secrets()
	if err != nil {
		return err
	}
	text, err := ms.readKey(ctx, &place)
	if err != nil {
		return err
	}
	key, err := checkedKey(text)
	if err != nil {
		return kit.Usagef("nothing is kept: %w", err)
	}
	if key == "" {
		return kit.Usagef("missing key; nothing was changed")
	}
	if err := store.Set(ctx, place.entry(), []byte(key)); err != nil {
		return fmt.Errorf("keeping the %s: %w", &place, err)
	}
	ms.Note("Stored the %s (%s).", &place, kind)
	if place.origin == "" && os.Getenv(place.provider.variable) != "" {
		ms.Note("parley: %s is set and takes precedence over this key", place.provider.variable)
	}
	return nil
}

// readKey asks for a key without showing it, or reads the one line of a pipe.
func (ms *models) readKey(ctx context.Context, k *keyPlace) (string, error) {
	if ms.Streams.InTerminal {
		if ms.Streams.Secret == nil {
			return "", kit.Usagef("cannot read a key without echo here; use a pipe, or set %s", k.provider.variable)
		}
		text := k.String()
		return ms.AskSecret(ctx, strings.ToUpper(text[:1])+text[1:]+" (not shown): ")
	}
	var key string
	for size := 0; ; {
		line, err := ms.Streams.Keyboard().Line(ctx)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return "", fmt.Errorf("reading the key: %w", err)
		}
		line = strings.TrimSpace(line)
		if size += len(line); size > maxKey {
			return strings.Repeat("x", maxKey+1), nil // checkedKey refuses the length
		}
		if line != "" && key != "" {
			return "", kit.Usagef("nothing was stored: a key must be one line, but the input has more")
		}
		if line != "" {
			key = line
		}
		if ended {
			return key, nil
		}
	}
}

// removeModelKey removes a key from the store.
func (ms *models) removeModelKey(ctx context.Context, name, baseURL string) error {
	place, err := typedPlace(name, baseURL)
	if err != nil {
		return err
	}
	store, err := ms.keyStore()
	if err != nil {
		return err
	}
	if _, err := store.Get(ctx, place.entry()); errors.Is(err, login.ErrNotFound) {
		return kit.Usagef("no stored %s; run 'parley model' to see which key is used", &place)
	}
	if err := store.Delete(ctx, place.entry()); err != nil {
		return fmt.Errorf("removing the %s: %w", &place, err)
	}
	ms.Note("Removed the %s.", &place)
	if os.Getenv(place.provider.variable) != "" {
		ms.Note("parley: %s is still set, so Parley uses it", place.provider.variable)
	}
	return nil
}
