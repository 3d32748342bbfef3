package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-mcp/parley/server"
)

// watchEvery is how often the watched resource changes while it is watched.
const watchEvery = 3 * time.Second

type item struct {
	ID string `uri:"id"`
}

// resources are the things to read.
func resources() []server.Feature {
	return []server.Feature{
		server.Text("test://static-text", "static-text", "This is the content of the static text resource.").
			With(server.ResourceOptions{Description: "A text that does not change."}),
		server.Resource("test://static-binary", "static-binary", func(context.Context) ([]byte, error) {
			return picture(), nil
		}).With(server.ResourceOptions{Description: "An image that does not change.", MIMEType: "image/png"}),
		server.Resource("test://watched-resource", "watched-resource", func(context.Context) (string, error) {
			return time.Now().UTC().Format(time.RFC3339), nil
		}).With(server.ResourceOptions{Description: "A text that changes while it is watched.", Watch: tick}),
		server.Template("test://template/{id}/data", "template", func(_ context.Context, in item) (string, error) {
			text, err := json.Marshal(map[string]any{"id": in.ID, "templateTest": true, "data": "Data for ID: " + in.ID})
			return string(text), err
		}).With(server.TemplateOptions{Description: "Data by its id.", MIMEType: "application/json"}),
	}
}

// tick says every few seconds that something has changed.
func tick(ctx context.Context, changed func()) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			changed()
		}
	}
}
