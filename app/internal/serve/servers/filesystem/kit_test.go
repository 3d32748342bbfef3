package filesystem_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// A fixture is a server for a directory, and a client of it.
type fixture struct {
	t      *testing.T
	dir    string // what the server may use
	beside string // a directory that it may not use, with the file secret
	client *client.Client
}

const secret = "what nobody may see"

// folders makes the two directories.
func folders(t *testing.T) (dir, beside string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, beside = filepath.Join(base, "dir"), filepath.Join(base, "beside")
	put(t, filepath.Join(dir, "a.txt"), "one\ntwo\nthree\n")
	put(t, filepath.Join(beside, "secret"), secret)
	return dir, beside
}

// start serves a directory with options, which may be nil, to a client with options.
func start(t *testing.T, o *filesystem.Options, c *client.Options) *fixture {
	t.Helper()
	dir, beside := folders(t)
	return &fixture{t: t, dir: dir, beside: beside, client: mcptest.Client(t, serve(t, o, dir), c)}
}

// serve makes a server for directories, which ends with the test.
func serve(t testing.TB, o *filesystem.Options, dirs ...string) *server.Server {
	t.Helper()
	var opts filesystem.Options
	if o != nil {
		opts = *o
	}
	var so server.Options
	if opts.Server != nil {
		so = *opts.Server
	}
	so.Logger = cmp.Or(so.Logger, slog.New(slog.DiscardHandler))
	opts.Server = &so
	s, closer, err := filesystem.New("1.0.0", dirs, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(context.Background()), closer.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type args = map[string]any

// call calls a tool. Text is that of all its content; failed says that it failed or was
// refused.
func call(ctx context.Context, t testing.TB, c *client.Client, tool string, in args) (text string, failed bool) {
	t.Helper()
	res, err := c.CallTool(ctx, tool, in, nil)
	if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return refusal.Message, true
	}
	if err != nil {
		t.Errorf("%s: %v", tool, err)
		return "", true
	}
	var parts []string
	for _, content := range res.Content {
		parts = append(parts, host.ContentText(content))
	}
	return strings.Join(parts, "|"), res.IsError
}

// want calls a tool that has to give exactly this text.
func (f *fixture) want(tool string, in args, want string) {
	f.t.Helper()
	if got, failed := call(f.t.Context(), f.t, f.client, tool, in); failed || got != want {
		f.t.Errorf("%s %v: %q (failed: %t), want %q", tool, in, got, failed, want)
	}
}

// refused calls a tool that has to fail with a text that holds all parts, and nothing of
// the secret.
func (f *fixture) refused(tool string, in args, parts ...string) {
	f.t.Helper()
	got, failed := call(f.t.Context(), f.t, f.client, tool, in)
	if !failed || strings.Contains(got, secret) {
		f.t.Errorf("%s %.300v: %.300q (failed: %t), want a refusal", tool, in, got, failed)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			f.t.Errorf("%s %.300v: %q does not hold %q", tool, in, got, part)
		}
	}
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// link makes a symbolic link, or skips the test where that is not allowed.
func link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}
