package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/config"
)

// elsewhere are programs that run a server where paths are others, and servers that begin relative
// paths at the folders that they serve.
var elsewhere = []string{
	"docker", "podman", "nerdctl", "kubectl", "ssh", "wsl",
	"filesystem", "server-filesystem", "mcp-server-filesystem", "git", "server-git", "mcp-server-git", "mcp_server_git",
}

// leaves is a command of a shell that goes to another folder.
var leaves = regexp.MustCompile(`(?i)(^|[\s;&|(])(cd|chdir|pushd|set-location)(\s|$)`)

// entryFolder returns the startFolder of an expanded entry. That of a remote server is unknown.
func entryFolder(entry *config.Server) string {
	if entry.Transport != config.TransportStdio {
		return ""
	}
	var values []string
	for _, value := range entry.Env {
		values = append(values, value)
	}
	return startFolder(entry.Dir, append([]string{entry.Command}, entry.Args...), values)
}

// startFolder returns the folder at which the server that a command starts begins relative paths, for
// rules: dir, in which the command is started, or else ours. It returns "" if the server may begin
// them at another folder: if the command or its environment names one, if it runs the server in a
// container or on another machine, if it is one of elsewhere, or if dir is reached by a symbolic link,
// so that ".." leads elsewhere than its text says.
func startFolder(dir string, command, env []string) string {
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return ""
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !strings.EqualFold(real, filepath.Clean(dir)) {
		return ""
	}
	other := func(s string) bool { return namesFolder(s, real) }
	if slices.ContainsFunc(command, func(word string) bool {
		return slices.Contains(elsewhere, base(word)) || leaves.MatchString(word)
	}) || slices.ContainsFunc(command, other) || slices.ContainsFunc(env, other) {
		return ""
	}
	return real
}

// namesFolder reports whether an argument or variable names a folder other than dir: relative paths
// may begin there. A flag has it after "=".
func namesFolder(s, dir string) bool {
	if flag, value, found := strings.Cut(s, "="); found && strings.HasPrefix(flag, "-") {
		s = value
	}
	if s == "" || strings.HasPrefix(s, "~") {
		return s != ""
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(dir, s)
	}
	real, err := filepath.EvalSymlinks(s)
	if err != nil || real == dir {
		return false
	}
	info, err := os.Stat(real)
	return err == nil && info.IsDir()
}
