package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A repository that is no folder is told when the server starts, and not at the first call.
func TestGitNeedsFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{file, filepath.Join(dir, "absent")} {
		code, out, said := run(t, "", "serve", "git", "--repository", dir, "--repository", wrong)
		if code != 1 || out != "" || !strings.Contains(said, `--repository "`+wrong+`": folder not found`) {
			t.Errorf("%s: %d, wrote %q, said %q", wrong, code, out, said)
		}
	}
	if code, _, said := run(t, "", "serve", "git", "--repository", dir); code != 0 {
		t.Errorf("a folder is refused: %d %s", code, said)
	}
}

// Proves: PART-REF. No flag has the server start git, which would run commands of a repository.
func TestGitHasNoProgram(t *testing.T) {
	t.Parallel()
	code, out, said := run(t, "", "serve", "git", "--repository", t.TempDir(), "--git", "git")
	if code != 1 || out != "" || !strings.Contains(said, "unknown flag: --git; see 'parley serve git --help'") {
		t.Errorf("%d, wrote %q, said %q", code, out, said)
	}
}

// The server says at its start which repositories it serves beyond those that are named.
func TestGitNamesReach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(sub, "file.txt"), "one\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "without --repository DIR, a local client"},
		{[]string{"--repository", sub}, "the whole repository is served"},
		{[]string{"--repository", dir}, ""},
	} {
		code, _, said := run(t, "", append([]string{"serve", "git"}, test.args...)...)
		if code != 0 || !strings.Contains(said, test.want) || test.want == "" && strings.Contains(said, "served") {
			t.Errorf("%q: %d, said %q, want %q", test.args, code, said, test.want)
		}
	}
}
