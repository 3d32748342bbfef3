package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// A cellStyle is how the characters of a terminal look.
type cellStyle struct {
	text, ground               string // colours; empty is the terminal's own
	bold, dim, italic, reverse bool
	underline                  bool
}

// The sizes of a picture, in pixels, and the colours of its terminal.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	margin     = 14.0
	ownText    = "#d8dee9"
	ownGround  = "#1b1f27"
)

// basicColours are the sixteen of a terminal.
var basicColours = []string{
	"#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9",
	"#7f8694", "#ff7b86", "#b5e890", "#ffd68a", "#82c4ff", "#df9af2", "#7fd5e0", "#ffffff",
}

// picture draws what a terminal shows, as "tmux capture-pane -e -p" prints it, as an SVG.
func picture(in io.Reader, out io.Writer, title string) error {
	data, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	var body bytes.Buffer
	columns := 0
	var style cellStyle
	for row, line := range lines {
		columns = max(columns, drawLine(&body, line, row, &style))
	}
	wide, high := float64(columns)*cellWidth+2*margin, float64(len(lines))*cellHeight+2*margin
	_, err = fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">
<title>%s</title>
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="%s">
%s</g>
</svg>
`, wide, high, wide, high, html.EscapeString(title), ownGround, ownText, body.String())
	return err
}

// drawLine draws a line and returns how many columns it has.
func drawLine(b *bytes.Buffer, line string, row int, style *cellStyle) (columns int) {
	y := margin + float64(row)*cellHeight
	for line != "" {
		if rest, ok := style.read(line); ok {
			line = rest
			continue
		}
		text, cells := "", 0
		for line != "" && line[0] != '\x1b' {
			r, n := utf8.DecodeRuneInString(line)
			line = line[n:]
			if unicode.IsControl(r) {
				continue
			}
			text += string(r)
			cells += cellsOf(r)
		}
		if line != "" && text == "" {
			line = line[1:] // an escape of another kind
			continue
		}
		style.draw(b, text, cells, margin+float64(columns)*cellWidth, y)
		columns += cells
	}
	return columns
}

// cellsOf is how many columns a character takes.
func cellsOf(r rune) int {
	switch k := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case k == width.EastAsianWide, k == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// draw draws characters of one style.
func (s *cellStyle) draw(b *bytes.Buffer, text string, cells int, x, y float64) {
	colour, ground := s.text, s.ground
	if s.reverse {
		colour, ground = ground, colour
		if colour == "" {
			colour = ownGround
		}
		if ground == "" {
			ground = ownText
		}
	}
	if ground != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, float64(cells)*cellWidth, cellHeight, ground)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	attributes := ""
	if colour != "" {
		attributes += ` fill="` + colour + `"`
	}
	for _, a := range []struct {
		on   bool
		text string
	}{
		{s.bold, ` font-weight="bold"`}, {s.italic, ` font-style="italic"`}, {s.dim, ` opacity="0.75"`}, {s.underline, ` text-decoration="underline"`},
	} {
		if a.on {
			attributes += a.text
		}
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" xml:space="preserve"%s>%s</text>`+"\n",
		x, y+cellHeight-4.5, float64(cells)*cellWidth, attributes, html.EscapeString(text))
}

// read reads a sequence that sets the style, from the beginning of a line.
func (s *cellStyle) read(line string) (rest string, ok bool) {
	after, ok := strings.CutPrefix(line, "\x1b[")
	if !ok {
		return line, false
	}
	end := strings.IndexFunc(after, func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return "", true
	}
	if after[end] == 'm' {
		s.set(strings.FieldsFunc(after[:end], func(r rune) bool { return r == ';' || r == ':' }))
	}
	return after[end+1:], true
}

// set sets the style by the numbers of a sequence.
func (s *cellStyle) set(codes []string) {
	if len(codes) == 0 {
		*s = cellStyle{}
	}
	for i := 0; i < len(codes); i++ {
		n, err := strconv.Atoi(codes[i])
		if err != nil {
			continue
		}
		switch {
		case n == 38, n == 48:
			colour, used := extended(codes[i+1:])
			if i += used; n == 38 {
				s.text = colour
			} else {
				s.ground = colour
			}
		case n >= 30 && n <= 37:
			s.text = basicColours[n-30]
		case n >= 40 && n <= 47:
			s.ground = basicColours[n-40]
		case n >= 90 && n <= 97:
			s.text = basicColours[n-90+8]
		case n >= 100 && n <= 107:
			s.ground = basicColours[n-100+8]
		default:
			s.attribute(n)
		}
	}
}

// attribute sets what is no colour, or takes a colour away.
func (s *cellStyle) attribute(n int) {
	switch n {
	case 0:
		*s = cellStyle{}
	case 1:
		s.bold = true
	case 2:
		s.dim = true
	case 3:
		s.italic = true
	case 4:
		s.underline = true
	case 7:
		s.reverse = true
	case 22:
		s.bold, s.dim = false, false
	case 23:
		s.italic = false
	case 24:
		s.underline = false
	case 27:
		s.reverse = false
	case 39:
		s.text = ""
	case 49:
		s.ground = ""
	}
}

// extended reads a colour of 256, or of red, green and blue, and tells how many numbers it
// took.
func extended(codes []string) (colour string, used int) {
	number := func(i int) int {
		if i >= len(codes) {
			return 0
		}
		n, _ := strconv.Atoi(codes[i]) // what is none is 0
		return min(max(n, 0), 255)
	}
	switch number(0) {
	case 2:
		return fmt.Sprintf("#%02x%02x%02x", number(1), number(2), number(3)), 4
	case 5:
		return colourOf256(number(1)), 2
	}
	return "", 1
}

// colourOf256 is one of the 256 colours: the basic ones, a cube, and greys.
func colourOf256(n int) string {
	switch {
	case n < 16:
		return basicColours[n]
	case n >= 232:
		grey := 8 + 10*(n-232)
		return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
	}
	steps := []int{0, 95, 135, 175, 215, 255}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", steps[n/36], steps[n/6%6], steps[n%6])
}
