package cli

import (
	"os"

	"github.com/parley-mcp/parley/app/internal/connect"
)

// A program is one run of the command line.
type program struct {
	*connect.Connector

	held    map[string]*os.File // locks of the sessions that are open here, by their ids
	unkept  bool                // there is no folder for sessions
	welcome string              // what the screen says at the beginning of a first conversation
}

// aboutServers reports whether flags were given that are for commands that use a server.
func (p *program) aboutServers() bool { return len(p.Named)+len(p.Headers) > 0 }
