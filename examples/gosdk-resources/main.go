// Command gosdk-resources has what a server of the official SDK has whose
// resource handlers get the URI: not found, completion, subscriptions, hints of
// tools. See docs/guide/migration-go-sdk.md.
package main

import (
	"context"
	"log"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/uritemplate"
)

type documents struct {
	s    *server.Server
	mu   sync.Mutex
	text map[string]string // by URI
}

type document struct {
	Name string `json:"name" desc:"name of the document" pattern:"^[a-z]+$"`
	Text string `json:"text" desc:"what it says from now on"`
}

// read gets the whole URI, as a ResourceHandler does.
func (d *documents) read(_ context.Context, uri string, _ uritemplate.Values) (*mcp.ReadResourceResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, ok := d.text[uri]
	if !ok {
		return nil, server.ErrNotFound
	}
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text}}}, nil
}

func (d *documents) write(_ context.Context, in document) (mcp.None, error) {
	uri := "doc:///" + in.Name
	d.mu.Lock()
	d.text[uri] = in.Text
	d.mu.Unlock()
	d.s.ResourceUpdated(uri) // for its subscribers
	return mcp.None{}, nil
}

// names completes a name.
func (d *documents) names(_ context.Context, begun string, _ map[string]string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for _, uri := range slices.Sorted(maps.Keys(d.text)) {
		if name, ok := strings.CutPrefix(uri, "doc:///"); ok && strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names, nil
}

func newServer() *server.Server {
	d := &documents{text: map[string]string{"doc:///hello": "Hello, world!", "doc:///help": "Read hello."}}
	d.s = server.New("documents", "1.0.0", &server.Options{Limits: server.Limits{PageSize: 50}})
	d.s.Add(
		server.RawTemplate(mcp.ResourceTemplate{URITemplate: "doc:///{name}", Name: "document", MIMEType: "text/plain"}, d.read).
			With(server.TemplateOptions{Complete: map[string]server.Completer{"name": d.names}}),
		server.Tool("write", "Replaces a document.", d.write).
			With(server.ToolOptions{Annotations: &mcp.ToolAnnotations{IdempotentHint: new(true), OpenWorldHint: new(false)}}),
	)
	return d.s
}

func main() {
	if err := stdio.Serve(context.Background(), newServer()); err != nil {
		log.Fatal(err)
	}
}
