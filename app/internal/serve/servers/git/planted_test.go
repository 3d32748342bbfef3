package git_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport/stdio"
)

// plant makes a repository that names a command in every place where git may look for one. Each
// leaves a file in marks when it is run.
func plant(t testing.TB) (dir, marks string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are shell scripts")
	}
	marks = t.TempDir()
	m := newMaker(t, 99)
	m.history(6)
	dir = m.dir
	script := func(name string) string {
		path := filepath.Join(marks, "bin", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("#!/bin/sh\ntouch '%s/ran-%s'\ncat\n", marks, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { // it is to be run
			t.Fatal(err)
		}
		return path
	}
	sub := filepath.Join(dir, "sub")
	if err := os.Rename(copyOf(t, simple(t)), sub); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(gitIn(t, sub, "rev-parse", "HEAD"))+",sub")
	put(t, filepath.Join(sub, "a.txt"), "owt\n")
	put(t, filepath.Join(sub, ".git", "info", "attributes"), "* filter=evil\n")
	// More of the settings are in files that the settings name.
	config := gitConfig(script)
	put(t, filepath.Join(dir, ".git", "more"), config)
	put(t, filepath.Join(dir, ".git", "config.worktree"), config)
	config += "[include]\n\tpath = more\n[includeIf \"onbranch:**\"]\n\tpath = more\n[extensions]\n\tworktreeConfig = true\n\tpartialClone = origin\n"
	for _, repository := range []string{dir, sub} {
		file, err := os.OpenFile(filepath.Join(repository, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(config); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, hook := range []string{
		"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-index-change", "reference-transaction",
		"post-merge", "pre-merge-commit", "pre-push", "fsmonitor-watchman", "post-rewrite", "update", "pre-auto-gc", "sendemail-validate",
	} {
		text, err := os.ReadFile(script("hook-" + hook))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "hooks", hook), text, 0o755); err != nil { // as above
			t.Fatal(err)
		}
	}
	m.write(".gitattributes", "*.txt diff=evil merge=evil\n*.go filter=evil diff=evil\n*.md filter=e=vil\n*.bin filter=lfs\n")
	if err := os.MkdirAll(filepath.Join(dir, ".git", "info"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.write(".git/info/attributes", "*.py filter=evil diff=evil2\n")
	m.disturb()
	m.write("fresh.txt", "new\n")
	m.write("notes.md", "new\n")
	for _, mark := range ran(t, marks) { // making it ran some
		if err := os.Remove(mark); err != nil {
			t.Fatal(err)
		}
	}
	return dir, marks
}

// ran lists the marks of commands that were run.
func ran(t testing.TB, marks string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(marks, "ran-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// commandKeys are the variables of git-config(1), and of the commands that git finds by them, whose
// value is a program. A name of a section has no line break: git reads no such file.
var commandKeys = []struct {
	name string
	keys []string
}{
	{"core", []string{"fsmonitor", "sshCommand", "pager", "editor", "askPass", "gitProxy", "alternateRefsCommand", "virtualFilesystem"}},
	{"sequence", []string{"editor"}},
	{"diff", []string{"external", "tool", "guitool"}},
	{"merge", []string{"tool", "guitool"}},
	{"gpg", []string{"program"}},
	{`gpg "openpgp"`, []string{"program"}},
	{`gpg "x509"`, []string{"program"}},
	{`gpg "ssh"`, []string{"program", "defaultKeyCommand"}},
	{"interactive", []string{"diffFilter"}},
	{"credential", []string{"helper"}},
	{`credential "https://example.com"`, []string{"helper"}},
	{`filter "evil"`, []string{"clean", "smudge", "process"}},
	{`filter "e=vil"`, []string{"clean", "smudge", "process"}},
	{`filter "e vil"`, []string{"clean", "smudge", "process"}},
	{`filter "lfs"`, []string{"clean", "smudge", "process"}},
	{`diff "evil"`, []string{"textconv", "command"}},
	{`diff "evil2"`, []string{"textconv"}},
	{`merge "evil"`, []string{"driver"}},
	{`mergetool "evil"`, []string{"cmd", "path"}},
	{`difftool "evil"`, []string{"cmd", "path"}},
	{`browser "evil"`, []string{"cmd", "path"}},
	{`man "evil"`, []string{"cmd", "path"}},
	{`guitool "evil"`, []string{"cmd"}},
	{`hook "evil"`, []string{"command"}},
	{`tar "evil"`, []string{"command"}},
	{`lfs "customtransfer.evil"`, []string{"path"}},
	{`lfs "extension.evil"`, []string{"clean", "smudge"}},
	{"web", []string{"browser"}},
	{"help", []string{"browser"}},
	{"instaweb", []string{"httpd", "browser"}},
	{"imap", []string{"tunnel"}},
	{"gc", []string{"recentObjectsHook"}},
	{"pager", []string{"status", "diff", "log", "branch", "show", "add", "commit", "reset", "checkout", "config"}},
	{`remote "origin"`, []string{"uploadpack", "receivepack", "vcs"}},
	{"uploadpack", []string{"packObjectsHook"}},
	{"sendemail", []string{"sendmailCmd", "smtpServer", "toCmd", "ccCmd", "headerCmd"}},
	{`trailer "x"`, []string{"command", "cmd"}},
}

// gitConfig names a command for everything that has one.
func gitConfig(script func(string) string) string {
	var b strings.Builder
	plain := strings.NewReplacer(" ", "-", `"`, "", "/", "-", ":", "-")
	for _, section := range commandKeys {
		for _, name := range section.keys {
			fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section.name, name, script("config-"+plain.Replace(section.name)+"-"+name))
		}
	}
	for _, alias := range []string{"status", "diff", "log", "branch", "rev-list", "cat-file", "write-tree", "add", "commit", "show"} {
		fmt.Fprintf(&b, "[alias]\n\t%s = !%s\n", alias, script("alias-"+alias))
	}
	fmt.Fprintf(&b, "[submodule \"sub\"]\n\tupdate = !%s\n\turl = ext::%s\n", script("submodule-update"), script("submodule-ext"))
	b.WriteString("[hook \"evil\"]\n\tevent = pre-commit\n\tevent = post-commit\n")
	fmt.Fprintf(&b, "[remote \"origin\"]\n\turl = ext::%s\n\tpromisor = true\n\tpartialclonefilter = blob:none\n", script("remote-ext"))
	b.WriteString("[filter \"evil\"]\n\trequired = true\n[log]\n\tshowSignature = true\n[commit]\n\tgpgSign = true\n[diff]\n\tsubmodule = log\n[protocol \"ext\"]\n\tallow = always\n" +
		"[submodule]\n\trecurse = true\n[status]\n\tsubmoduleSummary = true\n[maintenance]\n\tauto = true\n[gc]\n\tauto = 1\n")
	return b.String()
}

// useAll calls every tool. Whether they succeed does not matter here, except for most of them.
func useAll(t testing.TB, c *client.Client, dir string) (succeeded int) {
	t.Helper()
	used := make(map[string]bool)
	for _, use := range []struct {
		tool string
		args map[string]any
	}{
		{"git_status", map[string]any{}},
		{"git_diff_unstaged", map[string]any{}},
		{"git_diff", map[string]any{"target": "HEAD~1"}},
		{"git_diff", map[string]any{"target": "HEAD~1...HEAD"}},
		{"git_add", map[string]any{"files": []string{"fresh.txt"}}},
		{"git_add", map[string]any{"files": []string{"."}}},
		{"git_diff_staged", map[string]any{}},
		{"git_commit", map[string]any{"message": "m"}},
		{"git_log", map[string]any{}},
		{"git_log", map[string]any{"start_timestamp": "2024-01-01"}},
		{"git_show", map[string]any{"revision": "HEAD~1"}},
		{"git_branch", map[string]any{"branch_type": "all", "contains": "HEAD~1"}},
		{"git_create_branch", map[string]any{"branch_name": "topic", "base_branch": "feature"}},
		{"git_reset", map[string]any{}},
		{"git_checkout", map[string]any{"branch_name": "topic"}},
		{"git_checkout", map[string]any{"branch_name": "main"}},
		{"git_show", map[string]any{"revision": strings.Repeat("12", 20)}}, // not there: a partial clone would be asked for it
	} {
		use.args["repo_path"] = dir
		used[use.tool] = true
		text, failed := call(t, c, use.tool, use.args)
		if !failed {
			succeeded++
		}
		t.Logf("%s: failed %t: %.80q", use.tool, failed, text)
	}
	for tool, err := range c.Tools(t.Context()) {
		if err != nil || !used[tool.Name] {
			t.Errorf("the tool %s is not used: %v", tool.Name, err)
		}
	}
	if _, err := c.ReadResource(t.Context(), "git://repository/HEAD~1/a.txt", nil); err == nil {
		succeeded++
	}
	return succeeded
}

// plantSubmodule makes a repository with a submodule, whose own settings name a filter.
func plantSubmodule(t testing.TB) (dir, marks string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the command is a shell script")
	}
	dir, marks = simple(t), t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Rename(copyOf(t, simple(t)), sub); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(gitIn(t, sub, "rev-parse", "HEAD"))+",sub")
	gitIn(t, dir, "commit", "-q", "-m", "with a submodule")
	gitIn(t, dir, "branch", "feature")
	gitIn(t, sub, "config", "filter.evil.clean", fmt.Sprintf("touch '%s/ran-submodule-filter'; cat", marks))
	put(t, filepath.Join(sub, ".git", "info", "attributes"), "* filter=evil\n")
	put(t, filepath.Join(sub, "a.txt"), "owt\n") // as long as it was: git looks into it
	put(t, filepath.Join(dir, "fresh.txt"), "new\n")
	return dir, marks
}

// Proves: PART-REF. A repository that names commands in every place where git has them runs none.
func TestPlantedCommands(t *testing.T) {
	needGitProgram(t)
	for _, test := range []struct {
		name  string
		plant func(testing.TB) (dir, marks string)
		git   [][]string // commands of git itself, which run some of them, so that the test could fail
		runs  []string
	}{
		{
			"repository", plant,
			[][]string{{"diff"}, {"update-ref", "refs/heads/control", "HEAD"}, {"add", "."}, {"add", "notes.md"}, {"log", "-1"}},
			[]string{"config-core-fsmonitor", "filter-evil", "config-filter-e=vil-process", "hook-reference-transaction"},
		},
		{"submodule", plantSubmodule, [][]string{{"status"}}, []string{"submodule-filter"}},
	} {
		t.Run("control/"+test.name, func(t *testing.T) {
			dir, marks := test.plant(t)
			for _, args := range test.git {
				_, _ = tryGit(dir, nil, args...)
			}
			got := strings.Join(ran(t, marks), " ")
			for _, want := range test.runs {
				if !strings.Contains(got, want) {
					t.Errorf("git has not run %s but only %s", want, got)
				}
			}
		})
		t.Run(test.name, func(t *testing.T) {
			dir, marks := test.plant(t)
			if n := useAll(t, serve(t, nil), dir); n < 11 {
				t.Errorf("only %d calls succeed", n)
			}
			if got := ran(t, marks); len(got) > 0 {
				t.Errorf("commands of the repository were run: %v", got)
			}
		})
	}
}

var executed = regexp.MustCompile(`execve(?:at)?\((?:[^"]*)"([^"]*)"`)

// The same as the kernel sees it: the server starts no program.
func TestPlantedCommandsTraced(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace, which watches the server here, is not installed")
	}
	needGitProgram(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, marks := plant(t)
	// Its hooks are in a folder that .git has a link to, and the settings name the same one.
	hooks := filepath.Join(dir, ".git", "hooks")
	if err := os.Rename(hooks, filepath.Join(dir, "planted")); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join("..", "planted"), hooks)
	trace := filepath.Join(t.TempDir(), "trace")
	d := stdio.Command(strace, "-f", "-qq", "-e", "trace=execve,execveat", "-o", trace, self)
	d.ExtraEnv = []string{serverVar + "=" + dir, "GORACE=atexit_sleep_ms=0"}
	d.Logger = slog.New(slog.DiscardHandler)
	c, err := client.Connect(t.Context(), d, nil)
	if err != nil {
		t.Skipf("strace cannot watch here: %v", err)
	}
	n := useAll(t, c, dir)
	if err := c.Close(); err != nil {
		t.Logf("close: %v", err)
	}
	if n < 11 {
		t.Errorf("only %d calls succeed", n)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	programs := make(map[string]int)
	for _, m := range executed.FindAllStringSubmatch(string(text), -1) {
		programs[m[1]]++
	}
	if len(programs) != 1 || programs[self] != 1 {
		t.Errorf("these programs were started, want the server alone, once: %v", programs)
	}
	if got := ran(t, marks); len(got) > 0 {
		t.Errorf("commands of the repository were run: %v", got)
	}
}
