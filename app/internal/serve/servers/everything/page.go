package everything

import (
	"context"
	_ "embed" // palette.html
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

const paletteURI = "ui://everything/palette.html"

// palettePage shows a palette. It loads nothing, so it needs no origins.
//
//go:embed palette.html
var palettePage string

type paletteIn struct {
	Base  string `json:"base" desc:"The colour to start from, such as #3a6ea5." pattern:"^#[0-9a-fA-F]{6}$" maxlen:"7" default:"#3a6ea5"`
	Count int    `json:"count" desc:"How many colours." min:"2" max:"9" default:"5"`
}

type palette struct {
	Base    string   `json:"base"`
	Colours []string `json:"colours" desc:"In hexadecimal, the first is the base."`
}

// pageTools are a tool with a page, and the page (extension io.modelcontextprotocol/ui).
func pageTools() []server.Feature {
	tool := server.Tool("show-palette", "Mixes colours that go together, and shows them.", mix).
		With(server.ToolOptions{Title: "Palette", Annotations: readOnly})
	return []server.Feature{
		apps.Tool(tool, paletteURI, nil),
		apps.Page(paletteURI, palettePage, &apps.PageOptions{
			Name: "palette", Title: "Palette", Description: "Shows the colours of show-palette.", PrefersBorder: new(true),
		}),
	}
}

// mix goes round the circle of colours in equal steps.
func mix(_ context.Context, in paletteIn) (mcp.With[palette], error) {
	base := strings.ToLower(in.Base)
	n, err := strconv.ParseUint(base[1:], 16, 24)
	if err != nil {
		return mcp.With[palette]{}, mcp.Errorf("%s is no colour", in.Base)
	}
	p := palette{Base: base, Colours: []string{base}}
	hue, saturation, lightness := hsl(float64(n>>16&255), float64(n>>8&255), float64(n&255))
	for i := 1; i < in.Count; i++ {
		turned := math.Mod(hue+360*float64(i)/float64(in.Count), 360)
		p.Colours = append(p.Colours, hex(turned, saturation, lightness))
	}
	text := fmt.Sprintf("%d colours around %s: %s", in.Count, base, strings.Join(p.Colours, ", "))
	return mcp.With[palette]{Value: p, Content: []mcp.Content{mcp.Text(text)}}, nil
}

// hsl gives hue (degrees), saturation and lightness (0 to 1) of red, green and blue (0
// to 255).
func hsl(r, g, b float64) (h, s, l float64) {
	r, g, b = r/255, g/255, b/255
	most, least := max(r, g, b), min(r, g, b)
	l = (most + least) / 2
	d := most - least
	if d == 0 {
		return 0, 0, l
	}
	s = d / (1 - math.Abs(2*l-1))
	switch most {
	case r:
		h = math.Mod((g-b)/d+6, 6)
	case g:
		h = (b-r)/d + 2
	default:
		h = (r-g)/d + 4
	}
	return h * 60, s, l
}

// hex is the other direction.
func hex(h, s, l float64) string {
	part := func(n float64) int {
		k := math.Mod(n+h/30, 12)
		return int(math.Round(255 * (l - s*min(l, 1-l)*max(-1, min(k-3, 9-k, 1)))))
	}
	return fmt.Sprintf("#%02x%02x%02x", part(0), part(8), part(4))
}
