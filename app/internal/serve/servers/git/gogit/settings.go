package gogit

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/parley-mcp/parley/mcp"
)

// settings are variables of git configuration by their names, such as "branch.main.merge", with
// the section and the last part in lower case. The last value of a variable is the one that counts.
type settings map[string][]string

// readConfig reads one file; one that is not there is empty. includes are not followed.
func readConfig(path string) (settings, error) {
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
	return isTrue(v[len(v)-1])
}

func isTrue(v string) bool {
	return slices.Contains([]string{"", "true", "yes", "on", "1"}, strings.ToLower(v))
}

// readConfig reads the settings of the repository, and of the working tree if it has some.
func (p *Place) readConfig() (settings, error) {
	all, err := readConfig(filepath.Join(p.Common, "config"))
	if err != nil || !all.is("extensions.worktreeconfig", false) {
		return all, err
	}
	own, err := readConfig(filepath.Join(p.GitDir, "config.worktree"))
	all.add(own)
	return all, err
}

// add adds settings that take precedence.
func (s settings) add(more settings) {
	for name, values := range more {
		s[name] = append(s[name], values...)
	}
}

// includes lists the files that settings include, in quotes. They are not read.
func (s settings) includes() []string {
	var files []string
	for name, values := range s {
		if name == "include.path" || strings.HasPrefix(name, "includeif.") && strings.HasSuffix(name, ".path") {
			for _, file := range values {
				files = append(files, strconv.Quote(file))
			}
		}
	}
	slices.Sort(files)
	return files
}

// ownSettings are those of the system and of the person that runs the server. A repository does not decide
// what they are.
func ownSettings() settings {
	var files []string
	if off := os.Getenv("GIT_CONFIG_NOSYSTEM"); off == "" || !isTrue(off) {
		files = append(files, cmp.Or(os.Getenv("GIT_CONFIG_SYSTEM"), "/etc/gitconfig"))
	}
	home, err := os.UserHomeDir()
	if file := os.Getenv("GIT_CONFIG_GLOBAL"); file != "" {
		files = append(files, file)
	} else if err == nil {
		files = append(files, filepath.Join(configHome(home), "git", "config"), filepath.Join(home, ".gitconfig"))
	}
	all := make(settings)
	for _, path := range files {
		if s, err := readConfig(path); err == nil { // what git itself would not take is not for the caller to repair
			all.add(s)
		}
	}
	return all
}

func configHome(home string) string {
	return cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
}

// ignoreFile is the path of the person's file of what to ignore: the one that the settings name, or else the
// one beside them; "" without a home. A repository does not decide it.
func ignoreFile(own settings) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	file := own.get("core.excludesfile")
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		return filepath.Join(home, filepath.FromSlash(rest))
	}
	return cmp.Or(file, filepath.Join(configHome(home), "git", "ignore"))
}

// signature is the name and address for new commits: of the environment, the configuration of the
// repository or the person, or else of the system. kind is "author" or "committer".
func (r *base) signature(kind string, now time.Time) Signature {
	find := func(what string) string {
		env, own, user := "GIT_"+strings.ToUpper(kind+"_"+what), kind+"."+what, "user."+what
		return cmp.Or(os.Getenv(env), r.conf.get(own), r.conf.get(user), r.own.get(own), r.own.get(user))
	}
	name, email := find("name"), find("email")
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
	return Signature{Name: strings.TrimSpace(clean.Replace(name)), Email: strings.TrimSpace(clean.Replace(email)), When: now}
}

// checkSettings refuses repositories whose settings lead out of them or ask for an unsupported format, and
// those with too many references.
func (p *Place) checkSettings(s settings) error {
	if err := p.checkTree(s); err != nil {
		return err
	}
	version, err := strconv.Atoi(cmp.Or(s.get("core.repositoryformatversion"), "0"))
	if err != nil || version > 1 {
		return unsupported("a repository of format version %q", s.get("core.repositoryformatversion"))
	}
	for name, values := range s {
		switch name {
		case "extensions.noop", "extensions.worktreeconfig", "extensions.preciousobjects", "extensions.partialclone":
		case "extensions.objectformat", "extensions.compatobjectformat":
			if values[len(values)-1] != "sha1" {
				return unsupported("a repository with object names of %s", values[len(values)-1])
			}
		default:
			if strings.HasPrefix(name, "extensions.") && version == 1 {
				return unsupported("a repository with the extension %s", strings.TrimPrefix(name, "extensions."))
			}
		}
	}
	text, err := readSmall(filepath.Join(p.Common, "objects", "info", "alternates"))
	if len(bytes.TrimSpace(text)) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unsupported("a repository that takes objects of another one (objects/info/alternates)")
	}
	if info, err := os.Stat(filepath.Join(p.Common, "packed-refs")); err == nil && info.Size() > maxPackedRefs {
		return unsupported("a repository whose .git/packed-refs has %d bytes, more than %d,", info.Size(), maxPackedRefs)
	}
	return nil
}

// checkTree refuses settings that name another working tree.
func (p *Place) checkTree(s settings) error {
	tree := s.get("core.worktree")
	if tree == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(joinIn(p.GitDir, tree))
	if err != nil || real != p.Work {
		return mcp.Errorf("the repository is refused: its core.worktree names another folder than its own")
	}
	return nil
}
