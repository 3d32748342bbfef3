package cli_test

import (
	"context"
	"os"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// folderSkills is a server with the skills of a folder, its first argument.
func folderSkills() {
	s := server.New("skills", "1", nil)
	if _, err := skills.Enable(s, skills.Dir(os.Args[1]), nil); err != nil {
		panic(err)
	}
	if err := stdio.Serve(context.Background(), s); err != nil {
		os.Exit(1)
	}
}
