package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// clock is a server with a page, and a tool for the page alone.
func clock() host.Server {
	s := server.New("clock", "1.0.0", nil)
	apps.Enable(s)
	tell := server.Tool("now", "Tells the time.", func(context.Context, mcp.None) (string, error) { return "noon", nil })
	s.Add(
		apps.Page("ui://clock/face.html", "<!doctype html><title>Clock</title>", nil),
		apps.Tool(tell, "ui://clock/face.html", &apps.ToolOptions{Visibility: []apps.Caller{apps.App}}),
	)
	return host.Server{Name: "clock", Dialer: mem.New(s, nil)}
}

// A page is shown, and calls a tool of its server.
func ExampleSession_CallForPage() {
	ctx := context.Background()
	var rules []policy.Rule
	for _, pattern := range []string{"app:clock/*", "clock/now"} {
		r, err := policy.ParsePattern(policy.Allow, pattern, policy.Source{File: "example"})
		if err != nil {
			log.Fatal(err)
		}
		rules = append(rules, r)
	}
	allowed, err := policy.New(rules)
	if err != nil {
		log.Fatal(err)
	}
	h := host.New(&host.Options{
		Extensions: []client.Extension{apps.Extension()},
		Pages:      apps.Loader{},
		Policy:     allowed,
	})
	defer func() { _ = h.Close() }()
	if err := h.Add(clock()); err != nil {
		log.Fatal(err)
	}
	s, err := h.NewSession(ctx, robot{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	page, err := s.Page(ctx, "clock", "ui://clock/face.html")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.HTML)
	result, err := s.CallForPage(ctx, page.Server, page.URI, "now", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(host.ContentText(result.Content[0]))
	// Output:
	// <!doctype html><title>Clock</title>
	// noon
}
