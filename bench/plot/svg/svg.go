// Package svg draws charts: bars and lines, as pictures that need nothing but
// themselves and suit light and dark pages.
package svg

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// width is that of every picture, in the units of all measures here; a page
// shows them as pixels or smaller.
const width = 860

// style names what is drawn. Colours are told apart with any colour vision and
// by their lightness; on a dark page they are lighter.
const style = `
  .page { fill: #ffffff; }
  text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f; }
  .title { font-size: 18px; font-weight: 600; }
  .note, .tick, .axis { fill: #57606a; }
  .note, .tick { font-size: 13px; }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .base { stroke: #6e7781; stroke-width: 1; }
  .mark { stroke: #6e7781; stroke-width: 1.5; stroke-dasharray: 5 4; fill: none; }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
  .k0 { --k: #0a5fb4; } .k1 { --k: #7a828a; } .k2 { --k: #c2500a; } .k3 { --k: #12805c; } .k4 { --k: #9a4fb0; }
  .bar, .dot { fill: var(--k); }
  .line { stroke: var(--k); }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; }
    text { fill: #e6edf3; }
    .note, .tick, .axis { fill: #9ea7b3; }
    .value { stroke: #0d1117; }
    .grid { stroke: #2b323b; }
    .base, .mark { stroke: #8b949e; }
    .k0 { --k: #58a6ff; } .k1 { --k: #9aa4ae; } .k2 { --k: #f0883e; } .k3 { --k: #3fb98a; } .k4 { --k: #c99be0; }
  }
`

// A picture is an SVG document that is being drawn.
type picture struct {
	b strings.Builder
}

// begin opens a document. What is heard of it, where it cannot be seen, is
// its title and its note.
func begin(height float64, title, note string) *picture {
	p := &picture{}
	p.b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + num(width) + " " + num(height) +
		`" width="` + num(width) + `" height="` + num(height) + `" role="img" aria-label="` + escape(title+". "+note) + `">` + "\n")
	p.b.WriteString("<style>" + style + "</style>\n")
	p.b.WriteString(`<rect class="page" width="100%" height="100%" rx="8"/>` + "\n")
	return p
}

func (p *picture) end() []byte {
	p.b.WriteString("</svg>\n")
	return []byte(p.b.String())
}

// text writes s at a place; anchor is start, middle or end.
func (p *picture) text(x, y float64, class, anchor, s string) {
	fmt.Fprintf(&p.b, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", class, num(x), num(y), anchor, escape(s))
}

// upright writes s upwards, with its middle at a place.
func (p *picture) upright(x, y float64, s string) {
	fmt.Fprintf(&p.b, `<text class="axis" transform="translate(%s %s) rotate(-90)" text-anchor="middle">%s</text>`+"\n", num(x), num(y), escape(s))
}

func (p *picture) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (p *picture) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&p.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2"/>`+"\n", class, num(x), num(y), num(w), num(h))
}

// dot marks a point of a series: each series has a shape of its own.
func (p *picture) dot(series int, x, y float64) {
	class := "dot " + colour(series)
	switch series % 5 {
	case 0:
		fmt.Fprintf(&p.b, `<circle class="%s" cx="%s" cy="%s" r="4.5"/>`+"\n", class, num(x), num(y))
	case 1:
		p.shape(class, x, y, -4, -4, 4, -4, 4, 4, -4, 4)
	case 2:
		p.shape(class, x, y, 0, -6, 5.5, 4, -5.5, 4)
	case 3:
		p.shape(class, x, y, 0, -6, 6, 0, 0, 6, -6, 0)
	default:
		p.shape(class, x, y, 0, 6, 5.5, -4, -5.5, -4)
	}
}

// shape fills the corners given relative to a place.
func (p *picture) shape(class string, x, y float64, corners ...float64) {
	var b strings.Builder
	for i := 0; i < len(corners); i += 2 {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(num(x+corners[i]) + "," + num(y+corners[i+1]))
	}
	fmt.Fprintf(&p.b, `<polygon class="%s" points="%s"/>`+"\n", class, b.String())
}

func colour(series int) string { return "k" + strconv.Itoa(series%5) }

// num writes a measure with a tenth at most.
func num(f float64) string {
	s := strconv.FormatFloat(f, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}
