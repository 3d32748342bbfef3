package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// What each file is read as. A file has its client's key for servers; files that hold
// nothing else may have that of any client, or none.

func claudeDesktopServers(f *file) { f.servers(claudeDesktopDialect, f.entries("mcpServers")) }
func vscodeServers(f *file)        { f.servers(vscodeDialect, f.entries("servers")) }
func copilotServers(f *file)       { f.servers(copilotDialect, f.entries("mcpServers")) }
func cursorServers(f *file)        { f.servers(cursorDialect, f.entries("mcpServers")) }
func kitServers(f *file)           { f.servers(kitDialect, f.entries("mcpServers")) }
func inspectorServers(f *file)     { f.servers(inspectorDialect, f.entries("mcpServers")) }
func tbxarkServers(f *file)        { f.servers(tbxarkDialect, f.entries("mcpServers")) }
func otherServers(f *file)         { f.servers(otherDialect, f.entries("mcpServers")) }
func agentsServers(f *file)        { f.servers(opencodeDialect, f.entries("mcpServers")) }
func gooseServers(f *file)         { f.servers(gooseDialect, f.root.get("extensions")) }
func librechatServers(f *file)     { f.servers(librechatDialect, f.root.get("mcpServers")) }

// claudeServers reads .mcp.json, managed-mcp.json and the servers of the person in
// .claude.json, which has much else.
func claudeServers(f *file) {
	entries := f.root.get("mcpServers")
	if filepath.Base(f.Path) != ".claude.json" {
		entries = f.entries("mcpServers")
	}
	f.claudeEntries(entries)
}

// claudeEntries reads entries with the timeouts that Claude Code takes from the environment.
func (f *file) claudeEntries(entries *node) {
	from := len(f.l.config.Servers)
	f.servers(claudeCodeDialect, entries)
	connect, call := f.l.m.milliseconds("MCP_TIMEOUT"), f.l.m.milliseconds("MCP_TOOL_TIMEOUT")
	for _, s := range f.l.config.Servers[from:] {
		s.defaultTimeouts(connect, call)
	}
}

// claudeLocal reads what .claude.json has for this project: servers, and those of the
// project that are switched off.
func claudeLocal(f *file) {
	for _, dir := range f.l.m.claudeProjects() {
		for _, m := range orEmpty(f.root.get("projects")).members {
			if filepath.ToSlash(m.name) != dir {
				continue
			}
			f.claudeEntries(m.value.get("mcpServers"))
			f.claudeChoices(m.value)
		}
	}
}

// claudeProjects are the folders whose entries in .claude.json count, with slashes.
func (m *machine) claudeProjects() []string {
	dirs := m.projects
	if len(dirs) == 0 {
		dirs = []string{m.workDir}
	}
	slashed := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		slashed = append(slashed, filepath.ToSlash(dir))
	}
	return slashed
}

// readOpenCode reads servers, permissions, and tools that are switched off.
func readOpenCode(f *file) {
	f.servers(opencodeDialect, f.root.get("mcp"))
	opencodePermissions(f)
}

// readCrush reads servers and tools that are called without a question.
func readCrush(f *file) {
	f.servers(crushDialect, f.root.get("mcp"))
	crushPermissions(f)
}

// LoadFile reads one file of any of the shapes that Load knows, as the person's own word:
// its servers need no consent and its variables are expanded everywhere. The rules of the
// administrator hold beside it, and so do the limits on servers. The dialect is
// that of the file's name if it is known, else that of its shape. The error is that the
// file cannot be read at all; entries have errors of their own.
func LoadFile(path string, o *Options) (*Config, error) {
	m, err := newMachine(o)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fileError(path, err)
	}
	data, err := readFile(path, "", maxFile)
	if err != nil {
		return nil, fileError(path, readError(err))
	}
	root, err := parse(path, data)
	if err != nil {
		return nil, fileError(path, err)
	}
	if root.kind != kindObject {
		return nil, fileError(path, at(root, "expected an object, found %s", root.kind))
	}
	l := newLoader(m)
	l.loadManaged()
	f := &file{Location: Location{Scope: ScopeGiven, Path: path, Digest: digestOf(data)}, root: root, l: l, folder: m.project}
	var read reader
	f.Client, read = guess(path, root)
	l.config.Files = append([]Location{f.Location}, l.config.Files...)
	read(f)
	return l.finish(), nil
}

