package client

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// The name of an item is found for each wrong part of it, and the item is read once.
func TestItems(t *testing.T) {
	of := items{result: wire.RawValue(`{"tools":[{"name":"a"},{"uri":"b"},{"name":5},7],"size":1}`)}
	for pointer, want := range map[string]string{
		"/tools/0/title": "a", "/tools/0": "a", "/tools/1/icons/0": "b", "/tools/2": "", "/tools/3": "", "/tools/4": "", "/tools": "", "/size/0": "", "/other/0": "",
	} {
		for range 2 {
			if got := of.at(pointer); got != want {
				t.Errorf("%s is of %q, want %q", pointer, got, want)
			}
		}
	}
	of = items{result: wire.RawValue(`{"tools":[{"name":"a","enum":[` + strings.Repeat(`"abcd",`, 1<<18) + `1]}]}`)}
	start := time.Now()
	of.at("/tools/0")
	once := time.Since(start)
	start = time.Now()
	for range 1000 {
		of.at("/tools/0/title")
	}
	if again := time.Since(start); again > 100*once {
		t.Errorf("%v for a thousand parts of an item, %v for one", again, once)
	}
}

// Transports may allow more depth than is usual: what is right stays, and has its name.
func TestMendDeep(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	c := &Client{log: slog.New(slog.DiscardHandler)}
	read := func(method, raw string, out any) {
		t.Helper()
		if _, err := c.readResult(context.Background(), shape.For(revision.Newest()), method, "", wire.RawValue(raw), out); err != nil {
			t.Error(err)
		}
	}
	var r mcp.CallToolResult
	read(mcp.MethodToolsCall, `{"content":[{"type":"text","text":"x","_meta":{"a":`+deep+`}},7]}`, &r)
	if text, ok := r.Content[0].(*mcp.TextContent); !ok || text.Text != "x" {
		t.Errorf("%+v", r.Content[0])
	}
	read(mcp.MethodToolsList, `{"tools":[{"name":"a","title":5,"_meta":{"a":`+deep+`}}]}`, &mcp.ListToolsResult{})
	if p := c.Problems(); len(p) != 2 || p[1].Subject != "a" {
		t.Errorf("%+v", p)
	}
}
