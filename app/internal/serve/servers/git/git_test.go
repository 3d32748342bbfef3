package git_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// The tools of server.py:284 to :434, with what they claim about themselves.
func TestTools(t *testing.T) {
	const readOnly, write, again, destroys = "read only", "writes", "writes, twice as well", "destroys"
	want := map[string]string{
		"git_status": readOnly, "git_diff_unstaged": readOnly, "git_diff_staged": readOnly, "git_diff": readOnly, "git_log": readOnly,
		"git_show": readOnly, "git_branch": readOnly, "git_commit": write, "git_add": again, "git_reset": destroys,
		"git_create_branch": write, "git_checkout": write,
	}
	for _, ro := range []bool{false, true} {
		got := make(map[string]string)
		for tool, err := range serve(t, &git.Options{ReadOnly: ro}).Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			a := tool.Annotations
			switch {
			case *a.ReadOnlyHint:
				got[tool.Name] = readOnly
			case *a.DestructiveHint:
				got[tool.Name] = destroys
			case *a.IdempotentHint:
				got[tool.Name] = again
			default:
				got[tool.Name] = write
			}
			if *a.OpenWorldHint || tool.Description == "" {
				t.Errorf("%s: %+v", tool.Name, tool)
			}
		}
		expected := make(map[string]string)
		for name, kind := range want {
			if !ro || kind == readOnly {
				expected[name] = kind
			}
		}
		if d := cmp.Diff(expected, got); d != "" {
			t.Errorf("read only %t (-want +got):\n%s", ro, d)
		}
	}
}

// Each text and list among the arguments has a bound in the schema, and what is larger is refused
// before any work.
func TestArgumentsAreBounded(t *testing.T) {
	needGitProgram(t)
	c := serve(t, nil)
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		type bounds struct {
			Type                any
			Enum                []any
			MaxLength, MaxItems int
		}
		var schema struct {
			Properties map[string]struct {
				bounds

				AllOf []bounds // of types with a schema that they write themselves
			}
		}
		if err := json.Unmarshal(raw, &schema); err != nil || len(schema.Properties) == 0 {
			t.Fatalf("%s: %v %s", tool.Name, err, raw)
		}
		for name, property := range schema.Properties {
			p := property.bounds
			if len(property.AllOf) > 0 {
				p = property.AllOf[0]
			}
			kind := fmt.Sprint(p.Type)
			switch {
			case kind == "integer", len(p.Enum) > 0:
			case kind == "array" && p.MaxItems > 0:
				refused(t, c, tool.Name, map[string]any{"repo_path": ".", name: slices.Repeat([]string{"x"}, p.MaxItems+1)}, name)
			case strings.Contains(kind, "string") && p.MaxLength > 0:
				refused(t, c, tool.Name, map[string]any{"repo_path": ".", name: strings.Repeat("x", p.MaxLength+1)}, name)
			default:
				t.Errorf("%s: %s has no bound: %s", tool.Name, name, raw)
			}
		}
	}
	dir := simple(t)
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{strings.Repeat("x", 5000)}}, "1 to 4096 bytes")
}

// Every tool works in every revision and over every transport; arguments that the original lets be
// null may be.
func TestEachEra(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	build := func(tb testing.TB, o *server.Options) *server.Server {
		s, err := git.New("1.0.0", &git.Options{Server: o, Repositories: []string{dir}})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if got := must(t, c, "git_status", map[string]any{"repo_path": dir}); got != "Repository status:\nOn branch main\nnothing to commit, working tree clean" {
			t.Errorf("status: %q", got)
		}
		got := must(t, c, "git_branch", map[string]any{"repo_path": dir, "branch_type": "local", "contains": nil, "not_contains": nil})
		if got != "* main\n  other" {
			t.Errorf("branches: %q", got)
		}
		must(t, c, "git_log", map[string]any{"repo_path": dir, "start_timestamp": nil, "end_timestamp": nil, "max_count": 1})
	})
}

