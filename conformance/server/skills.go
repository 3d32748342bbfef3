package main

import (
	"embed"
	"io/fs"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/server"
)

//go:embed skills
var skillFolder embed.FS

// addSkills has the server offer two skills, the first of them with a directory.
func addSkills(s *server.Server) {
	files, err := fs.Sub(skillFolder, "skills")
	if err == nil {
		_, err = skills.Enable(s, skills.FS(files), nil)
	}
	if err != nil {
		panic(err) // a mistake in the folder
	}
}
