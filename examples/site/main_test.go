package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

func docs(t *testing.T) *os.Root {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "intro.md"), []byte("# Intro\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestRead(t *testing.T) {
	c, ctx := mcptest.Client(t, newServer(docs(t))), t.Context()
	for uri, want := range map[string]string{
		"site:///licence":  "You may copy this.",
		"city:///oslo":     cities["oslo"],
		"docs:///intro.md": "# Intro\n",
	} {
		res, err := c.ReadResource(ctx, uri, nil)
		if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != want {
			t.Errorf("%s: %+v, %v", uri, res, err)
		}
	}
	for _, uri := range []string{"city:///paris", "city:///os%2Flo", "docs:///none.md", "docs:///..%2Fsecret"} {
		if _, err := c.ReadResource(ctx, uri, nil); err == nil || !strings.Contains(err.Error(), "resource not found") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	res, err := c.ReadResource(ctx, "clock:///utc", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339, res.Contents[0].Text); err != nil {
		t.Error(err)
	}
}

func TestLists(t *testing.T) {
	c, ctx := mcptest.Client(t, newServer(docs(t))), t.Context()
	var uris []string
	for r, err := range c.Resources(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
	}
	if got := strings.Join(uris, " "); !strings.Contains(got, "docs:///intro.md") || !strings.Contains(got, "clock:///utc") || !strings.Contains(got, "site:///licence") {
		t.Errorf("resources: %s", got)
	}
	found, err := c.Complete(ctx, &mcp.CompleteParams{
		Ref: mcp.ResourceRef("city:///{name}"), Argument: mcp.CompletionArgument{Name: "name", Value: "o"},
	})
	if err != nil || strings.Join(found.Values, " ") != "oslo" {
		t.Errorf("completion: %+v, %v", found, err)
	}
}

// A subscriber is told that the clock goes on.
func TestSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		updated := make(chan string, 1)
		c := mcptest.Client(t, newServer(docs(t)), &client.Options{OnResourceUpdated: func(_ context.Context, uri string) {
			select {
			case updated <- uri:
			default:
			}
		}})
		sub, err := c.Subscribe(t.Context(), "clock:///utc")
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		if uri := <-updated; uri != "clock:///utc" {
			t.Errorf("updated: %s", uri)
		}
	})
}