// The span of time of git_log is that of git's --since and --until.
func TestLogTimes(t *testing.T) {
	needGitProgram(t)
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	var in strings.Builder
	for day := range 20 {
		when := time.Date(2024, 2, 20+day, 12, 0, 0, 0, time.UTC).Unix()
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Ada <ada@example.com> %d +0000\ndata 3\nd%02d\n", when, day)
	}
	if out, err := tryGit(dir, []byte(in.String()), "fast-import", "--quiet"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	c := serve(t, nil) // now is 2024-03-10 12:00, the time of the last commit
	for _, test := range []struct {
		since, until string
		want         int
	}{
		{"2024-03-01", "", 10},
		{"2024-03-01T13:00:00", "", 9},
		{"2024-03-01T13:00:00+02:00", "", 10},
		{"", "2024-02-29", 10},
		{"2024-02-29", "2024-03-01", 2},
		{"Mar 1 2024", "2 March 2024", 2},
		{"3 days ago", "", 4},
		{"1 week ago", "", 8},
		{"1.week.ago", "", 8},
		{"yesterday", "", 2},
		{"", "yesterday", 19},
		{"last month", "2024-02-22", 3},
		{"@1709294400", "", 10},
		{"2024-03-10", "", 1},
		{"", "2 weeks ago", 6},
	} {
		args := map[string]any{"repo_path": dir, "max_count": 100}
		if test.since != "" {
			args["start_timestamp"] = test.since
		}
		if test.until != "" {
			args["end_timestamp"] = test.until
		}
		if got := strings.Count(must(t, c, "git_log", args), "Commit: "); got != test.want {
			t.Errorf("from %q to %q there are %d commits, want %d", test.since, test.until, got, test.want)
		}
	}
	got := must(t, c, "git_log", map[string]any{"repo_path": dir, "start_timestamp": "2024-03-01", "max_count": 2})
	want := logOf(t, dir, 2)
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	refused(t, c, "git_log", map[string]any{"repo_path": dir, "start_timestamp": "when pigs fly"}, "give a date")
}

// Limits are kept: results are cut with a note, and what would be too much is an error.
func TestLimits(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, "a.txt"), strings.Repeat("a line of a large file\n", 50000))
	for i := range 300 {
		put(t, filepath.Join(dir, "many", fmt.Sprint(i)), "x\n")
	}
	args := map[string]any{"repo_path": dir}
	c := serve(t, &git.Options{Limits: gogit.Limits{Output: 5000}})
	text := must(t, c, "git_diff_unstaged", args)
	if len(text) > 5200 || !strings.HasSuffix(text, "\n[cut here: the result is longer than 5000 bytes]") || !strings.HasPrefix(text, "Unstaged changes:\ndiff --git a/a.txt b/a.txt\n") {
		t.Errorf("%d bytes: %.100q ... %q", len(text), text, text[max(0, len(text)-100):])
	}
	refused(t, serve(t, &git.Options{Limits: gogit.Limits{Files: 200}}), "git_status", args, "more than 200 files")
	refused(t, serve(t, &git.Options{Limits: gogit.Limits{Commits: 1}}), "git_log", args, "more than 1 commits")
	small := serve(t, &git.Options{Limits: gogit.Limits{Object: 1000}})
	if text := must(t, small, "git_diff_unstaged", args); !strings.Contains(text, "are not compared") {
		t.Errorf("a large file is compared: %.300q", text)
	}
	if text := must(t, small, "git_status", args); !strings.Contains(text, "modified:   a.txt") {
		t.Errorf("status: %s", text)
	}
}

// A file of packed references that is too large is not read.
func TestLargePackedRefs(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	gitIn(t, dir, "pack-refs", "--all")
	c := serve(t, nil)
	args := map[string]any{"repo_path": dir, "branch_type": "local"}
	must(t, c, "git_branch", args)
	if err := os.Truncate(filepath.Join(dir, ".git", "packed-refs"), 100<<20); err != nil { // it grows
		t.Fatal(err)
	}
	if used := allocated(func() {
		refused(t, c, "git_branch", args, ".git/packed-refs has 104857600 bytes, more than 67108864, is not supported")
	}); used > 10<<20 {
		t.Errorf("%d bytes were used", used)
	}
}

type rootsTest struct {
	name  string
	roots []mcp.Root
	ok    []string
	words string
}

func (r *rootsTest) options() *client.Options {
	return &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return r.roots, nil }}
}

