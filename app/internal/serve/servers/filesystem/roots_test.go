package filesystem_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// rootURI is the URI of a directory.
func rootURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return "file://" + path
}

// The roots of a client that started the server are the directories, if none were given. When they
// change, the server asks again.
func TestRoots(t *testing.T) {
	dir, beside := folders(t)
	build := func(tb testing.TB, o *server.Options) *server.Server {
		return serve(tb, &filesystem.Options{Server: o})
	}
	var mu sync.Mutex
	var roots []mcp.Root
	var failed error
	set := func(uris ...string) {
		mu.Lock()
		defer mu.Unlock()
		roots = nil
		for _, uri := range uris {
			roots = append(roots, mcp.Root{URI: uri})
		}
	}
	o := &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) {
		mu.Lock()
		defer mu.Unlock()
		return roots, failed
	}}
	set(rootURI(beside), rootURI(filepath.Join(beside, "missing")))
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		set(rootURI(beside), rootURI(filepath.Join(beside, "missing")))
		f := &fixture{t: t, dir: dir, client: c}
		f.want("list_allowed_directories", args{}, "Allowed directories:\n"+beside)
		f.want("read_text_file", args{"path": "secret"}, secret)
		f.refused("read_text_file", args{"path": f.path("a.txt")}, "Access denied")
		set(rootURI(dir))
		if !mcptest.Stateless(era) {
			if err := c.RootsChanged(t.Context()); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool {
				got, _ := call(t.Context(), t, c, "list_allowed_directories", args{})
				return got == "Allowed directories:\n"+dir
			})
		}
		f.want("read_text_file", args{"path": "a.txt"}, "one\ntwo\nthree\n")
		set(rootURI(filepath.Join(beside, "missing"))) // none that can be used, and those before are taken back
		if !mcptest.Stateless(era) {
			if err := c.RootsChanged(t.Context()); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool {
				_, failed := call(t.Context(), t, c, "list_allowed_directories", args{})
				return failed
			})
		}
		f.refused("read_text_file", args{"path": f.path("a.txt")}, "no directory may be used")
		if mcptest.Stateless(era) { // the roots are a part of the call
			return
		}
		set(rootURI(dir)) // it has roots again, and then tells none
		for _, answer := range []error{nil, errors.New("not any more")} {
			mu.Lock()
			failed = answer
			mu.Unlock()
			if err := c.RootsChanged(t.Context()); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool {
				_, refused := call(t.Context(), t, c, "list_allowed_directories", args{})
				return refused == (answer != nil)
			})
		}
		mu.Lock()
		failed = nil
		mu.Unlock()
	}, mcptest.Over("mem"), fresh)
}

// fresh leaves out the eras in which each request meets a new server, which forgets what
// the one before was told.
func fresh(era mcptest.Era) bool { return !era.Fresh }

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for range 10_000 {
		if ok() {
			return
		}
		runtime.Gosched()
	}
	t.Fatal("it does not happen")
}

// The directories of the command line are the bound, whatever roots a client has: it is not asked,
// and the log says so once (modelcontextprotocol/servers#3929). Over HTTP roots are of another
// machine, and are not used either.
func TestRootsIgnored(t *testing.T) {
	dir, beside := folders(t)
	o := &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) {
		t.Error("the client was asked for its roots")
		return []mcp.Root{{URI: rootURI(beside)}}, nil
	}}
	for _, given := range []bool{true, false} {
		over, said := "mem", 1
		if !given {
			over, said = "streamable", 0
		}
		var log strings.Builder
		build := func(tb testing.TB, so *server.Options) *server.Server {
			log.Reset()
			so.Logger = slog.New(slog.NewTextHandler(&log, nil))
			dirs := []string{dir}
			if !given {
				dirs = nil
			}
			return serve(tb, &filesystem.Options{Server: so}, dirs...)
		}
		mcptest.EachEra(t, build, o, func(t *testing.T, _ mcptest.Era, c *client.Client) {
			f := &fixture{t: t, dir: dir, client: c}
			if !given {
				f.refused("list_allowed_directories", args{}, "no directory may be used")
			} else {
				f.want("list_allowed_directories", args{}, "Allowed directories:\n"+dir)
				f.refused("read_text_file", args{"path": filepath.Join(beside, "secret")}, "Access denied")
			}
			if got := strings.Count(log.String(), "roots of the client are not used"); got != said {
				t.Errorf("the log says %d times that roots are not used, want %d:\n%s", got, said, &log)
			}
		}, mcptest.Over(over), fresh)
	}
}

