package config

import (
	"os"
	"path/filepath"
	"slices"
)

// A Location is a file of a client.
type Location struct {
	Client Client
	Scope  Scope
	Path   string
	// Foreign says that others may have written the file, since it is in a project.
	Foreign bool
	// Digest names the text of the file once it was read.
	Digest string
}

// A candidate is a place where a file may be, and how it is read.
type candidate struct {
	Location
	read reader
	// rules says that the file may hold rules that restrict. Where it cannot be read,
	// nothing is allowed without a question.
	rules bool
	// unread is why a file is found and not read.
	unread string
	// folder is the folder of the project that the file is about.
	folder string
}

// Find returns the files that exist, in order of precedence, without reading them. A file
// that serves two scopes is there twice.
func Find(o *Options) ([]Location, error) {
	m, err := newMachine(o)
	if err != nil {
		return nil, err
	}
	var found []Location
	for _, c := range m.candidates() {
		if c.exists() {
			found = append(found, c.Location)
		}
	}
	return found, nil
}

// exists reports whether something is at the path, readable or not.
func (c *candidate) exists() bool {
	_, err := os.Lstat(c.Path)
	return err == nil
}

// A list collects candidates of one scope.
type list struct {
	scope   Scope
	foreign bool
	folder  string
	all     []candidate
}

func (l *list) add(client Client, read reader, paths ...string) {
	for _, path := range paths {
		l.all = append(l.all, candidate{Location: Location{Client: client, Scope: l.scope, Path: path, Foreign: l.foreign}, read: read, folder: l.folder})
	}
}

// addRules adds files that hold rules.
func (l *list) addRules(client Client, read reader, paths ...string) {
	from := len(l.all)
	l.add(client, read, paths...)
	for i := range l.all[from:] {
		l.all[from+i].rules = true
	}
}

// addUnread adds files that are told of, and not read.
func (l *list) addUnread(client Client, why string, paths ...string) {
	from := len(l.all)
	l.add(client, nil, paths...)
	for i := range l.all[from:] {
		l.all[from+i].unread = why
	}
}

const shellScript = "not read, it is a shell script: write the servers into crush.json"

// candidates lists all places in order of precedence. No path is there twice in one scope.
func (m *machine) candidates() []candidate {
	managed, own := &list{scope: ScopeManaged, folder: m.project}, &list{scope: ScopeOwn, folder: m.project}
	managed.add(ClientClaudeCode, claudeServers, m.claudeManaged("managed-mcp.json"))
	managed.all = append(managed.all, m.managedRules()...)
	own.addRules(ClientParley, readOwn, m.ownPath())
	all := slices.Concat(managed.all, own.all, m.local(), m.ofProject(), m.ofUser())
	seen := map[Location]bool{}
	return slices.DeleteFunc(all, func(c candidate) bool {
		before := seen[c.Location]
		seen[c.Location] = true
		return before
	})
}

// managedRules are the administrator's files with rules, which always hold.
func (m *machine) managedRules() []candidate {
	l := &list{scope: ScopeManaged, folder: m.project}
	l.addRules(ClientClaudeCode, claudeSettings, m.claudeManaged("managed-settings.json"))
	return l.all
}

// ownPath is the person's parley.jsonc.
func (m *machine) ownPath() string { return filepath.Join(m.configDir, "parley.jsonc") }

func (m *machine) claudeManaged(name string) string {
	return m.system("/etc/claude-code/"+name, "/Library/Application Support/ClaudeCode/"+name, `C:/Program Files/ClaudeCode/`+name)
}

