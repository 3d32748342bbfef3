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
	config := gitConfig(script)
	file, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(config); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
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
	m.write(".gitattributes", "*.txt diff=evil merge=evil\n*.go filter=evil diff=evil\n*.md filter=e=vil\n")
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

// gitConfig names a command for everything that has one.
func gitConfig(script func(string) string) string {
	var b strings.Builder
	for _, v := range []struct{ section, name string }{
		{"core", "fsmonitor"},
		{"core", "sshCommand"},
		{"core", "pager"},
		{"core", "editor"},
		{"core", "askPass"},
		{"core", "gitProxy"},
		{"core", "alternateRefsCommand"},
		{"sequence", "editor"},
		{"diff", "external"},
		{"gpg", "program"},
		{"interactive", "diffFilter"},
		{`gpg "ssh"`, "program"},
		{`gpg "ssh"`, "defaultKeyCommand"},
		{`gpg "x509"`, "program"},
		{"credential", "helper"},
		{`credential "https://example.com"`, "helper"},
		{`filter "evil"`, "clean"},
		{`filter "evil"`, "smudge"},
		{`filter "evil"`, "process"},
		{`filter "e=vil"`, "clean"},
		{`diff "evil"`, "textconv"},
		{`diff "evil"`, "command"},
		{`diff "evil2"`, "textconv"},
		{`merge "evil"`, "driver"},
		{"pager", "status"},
		{"pager", "diff"},
		{"pager", "log"},
		{"pager", "branch"},
		{"pager", "show"},
		{`remote "origin"`, "uploadpack"},
		{`remote "origin"`, "receivepack"},
		{"uploadpack", "packObjectsHook"},
		{`trailer "x"`, "command"},
		{`trailer "x"`, "cmd"},
	} {
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", v.section, v.name, script("config-"+strings.NewReplacer(" ", "-", `"`, "", "/", "-", ":", "-").Replace(v.section)+"-"+v.name))
	}
	for _, alias := range []string{"status", "diff", "log", "branch", "rev-list", "cat-file", "write-tree"} {
		fmt.Fprintf(&b, "[alias]\n\t%s = !%s\n", alias, script("alias-"+alias))
	}
	fmt.Fprintf(&b, "[remote \"origin\"]\n\turl = ext::%s\n\tpromisor = true\n\tpartialclonefilter = blob:none\n", script("remote-ext"))
	b.WriteString("[filter \"evil\"]\n\trequired = true\n[log]\n\tshowSignature = true\n[commit]\n\tgpgSign = true\n[diff]\n\tsubmodule = log\n[protocol \"ext\"]\n\tallow = always\n" +
		"[submodule]\n\trecurse = true\n[status]\n\tsubmoduleSummary = true\n[maintenance]\n\tauto = true\n[gc]\n\tauto = 1\n")
	return b.String()
}

// useAll calls every tool. Whether they succeed does not matter here, except for most of them.
func useAll(t testing.TB, c *client.Client, dir string) (succeeded int) {
	t.Helper()
	for _, use := range []struct {
		tool string
		args map[string]any
	}{
		{"git_status", map[string]any{}},
		{"git_diff_unstaged", map[string]any{}},
		{"git_diff", map[string]any{"target": "HEAD~1"}},
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
		text, failed := call(t, c, use.tool, use.args)
		if !failed {
			succeeded++
		}
		t.Logf("%s: failed %t: %.80q", use.tool, failed, text)
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
			[]string{"config-core-fsmonitor", "filter-evil", "config-filter-e=vil-clean", "hook-reference-transaction"},
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
	dir, _ := plant(t)
	trace := filepath.Join(t.TempDir(), "trace")
	d := stdio.Command(strace, "-f", "-qq", "-e", "trace=execve,execveat", "-o", trace, self)
	d.ExtraEnv = []string{serverVar + "=1", "GORACE=atexit_sleep_ms=0"}
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
}