// Of very many roots the first ones are used.
func TestManyRoots(t *testing.T) {
	_, beside := folders(t)
	roots := []mcp.Root{}
	for range 1_000 {
		roots = append(roots, mcp.Root{URI: rootURI(beside)})
	}
	c := mcptest.Client(t, serve(t, nil), &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return roots, nil }})
	got, failed := call(t.Context(), t, c, "list_allowed_directories", args{})
	if n := strings.Count(got, beside); failed || n != 100 {
		t.Errorf("%d directories, %.200q", n, got)
	}
}

// Without directories a client without roots is told what to do.
func TestNoDirectories(t *testing.T) {
	c := mcptest.Client(t, serve(t, nil))
	f := &fixture{t: t, client: c}
	f.refused("list_allowed_directories", args{}, "no directory may be used")
	f.refused("read_text_file", args{"path": "/etc/passwd"}, "no directory may be used")
}

// Roots that change while the server waits for the answer that names the old ones are asked
// for again: what the client took back is not used.
func TestRootsChangeWhileAsked(t *testing.T) {
	dir, beside := folders(t)
	noticed := make(chan struct{}, 1)
	so := &server.Options{OnRootsChanged: func(context.Context) { noticed <- struct{}{} }}
	var c *client.Client
	var asked atomic.Int64
	o := &client.Options{Versions: []string{"2025-11-25"}, OnRoots: func(ctx context.Context) ([]mcp.Root, error) {
		if asked.Add(1) > 1 {
			return []mcp.Root{{URI: rootURI(dir)}}, nil
		}
		if err := c.RootsChanged(ctx); err != nil {
			return nil, err
		}
		<-noticed
		return []mcp.Root{{URI: rootURI(beside)}}, nil
	}}
	c = mcptest.Client(t, serve(t, &filesystem.Options{Server: so}), o)
	f := &fixture{t: t, dir: dir, beside: beside, client: c}
	f.refused("read_text_file", args{"path": filepath.Join(beside, "secret")}, "Access denied")
	f.want("list_allowed_directories", args{}, "Allowed directories:\n"+dir)
}

// A question that fails after another call learned the roots takes them from nobody.
func TestRootsFailLate(t *testing.T) {
	dir, beside := folders(t)
	waiting, learned := make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	o := &client.Options{Versions: []string{"2025-11-25"}, OnRoots: func(context.Context) ([]mcp.Root, error) {
		if asked.Add(1) > 1 {
			return []mcp.Root{{URI: rootURI(dir)}}, nil
		}
		close(waiting)
		<-learned
		return nil, errors.New("not now")
	}}
	c := mcptest.Client(t, serve(t, nil), o)
	f := &fixture{t: t, dir: dir, beside: beside, client: c}
	var late sync.WaitGroup
	late.Go(func() { call(t.Context(), t, c, "list_allowed_directories", args{}) })
	<-waiting
	f.want("list_allowed_directories", args{}, "Allowed directories:\n"+dir)
	close(learned)
	late.Wait()
	f.want("list_allowed_directories", args{}, "Allowed directories:\n"+dir)
}

// A root that could not be opened is tried again at each call, whether the client says that its roots
// changed or not.
func TestRootsAreTriedAgain(t *testing.T) {
	dir, beside := folders(t)
	late := filepath.Join(beside, "late")
	build := func(tb testing.TB, o *server.Options) *server.Server {
		return serve(tb, &filesystem.Options{Server: o})
	}
	for name, first := range map[string][]mcp.Root{
		"beside another": {{URI: rootURI(beside)}, {URI: rootURI(late)}},
		"alone":          {{URI: rootURI(late)}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return first, nil }}
			mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
				if err := os.RemoveAll(late); err != nil {
					t.Fatal(err)
				}
				f := &fixture{t: t, dir: dir, client: c}
				after := "Allowed directories:\n" + late
				for range 2 {
					if len(first) > 1 {
						after = "Allowed directories:\n" + beside + "\n" + late
						f.want("list_allowed_directories", args{}, "Allowed directories:\n"+beside)
					} else {
						f.refused("list_allowed_directories", args{}, "no directory may be used")
					}
				}
				if err := os.Mkdir(late, 0o700); err != nil {
					t.Fatal(err)
				}
				f.want("list_allowed_directories", args{}, after)
				f.want("write_file", args{"path": filepath.Join(late, "a"), "content": "x"}, "Successfully wrote to "+filepath.Join(late, "a"))
			}, mcptest.Over("mem"), fresh)
		})
	}
}