// claudeDir is where Claude Code has the settings of the person.
func (m *machine) claudeDir() string {
	if dir := m.variable("CLAUDE_CONFIG_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(m.home, ".claude")
}

// claudeJSON is where Claude Code has the servers of the person.
func (m *machine) claudeJSON() string {
	if dir := m.variable("CLAUDE_CONFIG_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".claude.json")
	}
	return filepath.Join(m.home, ".claude.json")
}

// local are the files for the person and this project. Settings in the project's own folder
// may have come with it.
func (m *machine) local() []candidate {
	l := &list{scope: ScopeLocal, folder: m.project}
	l.add(ClientClaudeCode, claudeLocal, m.claudeJSON())
	l.foreign = true
	for _, dir := range m.projects {
		l.addRules(ClientClaudeCode, claudeSettings, filepath.Join(dir, ".claude", "settings.local.json"))
	}
	return l.all
}

// ofProject are the files that came with the project, those of the nearest folder first.
func (m *machine) ofProject() []candidate {
	l := &list{scope: ScopeProject, foreign: true}
	for _, dir := range m.projects {
		l.folder = dir
		in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
		l.addRules(ClientParley, readOwn, in(".parley.jsonc"))
		l.add(ClientClaudeCode, claudeServers, in(".mcp.json"))
		l.addRules(ClientClaudeCode, claudeSettings, in(".claude", "settings.json"))
		l.add(ClientVSCode, vscodeServers, in(".vscode", "mcp.json"))
		l.add(ClientCursor, cursorServers, in(".cursor", "mcp.json"))
		l.add(ClientCursor, cursorPermissions, in(".cursor", "permissions.json"))
		l.addRules(ClientOpenCode, readOpenCode, in("opencode.json"), in("opencode.jsonc"),
			in(".opencode", "opencode.json"), in(".opencode", "opencode.jsonc"))
		l.add(ClientOpenCode, agentsServers, in(".agents", "mcp.json"))
		l.add(ClientCrush, readCrush, in("crush.json"), in(".crush.json"))
		l.addUnread(ClientCrush, shellScript, in("crushrc"), in(".crushrc"))
		l.add(ClientKit, kitServers, in(".kit.yml"), in(".kit.yaml"), in(".kit.json"))
		l.add(ClientLibreChat, librechatServers, in("librechat.yaml"), in("librechat.yml"))
	}
	return l.all
}

// ofUser are the files of other clients in the person's home.
func (m *machine) ofUser() []candidate {
	l := &list{scope: ScopeUser, folder: m.project}
	in := func(names ...string) string { return filepath.Join(append([]string{m.home}, names...)...) }
	l.add(ClientClaudeDesktop, claudeDesktopServers, m.appConfig("Claude", "claude_desktop_config.json"))
	l.add(ClientClaudeCode, claudeServers, m.claudeJSON())
	l.addRules(ClientClaudeCode, claudeSettings, filepath.Join(m.claudeDir(), "settings.json"))
	for _, edition := range []string{"Code", "Code - Insiders", "VSCodium"} {
		l.add(ClientVSCode, vscodeServers, m.appConfig(edition, "User", "mcp.json"))
	}
	l.add(ClientCopilot, copilotServers, in(".copilot", "mcp-config.json"))
	l.add(ClientCursor, cursorServers, in(".cursor", "mcp.json"))
	l.add(ClientCursor, cursorPermissions, in(".cursor", "permissions.json"))
	goose := filepath.Join(m.xdgConfig(), "goose")
	if m.goos == "windows" {
		goose = filepath.Join(m.appData(), "Block", "goose", "config")
	}
	l.add(ClientGoose, gooseServers, filepath.Join(goose, "config.yaml"))
	l.addRules(ClientGoose, goosePermissions, filepath.Join(goose, "permission.yaml"))
	m.addOpenCode(l)
	l.add(ClientOpenCode, agentsServers, in(".agents", "mcp.json"))
	crush := filepath.Join(m.xdgConfig(), "crush")
	if m.goos == "windows" {
		crush = filepath.Join(m.variable("LOCALAPPDATA"), "crush")
	}
	l.add(ClientCrush, readCrush, filepath.Join(crush, "crush.json"))
	l.addUnread(ClientCrush, shellScript, filepath.Join(crush, "crushrc"))
	for _, name := range []string{".kit", ".mcphost", ".mcp"} {
		l.add(ClientKit, kitServers, in(name+".yml"), in(name+".yaml"), in(name+".json"))
	}
	catalog := m.variable("MCP_CATALOG_PATH")
	if !filepath.IsAbs(catalog) {
		catalog = in(".mcp-inspector", "mcp.json")
	}
	l.add(ClientInspector, inspectorServers, catalog)
	return l.all
}

// addOpenCode adds opencode's files of the person. That of OPENCODE_CONFIG comes first.
func (m *machine) addOpenCode(l *list) {
	if path := m.variable("OPENCODE_CONFIG"); filepath.IsAbs(path) {
		l.addRules(ClientOpenCode, readOpenCode, path)
	}
	for _, name := range []string{"opencode.jsonc", "opencode.json", "config.json"} {
		l.addRules(ClientOpenCode, readOpenCode, filepath.Join(m.xdgConfig(), "opencode", name))
	}
}
