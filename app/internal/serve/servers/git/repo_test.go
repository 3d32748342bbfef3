package git_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/stdio"
)

// serverVar has the test binary serve the repositories in a folder on its standard input and output.
const serverVar = "PARLEY_TEST_GIT_SERVER"

// testTime is when commits of tests are made.
var testTime = time.Date(2024, 3, 10, 12, 0, 0, 0, time.UTC)

// needGitProgram skips tests where git is not installed.
func needGitProgram(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git, which is the judge of this test, is not installed")
	}
}

// TestMain takes the settings of the person out of the tests of this package. With serverVar the test
// binary is the server itself, and with writerVar a process that is killed.
func TestMain(m *testing.M) {
	if what := os.Getenv(writerVar); what != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(what))
		os.Exit(writerFailed)
	}
	if dir := os.Getenv(serverVar); dir != "" {
		s, err := git.New("1.0.0", &git.Options{Repositories: []string{dir}})
		if err == nil {
			err = stdio.Serve(context.Background(), s)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	home, err := os.MkdirTemp("", "parley-git")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"HOME": home, "USERPROFILE": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if err := os.RemoveAll(home); err != nil && code == 0 {
		panic(err)
	}
	os.Exit(code)
}

// gitIn runs git in a folder, as the judge.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, nil, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func tryGit(dir string, in []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_AUTHOR_DATE=1710072000 +0000", "GIT_COMMITTER_DATE=1710072000 +0000", "GIT_PAGER=cat")
	if in != nil {
		cmd.Stdin = bytes.NewReader(in)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return said.String(), err
	}
	return out.String(), nil
}

// serve connects a client to a server.
func serve(t testing.TB, o *git.Options, co ...*client.Options) *client.Client {
	t.Helper()
	if o == nil {
		o = &git.Options{}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return testTime }
	}
	s, err := git.New("1.0.0", o)
	if err != nil {
		t.Fatal(err)
	}
	return mcptest.Client(t, s, co...)
}

// call calls a tool and returns its text, and whether it failed.
func call(t testing.TB, c *client.Client, tool string, args map[string]any) (text string, failed bool) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.CallTool(context.Background(), tool, mcp.RawValue(raw), nil)
	if err != nil {
		return err.Error(), true
	}
	var parts []string
	for _, content := range res.Content {
		parts = append(parts, host.ContentText(content))
	}
	return strings.Join(parts, "|"), res.IsError
}

// must calls a tool that has to succeed.
func must(t testing.TB, c *client.Client, tool string, args map[string]any) string {
	t.Helper()
	text, failed := call(t, c, tool, args)
	if failed {
		t.Errorf("%s %v fails: %s", tool, args, text)
	}
	return text
}

// refused calls a tool that has to fail, with the words in its text.
func refused(t testing.TB, c *client.Client, tool string, args map[string]any, words string) {
	t.Helper()
	text, failed := call(t, c, tool, args)
	if !failed || !strings.Contains(text, words) {
		t.Errorf("%s %v gives %q (failed: %t), want an error with %q", tool, args, text, failed, words)
	}
}

// A maker makes repositories by chance, the same for the same seed.
type maker struct {
	*rand.Rand

	t   testing.TB
	dir string
}

func newMaker(t testing.TB, seed uint64) *maker {
	return &maker{Rand: rand.New(rand.NewPCG(seed, 17)), t: t, dir: t.TempDir()}
}

// names are paths that are hard to quote or to sort.
var names = []string{
	"a.txt", "b.go", "dir/c.txt", "dir/sub/d.go", "dir.txt", "with space.txt", "grün.txt", "quo\"te.txt", "e/f/g/h.txt", "Makefile",
	"e-x.txt", "e.x", "z/one.py", "z/two.py", "tab\there.txt",
}

var pieces = []string{
	"func f%d() {\n", "\tx := %d\n", "\tif x > %d {\n", "\t\treturn %d\n", "\t}\n", "}\n", "\n", "\n", "// a comment %d\n", "class C%d:\n",
	"    def m%d(self):\n", "        pass\n", "line %d\n", "same\n", "same\n", "other\n",
}

// text makes lines.
func (m *maker) text(lines int) string {
	var b strings.Builder
	for range lines {
		piece := pieces[m.IntN(len(pieces))]
		if strings.Contains(piece, "%d") {
			piece = fmt.Sprintf(piece, m.IntN(20))
		}
		b.WriteString(piece)
	}
	if m.IntN(8) == 0 {
		return strings.TrimRight(b.String(), "\n")
	}
	return b.String()
}

// edit changes a text in a few places.
func (m *maker) edit(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 1 + m.IntN(4) {
		at := m.IntN(len(lines) + 1)
		switch m.IntN(4) {
		case 0:
			lines = slices.Insert(lines, at, strings.SplitAfter(m.text(1+m.IntN(4)), "\n")...)
		case 1:
			lines = slices.Delete(lines, at, min(len(lines), at+1+m.IntN(4)))
		case 2:
			if at < len(lines) {
				lines[at] = strings.Replace(lines[at], "\n", fmt.Sprintf(" %d\n", m.IntN(9)), 1)
			}
		case 3:
			to := min(len(lines), at+1+m.IntN(5))
			lines = slices.Insert(lines, m.IntN(len(lines)+1), slices.Clone(lines[at:to])...)
		}
	}
	return strings.Join(lines, "")
}

