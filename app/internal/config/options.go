package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/parley-mcp/parley/policy"
)

// Options say where files are looked for. Zero fields, and nil Options, are this machine.
type Options struct {
	// Home is the person's home folder; empty is os.UserHomeDir.
	Home string
	// WorkDir is the folder in which the person works; empty is os.Getwd.
	WorkDir string
	// ConfigDir is the folder of parley.jsonc; empty is the folder "parley" where the system
	// keeps configuration: $XDG_CONFIG_HOME or ~/.config, ~/Library/Application Support, %AppData%.
	ConfigDir string
	// Root stands before the paths of the machine's administrator, such as /etc; empty is the
	// machine's own root.
	Root string
	// GOOS is the system whose places are searched; empty is runtime.GOOS.
	GOOS string
	// Env looks up a variable of the environment; nil is os.LookupEnv.
	Env func(string) (string, bool)
	// Approved reports whether the person agreed to a rule that allows, of a file that others
	// wrote. The digest is Location.Digest, of its whole text; the same text may mean other
	// rules once other files name more servers. Nil agrees to none.
	Approved func(file, digest string, r *policy.Rule) bool
	// AllClients reads the files of clients that parley.jsonc leaves out, too.
	AllClients bool
}

// A machine is Options with nothing left open.
type machine struct {
	home, workDir, configDir, root, goos string
	allClients                           bool

	env      func(string) (string, bool)
	approved func(file, digest string, r *policy.Rule) bool

	// project is the folder of the repository in which the person works, or workDir.
	project string
	// projects are workDir and its parents up to project, the nearest first; none if the
	// person works in the home folder or above it.
	projects []string
}

func newMachine(o *Options) (*machine, error) {
	if o == nil {
		o = &Options{}
	}
	m := &machine{
		home: o.Home, workDir: o.WorkDir, configDir: o.ConfigDir, root: o.Root,
		goos: cmp.Or(o.GOOS, runtime.GOOS), env: o.Env, approved: o.Approved, allClients: o.AllClients,
	}
	if m.env == nil {
		m.env = os.LookupEnv
	}
	if m.approved == nil {
		m.approved = func(string, string, *policy.Rule) bool { return false }
	}
	var err error
	if m.home == "" {
		if m.home, err = os.UserHomeDir(); err != nil {
			return nil, fmt.Errorf("finding the home folder: %w", err)
		}
	}
	if m.workDir == "" {
		if m.workDir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("finding the working folder: %w", err)
		}
	}
	for _, dir := range []*string{&m.home, &m.workDir} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return nil, fmt.Errorf("finding a folder: %w", err)
		}
	}
	m.configDir = cmp.Or(m.configDir, m.appConfig("parley"))
	m.findProject()
	return m, nil
}

// findProject looks for the folder with .git, from the working folder upwards. The home
// folder is no project, though some people keep it in git.
func (m *machine) findProject() {
	m.project = m.workDir
	var dirs []string
	for dir := m.workDir; ; dir = filepath.Dir(dir) {
		if rel, err := filepath.Rel(dir, m.home); err == nil && filepath.IsLocal(rel) {
			break // the home folder, or one above it
		}
		dirs = append(dirs, dir)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			m.project, m.projects = dir, dirs
			return
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	m.projects = slices.Clip(dirs[:min(1, len(dirs))])
}

// variable is a variable of the environment, or empty.
func (m *machine) variable(name string) string {
	value, _ := m.env(name)
	return value
}

// appConfig is where an application of that name keeps its configuration.
func (m *machine) appConfig(name ...string) string {
	var base string
	switch m.goos {
	case "windows":
		base = m.appData()
	case "darwin":
		base = filepath.Join(m.home, "Library", "Application Support")
	default:
		base = m.xdgConfig()
	}
	return filepath.Join(append([]string{base}, name...)...)
}

// xdgConfig is $XDG_CONFIG_HOME or ~/.config.
func (m *machine) xdgConfig() string {
	if dir := m.variable("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(m.home, ".config")
}

// appData is %AppData%.
func (m *machine) appData() string {
	return cmp.Or(m.variable("APPDATA"), filepath.Join(m.home, "AppData", "Roaming"))
}

// system is a path of the machine's administrator.
func (m *machine) system(unix, darwin, windows string) string {
	path := unix
	switch m.goos {
	case "darwin":
		path = darwin
	case "windows":
		path = windows
	}
	if m.root == "" {
		return path
	}
	return filepath.Join(m.root, filepath.FromSlash(path))
}
