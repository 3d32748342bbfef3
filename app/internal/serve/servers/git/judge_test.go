package git_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
	"github.com/parley-mcp/parley/client"
)

// cases is how many repositories the judge sees: a few, or what PARLEY_TEST_GIT_CASES says.
func cases(t testing.TB) int {
	if n, err := strconv.Atoi(os.Getenv("PARLEY_TEST_GIT_CASES")); err == nil {
		return n
	}
	if testing.Short() || raceEnabled {
		return 2
	}
	return 4
}

// hints of git to the person at a terminal, which differ between its versions.
var hint = regexp.MustCompile(`(?m)^  \(use .*\n`)

// Proves: PART-REF. What the reading tools say is what git says, of repositories made by chance.
func TestJudgeReading(t *testing.T) {
	needGitProgram(t)
	c := serve(t, nil)
	for seed := range cases(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			m := newMaker(t, uint64(seed))
			m.history(2 + m.IntN(12))
			m.disturb()
			m.stage()
			m.disturb()
			compareReading(t, c, m)
		})
	}
}

func compareReading(t *testing.T, c *client.Client, m *maker) {
	t.Helper()
	same := func(tool string, args map[string]any, want string) {
		t.Helper()
		args["repo_path"] = m.dir
		got := must(t, c, tool, args)
		if tool == "git_status" {
			got, want = hint.ReplaceAllString(got, ""), hint.ReplaceAllString(want, "")
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s %v differs from git (-git +ours):\n%s", tool, args, d)
		}
	}
	trim := func(s string) string { return strings.TrimSuffix(s, "\n") }
	lines := m.IntN(6)
	same("git_status", map[string]any{}, "Repository status:\n"+trim(gitIn(t, m.dir, "status")))
	same("git_diff_unstaged", map[string]any{}, "Unstaged changes:\n"+trim(gitIn(t, m.dir, "diff", "--unified=3")))
	same("git_diff_unstaged", map[string]any{"context_lines": lines}, "Unstaged changes:\n"+trim(gitIn(t, m.dir, "diff", fmt.Sprintf("--unified=%d", lines))))
	same("git_diff_staged", map[string]any{"context_lines": lines}, "Staged changes:\n"+trim(gitIn(t, m.dir, "diff", fmt.Sprintf("--unified=%d", lines), "--cached")))
	all := m.commits()
	some := all[m.IntN(len(all))]
	for _, target := range []string{some, "HEAD"} {
		same("git_diff", map[string]any{"target": target}, "Diff with "+target+":\n"+trim(gitIn(t, m.dir, "diff", "--unified=3", target)))
	}
	// git_show is a commit's data and the hunks of git diff-tree.
	shown := must(t, c, "git_show", map[string]any{"repo_path": m.dir, "revision": some})
	if d := cmp.Diff(showOf(t, m.dir, some), shown); d != "" {
		t.Errorf("git_show %s differs (-git +ours):\n%s", some, d)
	}
	same("git_log", map[string]any{"max_count": 1 + lines}, logOf(t, m.dir, 1+lines))
	for _, kind := range [][2]string{{"local", "--list"}, {"remote", "-r"}, {"all", "-a"}} {
		same("git_branch", map[string]any{"branch_type": kind[0]}, trim(gitIn(t, m.dir, "branch", kind[1])))
	}
	same("git_branch", map[string]any{"branch_type": "all", "contains": some}, trim(gitIn(t, m.dir, "branch", "-a", "--contains", some)))
	same("git_branch", map[string]any{"branch_type": "local", "not_contains": some[:8]}, trim(gitIn(t, m.dir, "branch", "--no-contains", some)))
}

var headerLine = regexp.MustCompile(`^(old mode|new mode|similarity index|rename from|rename to|new file mode|deleted file mode|index|---|\+\+\+) `)

// commitOf is a commit as git_log and git_show write it, of what git says.
func commitOf(t testing.TB, dir, rev string) string {
	t.Helper()
	fields := strings.SplitN(gitIn(t, dir, "show", "-s", "--format=%H%n%an%n%ae%n%ad", "--date=format:%Y-%m-%d %H:%M:%S%z", rev), "\n", 5)
	raw := gitIn(t, dir, "cat-file", "commit", rev)
	_, message, _ := strings.Cut(raw, "\n\n")
	date := fields[3][:len(fields[3])-2] + ":" + fields[3][len(fields[3])-2:]
	message = strings.Join(strings.Split(strings.TrimRight(message, "\n"), "\n"), "\n    ")
	return fmt.Sprintf("Commit: %s\nAuthor: %s <%s>\nDate: %s\nMessage: %s\n", fields[0], fields[1], fields[2], date, message)
}

func logOf(t testing.TB, dir string, n int) string {
	t.Helper()
	var list []string
	for _, h := range strings.Fields(gitIn(t, dir, "rev-list", fmt.Sprintf("--max-count=%d", n), "HEAD")) {
		list = append(list, commitOf(t, dir, h))
	}
	return "Commit history:\n" + strings.Join(list, "\n")
}

// showOf is what server.py:232 makes of a commit, with paths in quotes as git writes them.
func showOf(t testing.TB, dir, rev string) string {
	t.Helper()
	out := commitOf(t, dir, rev)
	args := []string{"diff-tree", "-r", "--root", "--no-commit-id", "-M", "-p", "--full-index", rev}
	patch := gitIn(t, dir, args...)
	for _, part := range strings.Split("\n"+patch, "\ndiff --git ")[1:] {
		lines := strings.SplitAfter(strings.TrimSuffix(part, "\n")+"\n", "\n")
		half := (len(lines[0]) - 1) / 2
		a, b := unquote(lines[0][:half])[2:], unquote(strings.TrimSuffix(lines[0][half+1:], "\n"))[2:]
		i := 1
		for ; i < len(lines) && headerLine.MatchString(lines[i]); i++ {
			value := unquote(strings.TrimRight(lines[i][strings.LastIndex(headerLine.FindString(lines[i]), " ")+1:], "\t\n"))
			switch headerLine.FindString(lines[i]) {
			case "rename from ":
				a = value
			case "rename to ":
				b = value
			case "--- ":
				a = strings.TrimPrefix(value, "a/")
			case "+++ ":
				b = strings.TrimPrefix(value, "b/")
			}
		}
		out += fmt.Sprintf("\n--- %s\n+++ %s\n", gogit.QuotePath(a), gogit.QuotePath(b)) + strings.Join(lines[i:], "")
	}
	return strings.TrimSuffix(out, "\n") + "\n"
}

func unquote(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	text, err := strconv.Unquote(s)
	if err != nil {
		return s
	}
	return text
}
