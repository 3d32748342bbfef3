package git_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// After a call no file of the repository is open, also none that the collector would close some day.
func TestNoFilesAreLeftOpen(t *testing.T) {
	dir := simple(t) // each of its objects is a file
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	c := serve(t, nil)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for tool, args := range map[string]map[string]any{
		"git_status": {}, "git_log": {}, "git_show": {"revision": "HEAD"}, "git_diff": {"target": "HEAD"},
		"git_diff_unstaged": {}, "git_diff_staged": {}, "git_branch": {"branch_type": "all", "contains": "HEAD"}, "git_reset": {},
	} {
		args["repo_path"] = dir
		must(t, c, tool, args)
		files, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, real+"/") {
				t.Errorf("%s leaves %s open", tool, to)
			}
		}
	}
}
