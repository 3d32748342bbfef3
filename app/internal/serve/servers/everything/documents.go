package everything

import (
	"embed"
	"path"

	"github.com/parley-mcp/parley/server"
)

//go:embed documents/*.md
var documentFiles embed.FS

// instructions are what a model is told of the server. They are one of the documents.
var instructions = document("instructions.md")

// document is the text of a document.
func document(name string) string {
	text, err := documentFiles.ReadFile(path.Join("documents", name))
	if err != nil {
		panic(err) // they are part of the program
	}
	return string(text)
}

// documents are texts about this server as resources, under the addresses of those of the reference server.
func documents() []server.Feature {
	files, err := documentFiles.ReadDir("documents")
	if err != nil {
		panic(err) // they are part of the program
	}
	list := make([]server.Feature, 0, len(files))
	for _, f := range files {
		list = append(list, server.Text("demo://resource/static/document/"+f.Name(), f.Name(), document(f.Name())).With(server.ResourceOptions{
			Description: "A document about this server.", MIMEType: "text/markdown", Cache: unchanging,
		}))
	}
	return list
}