// Without --repository the roots of the client say what may be touched.
func TestRoots(t *testing.T) {
	needGitProgram(t)
	dir, other := simple(t), simple(t)
	uri := func(dir string) mcp.Root {
		p := filepath.ToSlash(dir)
		if runtime.GOOS == "windows" {
			p = "/" + p
		}
		return mcp.Root{URI: (&url.URL{Scheme: "file", Path: p}).String()}
	}
	for _, test := range []rootsTest{
		{"one", []mcp.Root{uri(dir)}, []string{dir}, "outside"},
		{"two", []mcp.Root{uri(filepath.Join(dir, "..")), uri(other)}, []string{dir, other}, ""},
		{"none", nil, []string{dir, other}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, nil, test.options())
			for _, d := range []string{dir, other} {
				if slices.Contains(test.ok, d) {
					must(t, c, "git_status", map[string]any{"repo_path": d})
				} else {
					refused(t, c, "git_status", map[string]any{"repo_path": d}, test.words)
				}
			}
		})
	}
}

// With Confirm the person is asked before staged changes go, if the client can ask and there are any.
func TestConfirm(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	args := map[string]any{"repo_path": dir}
	asked, sure := 0, false
	c := serve(t, &git.Options{Confirm: true}, &client.Options{
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			return client.Accept(map[string]any{"sure": sure})
		},
	})
	must(t, c, "git_reset", args)
	if asked != 0 {
		t.Error("the person is asked although nothing is staged")
	}
	put(t, filepath.Join(dir, "a.txt"), "staged\n")
	gitIn(t, dir, "add", ".")
	refused(t, c, "git_reset", args, "did not agree")
	if s := gitIn(t, dir, "diff", "--cached", "--name-only"); s != "a.txt\n" || asked != 1 {
		t.Errorf("staged: %q, asked %d times", s, asked)
	}
	sure = true
	must(t, c, "git_reset", args)
	if s := gitIn(t, dir, "diff", "--cached", "--name-only"); s != "" || asked != 2 {
		t.Errorf("staged: %q, asked %d times", s, asked)
	}
	gitIn(t, dir, "add", ".")
	must(t, serve(t, &git.Options{Confirm: true}), "git_reset", args) // it cannot ask
}

// Files of commits are resources, and their names are completed.
func TestFiles(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, "dir", "b.txt"), "b\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "three")
	gitIn(t, dir, "tag", "v1")
	c := serve(t, &git.Options{Repositories: []string{dir}})
	for uri, want := range map[string]string{
		"git://repository/HEAD/a.txt": "two\n", "git://repository/other/a.txt": "two\n", "git://repository/HEAD~2/a.txt": "one\n",
		"git://repository/v1/dir/b.txt": "b\n", "git://repository/main/dir": "b.txt\n",
	} {
		res, err := c.ReadResource(t.Context(), uri, nil)
		if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != want || res.Contents[0].URI != uri {
			t.Errorf("%s: %+v %v, want %q", uri, res, err, want)
		}
	}
	for _, test := range []struct {
		argument, value string
		sofar           map[string]string
		want            []string
	}{
		{"ref", "m", nil, []string{"main"}},
		{"ref", "", nil, []string{"HEAD", "main", "other", "v1"}},
		{"path", "", map[string]string{"ref": "main"}, []string{"a.txt", "dir/"}},
		{"path", "dir/", map[string]string{"ref": "main"}, []string{"dir/b.txt"}},
		{"path", "d", map[string]string{"ref": "other"}, nil},
	} {
		p := &mcp.CompleteParams{Ref: mcp.ResourceRef("git://repository/{ref}/{+path}"), Argument: mcp.CompletionArgument{Name: test.argument, Value: test.value}}
		if test.sofar != nil {
			p.Context = &mcp.CompletionContext{Arguments: test.sofar}
		}
		res, err := c.Complete(t.Context(), p)
		if err != nil || !slices.Equal(res.Values, test.want) {
			t.Errorf("%s %q: %+v %v, want %q", test.argument, test.value, res, err, test.want)
		}
	}
	for _, uri := range []string{"git://repository/HEAD/nothing", "git://repository/-x/a.txt", "git://repository/HEAD/../a.txt", "git://repository/HEAD/a.txt/b", "git://repository/nothing/a.txt"} {
		if res, err := c.ReadResource(t.Context(), uri, nil); err == nil {
			t.Errorf("%s: %+v", uri, res)
		}
	}
}

