package interop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Clients of others use 'parley serve git'. The repository is made by git, if there is any.
func TestServersGitClients(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git, which makes the repository of this test, is not installed")
	}
	useBuiltin(t, func(t *testing.T) useCase {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "first"}} {
			cmd := exec.Command(git, args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
		return useCase{
			args: []string{"git", "--repository", dir},
			tools: []string{
				"git_status", "git_diff_unstaged", "git_diff_staged", "git_diff", "git_commit", "git_add", "git_reset", "git_log",
				"git_create_branch", "git_checkout", "git_show", "git_branch",
			},
			calls: []useCall{
				{tool: "git_status", args: map[string]any{"repo_path": dir}, want: "nothing to commit, working tree clean"},
				{tool: "git_show", args: map[string]any{"repo_path": dir, "revision": "main"}, want: "+one\n"},
				{tool: "git_create_branch", args: map[string]any{"repo_path": dir, "branch_name": "topic"}, want: "Created branch 'topic' from 'main'"},
				{tool: "git_checkout", args: map[string]any{"repo_path": dir, "branch_name": "--orphan"}, want: "cannot start with '-'", failed: true},
				{tool: "git_status", args: map[string]any{"repo_path": filepath.Dir(dir)}, want: "outside the allowed repository", failed: true},
			},
			read: "git://repository/main/a.txt", readWant: "one\n",
		}
	})
}
