package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// A platform is what GOOS and GOARCH say.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var allPlatforms = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
}

func parsePlatforms(list string) ([]platform, error) {
	var all []platform
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(allPlatforms, name) {
			return nil, fmt.Errorf("there are no releases for %q; platforms are %s", name, strings.Join(allPlatforms, ", "))
		}
		system, arch, _ := strings.Cut(name, "/")
		all = append(all, platform{system, arch})
	}
	return all, nil
}

type buildOptions struct {
	// Repo is a repository whose last commit is a release commit.
	Repo string
	// Out is the folder for the files; it is made, and must be empty.
	Out       string
	Platforms []platform
	// Cache is the build cache of the go command. Default: the user's.
	Cache string
}

// A release is what the files of one have in common.
type release struct {
	version     string // v0.1.0
	commit      string
	when        time.Time // of the commit: the only time that is in the files
	maintainer  string
	platforms   []platform
	licence     []byte
	changes     []byte            // the section of the changelog
	completions map[string][]byte // by shell
	manuals     []file
}

// number is the version as it is written outside Go.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// build makes the files of a release: the program as the go command installs it,
// in archives, packages and an image, and what describes them. The same commit
// gives the same files.
func build(ctx context.Context, o *buildOptions) error {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(o.Out); err != nil {
		return err
	} else if len(there) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder (-out)", o.Out)
	}
	r, err := readRelease(ctx, o)
	if err != nil {
		return err
	}
	in, err := newInstaller(ctx, o, r)
	if err != nil {
		return err
	}
	defer in.remove()
	if err := in.describe(ctx); err != nil {
		return err
	}
	programs := make(map[platform]*program)
	for _, p := range r.platforms {
		if programs[p], err = in.program(ctx, p); err != nil {
			return err
		}
		if err := r.files(ctx, p, programs[p], o.Out); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(r.platforms, func(p platform) bool { return p.os == "linux" }) {
		data, err := image(r, programs)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.Out, "parley_"+r.number()+"_oci.tar"), data, 0o644); err != nil {
			return err
		}
	}
	return writeSums(o.Out)
}

// readRelease reads what the last commit says of the release.
func readRelease(ctx context.Context, o *buildOptions) (*release, error) {
	if err := clean(ctx, o.Repo); err != nil {
		return nil, err
	}
	r := &release{platforms: o.Platforms}
	text, err := os.ReadFile(filepath.Join(o.Repo, "app", "go.mod"))
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range f.Require {
		if m.Mod.Path == home {
			r.version = m.Mod.Version
		}
	}
	if r.commit, err = git(ctx, o.Repo, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if r.maintainer, err = git(ctx, o.Repo, "show", "--no-patch", "--format=%cn <%ce>", "HEAD"); err != nil {
		return nil, err
	}
	if r.when, err = commitTime(ctx, o.Repo); err != nil {
		return nil, err
	}
	if r.licence, err = os.ReadFile(filepath.Join(o.Repo, "LICENSE")); err != nil {
		return nil, err
	}
	log, err := os.ReadFile(filepath.Join(o.Repo, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	r.changes, err = changes(log, r.version)
	return r, err
}

// A program is parley for one platform, and the licences of what it contains.
type program struct{ data, notices []byte }

// files writes the files of a platform.
func (r *release) files(ctx context.Context, p platform, prog *program, out string) error {
	name := fmt.Sprintf("parley_%s_%s_%s", r.number(), p.os, p.arch)
	list, err := materials(r, prog.data)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, name+".cdx.json"), list, 0o644); err != nil {
		return err
	}
	files := []file{
		{name: name + "/LICENSE", mode: 0o644, data: r.licence},
		{name: name + "/LICENCES.txt", mode: 0o644, data: prog.notices},
		{name: name + "/CHANGES.md", mode: 0o644, data: r.changes},
	}
	for _, m := range r.manuals {
		files = append(files, file{name: name + "/man/" + m.name, mode: 0o644, data: m.data})
	}
	for shell, text := range r.completions {
		files = append(files, file{name: name + "/completions/parley." + shell, mode: 0o644, data: text})
	}
	if p.os == "windows" {
		files = append(files, file{name: name + "/parley.exe", mode: 0o755, data: prog.data})
		archive, err := zipped(files, r.when)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(out, name+".zip"), archive, 0o644)
	}
	files = append(files, file{name: name + "/parley", mode: 0o755, data: prog.data})
	archive, err := tarball(files, r.when)
	if err != nil {
		return err
	}
	if archive, err = compressed(archive); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, name+".tar.gz"), archive, 0o644); err != nil {
		return err
	}
	if p.os != "linux" {
		return nil
	}
	return debianPackage(ctx, r, p, prog, out)
}

