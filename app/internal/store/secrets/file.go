package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/oauth/login"
)

// A file is a Store of one file, which is read and written whole: there are a
// few entries. A lock file next to it makes each change follow the one before, in
// whatever process.
type file struct {
	locks
	path string
	kind string
	// vault turns the content into what is in the file, and back.
	vault vault
}

var _ Store = (*file)(nil)

// A vault encrypts, or does not. Both get at most maxFile bytes, and are called
// under the lock of the file.
type vault interface {
	seal(content []byte) ([]byte, error)
	open(sealed []byte) ([]byte, error)
}

// maxFile is the size in bytes of the largest file that is read.
const maxFile = 64 << 20

// content is what is in the file, encrypted or not.
type content struct {
	Version int               `json:"version"`
	Secrets map[string][]byte `json:"secrets"`
}

func openPlain(o *Options) *file {
	path := filepath.Join(o.Folder, "secrets.json")
	return &file{locks: locks{o.Folder}, path: path, kind: "file " + path + ", readable by you alone", vault: plain{}}
}

// plain is the vault that is none.
type plain struct{}

func (plain) seal(content []byte) ([]byte, error) { return content, nil }
func (plain) open(sealed []byte) ([]byte, error)  { return sealed, nil }

// Kind implements Store.
func (f *file) Kind() string { return f.kind }

// Get implements login.Store. It needs the lock only for vaults that make their
// key when they are used first; files are replaced whole.
func (f *file) Get(ctx context.Context, name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	var value []byte
	err := f.with(ctx, func(c *content) (bool, error) {
		var ok bool
		if value, ok = c.Secrets[name]; !ok {
			return false, login.ErrNotFound
		}
		return false, nil
	})
	return value, err
}

// Set implements login.Store.
func (f *file) Set(ctx context.Context, name string, value []byte) error {
	if err := checkEntry(name, value); err != nil {
		return err
	}
	return f.with(ctx, func(c *content) (bool, error) {
		c.Secrets[name] = append([]byte{}, value...)
		return true, nil
	})
}

// Delete implements login.Store.
func (f *file) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return f.with(ctx, func(c *content) (bool, error) {
		_, had := c.Secrets[name]
		delete(c.Secrets, name)
		return had, nil
	})
}

// Names implements login.Store.
func (f *file) Names(ctx context.Context) ([]string, error) {
	var names []string
	err := f.with(ctx, func(c *content) (bool, error) {
		names = slices.Sorted(maps.Keys(c.Secrets))
		return false, nil
	})
	return names, err
}

// with lets use see the content, and writes it if use says that it changed it.
func (f *file) with(ctx context.Context, use func(*content) (bool, error)) error {
	unlock, err := f.take(ctx, "file "+filepath.Base(f.path))
	if err != nil {
		return err
	}
	defer unlock()
	c, err := f.read()
	if err != nil {
		return err
	}
	changed, err := use(c)
	if err != nil || !changed {
		return err
	}
	return f.write(c)
}

// read reads the file. One that cannot be read is an error, and stays as it is.
func (f *file) read() (*content, error) {
	c := &content{Version: 1, Secrets: map[string][]byte{}}
	sealed, err := readPrivate(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	data, err := f.vault.open(sealed)
	if err != nil {
		return nil, fmt.Errorf("read secrets from %s: %w", f.path, err)
	}
	var read content
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil || read.Version < 1 || d.More() {
		return nil, fmt.Errorf("read secrets: %s is damaged; move it away to begin anew", f.path)
	}
	if read.Version > 1 {
		return nil, fmt.Errorf("read secrets: %s is of a newer version of this program", f.path)
	}
	if read.Secrets != nil {
		c.Secrets = read.Secrets
	}
	return c, nil
}

func (f *file) write(c *content) error {
	data, err := json.Marshal(c)
	if err != nil {
		return errors.New("write secrets: they cannot be encoded")
	}
	if data, err = f.vault.seal(data); err != nil {
		return fmt.Errorf("write secrets to %s: %w", f.path, err)
	}
	if len(data) > maxFile {
		return errors.New("write secrets: there are too many")
	}
	if err := safefile.Replace(f.path, data, 0o600); err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}
	return nil
}

// readPrivate reads a file that must belong to this user, and be for no other.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := checkOwner(path, info, 0o077); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, err
}
