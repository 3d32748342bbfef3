package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/parley-mcp/parley/mcp"
)

// A program does the work with git itself, with everything off by which a repository could have it
// start another program or connect to a server.
type program struct {
	*place

	git    string // the program
	limits Limits
	config []string // settings for this repository, as name=value
	env    []string
}

// off are settings that hold whatever the repository says.
var off = []string{
	"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "core.pager=cat", "core.editor=false", "sequence.editor=false",
	"core.sshCommand=false", "core.gitProxy=", "core.askPass=false", "core.alternateRefsCommand=false", "credential.helper=",
	"diff.external=", "interactive.diffFilter=", "gpg.program=false", "gpg.ssh.program=false", "gpg.x509.program=false",
	"gpg.ssh.defaultKeyCommand=false", "commit.gpgSign=false", "log.showSignature=false", "protocol.allow=never",
	"maintenance.auto=false", "gc.auto=0", "fetch.recurseSubmodules=false", "submodule.recurse=false", "status.submoduleSummary=false",
	"diff.submodule=short", "diff.ignoreSubmodules=dirty", "core.untrackedCache=false", "core.splitIndex=false",
	"uploadpack.packObjectsHook=", "trace2.eventTarget=", "color.ui=false", "column.ui=never", "diff.noprefix=false", "diff.mnemonicPrefix=false",
	"advice.detachedHead=false", "core.quotePath=true", "checkout.defaultRemote=", "core.protectNTFS=true", "core.protectHFS=true",
}

// openProgram prepares the program for one repository: it asks for the settings there are, so that
// those that name commands of their own, such as filters, can be switched off by name.
func openProgram(ctx context.Context, p *place, git string, limits Limits) (*program, error) {
	g := &program{place: p, git: git, limits: limits, config: off, env: environment(p)}
	// Files that are included from outside would be read by git in every command.
	own, err := readSettings(filepath.Join(p.common, "config"))
	if err != nil {
		return nil, err
	}
	if err := p.checkSettings(own, true); err != nil {
		return nil, err
	}
	if err := p.checkIncludes(own); err != nil {
		return nil, err
	}
	text, err := g.text(ctx, "config", "--list", "--includes", "--name-only", "-z")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(text, "\x00") {
		name = strings.TrimSpace(name)
		if value, ok := command(name); ok {
			g.config = append(g.config, name+"="+value)
		}
	}
	return g, nil
}

// checkIncludes refuses settings that take in others from outside of the repository.
func (p *place) checkIncludes(s settings) error {
	for name, values := range s {
		section, _, _ := strings.Cut(name, ".")
		if section != "include" && section != "includeif" {
			continue
		}
		for _, to := range values {
			if _, err := p.inside(joinIn(p.common, to), "a file that its configuration includes"); err != nil {
				return err
			}
		}
	}
	return nil
}

// command reports whether a setting names a command, or switches one on, and what is to stand there
// instead.
func command(name string) (value string, ok bool) {
	section, rest, _ := strings.Cut(name, ".")
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	if !strings.Contains(rest, ".") || strings.ContainsAny(name, "=\n") {
		return "", false
	}
	switch section + "." + last {
	case "filter.clean", "filter.smudge", "filter.process", "diff.textconv", "diff.command", "merge.driver",
		"credential.helper", "remote.uploadpack", "remote.receivepack", "remote.vcs", "remote.proxy", "submodule.update",
		"trailer.command", "trailer.cmd", "guitool.cmd", "difftool.cmd", "mergetool.cmd", "man.cmd", "browser.cmd":
		return "", true
	case "filter.required", "remote.promisor":
		return "false", true
	case "protocol.allow":
		return "never", true
	}
	return "", false
}

