package connect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-mcp/parley/app/internal/config"
)

// Proves: ruling 45. The folder that a server begins relative paths at is its working directory, unless its
// command shows that it may be another.
func TestStartFolder(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, other := filepath.Join(top, "work"), filepath.Join(top, "other")
	for _, dir := range []string{work, other, filepath.Join(work, "sub")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(work, "server.py")
	if err := os.WriteFile(script, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spaced := filepath.Join(work, "my server.py")
	if err := os.WriteFile(spaced, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(other)
	for _, test := range []struct {
		dir     string
		command []string
		env     map[string]string
		want    string
	}{
		{work, []string{"python3", script}, nil, work},
		{work, []string{"python3", "server.py"}, map[string]string{"TOKEN": "x", "EMPTY": ""}, work},
		{work, []string{"./server", ".", "--root=" + work}, nil, work},
		{work, []string{"sh", "-c", "exec ./server"}, nil, work},
		{"", []string{"npx", "-y", "@example/server"}, nil, other},
		// Another folder is named.
		{work, []string{"uv", "--directory", other, "run", "server.py"}, nil, ""},
		{work, []string{"uv", "--directory=" + other, "run", "server.py"}, nil, ""},
		{work, []string{"./server", ".."}, nil, ""},
		{work, []string{"./server", "sub"}, nil, ""},
		{work, []string{"./server", "~/notes"}, nil, ""},
		{work, []string{"./server"}, map[string]string{"NOTES": other}, ""},
		{work, []string{"sh", "-c", "cd sub && exec ../server"}, nil, ""},
		{work, []string{"cmd", "/c", "cd", "sub", "&&", "server.exe"}, nil, ""},
		{work, []string{"env", "-C" + other, "./server"}, nil, ""},
		{work, []string{"./server", "ROOT=" + other}, nil, ""},
		{work, []string{"./server", "--root", filepath.Join(top, "later")}, nil, ""}, // the server may make it
		{work, []string{"sh", "-c", "exec ./server " + other}, nil, ""},
		{work, []string{"sh", "-c", "ROOT='" + other + "' ./server"}, nil, ""},
		{work, []string{"sh", "-c", `./server "$ROOT"`}, nil, ""},
		{filepath.Join(top, "missing"), []string{"./server"}, nil, ""},
		// Paths are others.
		{work, []string{"docker", "run", "-i", "example/server"}, nil, ""},
		{work, []string{"/usr/bin/ssh", "host", "server"}, nil, ""},
		{work, []string{"sudo", "podman", "run", "example/server"}, nil, ""},
		// Servers that begin elsewhere.
		{work, []string{"parley", "serve", "filesystem"}, nil, ""},
		{work, []string{`C:\Parley\parley.exe`, "serve", "git"}, nil, ""},
		{work, []string{"npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31"}, nil, ""},
		{work, []string{"uvx", "mcp-server-git"}, nil, ""},
		{work, []string{"python", "-m", "mcp_server_git"}, nil, ""},
		{work, []string{"uvx", "mcp-server-git==2026.1.14"}, nil, ""},
		{work, []string{"sh", "-c", "exec parley serve filesystem"}, nil, ""},
		{work, []string{"sh", "-c", "docker run -i example/server"}, nil, ""},
		{work, []string{`C:\Docker\Docker.EXE`, "run", "-i", "example/server"}, nil, ""},
		// Bridges to servers that run elsewhere.
		{work, []string{"npx", "-y", "mcp-remote", "https://example.com/mcp"}, nil, ""},
		{work, []string{"example-proxy", "--to=wss://example.com/mcp"}, nil, ""},
		{work, []string{"parley", "bridge", "--stdio", "moved"}, nil, ""},
		// Words that name no folder.
		{work, []string{"./server", "postgres://localhost/db"}, nil, work},
		{work, []string{"python3", spaced, "--port", "8080"}, nil, work},
		{work, []string{"sh", "-c", "TOKEN=x exec ./server --port 8080"}, nil, work},
		{work, []string{"./server"}, map[string]string{"PATH": work + string(filepath.ListSeparator) + other}, work},
	} {
		entry := &config.Server{Transport: config.TransportStdio, Dir: test.dir, Command: test.command[0], Args: test.command[1:], Env: test.env}
		if got := EntryFolder(entry); got != test.want {
			t.Errorf("%q with %v in %q: %q, want %q", test.command, test.env, test.dir, got, test.want)
		}
	}
	if got := EntryFolder(&config.Server{Transport: config.TransportHTTP, URL: "https://example.com/mcp"}); got != "" {
		t.Errorf("a remote server begins at %q", got)
	}
}

// A folder behind a symbolic link has two parents, so ".." cannot be judged.
func TestStartFolderBehindLink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	if got := startFolder(link, []string{"./server"}, nil); got != "" {
		t.Errorf("the folder is %q, want none", got)
	}
}
