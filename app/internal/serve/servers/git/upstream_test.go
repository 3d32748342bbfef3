package git_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// Reports about the original that no other test covers. The name of each is its number in
// modelcontextprotocol/servers; ../testdata/reports.txt lists all reports.
func TestUpstreamReports(t *testing.T) {
	needGitProgram(t)
	t.Run("619", reportAuthor)
	t.Run("2373", reportAddAll)
	t.Run("4532", reportBytes)
}

// The author of a commit is that of the repository's configuration, or of the environment.
func reportAuthor(t *testing.T) {
	dir := simple(t)
	gitIn(t, dir, "config", "user.name", "Grace")
	gitIn(t, dir, "config", "user.email", "grace@example.com")
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "")
	}
	c := serve(t, nil)
	commit := func(name string) string {
		put(t, filepath.Join(dir, name), name+"\n")
		must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{name}})
		must(t, c, "git_commit", map[string]any{"repo_path": dir, "message": name})
		return strings.TrimSpace(gitIn(t, dir, "log", "-1", "--format=%an <%ae> %cn <%ce>"))
	}
	if got, want := commit("one"), "Grace <grace@example.com> Grace <grace@example.com>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Setenv("GIT_AUTHOR_NAME", "Edsger")
	t.Setenv("GIT_AUTHOR_EMAIL", "edsger@example.com")
	if got, want := commit("two"), "Edsger <edsger@example.com> Grace <grace@example.com>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The path "." stages all files, those that begin with a dot too, and nothing of .git.
func reportAddAll(t *testing.T) {
	dir := simple(t)
	for _, name := range []string{".env", "new.txt", "sub/.hidden"} {
		put(t, filepath.Join(dir, filepath.FromSlash(name)), "x\n")
	}
	must(t, serve(t, nil), "git_add", map[string]any{"repo_path": dir, "files": []string{"."}})
	if got, want := gitIn(t, dir, "diff", "--cached", "--name-only"), ".env\nnew.txt\nsub/.hidden\n"; got != want {
		t.Errorf("staged: %q, want %q", got, want)
	}
}

// A commit is shown although a file of it is not UTF-8, or is binary.
func reportBytes(t *testing.T) {
	dir := simple(t)
	put(t, filepath.Join(dir, "latin.txt"), "caf\xe9\n")
	put(t, filepath.Join(dir, "binary"), "\x00\x01\xff")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "bytes")
	text := must(t, serve(t, nil), "git_show", map[string]any{"repo_path": dir, "revision": "HEAD"})
	for _, part := range []string{"bytes", "+caf\ufffd", "binary"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not have %q", text, part)
		}
	}
}