// writeSums writes the checksums of all files, as sha256sum checks them.
func writeSums(out string) error {
	list, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range list {
		data, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", digestOf(data), f.Name())
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), b.Bytes(), 0o644)
}

// An installer builds programs as "go install" does for users, with our modules
// from a folder.
type installer struct {
	r      *release
	work   string
	env    []string
	goroot string
}

func newInstaller(ctx context.Context, o *buildOptions, r *release) (*installer, error) {
	work, err := os.MkdirTemp("", "install-")
	if err != nil {
		return nil, err
	}
	in := &installer{r: r, work: work}
	if err := in.setUp(ctx, o); err != nil {
		in.remove()
		return nil, err
	}
	return in, nil
}

// setUp publishes the modules to a folder, and makes the environment of the go
// command.
func (in *installer) setUp(ctx context.Context, o *buildOptions) (err error) {
	proxy := filepath.Join(in.work, "proxy")
	for _, folder := range released {
		if err := publish(ctx, o.Repo, folder, in.r.version, proxy); err != nil {
			return err
		}
	}
	if in.goroot, err = goEnv(ctx, "GOROOT"); err != nil {
		return err
	}
	if in.env, err = proxyEnv(ctx, proxy, filepath.Join(in.work, "modules")); err != nil {
		return err
	}
	in.env = append(in.env, "GOPATH="+filepath.Join(in.work, "go"), "GOBIN=", "CGO_ENABLED=0")
	if o.Cache != "" {
		in.env = append(in.env, "GOCACHE="+o.Cache)
	}
	return nil
}

func (in *installer) remove() { remove(in.work) }

// install builds a command of the program's module and returns its path.
func (in *installer) install(ctx context.Context, p platform, command string) (string, error) {
	c := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w -X "+home+"/app/internal/kit.Commit="+in.r.commit,
		home+"/app/cmd/"+command+"@"+in.r.version)
	c.Dir = in.work
	c.Env = append(append(os.Environ(), in.env...), "GOOS="+p.os, "GOARCH="+p.arch)
	if _, err := c.Output(); err != nil {
		return "", failure("go install for "+p.String(), err)
	}
	if p.os == "windows" {
		command += ".exe"
	}
	dir := filepath.Join(in.work, "go", "bin")
	if p != (platform{runtime.GOOS, runtime.GOARCH}) {
		dir = filepath.Join(dir, p.os+"_"+p.arch)
	}
	return filepath.Join(dir, command), nil
}

// program returns the program for a platform.
func (in *installer) program(ctx context.Context, p platform) (*program, error) {
	name, err := in.install(ctx, p, "parley")
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if info.Main.Version != in.r.version {
		return nil, fmt.Errorf("the program for %v says it is %s, not %s", p, info.Main.Version, in.r.version)
	}
	text, err := notices(data, filepath.Join(in.work, "modules"), in.goroot)
	return &program{data, text}, err
}

// describe has the program write its completions and manual pages.
func (in *installer) describe(ctx context.Context) error {
	here := platform{runtime.GOOS, runtime.GOARCH}
	name, err := in.install(ctx, here, "parley-docs")
	if err != nil {
		return err
	}
	dir := filepath.Join(in.work, "docs")
	c := exec.CommandContext(ctx, name, dir, in.r.when.Format(time.DateOnly))
	if _, err := c.Output(); err != nil {
		return failure("parley-docs", err)
	}
	in.r.completions = make(map[string][]byte)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if in.r.completions[shell], err = os.ReadFile(filepath.Join(dir, "parley."+shell)); err != nil {
			return err
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("parley-docs wrote no manual pages (%w)", err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		in.r.manuals = append(in.r.manuals, file{name: filepath.Base(page), mode: 0o644, data: data})
	}
	return nil
}
