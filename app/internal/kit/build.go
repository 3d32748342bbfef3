package kit

import (
	"runtime/debug"

	"github.com/parley-mcp/parley/server"
)

// Commit is set by the linker in release builds, since the go command does not
// record the commit in a program built from a module.
var Commit string

// Version returns the module version recorded by the build, or "devel".
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

// Versions returns the supported protocol versions, newest first.
func Versions() []string { return server.New("parley", Version(), nil).Versions() }