// history makes a repository with commits on a few branches, by one run of git.
func (m *maker) history(commits int) {
	m.t.Helper()
	gitIn(m.t, m.dir, "init", "-q", "-b", "main")
	var in bytes.Buffer
	files := map[string]string{}
	mark := 0
	for i := range commits {
		branch := "main"
		fmt.Fprintf(&in, "commit refs/heads/%s\nmark :%d\n", branch, i+1)
		when := testTime.Unix() - int64(commits-i)*3600*7
		zone := []string{"+0000", "+0130", "-0800"}[m.IntN(3)]
		author := []string{"Ada <ada@example.com>", "Bob B. <bob@example.com>", "Zoë \"Z\" <z@example.com>"}[m.IntN(3)]
		fmt.Fprintf(&in, "author %s %d %s\ncommitter Ada <ada@example.com> %d %s\n", author, when-60, zone, when, zone)
		message := []string{"change %d\n", "it's \"%d\"\n\nwith a body\n", "don't %d", "grün\t%d\\n\n", "two\nlines %d\n"}[m.IntN(5)]
		message = fmt.Sprintf(message, i)
		fmt.Fprintf(&in, "data %d\n%s\n", len(message), message)
		mark = i + 1
		for range 1 + m.IntN(3) {
			m.fileChange(&in, files)
		}
	}
	if mark > 3 {
		fmt.Fprintf(&in, "reset refs/heads/feature\nfrom :%d\n\nreset refs/heads/old/one\nfrom :%d\n\n", 1+m.IntN(mark), 1+m.IntN(mark))
		fmt.Fprintf(&in, "reset refs/tags/v1\nfrom :%d\n\nreset refs/remotes/origin/main\nfrom :%d\n\n", 1+m.IntN(mark), 1+m.IntN(mark))
	}
	if out, err := tryGit(m.dir, in.Bytes(), "fast-import", "--quiet"); err != nil {
		m.t.Fatalf("fast-import: %v\n%s", err, out)
	}
	gitIn(m.t, m.dir, "reset", "-q", "--hard")
	if m.IntN(2) == 0 {
		m.write(".git/config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"+
			"[remote \"origin\"]\n\turl = /nowhere\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n")
	}
}

// fileChange changes a file in a commit.
func (m *maker) fileChange(in *bytes.Buffer, files map[string]string) {
	name := names[m.IntN(len(names))]
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(name) + `"`
	text, ok := files[name]
	switch {
	case ok && m.IntN(6) == 0:
		delete(files, name)
		fmt.Fprintf(in, "D %s\n", quoted)
		return
	case ok && m.IntN(5) == 0: // a rename, with an edit or without
		to := fmt.Sprintf("moved/%d.txt", m.IntN(100))
		if _, taken := files[to]; taken {
			return
		}
		delete(files, name)
		if m.IntN(2) == 0 && len(text) > 0 {
			text = m.edit(text)
		}
		files[to] = text
		fmt.Fprintf(in, "D %s\nM 100644 inline %s\ndata %d\n%s\n", quoted, to, len(text), text)
		return
	case ok:
		text = m.edit(text)
	default:
		text = m.text(5 + m.IntN(40))
	}
	mode := "100644"
	switch m.IntN(14) {
	case 0:
		mode = "100755"
	case 1:
		text = "bin\x00ary " + fmt.Sprint(m.IntN(50))
	case 2:
		mode, text = "120000", "a.txt"
	}
	files[name] = text
	if mode == "120000" {
		delete(files, name)
		defer func() { files[name] = "x\n" }()
	}
	fmt.Fprintf(in, "M %s inline %s\ndata %d\n%s\n", mode, quoted, len(text), text)
}

func (m *maker) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return // a file is there
	}
	if info, err := os.Lstat(path); err == nil && (info.IsDir() || info.Mode()&fs.ModeSymlink != 0) {
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// tracked lists the files that git knows.
func (m *maker) tracked() []string {
	out := strings.TrimSuffix(gitIn(m.t, m.dir, "ls-files", "-z"), "\x00")
	if out == "" {
		return nil
	}
	return strings.Split(out, "\x00")
}

// disturb changes, adds and removes files of the working tree.
func (m *maker) disturb() {
	m.t.Helper()
	for _, name := range m.tracked() {
		path := filepath.Join(m.dir, filepath.FromSlash(name))
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch m.IntN(5) {
		case 0:
			text, err := os.ReadFile(path)
			if err != nil {
				m.t.Fatal(err)
			}
			m.write(name, m.edit(string(text)))
		case 1:
			if m.IntN(2) == 0 {
				_ = os.Remove(path)
			}
		case 2:
			if m.IntN(3) == 0 {
				_ = os.Chmod(path, info.Mode()^0o111)
			}
		}
	}
	for range m.IntN(4) {
		m.write([]string{"new.txt", "dir/new.txt", "fresh/a/b.txt", "fresh/c.txt", "ignored.log", "build/out.o", "späte.txt"}[m.IntN(7)], m.text(4))
	}
	if m.IntN(3) == 0 {
		m.write(".gitignore", "*.log\nbuild/\n!keep.log\n/fresh/c.txt\n")
	}
}

// stage stages some of it.
func (m *maker) stage() {
	switch m.IntN(4) {
	case 0:
		gitIn(m.t, m.dir, "add", ".")
	case 1:
		gitIn(m.t, m.dir, "add", "-u")
	case 2:
		if list := m.tracked(); len(list) > 1 {
			if _, err := os.Lstat(filepath.Join(m.dir, list[0])); err == nil {
				_, _ = tryGit(m.dir, nil, "mv", list[0], "renamed-by-hand.txt")
			}
		}
	}
}

// commitsOf lists commits, the newest first.
func (m *maker) commits() []string {
	return strings.Fields(gitIn(m.t, m.dir, "rev-list", "--all"))
}

// copyOf copies a repository.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", dir, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	return to
}
