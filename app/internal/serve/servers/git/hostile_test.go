package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
)

// simple makes a repository with two commits and a branch.
func simple(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	for _, text := range []string{"one\n", "two\n"} {
		put(t, filepath.Join(dir, "a.txt"), text)
		gitIn(t, dir, "add", ".")
		gitIn(t, dir, "commit", "-q", "-m", text)
	}
	gitIn(t, dir, "branch", "other")
	return dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Proves: PART-REF. Names that git would take for options, addresses, ranges or entries of the
// reflog are refused, also where such a reference exists.
func TestHostileNames(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	head := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))
	for _, name := range []string{"--output=evil.txt", "--orphan=evil"} {
		put(t, filepath.Join(dir, ".git", "refs", "heads", name), head+"\n")
	}
	before := state(t, dir)
	c := serve(t, nil)
	for _, bad := range []string{
		"-p", "--output=evil.txt", "--orphan=evil", "--upload-pack=touch evil", "ext::sh -c touch% evil", "@{-1}", "HEAD@{1}", "a\x00b", "a\nb",
		"HEAD..main..other", "-x...other", "HEAD..@{1}", "HEAD:a.txt", ":/two", "", strings.Repeat("x", 5000), "../../etc", "nothing", "refs/../HEAD", "HEAD^{/two}", "HEAD~999999999999", "a b", "*",
	} {
		for tool, name := range map[string]string{"git_diff": "target", "git_show": "revision", "git_checkout": "branch_name"} {
			refused(t, c, tool, map[string]any{"repo_path": dir, name: bad}, "")
		}
		if bad != "" { // then it is as if there were none, as in the original
			refused(t, c, "git_branch", map[string]any{"repo_path": dir, "branch_type": "local", "contains": bad}, "")
			refused(t, c, "git_branch", map[string]any{"repo_path": dir, "branch_type": "local", "not_contains": bad}, "")
			refused(t, c, "git_create_branch", map[string]any{"repo_path": dir, "branch_name": "new", "base_branch": bad}, "")
		}
	}
	for _, bad := range []string{"-f", "--track=evil", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", `a\b`, "/a", "a/", "a//b", "a.lock", "a.lock/b", ".a", "a/.b", "a.", "@", "HEAD", "a@{b", "a\nb", ""} {
		refused(t, c, "git_create_branch", map[string]any{"repo_path": dir, "branch_name": bad}, "")
	}
	refused(t, c, "git_log", map[string]any{"repo_path": dir, "start_timestamp": "--exec=evil"}, "cannot start with '-'")
	refused(t, c, "git_log", map[string]any{"repo_path": dir, "end_timestamp": "-1"}, "cannot start with '-'")
	refused(t, c, "git_branch", map[string]any{"repo_path": dir, "branch_type": "everything"}, "")
	refused(t, c, "git_status", map[string]any{"repo_path": dir, "extra": 1}, "extra")
	refused(t, c, "git_status", map[string]any{}, "repo_path")
	refused(t, c, "git_diff_unstaged", map[string]any{"repo_path": dir, "context_lines": -1}, "context_lines")
	refused(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "a\x00b"}, "NUL")
	if after := state(t, dir); after != before {
		t.Errorf("the repository was changed:\n%s\n%s", before, after)
	}
	if _, err := os.Stat("evil.txt"); err == nil {
		t.Error("evil.txt was written")
	}
}

// Paths to stage that lie outside, also by links, are refused.
func TestHostilePaths(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	outside := filepath.Join(t.TempDir(), "secret.txt")
	put(t, outside, "secret\n")
	paths := []string{"../secret.txt", outside, "a/../../x", ".git/config", ".GIT/config", "x/.git/y", `.git\x`, `x\.git`, `x\GIT~1\y`, "a\x00b", ""}
	if runtime.GOOS != "windows" {
		for link, to := range map[string]string{"link": outside, "dirlink": filepath.Dir(outside)} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		paths = append(paths, "link", "dirlink/secret.txt", "dirlink")
	}
	c := serve(t, nil)
	for _, path := range paths {
		refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{path}}, "")
	}
	put(t, filepath.Join(dir, "-n"), "a name like an option\n")
	must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"-n"}})
	if staged := gitIn(t, dir, "diff", "--cached", "--name-only"); staged != "-n\n" {
		t.Errorf("staged: %q", staged)
	}
	gitIn(t, dir, "reset", "-q")
}

