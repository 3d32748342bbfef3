package host_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A host that lets its model use the skills of servers.
func ExampleOptions_skills() {
	s := server.New("docs", "1.0.0", nil)
	files := fstest.MapFS{"pdf/SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Fill in forms.\n---\n# Forms\n")}}
	if _, err := skills.Enable(s, skills.FS(files), nil); err != nil {
		log.Fatal(err)
	}
	h := host.New(&host.Options{
		Attended:   true,
		Extensions: []client.Extension{skills.Extension()},
		Skills:     skills.Loader{},
	})
	defer func() {
		if err := h.Close(); err != nil {
			log.Print(err)
		}
	}()
	if err := h.Add(host.Server{Name: "docs", Dialer: mem.New(s, nil)}); err != nil {
		log.Print(err)
	}
	for _, k := range h.Settle(context.Background(), time.Minute).Skills {
		fmt.Printf("%s of %s: %s\n", k.URI, k.Server, k.Description)
	}
	// Output: skill://pdf/SKILL.md of docs: Fill in forms.
}
