// Command shapes shows what a tool can take and give. See docs/guide/tools.md.
package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"strings"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type searchIn struct {
	Query string     `json:"query" desc:"words to look for" minlen:"1" maxlen:"200"`
	Kind  string     `json:"kind" desc:"what to look for" enum:"book,film" default:"book"`
	Limit int        `json:"limit" desc:"how many at most" min:"1" max:"50" default:"10"`
	Since *time.Time `json:"since" desc:"leave out what is older"`
}

type hit struct {
	Title string `json:"title"`
	Year  int    `json:"year"`
}

type searchOut struct {
	Hits []hit `json:"hits" desc:"best first"`
	More bool  `json:"more" desc:"there are more than limit"`
}

var catalog = map[string][]hit{
	"book": {{"A History of Bridges", 1901}, {"Bridges and Roads", 1987}},
	"film": {{"Bridges at Night", 2011}},
}

// search takes checked arguments, defaults filled in, and gives a value.
func search(_ context.Context, in searchIn) (searchOut, error) {
	out := searchOut{Hits: []hit{}}
	for _, h := range catalog[in.Kind] {
		switch {
		case !strings.Contains(strings.ToLower(h.Title), strings.ToLower(in.Query)):
		case in.Since != nil && h.Year < in.Since.Year():
		case len(out.Hits) == in.Limit:
			out.More = true
		default:
			out.Hits = append(out.Hits, h)
		}
	}
	return out, nil
}

// count gives text.
func count(_ context.Context, in struct {
	Kind string `json:"kind" enum:"book,film"`
},
) (string, error) {
	return fmt.Sprintf("%d of kind %s", len(catalog[in.Kind]), in.Kind), nil
}

// chart gives an image; audio is the same with mcp.Audio.
func chart(context.Context, mcp.None) (mcp.Content, error) {
	img := image.NewGray(image.Rect(0, 0, 8, 8))
	img.Set(2, 2, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, err
	}
	return mcp.Image(b.Bytes(), "image/png"), nil
}

// report gives several pieces: text, a link to a resource, a whole resource.
func report(context.Context, mcp.None) ([]mcp.Content, error) {
	return []mcp.Content{
		mcp.Text("The catalogue has two kinds."),
		mcp.Link("catalog:///book", "all books"),
		mcp.Embed(mcp.ResourceContents{URI: "catalog:///film", MIMEType: "text/plain", Text: "Bridges at Night"}),
	}, nil
}

// newest gives a value for programs, and other words for the model.
func newest(context.Context, mcp.None) (mcp.With[hit], error) {
	h := catalog["film"][0]
	return mcp.With[hit]{Value: h, Content: []mcp.Content{mcp.Text("The newest film is " + h.Title + ".")}}, nil
}

// A period is checked by its schema, and then by itself.
type period struct {
	From int `json:"from" desc:"first year"`
	To   int `json:"to" desc:"last year"`
}

// Validate has the last word about arguments; its text is for the model.
func (p period) Validate() error {
	if p.To < p.From {
		return fmt.Errorf("to must not be before from")
	}
	return nil
}

// between gives all of a period.
func between(_ context.Context, in period) (searchOut, error) {
	out := searchOut{Hits: []hit{}}
	for _, h := range catalog["book"] {
		if in.From <= h.Year && h.Year <= in.To {
			out.Hits = append(out.Hits, h)
		}
	}
	return out, nil
}

// remove gives nothing but success, or an error that the model reads.
func remove(_ context.Context, in struct {
	Title string `json:"title" minlen:"1"`
},
) (mcp.None, error) {
	for _, hits := range catalog {
		for _, h := range hits {
			if h.Title == in.Title {
				return mcp.None{}, nil // a demonstration removes nothing
			}
		}
	}
	return mcp.None{}, mcp.Errorf("there is no %q; look for its exact title with search", in.Title)
}

func newServer() *server.Server {
	yes := true
	s := server.New("shapes", "1.0.0", &server.Options{Instructions: "Search before you remove."})
	s.Add(
		server.Tool("search", "Searches the catalogue.", search).With(server.ToolOptions{
			Title:       "Search",
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: &yes},
		}),
		server.Tool("count", "Counts what is there.", count),
		server.Tool("chart", "Draws a chart.", chart),
		server.Tool("report", "Reports about the catalogue.", report),
		server.Tool("newest", "Tells the newest film.", newest),
		server.Tool("between", "Lists the books of some years.", between),
		server.Tool("remove", "Removes by title.", remove).With(server.ToolOptions{
			Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: &yes},
		}),
	)
	return s
}

func main() {
	if err := stdio.Serve(context.Background(), newServer()); err != nil {
		log.Fatal(err)
	}
}
