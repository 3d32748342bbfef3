package admin

import (
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/host"
)

// The sizes of pages.
const (
	defaultPage = 100
	maxPage     = 1000
)

// A page are the parameters of verbs that list.
type page struct {
	After string `json:"after" help:"go on after the page whose next was this \x60CURSOR\x60"`
	Limit int    `json:"limit" help:"at most so \x60MANY\x60, up to 1,000 (default 100)"`
}

// bounds returns the key that a page begins after, and its size.
func (p *page) bounds() (after string, limit int, err error) {
	limit = p.Limit
	switch {
	case limit == 0:
		limit = defaultPage
	case limit < 0 || limit > maxPage:
		return "", 0, errorf(Invalid, "limit must be 1 to 1,000")
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.After)
	if err != nil || !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0) {
		return "", 0, errorf(Invalid, "invalid cursor in after: use the field next of the previous page")
	}
	return string(raw), limit, nil
}

// cut takes the entry away that shows that there is another page. next is the cursor of that
// page, or empty.
func cut[T any](all []*T, limit int, key func(*T) string) (entries []*T, next string) {
	if len(all) <= limit {
		return all, ""
	}
	return all[:limit], base64.RawURLEncoding.EncodeToString([]byte(key(all[limit-1])))
}

// more tells people how to see the next page.
func more(next string) string {
	if next == "" {
		return ""
	}
	return "for more, use --after " + next + "\n"
}

// columns lays rows out. Cells hold what strangers wrote: control characters are escaped.
func columns(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = host.EscapeLine(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

func day(t time.Time) string { return t.Local().Format(time.DateOnly) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
