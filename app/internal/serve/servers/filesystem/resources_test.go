package filesystem_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Files are resources: listed, read, completed, in every revision.
func TestResources(t *testing.T) {
	dir, beside := folders(t)
	put(t, filepath.Join(dir, "sub", "ü b.md"), "# Ü\n")
	put(t, filepath.Join(dir, ".git", "config"), "hidden")
	put(t, filepath.Join(dir, "x.bin"), "\x00\xff")
	link(t, beside, filepath.Join(dir, "out"))
	build := func(tb testing.TB, o *server.Options) *server.Server {
		return serve(tb, &filesystem.Options{Server: o}, dir)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		var names []string
		for r, err := range c.Resources(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, r.Name)
			if _, err := c.ReadResource(t.Context(), r.URI, nil); err != nil {
				t.Errorf("%s: %v", r.URI, err)
			}
		}
		slices.Sort(names)
		if want := []string{"a.txt", "sub/ü b.md", "x.bin"}; !slices.Equal(names, want) {
			t.Errorf("listed: %q, want %q", names, want)
		}
		for name, want := range map[string]mcp.ResourceContents{
			"a.txt": {Text: "one\ntwo\nthree\n"}, "sub/%C3%BC%20b.md": {Text: "# Ü\n"}, ".git/config": {Text: "hidden"}, "x.bin": {Blob: []byte("\x00\xff")},
		} {
			res, err := c.ReadResource(t.Context(), rootURI(dir)+"/"+name, nil)
			if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != want.Text || string(res.Contents[0].Blob) != string(want.Blob) {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
		for _, bad := range []string{"none.txt", "out/secret", "../beside/secret", "%2e%2e/beside/secret", "sub", "a%00b"} {
			if res, err := c.ReadResource(t.Context(), rootURI(dir)+"/"+bad, nil); err == nil {
				t.Errorf("%s: %+v", bad, res)
			}
		}
		checkCompletion(t, c, strings.TrimPrefix(filepath.ToSlash(dir), "/"))
	}, mcptest.Over("mem"))
}

func checkCompletion(t *testing.T, c *client.Client, dir string) {
	t.Helper()
	for value, want := range map[string][]string{
		dir[:len(dir)-1]:         {dir + "/"},
		dir + "/s":               {dir + "/sub/"},
		dir + "/sub/":            {dir + "/sub/ü b.md"},
		dir + "/out/":            nil,
		dir + "/../beside/":      nil,
		"nowhere/near":           nil,
		strings.Repeat("x", 999): nil,
	} {
		got, err := c.Complete(t.Context(), &mcp.CompleteParams{
			Ref: mcp.ResourceRef("file:///{+path}"), Argument: mcp.CompletionArgument{Name: "path", Value: value},
		})
		if err != nil || !slices.Equal(got.Values, want) {
			t.Errorf("%.99q: %+v, %v, want %q", value, got, err, want)
		}
	}
}

// The list of resources ends at its limit.
func TestManyResources(t *testing.T) {
	dir, _ := folders(t)
	for i := range 20 {
		put(t, filepath.Join(dir, "d", fmt.Sprint(i)), "")
	}
	c := mcptest.Client(t, serve(t, &filesystem.Options{MaxResources: 7}, dir))
	count := 0
	for _, err := range c.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count != 7 {
		t.Errorf("%d resources", count)
	}
}

// Who is subscribed to a file is told of each change: written in place, replaced by another
// file, removed, and made again.
func TestSubscriptions(t *testing.T) {
	dir, beside := folders(t)
	build := func(tb testing.TB, o *server.Options) *server.Server {
		return serve(tb, &filesystem.Options{Server: o}, dir)
	}
	told := make(chan string, 64)
	o := &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { told <- uri }}
	mcptest.EachEra(t, build, o, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		file := filepath.Join(dir, "a.txt")
		put(t, file, "0")
		sub, err := c.Subscribe(t.Context(), rootURI(file))
		if err != nil {
			t.Fatal(err)
		}
		for i, change := range []func() error{
			func() error { return os.WriteFile(file, []byte("in place"), 0o600) },
			func() error {
				next := filepath.Join(beside, "next")
				put(t, next, "the file of another name")
				return os.Rename(next, file)
			},
			func() error { return os.Remove(file) },
			func() error { return os.WriteFile(file, []byte("once more"), 0o600) },
			func() error {
				_, failed := call(t.Context(), t, c, "write_file", args{"path": file, "content": "by the server"})
				if failed {
					return fmt.Errorf("write_file failed")
				}
				return nil
			},
		} {
			for len(told) > 0 {
				<-told
			}
			if err := change(); err != nil {
				t.Fatalf("change %d: %v", i, err)
			}
			select {
			case got := <-told:
				if got != rootURI(file) {
					t.Errorf("change %d: told of %s", i, got)
				}
			case <-time.After(5 * time.Minute): // only a hang lasts so long
				t.Fatalf("change %d: nothing is told", i)
			}
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}, mcptest.Over("mem"), fresh)
	if runtime.GOOS == "linux" {
		if n := inotifies(t); n != 0 {
			t.Errorf("%d watches of the system are left", n)
		}
	}
}

// inotifies counts the watches that this process has open.
func inotifies(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && strings.Contains(to, "inotify") {
			count++
		}
	}
	return count
}