// A repository must lie within --repository, with all of its parts, however it says where they are.
func TestHostileRepositories(t *testing.T) {
	needGitProgram(t)
	if runtime.GOOS == "windows" {
		t.Skip("making links needs rights on Windows")
	}
	top := t.TempDir()
	allowed, other := filepath.Join(top, "allowed"), simple(t)
	make := func(name string, change func(dir string)) string {
		dir := filepath.Join(allowed, name)
		if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(copyOf(t, other), dir); err != nil {
			t.Fatal(err)
		}
		change(dir)
		return dir
	}
	link := func(to, at string) {
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	config := func(text string) func(string) {
		return func(dir string) {
			old, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, ".git", "config"), string(old)+text)
		}
	}
	gitDir := filepath.Join(other, ".git")
	outside := map[string]string{
		"git file": make("a", func(dir string) {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, ".git"), "gitdir: "+gitDir+"\n")
		}),
		"git link":     make("b", func(dir string) { link(gitDir, filepath.Join(dir, ".git")) }),
		"objects link": make("c", func(dir string) { link(filepath.Join(gitDir, "objects"), filepath.Join(dir, ".git", "objects")) }),
		"refs link":    make("d", func(dir string) { link(filepath.Join(gitDir, "refs"), filepath.Join(dir, ".git", "refs")) }),
		"config link":  make("e", func(dir string) { link(filepath.Join(gitDir, "config"), filepath.Join(dir, ".git", "config")) }),
		"HEAD link":    make("f", func(dir string) { link("/etc/passwd", filepath.Join(dir, ".git", "HEAD")) }),
		"alternates": make("g", func(dir string) {
			put(t, filepath.Join(dir, ".git", "objects", "info", "alternates"), filepath.Join(gitDir, "objects")+"\n")
		}),
		"commondir": make("h", func(dir string) { put(t, filepath.Join(dir, ".git", "commondir"), gitDir+"\n") }),
		"worktree":  make("i", config("[core]\n\tworktree = /etc\n")),
		"path":      other,
		"dots":      filepath.Join(allowed, "..", filepath.Base(top), "..", "..", "etc"),
		"no repo":   allowed,
		"missing":   filepath.Join(allowed, "missing"),
		"inside it": filepath.Join(make("k", func(string) {}), ".git"),
	}
	link(other, filepath.Join(allowed, "link"))
	outside["linked"] = filepath.Join(allowed, "link")
	c := serve(t, &git.Options{Repositories: []string{allowed}})
	for why, dir := range outside {
		for _, tool := range []string{"git_status", "git_log"} {
			if text, failed := call(t, c, tool, map[string]any{"repo_path": dir}); !failed {
				t.Errorf("%s: %s is not refused: %s", why, tool, text)
			}
		}
	}
	must(t, c, "git_status", map[string]any{"repo_path": make("good", func(string) {})})
	t.Run("include", func(t *testing.T) {
		away := "[include]\n\tpath = " + filepath.Join(gitDir, "config") + "\n"
		for name, change := range map[string]func(dir string){
			"from config": config(away),
			"in an included file": func(dir string) {
				config("[include]\n\tpath = more\n")(dir)
				put(t, filepath.Join(dir, ".git", "more"), away)
			},
			"in config.worktree": func(dir string) {
				config("[extensions]\n\tworktreeConfig = true\n")(dir)
				put(t, filepath.Join(dir, ".git", "config.worktree"), away)
			},
			"in a circle": config("[include]\n\tpath = config\n"),
		} {
			dir := make("included "+name, change)
			must(t, serve(t, nil), "git_status", map[string]any{"repo_path": dir}) // it reads no includes
		}
	})
	t.Run("files to ignore", func(t *testing.T) {
		dir := make("ignoring", config("[core]\n\texcludesFile = "+filepath.Join(other, "ignored")+"\n\tattributesFile = "+filepath.Join(other, "attributes")+"\n"))
		put(t, filepath.Join(other, "ignored"), "*.log\n")
		put(t, filepath.Join(other, "attributes"), "*.txt binary\n")
		put(t, filepath.Join(dir, "x.log"), "not ignored\n")
		put(t, filepath.Join(dir, "a.txt"), "not binary\n")
		c := serve(t, nil)
		if text := must(t, c, "git_status", map[string]any{"repo_path": dir}); !strings.Contains(text, "x.log") {
			t.Errorf("a file outside of the repository says what is ignored: %s", text)
		}
		if text := must(t, c, "git_diff_unstaged", map[string]any{"repo_path": dir}); !strings.Contains(text, "+not binary") {
			t.Errorf("a file outside of the repository says what is binary: %s", text)
		}
	})
}

// A linked working tree is used when --repository has both it and the repository.
func TestLinkedWorkingTree(t *testing.T) {
	needGitProgram(t)
	top := t.TempDir()
	dir := filepath.Join(top, "main")
	if err := os.Rename(copyOf(t, simple(t)), dir); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(top, "linked")
	gitIn(t, dir, "worktree", "add", "-q", linked, "other")
	c := serve(t, &git.Options{Repositories: []string{top}})
	want := "Repository status:\n" + strings.TrimSuffix(gitIn(t, linked, "status"), "\n")
	if got := must(t, c, "git_status", map[string]any{"repo_path": linked}); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	put(t, filepath.Join(linked, "a.txt"), t.Name()+"\n")
	must(t, c, "git_add", map[string]any{"repo_path": linked, "files": []string{"a.txt"}})
	must(t, c, "git_commit", map[string]any{"repo_path": linked, "message": "in the linked tree"})
	if s := gitIn(t, dir, "log", "-1", "--format=%s", "other"); s != "in the linked tree\n" {
		t.Errorf("the branch is at %q", s)
	}
	refused(t, serve(t, &git.Options{Repositories: []string{linked}}), "git_status", map[string]any{"repo_path": linked}, "leads outside")
}

