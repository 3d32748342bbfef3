package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// Library is the module that the server is made with.
const Library = "github.com/parley-mcp/parley"

// goVersion is the version of Go that the library needs.
const goVersion = "1.26.0"

//go:embed templates
var templates embed.FS

// files are the files of a server, by their templates.
var files = []struct{ path, template string }{
	{".github/workflows/test.yml", "github.yml.tmpl"},
	{".gitignore", "gitignore.tmpl"},
	{".gitlab-ci.yml", "gitlab.yml.tmpl"},
	{"README.md", "readme.md.tmpl"},
	{"go.mod", "go.mod.tmpl"},
	{"main.go", "main.go.tmpl"},
	{"main_test.go", "main_test.go.tmpl"},
}

// A Server is what a new server is made of.
type Server struct {
	// Name is the name of the program, and what clients are told; see CheckName.
	Name string
	// Module is the path of its module; see CheckModule.
	Module string
	// Version is the version of the library, such as v0.1.0. Empty means that none is known:
	// go.mod then names none, and "go mod tidy" takes the newest.
	Version string
	// Replace is a folder with a copy of the library, which the module uses in the place of a
	// published version. Default: none.
	Replace string
}

// Write writes the server to a folder, which must be empty or not exist, and returns the names of
// the files, with slashes. Nothing is overwritten. After an error, what was written is removed.
func (s *Server) Write(dir string) (written []string, err error) {
	texts, err := s.texts()
	if err != nil {
		return nil, err
	}
	made, err := emptyFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(dir, written, made))
			written = nil
		}
	}()
	for _, f := range texts {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // sources are for everybody, as umask allows
			return written, err
		}
		if err := writeNew(path, f.text); err != nil {
			return written, err
		}
		written = append(written, f.path)
	}
	return written, nil
}

// A file is the name of a file and what it holds.
type file struct{ path, text string }

// texts makes the files, sorted by name.
func (s *Server) texts() ([]file, error) {
	if err := CheckName(s.Name); err != nil {
		return nil, err
	}
	if err := CheckModule(s.Module); err != nil {
		return nil, err
	}
	m, err := s.module()
	if err != nil {
		return nil, err
	}
	parsed, err := template.ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("reading the templates: %w", err) // they are part of the program, and tested
	}
	var texts []file
	for _, f := range files {
		var text strings.Builder
		if err := parsed.ExecuteTemplate(&text, f.template, m); err != nil {
			return nil, fmt.Errorf("making %s: %w", f.path, err)
		}
		texts = append(texts, file{f.path, text.String()})
	}
	if m.Sums != "" {
		texts = append(texts, file{"go.sum", m.Sums})
	}
	slices.SortFunc(texts, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return texts, nil
}

// emptyFolder makes sure of an empty folder, and reports whether it made it.
func emptyFolder(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, os.MkdirAll(dir, 0o755) // sources are for everybody, as umask allows
	case err != nil:
		return false, err
	case len(entries) > 0:
		return false, fmt.Errorf("the folder %s is not empty: name another, or empty it", dir)
	}
	return false, nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // sources are for everybody, as umask allows
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// remove takes back what was written to a folder, and the folder if it was made for that.
func remove(dir string, written []string, made bool) error {
	if made {
		return os.RemoveAll(dir)
	}
	var errs []error
	for _, name := range written {
		errs = append(errs, os.Remove(filepath.Join(dir, filepath.FromSlash(name))))
	}
	return errors.Join(errs...)
}
