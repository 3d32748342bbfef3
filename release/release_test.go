package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/semver"
)

// TestRelease makes a release of the last commit and uses it as people do. It
// needs a network, git, dpkg-deb and chroot, and takes minutes.
func TestRelease(t *testing.T) {
	if os.Getenv("PARLEY_TEST_RELEASE") == "" {
		t.Skip("PARLEY_TEST_RELEASE is not set")
	}
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(t.TempDir(), "parley")
	command(t, "", "git", "clone", "--quiet", here, repo)
	command(t, repo, "git", "config", "user.name", "Release test")
	command(t, repo, "git", "config", "user.email", "test@example.org")
	version := nextVersion(t, repo)
	if err := prepare(t.Context(), repo, version, time.Now().UTC()); err != nil {
		t.Fatal(err)
	}
	platforms, err := parsePlatforms("linux/" + runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(t.TempDir(), "dist")
	if err := build(t.Context(), &buildOptions{Repo: repo, Out: first, Platforms: platforms}); err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	for _, folder := range released {
		if err := publish(t.Context(), repo, folder, version, proxy); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("tags", func(t *testing.T) {
		for _, tag := range tags(version) {
			if got := command(t, repo, "git", "rev-list", "-1", tag); got != command(t, repo, "git", "rev-parse", "HEAD") {
				t.Errorf("tag %s is at %s", tag, got)
			}
		}
	})
	t.Run("the workspace still builds", func(t *testing.T) {
		commandWith(t, repo, []string{inWorkspace}, "go", "build", "work")
		if err := clean(t.Context(), repo); err != nil {
			t.Errorf("building changes the commit's files: %v", err)
		}
	})
	t.Run("sums", func(t *testing.T) { command(t, first, "sha256sum", "--check", "--strict", "SHA256SUMS") })
	t.Run("bill of materials", func(t *testing.T) { testMaterials(t, first, version) })
	user := users(t, proxy)
	t.Run("go install", func(t *testing.T) { testInstall(t, user, version) })
	t.Run("go get", func(t *testing.T) { testLibrary(t, repo, user, version) })
	t.Run("archive", func(t *testing.T) { testArchive(t, first, version) })
	t.Run("image", func(t *testing.T) { testImage(t, first, version) })
	t.Run("debian", func(t *testing.T) { testDebian(t, first, version) })
	if os.Getenv("PARLEY_TEST_RELEASE") == "whole" {
		t.Run("twice", func(t *testing.T) { testTwice(t, repo, first, platforms) })
	}
}

// nextVersion is one that no tag has yet.
func nextVersion(t *testing.T, repo string) string {
	t.Helper()
	last := "v0.0.0"
	for tag := range strings.FieldsSeq(command(t, repo, "git", "tag", "--list", "v*")) {
		if semver.IsValid(tag) && semver.Compare(tag, last) > 0 {
			last = tag
		}
	}
	var major, minor int
	if _, err := fmt.Sscanf(last, "v%d.%d.", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}

// command runs a command and returns what it wrote to its standard output.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	return commandWith(t, dir, nil, name, args...)
}

func commandWith(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	out, err := c.Output()
	if err != nil {
		t.Fatal(failure(name+" "+strings.Join(args, " "), err))
	}
	return strings.TrimSpace(string(out))
}

// users returns the environment of somebody whose GOPROXY has our modules, and
// who has nothing of them yet. The settings are those of the release, so that what was compiled
// for it need not be compiled again.
func users(t *testing.T, proxy string) []string {
	t.Helper()
	cache := t.TempDir()
	env, err := proxyEnv(t.Context(), proxy, cache)
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0", "GOPATH="+t.TempDir(), "GOBIN="+t.TempDir())
}

func bin(env []string) string {
	last := env[len(env)-1]
	return strings.TrimPrefix(last, "GOBIN=")
}

// testInstall: the program is installed by name, in an empty folder.
func testInstall(t *testing.T, env []string, version string) {
	commandWith(t, t.TempDir(), env, "go", "install", home+"/app/cmd/parley@"+version)
	parley := filepath.Join(bin(env), "parley")
	if got := command(t, t.TempDir(), parley, "run", "--allow", "everything/*", "add 2 and 3"); got != "5" {
		t.Errorf("the installed program answers %q", got)
	}
	if got := command(t, "", parley, "version"); !strings.HasPrefix(got, "parley "+version+"\n") || !strings.Contains(got, runtime.Version()) {
		t.Errorf("the installed program says of itself:\n%s", got)
	}
}

// testLibrary: the first server of the README in a module of its own, called by
// the installed program.
func testLibrary(t *testing.T, repo string, env []string, version string) {
	readme, err := os.ReadFile(filepath.Join(repo, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(readme, []byte("\n## Write a server\n"))
	_, after, _ = bytes.Cut(after, []byte("```go\n"))
	lines, _, found := bytes.Cut(after, []byte("```"))
	if !found {
		t.Fatal("the README has no server")
	}
	dir := t.TempDir()
	main := fmt.Sprintf("package main\n\nimport (\n\t\"context\"\n\t\"log\"\n\n\t%q\n\t%q\n)\n\nfunc main() {\n%s}\n",
		home+"/server", home+"/transport/stdio", lines)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644); err != nil {
		t.Fatal(err)
	}
	commandWith(t, dir, env, "go", "mod", "init", "example.org/hello")
	commandWith(t, dir, env, "go", "get", home+"@"+version)
	commandWith(t, dir, env, "go", "mod", "tidy")
	commandWith(t, dir, env, "go", "install", ".")
	got := command(t, dir, filepath.Join(bin(env), "parley"), "call", "greet", "name=Ada", "--server", filepath.Join(bin(env), "hello"))
	if got != "Hello, Ada!" {
		t.Errorf("the server of the README answers %q", got)
	}
}

func testMaterials(t *testing.T, dist, version string) {
	var b bom
	text := read(t, dist, "parley_*_linux_*.cdx.json")
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Component.Version != version {
		t.Errorf("the document is %s of %s", b.Format, b.Metadata.Component.PURL)
	}
	have := make(map[string]bool)
	for _, c := range b.Components {
		have[c.Name] = true
		if c.Name != "std" && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64) {
			t.Errorf("%s has no checksum", c.PURL)
		}
	}
	for _, name := range []string{home, "github.com/spf13/cobra", "std"} {
		if !have[name] {
			t.Errorf("%s is not among the materials", name)
		}
	}
}

func testArchive(t *testing.T, dist, version string) {
	dir := t.TempDir()
	r, err := gzip.NewReader(bytes.NewReader(read(t, dist, "parley_*_linux_*.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, r, dir)
	top := filepath.Join(dir, fmt.Sprintf("parley_%s_linux_%s", version[1:], runtime.GOARCH))
	for _, name := range []string{"LICENSE", "LICENCES.txt", "CHANGES.md", "man/parley-serve.1", "completions/parley.zsh"} {
		if info, err := os.Stat(filepath.Join(top, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := command(t, dir, filepath.Join(top, "parley"), "version"); !strings.Contains(got, "commit: ") || strings.Contains(got, "unknown") {
		t.Errorf("the program does not know its commit:\n%s", got)
	}
}

// testImage: the program runs in a folder with the files of the image alone.
func testImage(t *testing.T, dist, version string) {
	layoutDir, root := t.TempDir(), t.TempDir()
	unpack(t, bytes.NewReader(read(t, dist, "*_oci.tar")), layoutDir)
	blob := func(d descriptor) []byte {
		name := strings.TrimPrefix(d.Digest, "sha256:")
		data, err := os.ReadFile(filepath.Join(layoutDir, "blobs", "sha256", name))
		if err != nil {
			t.Fatal(err)
		}
		if digestOf(data) != name || len(data) != d.Size {
			t.Fatalf("the blob %s is another", name)
		}
		return data
	}
	parse := func(data []byte) (m manifest) {
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	top, err := os.ReadFile(filepath.Join(layoutDir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	images := parse(blob(parse(top).Manifests[0])).Manifests
	i := slices.IndexFunc(images, func(d descriptor) bool { return d.Platform.Architecture == runtime.GOARCH })
	if i < 0 {
		t.Fatal("there is no image for this machine")
	}
	m := parse(blob(images[i]))
	var c imageConfig
	if err := json.Unmarshal(blob(*m.Config), &c); err != nil {
		t.Fatal(err)
	}
	for n, l := range m.Layers {
		r, err := gzip.NewReader(bytes.NewReader(blob(l)))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if "sha256:"+digestOf(data) != c.RootFS.DiffIDs[n] {
			t.Errorf("layer %d is not what the configuration says", n)
		}
		unpack(t, bytes.NewReader(data), root)
	}
	if c.Config.User != "65532:65532" || c.Config.Labels["org.opencontainers.image.version"] != version[1:] {
		t.Errorf("the image is for %s, of version %s", c.Config.User, c.Config.Labels["org.opencontainers.image.version"])
	}
	runIn(t, root, c.Config.User, c.Config.Entrypoint[0])
}

// testDebian: what the package installs runs, and its description is one.
func testDebian(t *testing.T, dist, version string) {
	pkg := match(t, dist, "parley_*_"+runtime.GOARCH+".deb")
	if got := command(t, "", "dpkg-deb", "--field", pkg, "Version"); got != version[1:] {
		t.Errorf("the package is of version %s", got)
	}
	root := t.TempDir()
	command(t, "", "dpkg-deb", "--extract", pkg, root)
	for _, name := range []string{"usr/share/man/man1/parley.1.gz", "usr/share/bash-completion/completions/parley", "usr/share/doc/parley/copyright"} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
	runIn(t, root, "65532:65532", "/usr/bin/parley")
}

// testTwice builds once more, without what the first build left in the cache of the compiler.
func testTwice(t *testing.T, repo, first string, platforms []platform) {
	second := filepath.Join(t.TempDir(), "dist")
	o := &buildOptions{Repo: repo, Out: second, Platforms: platforms, Cache: t.TempDir()}
	if err := build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(second)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, f := range list {
		if f.Name() == "SHA256SUMS" {
			continue
		}
		compared++
		if !bytes.Equal(read(t, first, f.Name()), read(t, second, f.Name())) {
			t.Errorf("%s is not the same", f.Name())
		}
	}
	if compared < 4 {
		t.Errorf("only %d files were compared", compared)
	}
}

// runIn runs the program with root for its file system.
func runIn(t *testing.T, root, user, program string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	got := commandWith(t, "", []string{"HOME=/tmp"}, "chroot", "--userspec="+user, root, program, "run", "--allow", "everything/*", "add 2 and 3")
	if got != "5" {
		t.Errorf("the program answers %q", got)
	}
}

func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			var data []byte
			if data, err = io.ReadAll(tr); err == nil {
				err = os.WriteFile(name, data, os.FileMode(h.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func match(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d files (%v)", pattern, len(found), err)
	}
	return found[0]
}

func read(t *testing.T, dir, pattern string) []byte {
	t.Helper()
	data, err := os.ReadFile(match(t, dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
