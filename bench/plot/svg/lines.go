package svg

import (
	"fmt"
	"slices"
	"strings"
)

// Lines is a chart of values that depend on another, the size. Sizes stand on a
// logarithmic axis, which is marked where values are.
type Lines struct {
	Title string
	Note  string // what is measured, and how to read it
	X, Y  Axis
	// Log makes the vertical axis logarithmic; otherwise it begins with zero.
	Log   bool
	Lines []Line
	// Reference is drawn beside the lines and named in the legend.
	Reference Reference
	// ReferenceName is what the legend calls it.
	ReferenceName string
}

// An Axis is one direction of a chart.
type Axis struct {
	Name string
	Unit Unit
}

// A Line is one series.
type Line struct {
	Name   string
	Points []Point
	Kind   int // its colour and shape: 0 ours, 1 the floor, 2 and on others
}

// A Point is a value at a size; both are above zero.
type Point struct{ X, Y float64 }

// A Reference is a line that the others are held against.
type Reference int

// The references.
const (
	NoReference  Reference = iota
	Proportional           // through the last point of the first line: twice the size costs twice
	Constant               // level with the first point of the first line
)

const (
	linesLeft   = 96
	linesRight  = width - 36
	linesHeight = 340 // of the field between the axes
	inset       = 24  // from the ends of the field to the first and the last size
)

// Draw makes the picture.
func (c *Lines) Draw() []byte {
	legend := headerHeight(c.Note) + 8
	top := legend + 26
	bottom := top + linesHeight
	p := begin(bottom+72, c.Title, c.Note)
	p.header(c.Title, c.Note)
	c.legend(p, legend)
	x, y := c.scales(top, bottom)
	for _, tick := range x.ticks {
		p.line("grid", x.at(tick), top, x.at(tick), bottom)
		p.text(x.at(tick), bottom+22, "tick", "middle", c.X.Unit.Write(tick))
	}
	for _, tick := range y.ticks {
		p.line("grid", linesLeft, y.at(tick), linesRight, y.at(tick))
		p.text(linesLeft-10, y.at(tick)+4.5, "tick", "end", c.Y.Unit.Write(tick))
	}
	p.line("base", linesLeft, bottom, linesRight, bottom)
	p.line("base", linesLeft, top, linesLeft, bottom)
	p.text((linesLeft+linesRight)/2, bottom+52, "axis", "middle", c.X.Name)
	p.upright(26, (top+bottom)/2, c.Y.Name)
	c.reference(p, x, y)
	for _, l := range slices.Backward(c.Lines) { // the first over the others
		var path strings.Builder
		for _, pt := range l.Points {
			fmt.Fprintf(&path, " %s,%s", num(x.at(pt.X)), num(y.at(pt.Y)))
		}
		fmt.Fprintf(&p.b, `<polyline class="line %s" points="%s"/>`+"\n", colour(l.Kind), strings.TrimSpace(path.String()))
		for _, pt := range l.Points {
			p.dot(l.Kind, x.at(pt.X), y.at(pt.Y))
		}
	}
	return p.end()
}

// scales fit all points.
func (c *Lines) scales(top, bottom float64) (x, y scale) {
	var xs, ys []float64
	for _, l := range c.Lines {
		for _, pt := range l.Points {
			xs, ys = append(xs, pt.X), append(ys, pt.Y)
		}
	}
	if len(xs) == 0 {
		xs, ys = []float64{1, 10}, []float64{1, 10}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	if len(xs) == 1 { // a scale has two ends
		xs = append(xs, 2*xs[0])
	}
	x = scale{ticks: xs, from: linesLeft + inset, to: linesRight - inset, log: true}
	y = scale{ticks: LinearTicks(slices.Max(ys), 6, c.Y.Unit), from: bottom, to: top}
	if c.Log {
		y.ticks, y.log = LogTicks(slices.Min(ys), slices.Max(ys), 11), true
	}
	return x, y
}

// reference draws the reference line as far as it stays within the axes.
func (c *Lines) reference(p *picture, x, y scale) {
	if c.Reference == NoReference || len(c.Lines) == 0 || len(c.Lines[0].Points) == 0 {
		return
	}
	points := c.Lines[0].Points
	left, right := x.ticks[0], x.ticks[len(x.ticks)-1]
	if c.Reference == Constant {
		p.line("mark", x.at(left), y.at(points[0].Y), x.at(right), y.at(points[0].Y))
		return
	}
	last := points[len(points)-1]
	slope := last.Y / last.X
	bottom, top := y.ticks[0], y.ticks[len(y.ticks)-1]
	from, to := max(left, bottom/slope), min(right, top/slope)
	p.line("mark", x.at(from), y.at(from*slope), x.at(to), y.at(to*slope))
}

// legend names the lines in a row.
func (c *Lines) legend(p *picture, y float64) {
	x := float64(linesLeft)
	for _, l := range c.Lines {
		p.line("line "+colour(l.Kind), x, y, x+28, y)
		p.dot(l.Kind, x+14, y)
		p.text(x+36, y+5, "name", "start", l.Name)
		x += 36 + written(l.Name) + 28
	}
	if c.Reference != NoReference {
		p.line("mark", x, y, x+28, y)
		p.text(x+36, y+5, "name", "start", c.ReferenceName)
	}
}

// written is about how wide a text is.
func written(s string) float64 { return 7.6 * float64(len([]rune(s))) }