// Trees that unfold to billions of files, names that lead out of the working tree, and objects that
// are not there end in an error, soon.
func TestHostileObjects(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	write := func(kind string, content string) string {
		out, err := tryGit(dir, []byte(content), "hash-object", "-w", "-t", kind, "--literally", "--stdin")
		if err != nil {
			t.Fatalf("hash-object: %v %s", err, out)
		}
		return strings.TrimSpace(out)
	}
	raw := func(hash string) string {
		var b strings.Builder
		for i := 0; i < len(hash); i += 2 {
			var c byte
			if _, err := fmt.Sscanf(hash[i:i+2], "%02x", &c); err != nil {
				t.Fatal(err)
			}
			b.WriteByte(c)
		}
		return b.String()
	}
	commit := func(tree string) string {
		return write("commit", "tree "+tree+"\nauthor A <a@b> 1710072000 +0000\ncommitter A <a@b> 1710072000 +0000\n\nm\n")
	}
	blob := write("blob", "x\n")
	bomb := ""
	for i := range 10 {
		entry, hash := "100644 ", blob
		if i > 0 {
			entry, hash = "40000 ", bomb
		}
		var b strings.Builder
		for n := range 10 {
			fmt.Fprintf(&b, "%sf%d\x00%s", entry, n, raw(hash))
		}
		bomb = write("tree", b.String())
	}
	gitIn(t, dir, "update-ref", "refs/heads/bomb", commit(bomb))
	for _, name := range []string{`a\b`, `a\..\b`, "a:b", "a ", "a.", "a*", "a\x01b"} {
		if !gogit.ValidName(name, false) || gogit.ValidName(name, true) {
			t.Errorf("%q must be a name, but not on Windows", name)
		}
	}
	evil := []string{"..", ".git", ".GIT", "a/b", "git~1", ".", `.git\hooks`, `a\.Git\b`, `a\git~1`, ".git::$INDEX_ALLOCATION", ".git ", ".git. .", ".g\u200cit"}
	for i, name := range evil {
		sub := write("tree", "100644 config\x00"+raw(blob))
		gitIn(t, dir, "update-ref", fmt.Sprintf("refs/heads/evil%d", i), commit(write("tree", "40000 "+name+"\x00"+raw(sub))))
	}
	gitIn(t, dir, "update-ref", "refs/tags/blob", blob)
	config, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, &git.Options{Limits: gogit.Limits{Files: 10000}})
	for _, tool := range []struct{ name, arg string }{{"git_diff", "target"}, {"git_show", "revision"}, {"git_checkout", "branch_name"}} {
		refused(t, c, tool.name, map[string]any{"repo_path": dir, tool.arg: "bomb"}, "10000 files")
		refused(t, c, tool.name, map[string]any{"repo_path": dir, tool.arg: strings.Repeat("ab", 20)}, "did not resolve")
		refused(t, c, tool.name, map[string]any{"repo_path": dir, tool.arg: "blob"}, "")
	}
	for i, name := range evil {
		refused(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": fmt.Sprintf("evil%d", i)}, fmt.Sprintf("an entry %q, which is refused", name))
	}
	if now, err := os.ReadFile(filepath.Join(dir, ".git", "config")); err != nil || string(now) != string(config) {
		t.Errorf(".git/config was written: %q %v", now, err)
	}
	if s := gitIn(t, dir, "status", "--porcelain"); s != "" {
		t.Errorf("the working tree was changed: %s", s)
	}
}

// Damaged repositories end in an error and not in a panic.
func TestDamaged(t *testing.T) {
	needGitProgram(t)
	good := simple(t)
	for name, damage := range map[string]func(dir string){
		"index": func(dir string) {
			put(t, filepath.Join(dir, ".git", "index"), "DIRC\x00\x00\x00\x02\xff\xff\xff\xffrubbish")
		},
		"config": func(dir string) { put(t, filepath.Join(dir, ".git", "config"), "[core\nrubbish") },
		"HEAD":   func(dir string) { put(t, filepath.Join(dir, ".git", "HEAD"), "rubbish\n") },
		"loop": func(dir string) {
			put(t, filepath.Join(dir, ".git", "refs", "heads", "main"), "ref: refs/heads/main\n")
		},
		"format": func(dir string) {
			put(t, filepath.Join(dir, ".git", "config"), "[core]\n\trepositoryformatversion = 9\n")
		},
		"sha256": func(dir string) {
			put(t, filepath.Join(dir, ".git", "config"), "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, good)
			damage(dir)
			c := serve(t, nil)
			text, failed := call(t, c, "git_status", map[string]any{"repo_path": dir})
			if !failed || strings.Contains(text, "internal error") {
				t.Errorf("git_status gives %q (failed: %t)", text, failed)
			}
		})
	}
}
