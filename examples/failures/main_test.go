package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/examples/page"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

var reference = regexp.MustCompile(`ref [0-9A-F]{6}`)

// answer returns the text that a caller receives for err.
func answer(err error) string {
	if failed, ok := errors.AsType[*client.ToolError](err); ok {
		text := failed.Result.Content[0].(*mcp.TextContent).Text
		return "result with isError: " + page.Code(reference.ReplaceAllString(text, "ref 1A2B3C"))
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Sprintf("error %d: %s", refused.Code, page.Code(reference.ReplaceAllString(refused.Message, "ref 1A2B3C")))
	}
	return fmt.Sprint(err)
}

// The page's table shows the errors that a client of this program receives.
func TestTable(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	c := mcptest.Client(t, newServer(&server.Options{Logger: quiet}))
	var table strings.Builder
	table.WriteString("| cause | the caller receives |\n|---|---|\n")
	for _, row := range [][3]string{
		{"an error from `mcp.Errorf`, possibly wrapped", "withdraw", `{"euro":70}`},
		{"arguments that do not match the schema", "withdraw", `{"euro":700,"cent":1}`},
		{"any other error", "load", `{}`},
		{"a panic", "crash", `{}`},
		{"an error from `mcp.NewError`", "refuse", `{}`},
		{"an unknown tool", "nothing", `{}`},
	} {
		_, err := client.Call[mcp.None](t.Context(), c, row[1], mcp.RawValue(row[2]))
		fmt.Fprintf(&table, "| %s | %s |\n", row[0], answer(err))
	}
	page.Check(t, "errors.md", "table", table.String())
}

// What is hidden from callers is in the log, under the same reference.
func TestLog(t *testing.T) {
	var log strings.Builder
	c := mcptest.Client(t, newServer(&server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
	_, err := client.Call[mcp.None](t.Context(), c, "load", nil)
	ref := reference.FindString(fmt.Sprint(err))
	if ref == "" || strings.Contains(err.Error(), "private") {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), strings.TrimPrefix(ref, "ref ")) || !strings.Contains(log.String(), `level=ERROR msg="handler error" ref=`) ||
		!strings.Contains(log.String(), `err="open /srv/private/accounts.db: permission denied" mcp.method=tools/call mcp.target=load `) {
		t.Errorf("log: %s", log.String())
	}
}

func TestExposeErrors(t *testing.T) {
	c := mcptest.Client(t, newServer(&server.Options{ExposeErrors: true}))
	if _, err := client.Call[mcp.None](t.Context(), c, "load", nil); err == nil || !strings.Contains(err.Error(), "/srv/private/accounts.db") {
		t.Error(err)
	}
}

func TestMapError(t *testing.T) {
	c := mcptest.Client(t, newServer(&server.Options{MapError: mapped}))
	if _, err := client.Call[mcp.None](t.Context(), c, "load", nil); err == nil || !strings.Contains(err.Error(), "the server may not read this") {
		t.Error(err)
	}
}

func TestEither(t *testing.T) {
	c := mcptest.Client(t, newServer(nil))
	if _, err := client.Call[mcp.None](t.Context(), c, "either", nil); err == nil || !strings.Contains(err.Error(), "tell the operator") {
		t.Error(err)
	}
}
