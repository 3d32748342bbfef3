package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// tree makes a directory of files below base/root, and secrets beside it.
func tree(t *testing.T) (root *os.Root, dir string) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "root")
	for name, text := range map[string]string{
		"root/a.txt":          "A",
		"root/sub/b.json":     `{"b":1}`,
		"root/sub/c d.md":     "C",
		"root/bin":            "\x00\x01\xff",
		"root/.hidden":        "secret",
		"root/.git/config":    "secret",
		"root/sub/.env":       "secret",
		"root/big":            strings.Repeat("x", 101),
		"secret.txt":          "secret",
		"rootless/secret.txt": "secret",
	} {
		p := filepath.Join(base, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

// link makes a symbolic link, or skips the test where there are none.
func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		if runtime.GOOS == "windows" {
			t.Skipf("no symbolic links: %v", err)
		}
		t.Fatal(err)
	}
}

func files(t *testing.T, l *line) []string {
	t.Helper()
	got := decode[struct {
		Resources []struct {
			URI  string `json:"uri"`
			Name string `json:"name"`
			MIME string `json:"mimeType"`
			Size int    `json:"size"`
		} `json:"resources"`
	}](t, l.result(l.call("resources/list", emptyBody)))
	var list []string
	for _, r := range got.Resources {
		list = append(list, fmt.Sprintf("%s %q %d", r.URI, r.Name, r.Size))
	}
	return list
}

// Files are listed and read; hidden ones, other directories and links are not
// listed. Proves: FLOW-RES.
func TestDirectory(t *testing.T) {
	root, dir := tree(t)
	link(t, filepath.Join(dir, "..", "secret.txt"), filepath.Join(dir, "escape.txt"))
	link(t, "a.txt", filepath.Join(dir, "inside.txt"))
	s := newServer(unlimited(), server.Directory("file:///w/", root))
	l := join(t, s, v2607)
	want := []string{
		`file:///w/a.txt "a.txt" 1`, `file:///w/big "big" 101`, `file:///w/bin "bin" 3`,
		`file:///w/sub/b.json "sub/b.json" 7`, `file:///w/sub/c%20d.md "sub/c d.md" 1`,
	}
	if d := cmp.Diff(want, files(t, l)); d != "" {
		t.Error(d)
	}
	for uri, want := range map[string]string{
		"file:///w/a.txt":          `"mimeType":"text/plain; charset=utf-8","text":"A"`,
		"file:///w/sub/b.json":     `"mimeType":"application/json","text":"{\"b\":1}"`,
		"file:///w/sub/c%20d.md":   `"text":"C"`,
		"file:///w/bin":            `"mimeType":"application/octet-stream","blob":"AAH/"`,
		"file:///w/inside.txt":     `"text":"A"`, // a link that stays inside
		"file:///w/s%75b/b.json":   `"text":"{\"b\":1}"`,
		"file:///w/sub%2Fb.json":   `"text":"{\"b\":1}"`,
		"file:///w/%73ub/%62.json": `"text":"{\"b\":1}"`,
	} {
		if got := l.result(l.read1(uri)); !strings.Contains(string(got), want) {
			t.Errorf("%s: %s", uri, got)
		}
	}
}

// Nothing outside of the directory can be named. Proves: SEC-RES-1.
func TestDirectoryEscapes(t *testing.T) {
	root, dir := tree(t)
	link(t, filepath.Join(dir, "..", "secret.txt"), filepath.Join(dir, "escape.txt"))
	link(t, "..", filepath.Join(dir, "up"))
	s := newServer(unlimited(), server.Directory("file:///w/", root), server.Directory("custom://x/", root))
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		for _, path := range []string{
			"../secret.txt", "..%2Fsecret.txt", "%2e%2e/secret.txt", "%2E%2E%2Fsecret.txt", "sub/../../secret.txt",
			"%252e%252e%252fsecret.txt", "..%5Csecret.txt", "sub/..", ".", "", "/etc/passwd", "%2Fetc%2Fpasswd",
			"..;/secret.txt", "a.txt%00.png", "%00", "C:%5Csecret.txt", "C:/secret.txt", "a.txt:stream", "sub//b.json", "./a.txt",
			"%EF%BC%8E%EF%BC%8E/secret.txt", "%E2%80%A4%E2%80%A4/secret.txt", "..%E2%88%95secret.txt", "sub%EF%BC%8Fb.json",
			"%c0%ae%c0%ae/secret.txt", "%ff", "%zz", "a.txt%0A", "a.txt?x", "a.txt#x", "sub", "sub/",
			".hidden", ".git/config", "sub/.env", "%2Ehidden", "escape.txt", "up/secret.txt", "nosuch",
		} {
			for _, prefix := range []string{"file:///w/", "custom://x/"} {
				m := l.read1(prefix + path)
				if m.Error == nil || strings.Contains(m.raw, dir) {
					t.Errorf("%s gives %s", path, m.raw)
				}
			}
		}
		for _, uri := range []string{"file:///wa.txt", "file:///W/a.txt", "file://host/w/a.txt", "file:///w/../w/a.txt", "FILE:///w/a.txt"} {
			if m := l.read1(uri); m.Error == nil {
				t.Errorf("%s gives %s", uri, m.raw)
			}
		}
	})
}

