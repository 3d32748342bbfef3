package secrets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// A ring is a Store in the keyring of the system. Keyrings cannot list what
// is in them, so the names are in a file; they have no locks, so that a lock
// next to that file makes each change follow the one before; and they bound the
// size of a value, so that long ones are split.
type ring struct {
	locks
	service string
	index   string // path
	// turn is held by the goroutine that talks to the keyring.
	turn chan struct{}
}

var _ Store = (*ring)(nil)

// maxPart is the size in bytes of the most that one entry holds. Windows takes
// 2,560; macOS a command of 4,096 with a value in base64 and names in it.
const maxPart = 1350

// A head is the entry of a secret: its value, or which parts make it up.
type head struct {
	Value []byte `json:"value,omitzero"`
	// Parts is how many there are, and Set what they have in their names: a
	// new value has new parts, so that old and new are never mixed.
	Parts int    `json:"parts,omitzero"`
	Set   string `json:"set,omitzero"`
}

func newRing(o *Options) *ring {
	return &ring{
		locks: locks{o.Folder}, service: o.Service, index: filepath.Join(o.Folder, "keyring.json"), turn: make(chan struct{}, 1),
	}
}

// Kind implements Store.
func (r *ring) Kind() string {
	name := "Secret Service"
	switch runtime.GOOS {
	case "darwin":
		name = "Keychain"
	case "windows":
		name = "Credential Manager"
	}
	return "keyring of the system (" + name + "), as " + r.service
}

// probe finds out whether there is a keyring. It only looks for something that
// is not there, so that the person is not asked to unlock it.
func (r *ring) probe(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_, err := r.getText(ctx, "probe")
	if err == nil || errors.Is(err, login.ErrNotFound) {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("keyring does not answer within %v", wait)
	}
	return fmt.Errorf("no keyring: %w", err)
}

// Get implements login.Store.
func (r *ring) Get(ctx context.Context, name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	unlock, err := r.take(ctx, "keyring")
	if err != nil {
		return nil, err
	}
	defer unlock()
	h, err := r.head(ctx, name)
	if err != nil {
		return nil, err
	}
	if h.Parts == 0 {
		return append([]byte{}, h.Value...), nil
	}
	var value []byte
	for i := range h.Parts {
		part, err := r.get(ctx, h.part(name, i))
		if err != nil {
			return nil, fmt.Errorf("part of a secret in the keyring: %w", errors.Join(errDamaged, hide(err)))
		}
		value = append(value, part...)
	}
	return value, nil
}

// errDamaged is not ErrNotFound: what is half there is no reason to begin anew
// without a word.
var errDamaged = errors.New("it is damaged; delete the secret to begin anew")

// hide takes ErrNotFound out of an error.
func hide(err error) error {
	if errors.Is(err, login.ErrNotFound) {
		return nil
	}
	return err
}

// Set implements login.Store. The entry changes in one step, with all its
// parts there before and the old ones removed after.
func (r *ring) Set(ctx context.Context, name string, value []byte) error {
	if err := checkEntry(name, value); err != nil {
		return err
	}
	return r.change(ctx, func(names map[string]bool) error {
		old, err := r.head(ctx, name)
		if err != nil && !errors.Is(err, login.ErrNotFound) && !errors.Is(err, errDamaged) {
			return err
		}
		if !names[name] {
			names[name] = true
			if err := r.writeIndex(names); err != nil {
				return err
			}
		}
		h := head{Value: value}
		if len(value) > maxPart {
			h = head{Set: oauth.NewSecret()[:8]}
			for chunk := range slices.Chunk(value, maxPart) {
				if err := r.put(ctx, h.part(name, h.Parts), chunk); err != nil {
					return err
				}
				h.Parts++
			}
		}
		text, err := json.Marshal(&h)
		if err != nil {
			return errors.New("secret cannot be encoded")
		}
		if err := r.setText(ctx, label(name), string(text)); err != nil {
			return err
		}
		return r.removeParts(ctx, name, old)
	})
}

// Delete implements login.Store.
func (r *ring) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return r.change(ctx, func(names map[string]bool) error {
		old, err := r.head(ctx, name)
		if err != nil && !errors.Is(err, login.ErrNotFound) && !errors.Is(err, errDamaged) {
			return err
		}
		if err := r.remove(ctx, label(name)); err != nil {
			return err
		}
		if err := r.removeParts(ctx, name, old); err != nil {
			return err
		}
		if !names[name] {
			return nil
		}
		delete(names, name)
		return r.writeIndex(names)
	})
}