// A repository of 5,000 commits is read in one call of each tool.
func TestManyCommits(t *testing.T) {
	racetest.SkipSerial(t)
	needGitProgram(t)
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	var in strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\ncommitter Ada <ada@example.com> %d +0000\ndata 2\nm\nM 100644 inline dir%d/%d.txt\ndata 6\n%05d\n\n",
			i+1, testTime.Unix()-int64(5000-i)*60, i%40, i%400, i)
	}
	in.WriteString("reset refs/heads/old\nfrom :10\n\nreset refs/heads/older\nfrom :5\n\n")
	if out, err := tryGit(dir, []byte(in.String()), "fast-import", "--quiet"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	gitIn(t, dir, "reset", "-q", "--hard")
	put(t, filepath.Join(dir, "new.txt"), "new\n")
	c := serve(t, nil)
	for _, use := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"git_status", map[string]any{}, "new.txt"},
		{"git_diff_unstaged", map[string]any{}, "Unstaged changes:\n"},
		{"git_diff_staged", map[string]any{}, "Staged changes:\n"},
		{"git_diff", map[string]any{"target": "HEAD~4999"}, "dir0/0.txt"},
		{"git_log", map[string]any{"max_count": 5000}, "Message: m\n"},
		{"git_log", map[string]any{"end_timestamp": "2024-03-01", "max_count": 3}, "Commit history:\n"},
		{"git_show", map[string]any{"revision": "HEAD~4000"}, "+++ "},
		{"git_branch", map[string]any{"branch_type": "all", "contains": "older"}, "* main\n  old\n  older"},
		{"git_branch", map[string]any{"branch_type": "local", "not_contains": "old"}, "  older"},
		{"git_create_branch", map[string]any{"branch_name": "new"}, "'new' from 'main'"},
		{"git_add", map[string]any{"files": []string{"."}}, "new file: new.txt"},
		{"git_commit", map[string]any{"message": "m"}, "hash"},
		{"git_reset", map[string]any{}, "reset"},
		{"git_checkout", map[string]any{"branch_name": "old"}, "'old'"},
		{"git_checkout", map[string]any{"branch_name": "main"}, "'main'"},
	} {
		use.args["repo_path"] = dir
		start := time.Now()
		if text := must(t, c, use.tool, use.args); !strings.Contains(text, use.want) {
			t.Errorf("%s %v gives %.200q, want %q", use.tool, use.args, text, use.want)
		}
		t.Logf("%s: %v", use.tool, time.Since(start)) // for the reader; nothing depends on it
	}
	if s := gitIn(t, dir, "status", "--porcelain"); s != "" {
		t.Errorf("git status: %s", s)
	}
}

// Filters are not run, and so files that have one are not staged, or written by a checkout, as if
// there were none.
func TestFilters(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, ".gitattributes"), "*.bin filter=lfs\n")
	put(t, filepath.Join(dir, "large.bin"), "content\n")
	c := serve(t, nil)
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"large.bin"}}, "filter")
	refused(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}}, "filter")
	if s := gitIn(t, dir, "ls-files", "large.bin"); s != "" {
		t.Errorf("staged: %s", s)
	}
}

// Ends of lines are converted as the attributes say.
func TestEndsOfLines(t *testing.T) {
	needGitProgram(t)
	dir := simple(t)
	put(t, filepath.Join(dir, ".gitattributes"), "* text=auto\n*.win text eol=crlf\n*.raw -text\n")
	for name, text := range map[string]string{"a.win": "a\r\nb\r\n", "b.raw": "a\r\nb\r\n", "c.txt": "a\r\nb\r\n", "d.txt": "a\nb\n", "e.dat": "a\x00\r\n"} {
		put(t, filepath.Join(dir, name), text)
	}
	theirs := copyOf(t, dir)
	gitIn(t, theirs, "add", ".")
	c := serve(t, nil)
	must(t, c, "git_add", map[string]any{"repo_path": dir, "files": []string{"."}})
	if d := cmp.Diff(gitIn(t, theirs, "ls-files", "-s"), gitIn(t, dir, "ls-files", "-s")); d != "" {
		t.Errorf("the index differs (-git +ours):\n%s", d)
	}
	must(t, c, "git_commit", map[string]any{"repo_path": dir, "message": "m"})
	must(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "other"})
	must(t, c, "git_checkout", map[string]any{"repo_path": dir, "branch_name": "main"})
	if text, err := os.ReadFile(filepath.Join(dir, "a.win")); err != nil || string(text) != "a\r\nb\r\n" {
		t.Errorf("a.win is written as %q %v", text, err)
	}
	if s := must(t, c, "git_status", map[string]any{"repo_path": dir}); !strings.Contains(s, "working tree clean") {
		t.Errorf("status: %s", s)
	}
}
