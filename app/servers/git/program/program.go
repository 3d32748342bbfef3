// Package program works on Git repositories with the git program, with everything off by which a
// repository could have it start another program or connect to a server.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/servers/git/repo"
	"github.com/parley-mcp/parley/mcp"
)

// A Repository does the work with git itself, with everything off by which a repository could have it
// start another program or connect to a server.
type Repository struct {
	place *repo.Place

	git    string // the program
	limits repo.Limits
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

// Open prepares the program for one repository: it asks for the settings there are, so that
// those that name commands of their own, such as filters, can be switched off by name.
func Open(ctx context.Context, p *repo.Place, git string, limits repo.Limits) (*Repository, error) {
	g := &Repository{place: p, git: git, limits: limits, config: off, env: environment(p)}
	// Files that are included from outside would be read by git in every command.
	if err := p.CheckFiles(); err != nil {
		return nil, err
	}
	own := repo.OwnSettings()
	g.config = append(g.config,
		"core.excludesFile="+repo.OwnFile(own, "core.excludesfile", "ignore"),
		"core.attributesFile="+repo.OwnFile(own, "core.attributesfile", "attributes"))
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
func environment(p *repo.Place) []string {
	env := []string{
		"LC_ALL=C", "LANGUAGE=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
		"GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_ASKPASS=false", "GIT_SSH_COMMAND=false", "GIT_PAGER=cat", "PAGER=cat",
		"GIT_ATTR_NOSYSTEM=1", "GIT_DIR=" + p.GitDir,
	}
	if p.Work != "" {
		env = append(env, "GIT_WORK_TREE="+p.Work)
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
func (g *Repository) run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
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
		text := strings.TrimSpace(strings.ToValidUTF8(said.String(), "\ufffd"))
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
func (g *Repository) safe() string {
	if g.place.Work != "" {
		return g.place.Work
	}
	return g.place.GitDir
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
func (g *Repository) text(ctx context.Context, args ...string) (string, error) {
	const most = 64 << 20
	out := &repo.Output{Limit: most}
	if err := g.run(ctx, nil, out, args...); err != nil && !errors.Is(err, repo.ErrFull) {
		return "", err
	}
	if out.Full {
		return "", mcp.Errorf("git %s says more than %d bytes", args[0], most)
	}
	return strings.TrimSuffix(out.Text.String(), "\n"), nil
}

// Close ends the use of the repository.
func (g *Repository) Close() error { return nil }

// resolve finds the name of the commit that a revision names.
func (g *Repository) resolve(ctx context.Context, rev string) (string, error) {
	text, err := g.text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return "", cause
		}
		return "", repo.BadName(rev)
	}
	return text, nil
}

// bounded refuses commits with more files than the limit, which git would take in whole.
func (g *Repository) bounded(ctx context.Context, commit string) error {
	count := &counter{most: g.limits.Files}
	err := g.run(ctx, nil, count, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
	if count.n > count.most {
		return mcp.Errorf("a commit has more than %d files; raise --max-files if that is what you want", g.limits.Files)
	}
	return err
}

// counter counts texts that end with NUL, and ends what writes them at a limit.
type counter struct{ n, most int }

func (c *counter) Write(p []byte) (int, error) {
	if c.n += bytes.Count(p, []byte{0}); c.n > c.most {
		return 0, repo.ErrFull
	}
	return len(p), nil
}

// Check says whether a file can be the git program.
func Check(ctx context.Context, git string) error {
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
