package svg

import "strings"

const (
	titleLine  = 34 // where the title stands
	noteLine   = 58 // and the first line of the note
	noteHeight = 19 // of each line
	noteLength = 118
)

// header writes title and note and returns where they end.
func (p *picture) header(title, note string) float64 {
	p.text(24, titleLine, "title", "start", title)
	y := float64(noteLine)
	for _, line := range wrap(note, noteLength) {
		p.text(24, y, "note", "start", line)
		y += noteHeight
	}
	return y
}

// headerHeight is what header will return.
func headerHeight(note string) float64 {
	return float64(noteLine + noteHeight*len(wrap(note, noteLength)))
}

// wrap breaks a text into lines of at most so many characters, if words allow.
func wrap(s string, length int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > length {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
