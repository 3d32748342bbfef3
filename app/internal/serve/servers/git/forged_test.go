package git_test

import (
	"strings"
	"testing"
)

// Neither a message nor a path of a commit can look like another commit.
func TestShownCommitsAreNotForged(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	for _, end := range []string{"\r", "\r\n", "\u2028", "\u2029", "\u0085", "\v", "\f"} {
		gitIn(t, dir, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", "first"+end+"Commit: 0000")
		for _, tool := range []string{"git_log", "git_show"} {
			args := map[string]any{"repo_path": dir}
			if tool == "git_show" {
				args["revision"] = "HEAD"
			}
			if text := must(t, serve(t, nil), tool, args); strings.Contains(text, end+"Commit: 0000") {
				t.Errorf("%s writes the line end %q of a message as it is: %q", tool, end, text)
			}
		}
	}
	blob := strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD:a.txt"))
	if out, err := tryGit(dir, []byte("100644 "+blob+"\tx\nCommit: 0000\x00"), "update-index", "-z", "--index-info"); err != nil {
		t.Fatal(out)
	}
	gitIn(t, dir, "commit", "-q", "-m", "path")
	if text := must(t, serve(t, nil), "git_show", map[string]any{"repo_path": dir, "revision": "HEAD"}); !strings.Contains(text, "+++ \"x\\nCommit: 0000\"\n") {
		t.Errorf("git_show gives %q", text)
	}
}
