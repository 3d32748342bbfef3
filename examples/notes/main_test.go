package main

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// start makes a server with an empty database, and a client of it.
func start(t *testing.T, o *client.Options) *client.Client {
	t.Helper()
	b, err := open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.db.Close() })
	return mcptest.Client(t, b.server, o)
}

func TestAddAndFind(t *testing.T) {
	c := start(t, nil)
	n, err := client.Call[note](t.Context(), c, "add_note", map[string]string{"title": "Milk", "text": "two litres"})
	if err != nil || n.ID != 1 {
		t.Fatalf("%+v, %v", n, err)
	}
	for words, want := range map[string]int{"LITRES": 1, "bread": 0, "": 1} {
		out, err := client.Call[found](t.Context(), c, "find_notes", map[string]string{"words": words})
		if err != nil || len(out.Notes) != want {
			t.Errorf("find %q: %+v, %v", words, out, err)
		}
	}
	res, err := c.ReadResource(t.Context(), "note:///1", nil)
	if err != nil || res.Contents[0].Text != "Milk\n\ntwo litres" {
		t.Errorf("read: %+v, %v", res, err)
	}
	if _, err := c.ReadResource(t.Context(), "note:///2", nil); err == nil {
		t.Error("note 2 was read, and is not there")
	}
	prompt, err := c.GetPrompt(t.Context(), "summary", nil, nil)
	if err != nil || !strings.HasSuffix(prompt.Messages[0].Content.(*mcp.TextContent).Text, "Milk: two litres") {
		t.Errorf("prompt: %+v, %v", prompt, err)
	}
}

// Who is subscribed to a note is told when it was edited.
func TestEdit(t *testing.T) {
	updated := make(chan string, 1)
	c := start(t, &client.Options{OnResourceUpdated: func(_ context.Context, uri string) { updated <- uri }})
	if _, err := client.Call[note](t.Context(), c, "add_note", map[string]string{"title": "Milk", "text": "two litres"}); err != nil {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(t.Context(), "note:///1")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if _, err := client.Call[mcp.None](t.Context(), c, "edit_note", map[string]any{"id": 1, "text": "three"}); err != nil {
		t.Fatal(err)
	}
	if uri := <-updated; uri != "note:///1" {
		t.Errorf("updated: %s", uri)
	}
	if _, err := client.Call[mcp.None](t.Context(), c, "edit_note", map[string]any{"id": 9, "text": ""}); err == nil || !strings.Contains(err.Error(), "there is no note 9") {
		t.Error(err)
	}
}
