package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// home is the path of the library's module. Those of the others follow from
// their folders.
const home = "github.com/parley-mcp/parley"

// released are the folders of the modules that get a version, each after those
// that it requires.
var released = []string{"", "contrib/otel", "contrib/prometheus", "app"}

func modulePath(folder string) string { return path.Join(home, folder) }

// tags are the tags of a version: a module below the root has its folder in front.
func tags(version string) []string {
	var names []string
	for _, folder := range released {
		names = append(names, path.Join(folder, version))
	}
	return names
}

// prepare makes the release commit and its tags in the repository at repo: the
// modules require each other at the version, and have the indirect requirements
// and checksums that the go command needs outside the workspace.
func prepare(ctx context.Context, repo, version string, now time.Time) error {
	if !semver.IsValid(version) || semver.Build(version) != "" || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version such as v0.1.0 (-version)", version)
	}
	if semver.Major(version) != "v0" && semver.Major(version) != "v1" {
		return fmt.Errorf("%s needs the major version in the module paths, which this program does not write", version)
	}
	old, err := git(ctx, repo, "tag", "--list", "v*")
	if err != nil {
		return err
	}
	for tag := range strings.FieldsSeq(old) {
		if semver.IsValid(tag) && semver.Compare(tag, version) >= 0 {
			return fmt.Errorf("there is %s already, which is not before %s", tag, version)
		}
	}
	if err := edit(filepath.Join(repo, "CHANGELOG.md"), func(text []byte) ([]byte, error) {
		return cutChangelog(text, version, now)
	}); err != nil {
		return err
	}
	if err := edit(filepath.Join(repo, "go.work"), func(text []byte) ([]byte, error) {
		return setWorkspace(text, version)
	}); err != nil {
		return err
	}
	for _, folder := range slices.Concat(released, []string{"conformance"}) {
		if err := edit(filepath.Join(repo, folder, "go.mod"), func(text []byte) ([]byte, error) {
			return setRequirements(text, version)
		}); err != nil {
			return err
		}
	}
	if _, err := git(ctx, repo, "commit", "--quiet", "--all", "--message", "Release "+version); err != nil {
		return err
	}
	if err := completeModules(ctx, repo, version); err != nil {
		return err
	}
	for _, tag := range tags(version) {
		if _, err := git(ctx, repo, "tag", "--annotate", "--message", "Parley "+version, tag); err != nil {
			return err
		}
	}
	return nil
}

// completeModules has the go command add to each module what it needs outside
// the workspace, and to the workspace what it then needs, and amends the last
// commit. The checksums of the workspace are part of the library's archive, whose
// checksum the other modules hold: where they changed, all is done once more.
func completeModules(ctx context.Context, repo, version string) error {
	for range 2 {
		if err := completeRequirements(ctx, repo, version); err != nil {
			return err
		}
		if err := goCommand(ctx, repo, []string{inWorkspace}, "list", "-deps", "-test", "work"); err != nil {
			return fmt.Errorf("the workspace: %w", err)
		}
		changed, err := git(ctx, repo, "status", "--porcelain", "go.work.sum")
		if err != nil {
			return err
		}
		if changed == "" {
			return checkSums(ctx, repo, version)
		}
		if err := amend(ctx, repo, "go.work.sum"); err != nil {
			return err
		}
	}
	return errors.New("go.work.sum changes each time that the go command reads the workspace")
}

// completeRequirements adds the indirect requirements and checksums to each module.
// A module is asked for what it requires of ours in the form in which it will be
// published, since that is what its checksum is of.
func completeRequirements(ctx context.Context, repo, version string) error {
	work, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return err
	}
	defer remove(work)
	proxy := filepath.Join(work, "proxy")
	env, err := proxyEnv(ctx, proxy, filepath.Join(work, "cache"))
	if err != nil {
		return err
	}
	for _, folder := range released {
		if folder != "" {
			if err := tidy(ctx, repo, folder, env); err != nil {
				return err
			}
		}
		if err := publish(ctx, repo, folder, version, proxy); err != nil {
			return err
		}
	}
	return nil
}

// tidy adds its indirect requirements and checksums to a module.
func tidy(ctx context.Context, repo, folder string, env []string) error {
	dir := filepath.Join(repo, folder)
	// Before the first release a module has no checksums.
	if err := edit(filepath.Join(dir, "go.sum"), withoutOwn); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// -e: a module that only tests of others' tests import may be out of reach.
	// That all is there which is needed is seen below.
	if err := goCommand(ctx, dir, env, "mod", "tidy", "-e"); err != nil {
		return err
	}
	if err := goCommand(ctx, dir, env, "list", "-mod=readonly", "-deps", "-test", "./..."); err != nil {
		return fmt.Errorf("module %s outside the workspace: %w", folder, err)
	}
	return amend(ctx, repo, path.Join(folder, "go.mod"), path.Join(folder, "go.sum"))
}

// withoutOwn removes the checksums of our own modules from a go.sum file.
func withoutOwn(text []byte) ([]byte, error) {
	var rest []byte
	for line := range bytes.Lines(text) {
		if name, _, _ := bytes.Cut(line, []byte(" ")); !ours(string(name)) {
			rest = append(rest, line...)
		}
	}
	return rest, nil
}