// Names implements login.Store.
func (r *ring) Names(ctx context.Context) ([]string, error) {
	unlock, err := r.take(ctx, "keyring")
	if err != nil {
		return nil, err
	}
	defer unlock()
	names, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// change runs f, with the names that there are, while nothing else changes them.
func (r *ring) change(ctx context.Context, f func(names map[string]bool) error) error {
	unlock, err := r.take(ctx, "keyring")
	if err != nil {
		return err
	}
	defer unlock()
	names, err := r.readIndex()
	if err != nil {
		return err
	}
	return f(names)
}

type ringIndex struct {
	Version int      `json:"version"`
	Names   []string `json:"names"`
}

func (r *ring) readIndex() (map[string]bool, error) {
	names := map[string]bool{}
	data, err := readPrivate(r.index)
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read names of secrets: %w", err)
	}
	var index ringIndex
	if err := json.Unmarshal(data, &index); err != nil || index.Version != 1 {
		return nil, fmt.Errorf("read names of secrets: %s is damaged; move it away to begin anew", r.index)
	}
	for _, name := range index.Names {
		names[name] = true
	}
	return names, nil
}

func (r *ring) writeIndex(names map[string]bool) error {
	data, err := json.Marshal(&ringIndex{Version: 1, Names: slices.Sorted(maps.Keys(names))})
	if err == nil {
		err = safefile.Replace(r.index, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write names of secrets: %w", err)
	}
	return nil
}

// label is the name of an entry: for people as far as it is short and plain,
// with a hash that distinguishes all names.
func label(name string) string {
	const longest = 80
	shown := strings.Map(func(c rune) rune {
		if c > ' ' && c < 0x7f && c != '\'' && c != '"' && c != '\\' {
			return c
		}
		return '_'
	}, name)
	sum := sha256.Sum256([]byte(name))
	return shown[:min(len(shown), longest)] + " " + hex.EncodeToString(sum[:8])
}

func (h *head) part(name string, i int) string {
	return label(name) + " " + h.Set + " " + strconv.Itoa(i)
}

func (r *ring) head(ctx context.Context, name string) (*head, error) {
	text, err := r.getText(ctx, label(name))
	if err != nil {
		return nil, err
	}
	var h head
	if err := json.Unmarshal([]byte(text), &h); err != nil || h.Parts < 0 || h.Parts > maxValue/maxPart+1 {
		return nil, fmt.Errorf("secret in the keyring: %w", errDamaged)
	}
	return &h, nil
}

func (r *ring) removeParts(ctx context.Context, name string, h *head) error {
	if h == nil {
		return nil
	}
	for i := range h.Parts {
		if err := r.remove(ctx, h.part(name, i)); err != nil {
			return err
		}
	}
	return nil
}

// get and put are for bytes; keyrings hold text.
func (r *ring) get(ctx context.Context, entry string) ([]byte, error) {
	text, err := r.getText(ctx, entry)
	if err != nil {
		return nil, err
	}
	var value []byte
	if json.Unmarshal([]byte(text), &value) != nil {
		return nil, errDamaged
	}
	return value, nil
}

func (r *ring) put(ctx context.Context, entry string, value []byte) error {
	text, err := json.Marshal(value)
	if err != nil {
		return errors.New("secret cannot be encoded")
	}
	return r.setText(ctx, entry, string(text))
}

func (r *ring) getText(ctx context.Context, entry string) (string, error) {
	return r.ask(ctx, func() (string, error) { return keyring.Get(r.service, entry) })
}

func (r *ring) setText(ctx context.Context, entry, text string) error {
	_, err := r.ask(ctx, func() (string, error) { return "", keyring.Set(r.service, entry, text) })
	return err
}

func (r *ring) remove(ctx context.Context, entry string) error {
	_, err := r.ask(ctx, func() (string, error) { return "", keyring.Delete(r.service, entry) })
	if errors.Is(err, login.ErrNotFound) {
		return nil
	}
	return err
}

// ask asks the keyring something and waits no longer than ctx lasts. The
// keyring itself cannot be told to stop: a question that hangs, of which there
// is one at most, stays until the process ends.
func (r *ring) ask(ctx context.Context, question func() (string, error)) (string, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return "", fmt.Errorf("wait for keyring: %w", ctx.Err())
	}
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-r.turn }()
		text, err := question()
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		switch {
		case errors.Is(a.err, keyring.ErrNotFound):
			return "", login.ErrNotFound
		case a.err != nil:
			return "", fmt.Errorf("keyring: %w", a.err)
		}
		return a.text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("wait for keyring: %w", ctx.Err())
	}
}
