package git

import (
	"context"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
)

// allowed are the folders that the repository of a call must lie within; none means that any will
// do.
func (g *gitServer) allowed(ctx context.Context) ([]string, error) {
	if len(g.Repositories) > 0 {
		return g.Repositories, nil
	}
	if c := server.Caller(ctx); c == nil || c.Identity() != principal.Local.Identity() {
		return nil, mcp.Errorf("this server can be reached over a network, and serves no repository until it is started with --repository")
	}
	if !server.CanRoots(ctx) {
		return nil, nil
	}
	roots, err := server.Roots(ctx)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, r := range roots {
		if dir, ok := rootDir(r.URI); ok {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 && len(roots) > 0 {
		return nil, mcp.Errorf("none of the client's roots is a folder of this machine; start the server with --repository")
	}
	return dirs, nil
}

// rootDir is the folder that a root of a client names.
func rootDir(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", false
	}
	path := u.Path
	if runtime.GOOS == "windows" { // file:///C:/folder
		path = strings.TrimPrefix(path, "/")
	}
	return filepath.FromSlash(path), true
}