// fileError is an error about a whole file, with the line if it is known.
func fileError(path string, err error) error {
	if e, ok := errors.AsType[*lineError](err); ok {
		return fmt.Errorf("reading %s: %w", Source{File: path, Line: e.line}, err)
	}
	return fmt.Errorf("reading %s: %w", path, err)
}

// guess tells the client of a file, and what the file is read as.
func guess(path string, root *node) (Client, reader) {
	name, folder := strings.ToLower(filepath.Base(path)), filepath.Base(filepath.Dir(path))
	switch {
	case name == "parley.jsonc" || name == ".parley.jsonc":
		return ClientParley, readOwn
	case name == "claude_desktop_config.json":
		return ClientClaudeDesktop, claudeDesktopServers
	case name == ".mcp.json" || name == ".claude.json" || name == "managed-mcp.json":
		return ClientClaudeCode, claudeServers
	case name == "mcp-config.json" && folder == ".copilot":
		return ClientCopilot, copilotServers
	case name == "mcp.json" && folder == ".cursor":
		return ClientCursor, cursorServers
	case name == "mcp.json" && folder == ".mcp-inspector":
		return ClientInspector, inspectorServers
	case name == "mcp.json" && folder == ".agents":
		return ClientOpenCode, agentsServers
	case strings.HasPrefix(name, "opencode.json"):
		return ClientOpenCode, readOpenCode
	case name == "crush.json" || name == ".crush.json":
		return ClientCrush, readCrush
	case strings.HasPrefix(name, ".kit.") || strings.HasPrefix(name, ".mcphost."):
		return ClientKit, kitServers
	case name == "librechat.yaml" || name == "librechat.yml":
		return ClientLibreChat, librechatServers
	}
	return guessShape(path, root)
}

// guessShape tells the client of a file by its members.
func guessShape(path string, root *node) (Client, reader) {
	has := func(keys ...string) bool {
		for _, key := range keys {
			if root.get(key) != nil {
				return true
			}
		}
		return false
	}
	entries := orEmpty(root.get("mcpServers"))
	switch {
	case has("extensions"):
		return ClientGoose, gooseServers
	case has("mcpProxy"):
		return ClientTBXark, tbxarkServers
	case has("servers") && has("rules", "budgets", "import", "roots", "model"),
		has("rules", "budgets", "roots") && !has("mcpServers", "mcp"),
		strings.HasSuffix(orEmpty(root.get("$schema")).text, "parley.schema.json"):
		return ClientParley, readOwn
	case has("servers"):
		return ClientVSCode, vscodeServers
	case has("mcp") && anyMember(root.get("mcp"), isOpenCode) || strings.Contains(orEmpty(root.get("$schema")).text, "opencode.ai"):
		return ClientOpenCode, readOpenCode
	case has("mcp"):
		return ClientCrush, readCrush
	case has("mcpServers") && anyMember(entries, isInspector):
		return ClientInspector, inspectorServers
	case has("mcpServers") && isYAML(path) && (has("version", "endpoints", "mcpSettings") || anyMember(entries, isLibreChat)):
		return ClientLibreChat, librechatServers
	case has("mcpServers") && (isYAML(path) || anyMember(entries, isOpenCode)):
		return ClientKit, kitServers
	default:
		return ClientOther, otherServers
	}
}

// anyMember reports whether a test holds for the value of any member.
func anyMember(n *node, test func(*node) bool) bool {
	for _, m := range n.members {
		if test(m.value) {
			return true
		}
	}
	return false
}

// isOpenCode knows entries of opencode and kit: type local or remote, or an array as command.
func isOpenCode(n *node) bool {
	kind := orEmpty(n.get("type")).text
	return kind == "local" || kind == "remote" || n.get("command").is(kindArray)
}

func isInspector(n *node) bool {
	return n.get("protocolEra") != nil || n.get("connectionTimeout") != nil || n.get("roots") != nil
}

func isLibreChat(n *node) bool {
	for _, key := range []string{"initTimeout", "serverInstructions", "customUserVars", "requiresOAuth", "chatMenu", "startup"} {
		if n.get(key) != nil {
			return true
		}
	}
	return false
}
