package kit

import (
	"runtime/debug"

	"github.com/parley-mcp/parley/server"
)

// Commit is set by the linker when a release is built, since the go command
// tells a program of a module nothing about the commit.
var Commit string

// Version is what the build knows of itself.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

// Versions returns the protocol versions that the program speaks, the newest first.
func Versions() []string { return server.New("parley", Version(), nil).Versions() }
