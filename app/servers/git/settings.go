package git

import (
	"bytes"
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/parley-mcp/parley/mcp"
)

// settings are variables of git configuration by their names, such as "branch.main.merge", with
// the section and the last part in lower case. The last value of a variable is the one that counts.
type settings map[string][]string

// readSettings reads one file; one that is not there is empty. Includes are not followed.
func readSettings(path string) (settings, error) {
	s := make(settings)
	text, err := readSmall(path)
	if err != nil {
		if os.IsNotExist(err) {
			return s, nil
		}
		return nil, err
	}
	parsed := config.New()
	if err := config.NewDecoder(bytes.NewReader(text)).Decode(parsed); err != nil {
		return nil, mcp.Errorf("the configuration %q cannot be read: %v", path, err)
	}
	for _, section := range parsed.Sections {
		s.take(strings.ToLower(section.Name), section.Options)
		for _, sub := range section.Subsections {
			s.take(strings.ToLower(section.Name)+"."+sub.Name, sub.Options)
		}
	}
	return s, nil
}

func (s settings) take(prefix string, options config.Options) {
	for _, o := range options {
		key := prefix + "." + strings.ToLower(o.Key)
		s[key] = append(s[key], o.Value)
	}
}

// get is the value of a variable, or "".
func (s settings) get(name string) string {
	if v := s[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// is reports whether a variable is true; missing is what it is without being set.
func (s settings) is(name string, missing bool) bool {
	v, ok := s[name]
	if !ok {
		return missing
	}
	switch strings.ToLower(v[len(v)-1]) {
	case "", "true", "yes", "on", "1":
		return true
	}
	return false
}

// ownSettings are those of the person that runs the server. A repository does not decide what
// they are.
func ownSettings() settings {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	all := make(settings)
	xdg := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	for _, path := range []string{filepath.Join(xdg, "git", "config"), filepath.Join(home, ".gitconfig")} {
		s, err := readSettings(path)
		if err != nil {
			continue // what git itself would not take is not for the caller to repair
		}
		for name, values := range s {
			all[name] = append(all[name], values...)
		}
	}
	return all
}

// identity is the name and address for new commits: of the environment, the configuration of the
// repository or the person, or else of the system. kind is "author" or "committer".
func identity(kind string, repo, own settings) (name, email string) {
	env := "GIT_" + strings.ToUpper(kind) + "_"
	name = cmp.Or(os.Getenv(env+"NAME"), repo.get(kind+".name"), repo.get("user.name"), own.get(kind+".name"), own.get("user.name"))
	email = cmp.Or(os.Getenv(env+"EMAIL"), repo.get(kind+".email"), repo.get("user.email"), own.get(kind+".email"), own.get("user.email"))
	if name == "" || email == "" {
		login := "unknown"
		if u, err := user.Current(); err == nil {
			login = u.Username
		}
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		name, email = cmp.Or(name, login), cmp.Or(email, login+"@"+host)
	}
	clean := strings.NewReplacer("\n", "", "<", "", ">", "", "\x00", "")
	return strings.TrimSpace(clean.Replace(name)), strings.TrimSpace(clean.Replace(email))
}

// checkSettings refuses repositories whose settings lead out of them, or, for what is not git
// itself, ask for a format that it does not know.
func (p *place) checkSettings(s settings, isGit bool) error {
	if tree := s.get("core.worktree"); tree != "" {
		real, err := filepath.EvalSymlinks(joinIn(p.gitDir, tree))
		if err != nil || real != p.work {
			return mcp.Errorf("the repository is refused: its core.worktree names another folder than its own")
		}
	}
	if isGit {
		return nil
	}
	version, err := strconv.Atoi(cmp.Or(s.get("core.repositoryformatversion"), "0"))
	if err != nil || version > 1 {
		return needGit("a repository of format version %q", s.get("core.repositoryformatversion"))
	}
	for name, values := range s {
		switch name {
		case "extensions.noop", "extensions.worktreeconfig", "extensions.preciousobjects", "extensions.partialclone":
		case "extensions.objectformat", "extensions.compatobjectformat":
			if values[len(values)-1] != "sha1" {
				return needGit("a repository with object names of %s", values[len(values)-1])
			}
		default:
			if strings.HasPrefix(name, "extensions.") && version == 1 {
				return needGit("a repository with the extension %s", strings.TrimPrefix(name, "extensions."))
			}
		}
	}
	if p.alternates() {
		return needGit("a repository that takes objects of another one (objects/info/alternates)")
	}
	return nil
}

// needGit is the error of what only the git program can do.
func needGit(what string, args ...any) error {
	return mcp.Errorf(what+" needs git itself: start the server with --git and the path of the git program", args...)
}
