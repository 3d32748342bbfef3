package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// Who is subscribed to a document hears of its change, and reads the new text.
func TestDocuments(t *testing.T) {
	changed := make(chan string, 8)
	c := mcptest.Client(t, newServer(), &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { changed <- uri }})
	if _, err := c.Subscribe(t.Context(), "doc:///hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call[mcp.None](t.Context(), c, "write", document{"hello", "Good day!"}); err != nil {
		t.Fatal(err)
	}
	if uri := <-changed; uri != "doc:///hello" {
		t.Errorf("%s has changed", uri)
	}
	r, err := c.ReadResource(t.Context(), "doc:///hello", nil)
	if err != nil || r.Contents[0].Text != "Good day!" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.ReadResource(t.Context(), "doc:///nothing", nil); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a document that is not there: %v", err)
	}
	values, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.ResourceRef("doc:///{name}"), Argument: mcp.CompletionArgument{Name: "name", Value: "hell"}})
	if err != nil || !slices.Equal(values.Values, []string{"hello"}) {
		t.Errorf("%+v, %v", values, err)
	}
}
