package scaffold

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// maxModuleFile is how many bytes of a go.mod or go.sum are read.
const maxModuleFile = 4 << 20

// A module is what the templates are filled in with.
type module struct {
	Name, Module string
	Library      string // path of the library
	Version      string // of the library, or empty
	Go           string // version of Go
	Replace      string // path of the copy as go.mod says it, or empty
	Requires     []string
	Sums         string // what go.sum holds
}

// Program is the version of the program that checks the server.
func (m *module) Program() string {
	if m.Version == "" || m.Replace != "" {
		return "latest"
	}
	return m.Version
}

func (s *Server) module() (*module, error) {
	m := &module{Name: s.Name, Module: s.Module, Library: Library, Version: s.Version, Go: goVersion}
	if s.Replace == "" {
		return m, nil
	}
	dir, err := filepath.Abs(s.Replace)
	if err != nil {
		return nil, fmt.Errorf("finding the copy of the library: %w", err)
	}
	text, err := readModuleFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no go.mod: name the folder of a copy of %s", s.Replace, Library)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy of the library: %w", err)
	}
	path, goLine, requires := parseModule(text)
	if path != Library {
		return nil, fmt.Errorf("%s holds the module %q: name the folder of a copy of %s", s.Replace, path, Library)
	}
	if m.Sums, err = readModuleFile(filepath.Join(dir, "go.sum")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the copy of the library: %w", err)
	}
	if goLine != "" {
		m.Go = goLine
	}
	m.Version, m.Requires, m.Replace = "v0.0.0", requires, quotePath(dir)
	return m, nil
}

func readModuleFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxModuleFile+1))
	if err == nil && len(text) > maxModuleFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxModuleFile)
	}
	return string(text), err
}

// Lines of a go.mod file that count here. What is quoted there is not understood, and left to
// "go mod tidy".
var (
	moduleLine  = regexp.MustCompile(`^module\s+(\S+)$`)
	goLine      = regexp.MustCompile(`^go\s+(\d[0-9a-z.]*)$`)
	requireLine = regexp.MustCompile(`^(?:require\s+)?([a-zA-Z0-9][^\s"()]*)\s+(v[0-9][^\s"()]*)$`)
)

// parseModule reads the path, the version of Go and the requirements of a go.mod file.
func parseModule(text string) (path, version string, requires []string) {
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimSpace(line)
		if m := moduleLine.FindStringSubmatch(line); m != nil {
			path = m[1]
		}
		if m := goLine.FindStringSubmatch(line); m != nil {
			version = m[1]
		}
		if m := requireLine.FindStringSubmatch(line); m != nil && (block == "require" || strings.HasPrefix(line, "require")) {
			requires = append(requires, m[1]+" "+m[2])
		}
		if opened, ok := strings.CutSuffix(line, "("); ok {
			block = strings.TrimSpace(opened)
		}
		if line == ")" {
			block = ""
		}
	}
	return path, version, requires
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._+@%~-]+$`)

// quotePath is a path as go.mod has it.
func quotePath(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return strconv.Quote(path)
}