// environment is what git gets of the environment: what it needs to find its own parts and the
// settings of the person, and nothing else.
func environment(p *place) []string {
	env := []string{
		"LC_ALL=C", "LANGUAGE=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
		"GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_ASKPASS=false", "GIT_SSH_COMMAND=false", "GIT_PAGER=cat", "PAGER=cat",
		"GIT_ATTR_NOSYSTEM=1", "GIT_DIR=" + p.gitDir,
	}
	if p.work != "" {
		env = append(env, "GIT_WORK_TREE="+p.work)
	}
	for _, name := range []string{
		"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "TZ", "USER", "LOGNAME", "SYSTEMROOT", "USERPROFILE", "APPDATA", "TEMP", "TMP", "HOMEDRIVE", "HOMEPATH",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_CONFIG_NOSYSTEM",
	} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// run runs git and writes what it says to out. in may be nil.
func (g *program) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, g.limits.Time, mcp.Errorf("git %s took longer than %v; raise --timeout if that is what you want", args[0], g.limits.Time))
	defer cancel()
	all := []string{"--no-pager", "--no-replace-objects", "--literal-pathspecs"}
	if args[0] == "add" {
		all = all[:2] // its paths may be patterns
	}
	config := append(g.config[:len(g.config):len(g.config)], "safe.directory="+filepath.ToSlash(g.safe()))
	for _, c := range config {
		all = append(all, "-c", c)
	}
	cmd := exec.CommandContext(ctx, g.git, append(all, args...)...)
	cmd.Env = g.env
	cmd.Dir = g.safe()
	full := &stopper{out: out}
	cmd.Stdin, cmd.Stdout = in, full
	var said tail
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	if full.err != nil { // git ended because nobody read on
		return full.err
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text := strings.TrimSpace(valid(said.String()))
		if text == "" {
			text = fmt.Sprintf("git %s failed with exit code %d", args[0], exit.ExitCode())
		}
		return mcp.Errorf("%s", text)
	}
	return err
}

// A stopper remembers why what it writes to took no more.
type stopper struct {
	out io.Writer
	err error
}

func (s *stopper) Write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// safe is the folder that git is started in, and told to trust: nothing of it is run.
func (g *program) safe() string {
	if g.work != "" {
		return g.work
	}
	return g.gitDir
}