// amend adds files to the last commit.
func amend(ctx context.Context, repo string, files ...string) error {
	if _, err := git(ctx, repo, append([]string{"add"}, files...)...); err != nil {
		return err
	}
	_, err := git(ctx, repo, "commit", "--quiet", "--amend", "--no-edit")
	return err
}

// publish writes a module of the last commit to a folder that GOPROXY can name.
func publish(ctx context.Context, repo, folder, version, proxy string) error {
	m := module.Version{Path: modulePath(folder), Version: version}
	archive, err := archiveModule(repo, folder, m)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(repo, folder, "go.mod"))
	if err != nil {
		return err
	}
	when, err := commitTime(ctx, repo)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": fmt.Appendf(nil, `{"Version":%q,"Time":%q}`, version, when.Format(time.RFC3339)),
		version + ".mod":  text,
		version + ".zip":  archive,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// archiveModule returns the zip file of a module as the go command makes it of
// the last commit. A module without a licence of its own gets that of the root.
func archiveModule(repo, folder string, m module.Version) ([]byte, error) {
	var b bytes.Buffer
	if err := zip.CreateFromVCS(&b, m, repo, "HEAD", folder); err != nil {
		return nil, fmt.Errorf("archive of %s: %w", m.Path, err)
	}
	return b.Bytes(), nil
}

// checkSums compares the checksums of our own modules in the go.sum files with
// what the last commit holds.
func checkSums(ctx context.Context, repo, version string) error {
	for _, folder := range released {
		m := module.Version{Path: modulePath(folder), Version: version}
		archive, err := archiveModule(repo, folder, m)
		if err != nil {
			return err
		}
		sum, err := hashArchive(archive)
		if err != nil {
			return err
		}
		for _, user := range released {
			text, err := git(ctx, repo, "show", "HEAD:"+path.Join(user, "go.sum"))
			if err != nil {
				return err
			}
			for line := range strings.Lines(text) {
				rest, ours := strings.CutPrefix(line, m.Path+" "+version+" ")
				if ours && strings.TrimSpace(rest) != sum {
					return fmt.Errorf("%s/go.sum: the checksum of %s is not that of the commit", user, m.Path)
				}
			}
		}
	}
	return nil
}

func hashArchive(archive []byte) (string, error) {
	f, err := os.CreateTemp("", "module-*.zip")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a temporary file
	_, err = f.Write(archive)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return dirhash.HashZip(f.Name(), dirhash.Hash1)
}

// setRequirements gives the modules of ours that a go.mod file requires a version.
func setRequirements(text []byte, version string) ([]byte, error) {
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Require {
		if ours(r.Mod.Path) {
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	f.Cleanup()
	return f.Format()
}

// setWorkspace has the workspace take its own folders for the modules of a version.
func setWorkspace(text []byte, version string) ([]byte, error) {
	f, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(f.Replace) {
		if !ours(r.Old.Path) {
			continue
		}
		r.Syntax.Token[slices.Index(r.Syntax.Token, r.Old.Version)] = version
	}
	return modfile.Format(f.Syntax), nil
}

func ours(path string) bool {
	return path == home || strings.HasPrefix(path, home+"/")
}

// proxyEnv is the environment in which the go command takes our modules from a
// folder, all others from where it takes them now, and keeps them in cache.
func proxyEnv(ctx context.Context, proxy, cache string) ([]string, error) {
	where, err := goEnv(ctx, "GOPROXY")
	if err != nil {
		return nil, err
	}
	downloads, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	sources := []string{"file://" + filepath.ToSlash(proxy)}
	// What this machine has already need not be fetched again.
	downloads = filepath.Join(downloads, "cache", "download")
	if _, err := os.Stat(downloads); err == nil {
		sources = append(sources, "file://"+filepath.ToSlash(downloads))
	}
	return []string{
		"GOPROXY=" + strings.Join(append(sources, where), ","), "GOMODCACHE=" + cache,
		"GONOSUMDB=" + home + "," + home + "/*", "GOWORK=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
	}, nil
}

// remove removes a folder of temporary files.
func remove(dir string) {
	_ = os.RemoveAll(dir) // what stays is in the folder of temporary files
}

func edit(name string, change func([]byte) ([]byte, error)) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if text, err = change(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, text, 0o644)
}

// clean fails if the repository holds what is not committed.
func clean(ctx context.Context, repo string) error {
	changes, err := git(ctx, repo, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("%s has changes that are not committed:\n%s", repo, changes)
	}
	return nil
}

func commitTime(ctx context.Context, repo string) (time.Time, error) {
	text, err := git(ctx, repo, "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return time.Time{}, err
	}
	when, err := time.Parse(time.RFC3339, text)
	return when.UTC(), err
}

// git runs a command of git and returns what it wrote, without the last line's end.
func git(ctx context.Context, repo string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = repo
	out, err := c.Output()
	if err != nil {
		return "", failure("git "+strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goEnv is what the go command takes a variable of its own to be.
func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", failure("go env "+name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goCommand runs the go command.
func goCommand(ctx context.Context, dir string, env []string, args ...string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	if _, err := c.Output(); err != nil {
		return failure("go "+strings.Join(args, " "), err)
	}
	return nil
}

// failure is the error of a command with what it wrote.
func failure(command string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s: %w\n%s", command, err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", command, err)
}

// inWorkspace has the go command look for the workspace, whatever it was told
// when it started this program.
const inWorkspace = "GOWORK="