// The size is looked at before the bytes are loaded. Proves: SEC-RES-3.
func TestDirectorySize(t *testing.T) {
	root, dir := tree(t)
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil { // a hole: nothing could load it
		t.Skipf("no sparse files: %v", err)
	}
	s := newServer(&server.Options{Limits: server.Limits{MaxResource: 100}}, server.Directory("file:///w/", root))
	l := join(t, s, v2607)
	l.fails(l.read1("file:///w/big"), mcp.CodeTooLarge)
	l.fails(l.read1("file:///w/huge"), mcp.CodeTooLarge)
}

// A listing is used for a second, then the disk is asked again.
func TestDirectoryListing(t *testing.T) {
	root, dir := tree(t)
	synctest.Test(t, func(t *testing.T) {
		s := newServer(nil, server.Directory("file:///w/", root))
		l := join(t, s, v2607)
		before := files(t, l)
		if err := os.WriteFile(filepath.Join(dir, "new"), []byte("n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, files(t, l)); d != "" {
			t.Errorf("the listing was not kept: %s", d)
		}
		time.Sleep(time.Second) // of the test's own clock
		if got := files(t, l); len(got) != len(before)+1 {
			t.Errorf("the new file is not listed: %v", got)
		}
		if !s.RemoveResources("file:///w/") {
			t.Error("the directory was not there")
		}
		l.fails(l.call("resources/list", emptyBody), mcp.CodeMethodNotFound)
	})
}

func TestDirectoryOptions(t *testing.T) {
	root, _ := tree(t)
	for _, prefix := range []string{"", "w/", "file:///w", "file:///w w/"} {
		panics(t, "directory", func() { server.Directory(prefix, root) })
	}
	s := newServer(nil, server.Directory("file:///w/", root).With(server.ResourceOptions{MIMEType: "text/x-all", Cache: &server.Cache{TTL: time.Minute}}))
	l := join(t, s, v2607)
	got := decode[readResult](t, l.result(l.read1("file:///w/a.txt")))
	if got.Contents[0].MIMEType != "text/x-all" || *got.TTLMs != 60000 {
		t.Errorf("got %+v", got)
	}
}

// A file that is edited outside of the program is told to who subscribed, in
// both eras. Proves: FLOW-SUB. Ruling 24.
func TestDirectoryWatch(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		root, dir := tree(t)
		synctest.Test(t, func(t *testing.T) {
			s := newServer(nil, server.Directory("file:///w/", root))
			l := join(t, s, v)
			var id string
			if l.modern() {
				id = l.listen(`{"resourceSubscriptions":["file:///w/a.txt"]}`, `{"resourceSubscriptions":["file:///w/a.txt"]}`)
			} else {
				l.result(l.call("resources/subscribe", `{"uri":"file:///w/a.txt"}`))
			}
			synctest.Wait()
			for _, edit := range []func(p string) error{
				func(p string) error { return os.WriteFile(p, []byte("AA"), 0o644) },
				func(p string) error { return os.Remove(p) },
				func(p string) error { return os.WriteFile(p, []byte("AAA"), 0o644) },
			} {
				if err := edit(filepath.Join(dir, "a.txt")); err != nil {
					t.Fatal(err)
				}
				if m := l.note("notifications/resources/updated"); !strings.Contains(m.raw, `"uri":"file:///w/a.txt"`) {
					t.Errorf("got %s", m.raw)
				}
				time.Sleep(3 * time.Second) // one notice for each change, also of a file that is gone
				l.Silent()
			}
			if got := decode[readResult](t, l.result(l.read1("file:///w/a.txt"))); got.Contents[0].Text != "AAA" {
				t.Errorf("read again: %+v", got)
			}
			if l.modern() {
				l.WriteLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id))
			} else {
				l.result(l.call("resources/unsubscribe", `{"uri":"file:///w/a.txt"}`))
			}
			synctest.Wait()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("AAAA"), 0o644); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			l.Silent() // it is not told after the end
		})
	})
}
