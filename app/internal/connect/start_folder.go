package connect

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/app/internal/config"
)

// elsewhere are programs that run a server where paths are others or reach one that runs by itself, and
// servers that begin relative paths at the folders that they serve.
var elsewhere = []string{
	"docker", "docker-compose", "podman", "nerdctl", "finch", "kubectl", "oc", "ssh", "mosh", "plink", "wsl", "lxc", "incus",
	"limactl", "multipass", "vagrant", "chroot", "nsenter", "bwrap", "flatpak", "distrobox", "toolbox", "apptainer", "singularity",
	"bridge", // of this program
	"filesystem", "server-filesystem", "mcp-server-filesystem", "git", "server-git", "mcp-server-git", "mcp_server_git",
}

var (
	// leaves is a command of a shell that goes to another folder.
	leaves = regexp.MustCompile(`(?i)(^|[\s;&|(])(cd|chdir|pushd|set-location|push-location)(\s|$)`)
	// remote is a URL at which a server may be that the command only connects to.
	remote = regexp.MustCompile(`(?i)^(https?|wss?)://`)
)

// EntryFolder returns the startFolder of an expanded entry. That of a remote server is unknown.
func EntryFolder(entry *config.Server) string {
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
// container or on another machine, or has the URL of one, if it is one of elsewhere, or if dir is reached
// by a symbolic link, so that ".." leads elsewhere than its text says.
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
	for _, word := range command {
		if leads(word, real) {
			return ""
		}
	}
	for _, value := range env {
		if folder, _ := namesFolder(value, real); folder {
			return ""
		}
	}
	return real
}

// leads reports whether because of a word of a command the server may begin relative paths at another
// folder than dir. A shell has a whole command in one word.
func leads(word, dir string) bool {
	readings := []string{word}
	if _, value, found := strings.Cut(word, "="); found { // of a flag or a variable
		readings = append(readings, value)
	}
	if len(word) > 2 && word[0] == '-' && word[1] != '-' { // "-Cdir"
		readings = append(readings, word[2:])
	}
	file := false
	for _, s := range readings {
		folder, exists := namesFolder(s, dir)
		if folder || !exists && filepath.IsAbs(s) || remote.MatchString(s) || slices.Contains(elsewhere, programOf(s)) {
			return true
		}
		file = file || exists
	}
	parts := strings.FieldsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";&|()<>'\"`", r) })
	return leaves.MatchString(word) || !file && len(parts) > 1 && slices.ContainsFunc(parts, func(part string) bool { return leads(part, dir) })
}

// programOf is the name of the program or package that a word of a command names, without a version.
func programOf(word string) string {
	name := base(strings.ToLower(word))
	if end := strings.IndexAny(name, "=<>!~["); end > 0 {
		name = name[:end]
	}
	return name
}

// namesFolder reports whether a word or the value of a variable names a folder other than dir: relative
// paths may begin there. A home folder and a variable of a shell may be one. exists says that there is
// something of that name.
func namesFolder(s, dir string) (folder, exists bool) {
	if s == "" || s[0] == '~' || s[0] == '$' {
		return s != "", false
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(dir, s)
	}
	real, err := filepath.EvalSymlinks(s)
	if err != nil {
		return false, false
	}
	info, err := os.Stat(real)
	return err == nil && info.IsDir() && real != dir, true
}
