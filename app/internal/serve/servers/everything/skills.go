package everything

import (
	"embed"
	"io/fs"
	"log/slog"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/server"
)

// folder holds the skills: files that are part of the program.
//
//go:embed skills
var folder embed.FS

// addSkills has the server offer the skills of the folder.
func addSkills(s *server.Server, logger *slog.Logger) {
	files, err := fs.Sub(folder, "skills")
	if err == nil {
		_, err = skills.Enable(s, skills.FS(files), &skills.Options{Logger: logger})
	}
	if err != nil {
		panic("everything: " + err.Error()) // a mistake in the folder, which a test finds
	}
}
