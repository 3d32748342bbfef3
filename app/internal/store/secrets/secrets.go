// Package secrets keeps a person's credentials and tokens: in the keyring of
// the system, in an encrypted file, or in a file that no other user can read.
package secrets

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/oauth/login"
)

// A Store keeps secrets, and says where. Its errors never contain values.
type Store interface {
	login.Store
	// Kind says, for people, what this is and where.
	Kind() string
}

// The kinds of stores.
const (
	Keyring   = "keyring"
	Encrypted = "encrypted"
	File      = "file"
)

// Options choose a Store. The zero value, and nil, take the best there is.
type Options struct {
	// Kind is Keyring, Encrypted or File. Default: the keyring if one answers,
	// else an encrypted file if there is a passphrase, else a file.
	Kind string
	// Folder holds the files, and the locks in any case. Default: "parley" in
	// os.UserConfigDir.
	Folder string
	// Passphrase of the encrypted file; "" is none. It is asked once at most, if
	// there is no keyring or Kind says Encrypted. Default: none.
	Passphrase func() (string, error)
	// Service is the name in the keyring. Default "parley".
	Service string
	// Probe is how long the keyring may take to show that it is there: the
	// bus that leads to it may hang. Default 2 s.
	Probe time.Duration
}

// Open chooses and opens a Store. Options may be nil.
func Open(o *Options) (Store, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.Service = cmp.Or(options.Service, "parley")
	options.Probe = cmp.Or(options.Probe, 2*time.Second)
	if options.Folder == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for secrets: %w", err)
		}
		options.Folder = filepath.Join(base, "parley")
	}
	if err := makeFolder(options.Folder); err != nil {
		return nil, fmt.Errorf("folder for secrets: %w", err)
	}
	switch options.Kind {
	case Keyring:
		s := newRing(&options)
		if err := s.probe(options.Probe); err != nil {
			return nil, err
		}
		return s, nil
	case Encrypted:
		return openEncrypted(&options)
	case File:
		return openPlain(&options), nil
	case "":
		return choose(&options)
	}
	return nil, fmt.Errorf("no kind of store %q: want %s, %s or %s", options.Kind, Keyring, Encrypted, File)
}

func choose(o *Options) (Store, error) {
	ring := newRing(o)
	if ring.probe(o.Probe) == nil {
		return ring, nil
	}
	s, err := openEncrypted(o)
	if errors.Is(err, errNoPassphrase) {
		return openPlain(o), nil
	}
	return s, err
}

// makeFolder makes a folder for its owner alone. One that is there already must
// not be one in which others can put files.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	// A link is good if this user made it; a stranger could lead it elsewhere.
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if err := checkOwner(path, info, 0); err != nil {
			return err
		}
		if info, err = os.Stat(path); err != nil {
			return err
		}
	}
	return checkOwner(path, info, 0o022)
}

// Limits of names and values, in bytes.
const (
	maxName  = 512
	maxValue = 64 << 10
)

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("name of a secret must have 1 to %d bytes", maxName)
	}
	return nil
}

func checkEntry(name string, value []byte) error {
	if len(value) > maxValue {
		return fmt.Errorf("a secret has at most %d bytes", maxValue)
	}
	return checkName(name)
}

// locks are lock files in a folder, one for each name. The files stay, since to
// remove one that a process waits for would make two locks of one.
type locks struct{ folder string }

// Lock implements login.Store.
func (l locks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return l.take(ctx, "name "+name)
}

// take takes the lock of a name, from the names of callers or of our own.
func (l locks) take(ctx context.Context, name string) (unlock func(), err error) {
	folder := filepath.Join(l.folder, "locks")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make locks: %w", err)
	}
	sum := sha256.Sum256([]byte(name))
	unlock, err = safefile.Lock(ctx, filepath.Join(folder, hex.EncodeToString(sum[:16])))
	if err != nil {
		return nil, fmt.Errorf("wait for lock: %w", err)
	}
	return unlock, nil
}

func openEncrypted(o *Options) (Store, error) {
	if o.Passphrase == nil {
		return nil, errNoPassphrase
	}
	passphrase, err := o.Passphrase()
	if err != nil {
		return nil, fmt.Errorf("ask for passphrase: %w", err)
	}
	if passphrase == "" {
		return nil, errNoPassphrase
	}
	path := filepath.Join(o.Folder, "secrets.age")
	return &file{
		locks: locks{o.Folder}, path: path, kind: "encrypted file " + path,
		vault: &ageVault{keyPath: filepath.Join(o.Folder, "secrets.key"), dataPath: path, passphrase: passphrase},
	}, nil
}
