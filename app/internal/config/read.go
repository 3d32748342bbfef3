package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Errors of reading and writing files, to be found with errors.Is.
var (
	// ErrTooLarge says that a file is larger than 4 MiB.
	ErrTooLarge = errors.New("the file is too large")
	// ErrNotRegular says that a path is a folder, a pipe or a device.
	ErrNotRegular = errors.New("this is no regular file")
	// ErrOutside says that a file of a project, or one that it names, is not in its folder,
	// perhaps by a link.
	ErrOutside = errors.New("the file is outside of the project")
)

// readFile reads a regular file of at most limit bytes. Symbolic links are followed, as
// people keep their configuration elsewhere and link to it; with within, which is a folder,
// the target must lie beneath it. It never waits for a writer, as reading a pipe would.
func readFile(path, within string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: replace it by one", ErrNotRegular)
	}
	if within != "" {
		if path, err = resolveWithin(path, within); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: replace it by one", ErrNotRegular)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: at most %d bytes are read; move what is no configuration elsewhere", ErrTooLarge, limit)
	}
	return data, nil
}

// resolveWithin is the path without links, if it is beneath a folder.
func resolveWithin(path, folder string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(folder, target); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%w: copy it into the folder of the project", ErrOutside)
	}
	return target, nil
}

// readError is an error of reading without the path, which stands beside it.
func readError(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// digestOf names a text.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// isYAML reports whether a file of that name is YAML.
func isYAML(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".yml" || ext == ".yaml"
}

// parse reads a text in the format that its file name says.
func parse(path string, data []byte) (*node, error) {
	if isYAML(path) {
		return parseYAML(data)
	}
	return parseJSON(data)
}
