package svg

// Bars is a chart of values side by side.
type Bars struct {
	Title string
	Note  string // what is measured, and which way is better
	Axis  string // what the values are
	Unit  Unit   // how ticks are written
	Bars  []Bar
	// Mark is a value that the others are held against, such as 100 %; zero
	// means none.
	Mark float64
}

// A Bar is one value.
type Bar struct {
	Name  string
	Value float64
	Text  string // what is written at its end
	Kind  int    // its colour: 0 ours, 1 the floor, 2 and on others
}

const (
	barsLeft  = 120 // room for names
	barsRight = 620 // room for the texts behind the bars
	barHeight = 24
	barPitch  = 36
	beyond    = 1.15
)

// Draw makes the picture.
func (c *Bars) Draw() []byte {
	top := headerHeight(c.Note) + 12
	bottom := top + float64(len(c.Bars)*barPitch)
	most := c.Mark
	for _, bar := range c.Bars {
		// A little beyond the mark there is room without another tick.
		if bar.Value > beyond*c.Mark {
			most = max(most, bar.Value)
		}
	}
	x := scale{ticks: LinearTicks(most, 5, c.Unit), from: barsLeft, to: barsRight}
	p := begin(bottom+64, c.Title, c.Note)
	p.header(c.Title, c.Note)
	for _, tick := range x.ticks {
		p.line("grid", x.at(tick), top-4, x.at(tick), bottom)
		p.text(x.at(tick), bottom+20, "tick", "middle", c.Unit.Write(tick))
	}
	p.text((barsLeft+barsRight)/2, bottom+46, "axis", "middle", c.Axis)
	if c.Mark > 0 {
		p.line("mark", x.at(c.Mark), top-4, x.at(c.Mark), bottom)
	}
	for i, bar := range c.Bars {
		y := top + float64(i*barPitch) + (barPitch-barHeight)/2 - 2
		p.text(barsLeft-12, y+17, "name", "end", bar.Name)
		p.rect("bar "+colour(bar.Kind), barsLeft, y, max(x.at(bar.Value)-barsLeft, 1), barHeight)
		p.text(x.at(bar.Value)+8, y+17, "value", "start", bar.Text)
	}
	p.line("base", barsLeft, top-4, barsLeft, bottom)
	return p.end()
}
