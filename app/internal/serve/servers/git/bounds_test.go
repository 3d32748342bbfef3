package git_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
)

// A repository above the folder of --repository is served if it has files of the folder, and not another one
// that only lies above it, such as a home folder with settings.
func TestRepositoryAbove(t *testing.T) {
	needGitProgram(t)
	home := simple(t)
	src := filepath.Join(home, "src")
	mkdir(t, src)
	if err := os.Rename(copyOf(t, simple(t)), filepath.Join(src, "project")); err != nil {
		t.Fatal(err)
	}
	c := serve(t, &git.Options{Repositories: []string{src}})
	must(t, c, "git_status", map[string]any{"repo_path": filepath.Join(src, "project")})
	for _, dir := range []string{home, src} {
		refused(t, c, "git_status", map[string]any{"repo_path": dir}, "outside")
	}
	put(t, filepath.Join(src, "notes.txt"), "x\n")
	gitIn(t, home, "add", "src/notes.txt")
	c = serve(t, &git.Options{Repositories: []string{src}})
	must(t, c, "git_status", map[string]any{"repo_path": src})
}

// A repository of another user that is found upwards from a folder is refused, unless --repository names it.
func TestRepositoryOfAnother(t *testing.T) {
	needGitProgram(t)
	if os.Geteuid() != 0 || runtime.GOOS == "windows" {
		t.Skip("only root can give folders away")
	}
	dir := simple(t)
	sub := filepath.Join(dir, "sub")
	put(t, filepath.Join(sub, "x.txt"), "x\n")
	gitIn(t, dir, "add", ".")
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Skip(err)
	}
	words := "--repository"
	refused(t, serve(t, nil), "git_status", map[string]any{"repo_path": sub}, words)
	refused(t, serve(t, &git.Options{Repositories: []string{sub}}), "git_status", map[string]any{"repo_path": sub}, words)
	must(t, serve(t, &git.Options{Repositories: []string{dir}}), "git_status", map[string]any{"repo_path": sub})
}

// A branch is checked out in one working tree at most, as with git.
func TestCheckoutInAnotherTree(t *testing.T) {
	needGitProgram(t)
	top := t.TempDir()
	dir, linked := filepath.Join(top, "main"), filepath.Join(top, "linked")
	if err := os.Rename(copyOf(t, simple(t)), dir); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "worktree", "add", "-q", linked, "other")
	c := serve(t, &git.Options{Repositories: []string{top}})
	for from, branch := range map[string]string{dir: "other", linked: "main"} {
		refused(t, c, "git_checkout", map[string]any{"repo_path": from, "branch_name": branch}, "already checked out at")
		if out, err := tryGit(from, nil, "checkout", "-q", branch); err == nil {
			t.Errorf("git checks out %s: %s", branch, out)
		}
	}
	must(t, c, "git_checkout", map[string]any{"repo_path": linked, "branch_name": "other"})
	gitIn(t, linked, "checkout", "-q", "--detach")
	must(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "other"})
}

// A submodule with a conflict is not dropped.
func TestAddConflictOfSubmodule(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	head := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))
	list := ""
	for _, stage := range []string{"1", "2", "3"} {
		list += "160000 " + head + " " + stage + "\tsub\n"
	}
	if out, err := tryGit(dir, []byte(list), "update-index", "--index-info"); err != nil {
		t.Fatal(out)
	}
	mkdir(t, filepath.Join(dir, "sub"))
	before := state(t, dir)
	c := serve(t, nil)
	for _, name := range []string{".", "sub"} {
		refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{name}}, "submodule")
	}
	if s := state(t, dir); s != before {
		t.Errorf("the repository was changed: %s", s)
	}
}

// A file that became a folder is staged whole, and "[!" in a pattern means other characters.
func TestAddAsGit(t *testing.T) {
	needGitProgram(t)
	for _, name := range []string{".", "a.txt", "[!a]*", "[^a]*", "[!b]*.txt", "*/[!z]"} {
		dir := simple(t)
		drop(t, filepath.Join(dir, "a.txt"))
		put(t, filepath.Join(dir, "a.txt", "y"), "y\n")
		put(t, filepath.Join(dir, "b.txt"), "b\n")
		asGit(t, dir, "git_add", map[string]any{"files": []string{name}}, "add", name)
	}
}

// Files are ignored as with git.
func TestIgnoredAsGit(t *testing.T) {
	needGitProgram(t)
	for name, text := range map[string]string{
		"byte order mark":   "\ufeff*.txt\n*.log\n",
		"long line":         strings.Repeat("x", 70_000) + "\n*.txt\n",
		"folders back":      "*\n!*/\n!*.go\n",
		"folder back":       "*\n!a\n",
		"path back":         "/a/*\n!/a/b\n",
		"other characters":  "[!a]*\n",
		"escaped":           "\\!x\n\\#x\n\\[x\n",
		"stars":             "a/**\n!a/b/\n",
		"stars in between":  "a/**/x.go\n",
		"stars first":       "**/b/\n",
		"spaces":            "*.txt   \n\\ \n",
		"line ends":         "*.txt\r\nb/\r\n",
		"rooted":            "/x.go\n",
		"folder only":       "x.go/\nb/\n",
		"path":              "a/b\n",
		"path with a star":  "a/*\n!a/x.go\n",
		"star is one level": "a/*.go\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := simple(t)
			put(t, filepath.Join(dir, ".gitignore"), text)
			for _, name := range []string{"x.go", "c.txt", "a/secret.txt", "a/x.go", "a/b/x.go", "a/b/c/x.go", "a/x.log", "!x", "#x", "[x", "b/x"} {
				put(t, filepath.Join(dir, filepath.FromSlash(name)), "x\n")
			}
			if got, want := must(t, serve(t, nil), "git_status", map[string]any{"repo_path": dir}), gitIn(t, dir, "status"); got != "Repository status:\n"+strings.TrimSuffix(want, "\n") {
				t.Errorf("git_status gives %s\ngit %s", got, want)
			}
			asGit(t, dir, "git_add", map[string]any{"files": []string{"."}}, "add", ".")
		})
	}
}

// A .gitignore file that cannot be read in whole is an error: files that it names could be staged.
func TestLargeIgnoreFile(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, "sub", ".gitignore"), strings.Repeat("# x\n", 300_000)+"secret\n")
	put(t, filepath.Join(dir, "sub", "secret"), "x\n")
	c := serve(t, nil)
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}}, "sub/.gitignore")
	refused(t, c, "git_status", map[string]any{"repo_path": dir}, "sub/.gitignore")
}
