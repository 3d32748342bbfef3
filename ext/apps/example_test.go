package apps_test

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

func exampleServer() *server.Server {
	s := server.New("weather", "1.0.0", nil)
	apps.Enable(s)
	s.Add(
		apps.Page("ui://weather/view.html", "<!doctype html><title>Weather</title>", &apps.PageOptions{
			CSP: &apps.Domains{Connect: []string{"https://api.example.com"}},
		}),
		apps.Tool(server.Tool("weather", "Tells the weather.", tellWeather), "ui://weather/view.html", nil),
		apps.Tool(server.Tool("refresh", "Tells it anew.", tellWeather), "ui://weather/view.html",
			&apps.ToolOptions{Visibility: []apps.Caller{apps.App}}),
	)
	return s
}

// A host reads which tool has a page, and which is for its model.
func ExampleOf() {
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(exampleServer(), nil), &client.Options{Extensions: []client.Extension{apps.Extension()}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		ui, err := apps.Of(tool)
		if err != nil {
			log.Print(err)
			continue
		}
		fmt.Println(tool.Name, ui.URI, ui.Visible(apps.Model))
	}
	// Output:
	// refresh ui://weather/view.html false
	// weather ui://weather/view.html true
}

// A host gets the page of a tool, and the policy to show it with.
func ExampleFetch() {
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(exampleServer(), nil), &client.Options{Extensions: []client.Extension{apps.Extension()}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	page, err := apps.Fetch(ctx, c, "ui://weather/view.html", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.HTML)
	fmt.Println(page.Meta.CSP.Connect)
	// Output:
	// <!doctype html><title>Weather</title>
	// [https://api.example.com]
}

// A tool and its page come in one call of Add; a tool without its page is refused.
func ExampleTool() {
	s := server.New("weather", "1.0.0", nil)
	apps.Enable(s)
	tool := apps.Tool(server.Tool("weather", "Tells the weather.", tellWeather), "ui://weather/view.html", nil)
	fmt.Println(s.TryAdd(tool))
	s.Add(tool, apps.Page("ui://weather/view.html", "<!doctype html><title>Weather</title>", nil))
	// Output:
	// tool "weather" needs the resource "ui://weather/view.html", which the server does not have; add it before the tool, or in the same call
}

// Nothing gets into a policy but origins.
func ExampleCSP() {
	policy, err := apps.CSP(&apps.Domains{Frame: []string{"https://player.example.net"}})
	fmt.Println(policy, err)
	_, err = apps.CSP(&apps.Domains{Connect: []string{"https://api.example.com/v1"}})
	fmt.Println(err)
	// Output:
	// default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self' data:; frame-src https://player.example.net; object-src 'none'; base-uri 'self' <nil>
	// csp: connectDomains: "https://api.example.com/v1": an origin ends with its host or port; leave the path out, and the slash at the end
}