// tail keeps the beginning of what git says on standard error.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	const most = 8 << 10
	if room := most - t.Len(); room > 0 {
		t.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// text runs git for a text that is not too long.
func (g *program) text(ctx context.Context, args ...string) (string, error) {
	const most = 64 << 20
	out := &cutter{limit: most}
	if err := g.run(ctx, nil, out, args...); err != nil && !errors.Is(err, errCut) {
		return "", err
	}
	if out.cut {
		return "", mcp.Errorf("git %s says more than %d bytes", args[0], most)
	}
	return strings.TrimSuffix(out.text.String(), "\n"), nil
}

func (g *program) close() error { return nil }

func (g *program) needTree() error {
	if g.work == "" {
		return mcp.Errorf("this operation must be run in a work tree, and this is a bare repository")
	}
	return nil
}

// resolve finds the commit that a revision names.
func (g *program) resolve(ctx context.Context, rev string) (plumbing.Hash, error) {
	text, err := g.text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil || !plumbing.IsHash(text) {
		if cause := context.Cause(ctx); cause != nil {
			return plumbing.ZeroHash, cause
		}
		return plumbing.ZeroHash, badName(rev)
	}
	return plumbing.NewHash(text), nil
}

// bounded refuses commits with more files than the limit, which git would take in whole.
func (g *program) bounded(ctx context.Context, commit plumbing.Hash) error {
	count := &counter{most: g.limits.Files}
	err := g.run(ctx, nil, count, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit.String())
	if count.n > count.most {
		return mcp.Errorf("a commit has more than %d files; raise --max-files if that is what you want", g.limits.Files)
	}
	return err
}

// counter counts texts that end with NUL, and ends what writes them at a limit.
type counter struct{ n, most int }

func (c *counter) Write(p []byte) (int, error) {
	if c.n += bytes.Count(p, []byte{0}); c.n > c.most {
		return 0, errCut
	}
	return len(p), nil
}

func (g *program) status(ctx context.Context) (string, error) {
	if err := g.needTree(); err != nil {
		return "", err
	}
	return g.text(ctx, "status", "--ignore-submodules=dirty")
}

func (g *program) diff(ctx context.Context, what diffKind, target string, context int, out io.Writer) error {
	if err := g.needTree(); err != nil {
		return err
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--unified=" + strconv.Itoa(context)}
	switch what {
	case diffUnstaged:
	case diffStaged:
		args = append(args, "--cached")
	case diffTarget:
		commit, err := g.resolve(ctx, target)
		if err != nil {
			return err
		}
		if err := g.bounded(ctx, commit); err != nil {
			return err
		}
		args = append(args, commit.String())
	}
	return g.run(ctx, nil, out, append(args, "--")...)
}

func (g *program) record(ctx context.Context, message string, now time.Time) (string, error) {
	if err := g.needTree(); err != nil {
		return "", err
	}
	tree, err := g.text(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree}
	old, err := g.text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	what := "commit"
	if err != nil {
		old, what = plumbing.ZeroHash.String(), "commit (initial)"
	} else {
		args = append(args, "-p", old)
	}
	merged, err := readSmall(filepath.Join(g.gitDir, "MERGE_HEAD"))
	if err == nil {
		what = "commit (merge)"
		for line := range strings.Lines(string(merged)) {
			args = append(args, "-p", strings.TrimSpace(line))
		}
	}
	name, email := identity("author", settings{}, ownSettings())
	g.env = append(g.env, fmt.Sprintf("GIT_AUTHOR_DATE=%d %s", now.Unix(), now.Format("-0700")), fmt.Sprintf("GIT_COMMITTER_DATE=%d %s", now.Unix(), now.Format("-0700")))
	if _, err := g.text(ctx, "config", "user.email"); err != nil { // then git may refuse to make a commit
		g.config = append(g.config, "user.name="+name, "user.email="+email)
	}
	var out bytes.Buffer
	if err := g.run(ctx, strings.NewReader(message), &out, append(args, "-F", "-")...); err != nil {
		return "", err
	}
	h := strings.TrimSpace(out.String())
	if _, err := g.text(ctx, "update-ref", "-m", what+": "+subject(message), "HEAD", h, old); err != nil {
		return "", err
	}
	for _, name := range []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if err := os.Remove(filepath.Join(g.gitDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return h, nil
}

func (g *program) add(ctx context.Context, files []string) error {
	names, err := g.cleanPaths(files)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	if err := g.unfiltered(ctx, names); err != nil {
		return err
	}
	_, err = g.text(ctx, append([]string{"add", "--"}, names...)...)
	return err
}

// unfiltered refuses files with a filter, which is off: what it keeps elsewhere would be added whole.
func (g *program) unfiltered(ctx context.Context, names []string) error {
	list, err := g.text(ctx, append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, names...)...)
	if err != nil || list == "" {
		return err
	}
	var out bytes.Buffer
	if err := g.run(ctx, strings.NewReader(list), &out, "check-attr", "--stdin", "-z", "filter"); err != nil {
		return err
	}
	fields := strings.Split(out.String(), "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if v := fields[i+2]; v != "unspecified" && v != "unset" {
			return mcp.Errorf("%q has the filter %q in its attributes, and this server runs no filter; use git yourself for it", fields[i], v)
		}
	}
	return nil
}

func (g *program) reset(ctx context.Context) error {
	if err := g.needTree(); err != nil {
		return err
	}
	head, err := g.resolve(ctx, "HEAD")
	if err != nil {
		return mcp.Errorf("the current branch has no commits yet, so there is nothing to reset to")
	}
	if err := g.bounded(ctx, head); err != nil {
		return err
	}
	_, err = g.text(ctx, "read-tree", "--reset", head.String())
	return err
}

func (g *program) log(ctx context.Context, q logQuery) ([]*object.Commit, error) {
	if q.most == 0 {
		return nil, nil
	}
	args := []string{"rev-list"}
	if q.most > 0 {
		args = append(args, "--max-count="+strconv.Itoa(q.most))
	} else {
		args = append(args, "--max-count="+strconv.Itoa(g.limits.Commits))
	}
	for _, t := range []struct{ option, text string }{{"--since", q.since}, {"--until", q.until}} {
		if t.text == "" {
			continue
		}
		value := t.text
		if from, to, ok := parseTime(t.text, q.now); ok {
			at := from
			if t.option == "--until" {
				at = to
			}
			value = "@" + strconv.FormatInt(at.Unix(), 10)
		}
		args = append(args, t.option+"="+value)
	}
	list, err := g.text(ctx, append(args, "HEAD", "--")...)
	if err != nil || list == "" {
		return nil, err
	}
	return g.commits(ctx, list)
}

// commits reads the commits of a list, one name on a line.
func (g *program) commits(ctx context.Context, list string) ([]*object.Commit, error) {
	out := &cutter{limit: 256 << 20}
	if err := g.run(ctx, strings.NewReader(list+"\n"), out, "cat-file", "--batch"); err != nil {
		return nil, err
	}
	in := bufio.NewReader(&out.text)
	var commits []*object.Commit
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return commits, nil
		}
		fields := strings.Fields(line)
		if err != nil || len(fields) != 3 {
			return nil, mcp.Errorf("git cat-file says %q", line)
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size < 0 || size > out.text.Len()+in.Buffered() {
			return nil, mcp.Errorf("git cat-file says %q", line)
		}
		content := make([]byte, size+1) // a line feed follows
		if _, err := io.ReadFull(in, content); err != nil {
			return nil, err
		}
		o := &plumbing.MemoryObject{}
		o.SetType(plumbing.CommitObject)
		if _, err := o.Write(content[:size]); err != nil {
			return nil, err
		}
		c, err := object.DecodeCommit(nil, o)
		if err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
}

func (g *program) createBranch(ctx context.Context, name, base string, _ time.Time) (string, error) {
	from := base
	if base == "" {
		head, err := g.text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
		if err != nil {
			return "", mcp.Errorf("HEAD is a detached symbolic reference: name a base_branch")
		}
		from, base = head, "refs/heads/"+head
	} else {
		found := ""
		for _, prefix := range []string{"refs/heads/", "refs/remotes/", "refs/tags/", "refs/"} {
			if _, err := g.text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", prefix+base); err == nil {
				found = prefix + base
				break
			}
		}
		if found == "" {
			return "", mcp.Errorf("there is no branch, remote branch or tag '%s'", base)
		}
		base = found
	}
	commit, err := g.resolve(ctx, base)
	if err != nil {
		return "", err
	}
	_, err = g.text(ctx, "branch", "--no-track", "--end-of-options", name, commit.String())
	return from, err
}

func (g *program) checkout(ctx context.Context, rev string, _ time.Time) error {
	if err := g.needTree(); err != nil {
		return err
	}
	commit, err := g.resolve(ctx, rev)
	if err != nil {
		return err
	}
	if err := g.bounded(ctx, commit); err != nil {
		return err
	}
	_, err = g.text(ctx, "checkout", "--no-guess", "--no-recurse-submodules", "--quiet", rev, "--")
	return err
}

func (g *program) show(ctx context.Context, rev string, out func(*object.Commit) io.Writer) error {
	h, err := g.resolve(ctx, rev)
	if err != nil {
		return err
	}
	list, err := g.commits(ctx, h.String())
	if err != nil || len(list) != 1 {
		return errors.Join(err, ctx.Err())
	}
	if err := g.bounded(ctx, h); err != nil {
		return err
	}
	args := []string{"diff-tree", "-r", "-p", "-M", "--no-commit-id", "--full-index", "--no-ext-diff", "--no-textconv", "--unified=" + strconv.Itoa(defaultContext)}
	if len(list[0].ParentHashes) > 0 {
		args = append(args, list[0].ParentHashes[0].String(), h.String())
	} else {
		args = append(args, "--root", h.String())
	}
	return g.run(ctx, nil, out(list[0]), append(args, "--")...)
}

func (g *program) branches(ctx context.Context, q branchQuery) (string, error) {
	args := []string{"branch", "--no-color", "--no-column", "--list"}
	switch q.kind {
	case "remote":
		args = append(args, "-r")
	case "all":
		args = append(args, "-a")
	}
	for _, c := range []struct{ option, rev string }{{"--contains=", q.contains}, {"--no-contains=", q.notContains}} {
		if c.rev == "" {
			continue
		}
		h, err := g.resolve(ctx, c.rev)
		if err != nil {
			return "", err
		}
		args = append(args, c.option+h.String())
	}
	return g.text(ctx, args...)
}

func (g *program) refNames(ctx context.Context) ([]string, error) {
	text, err := g.text(ctx, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return nil, err
	}
	return append([]string{"HEAD"}, strings.Fields(text)...), nil
}

func (g *program) contents(ctx context.Context, rev, name string) ([]byte, []string, error) {
	h, err := g.resolve(ctx, rev)
	if err != nil {
		return nil, nil, err
	}
	what := h.String() + ":" + strings.TrimSuffix(name, "/")
	kind, err := g.text(ctx, "cat-file", "-t", what)
	switch {
	case err != nil:
		return nil, nil, mcp.Errorf("there is no %q in %s", name, rev)
	case kind == "blob":
		out := &cutter{limit: int(g.limits.Object)}
		err := g.run(ctx, nil, out, "cat-file", "blob", what)
		if out.cut {
			return nil, nil, &tooLargeError{size: g.limits.Object + 1, limit: g.limits.Object}
		}
		return out.text.Bytes(), nil, err
	case kind != "tree":
		return nil, nil, mcp.Errorf("%q of %s is no file", name, rev)
	}
	list, err := g.text(ctx, "ls-tree", "-z", what)
	var names []string
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		head, name, _ := strings.Cut(line, "\t")
		if strings.Contains(head, " tree ") {
			name += "/"
		}
		names = append(names, name)
	}
	return nil, names, err
}

// checkProgram says whether a file can be the git program.
func checkProgram(ctx context.Context, git string) error {
	if runtime.GOOS != "windows" && !filepath.IsAbs(git) && strings.ContainsRune(git, filepath.Separator) {
		return mcp.Errorf("--git needs an absolute path or the name of a program, not %q", git)
	}
	out, err := exec.CommandContext(ctx, git, "--version").Output()
	if err != nil {
		return mcp.Errorf("%q cannot be run as git: %v", git, err)
	}
	if !bytes.HasPrefix(out, []byte("git version ")) {
		return mcp.Errorf("%q is not git: it says %q to --version", git, bytes.TrimSpace(out))
	}
	return nil
}
