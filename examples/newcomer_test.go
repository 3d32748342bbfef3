package examples_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A newcomer does what a page says step by step in one folder, with a module
// proxy that has this library as its only release. Two kinds of block are for
// it: Go with the directive "examples/x/main.go as y/main.go" is written to a
// file, whole, and commands with "run step" are run in the folder.
type newcomer struct {
	folder, proxy string
	env           []string
}

const (
	module  = "github.com/parley-mcp/parley"
	release = "v0.1.0"
)

func newNewcomer(t *testing.T) *newcomer { return &newcomer{folder: t.TempDir()} }

// takes reports whether a block is for the newcomer, who then has done it.
func (n *newcomer) takes(t *testing.T, b *block, bin string) bool {
	t.Helper()
	if from, to, ok := strings.Cut(b.directive, ".go as "); ok && b.language == "go" {
		b.directive = from + ".go"
		checkGo(t, b)
		name := filepath.Join(n.folder, filepath.FromSlash(to))
		if err := os.WriteFile(name, []byte(b.text), 0o600); err != nil {
			t.Errorf("%s: %v", b.at(), err)
		}
		return true
	}
	if b.directive != "run step" {
		return false
	}
	if n.env == nil {
		n.prepare(t)
	}
	b.run(t, n.folder, append(n.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))...)
	return true
}

// prepare makes the proxy. What the library needs comes from the cache of this
// machine, what is built goes into the usual one.
func (n *newcomer) prepare(t *testing.T) {
	t.Helper()
	n.proxy = t.TempDir()
	versions := filepath.Join(n.proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(versions, 0o700); err != nil {
		t.Fatal(err)
	}
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"list": []byte(release + "\n"), release + ".mod": gomod, release + ".zip": archive(t),
		release + ".info": []byte(`{"Version":"` + release + `","Time":"2026-01-01T00:00:00Z"}`),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, proxies, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	n.env = []string{
		// go mod tidy wants what the tests of dependencies import too, which no
		// build of ours brought into the cache: that comes from the network.
		"GOPROXY=file://" + n.proxy + ",file://" + filepath.Join(cache, "cache", "download") + "," + proxies,
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0", "GOSUMDB=off", "GOWORK=off",
	}
}

// archive is the library as a proxy has it: without the modules within.
func archive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := path(t, file)
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(file, "go.mod")); name != "." && (err == nil || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") && name != "go.mod" && name != "LICENSE" {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		w, err := z.Create(module + "@" + release + "/" + name)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
