// Command apps offers a tool whose results are shown in a page. See
// docs/guide/apps.md.
package main

import (
	"context"
	_ "embed" // view.html
	"log"

	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

//go:embed view.html
var view string

type place struct {
	City string `json:"city" desc:"name of the city" minlen:"1"`
}

type report struct {
	City    string `json:"city"`
	Degrees int    `json:"degrees" desc:"in Celsius"`
}

func weather(_ context.Context, in place) (report, error) {
	return report{City: in.City, Degrees: 10 + len(in.City)}, nil
}

func newServer() *server.Server {
	s := server.New("weather", "1.0.0", nil)
	apps.Enable(s)
	s.Add(
		apps.Page("ui://weather/view.html", view, &apps.PageOptions{
			CSP:           &apps.Domains{Resource: []string{"https://icons.example.com"}},
			PrefersBorder: new(true),
		}),
		apps.Tool(server.Tool("weather", "Tells the weather of a city.", weather), "ui://weather/view.html", nil),
		apps.Tool(server.Tool("refresh", "Tells the page the weather anew.", weather), "ui://weather/view.html",
			&apps.ToolOptions{Visibility: []apps.Caller{apps.App}}),
	)
	return s
}

func main() {
	if err := stdio.Serve(context.Background(), newServer()); err != nil {
		log.Fatal(err)
	}
}
