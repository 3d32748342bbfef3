package git

import (
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers/git/gogit"
	"github.com/parley-mcp/parley/mcp"
)

// dayLayouts are ways to write a day, timeLayouts ways to write a moment of it.
var (
	dayLayouts = []string{
		"2006-01-02", "2006/01/02", "2006.01.02", "02.01.2006", "01/02/2006",
		"Jan 2 2006", "January 2 2006", "2 Jan 2006", "2 January 2006",
	}
	timeLayouts = []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
		"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"Mon Jan 2 15:04:05 2006 -0700", "Mon Jan 2 15:04:05 2006", "Mon 2 Jan 2006 15:04:05 -0700",
		"Jan 2 2006 15:04:05", "Jan 2 2006 15:04", "2 Jan 2006 15:04:05", "2 Jan 2006 15:04",
	}
)

// parseTime reads the argument called name: a date or a time, or how long ago it was. A day is all of
// it, from its beginning to its last second. Without a zone it is in the zone of now. For "" both
// times are zero.
func parseTime(name, text string, now time.Time) (from, to time.Time, err error) {
	if text == "" {
		return from, to, nil
	}
	if err := gogit.CheckText(name, text); err != nil {
		return from, to, err
	}
	from, to, ok := readTime(text, now)
	if !ok {
		err = mcp.Errorf("%s %q is not understood: give a date (2024-01-15), a time (2024-01-15T14:30:25) or how long ago (2 weeks ago)", name, text)
	}
	return from, to, err
}

func readTime(text string, now time.Time) (from, to time.Time, ok bool) {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, ",", " ")), " ")
	if seconds, isNumber := strings.CutPrefix(text, "@"); isNumber || len(text) >= 9 && strings.Trim(text, "0123456789") == "" {
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
			t := time.Unix(n, 0)
			return t, t, true
		}
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, t, true
		}
	}
	for _, layout := range dayLayouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, t.AddDate(0, 0, 1).Add(-time.Second), true
		}
	}
	return parseAgo(strings.ToLower(text), now)
}

// parseAgo reads a time that is seen from now.
func parseAgo(text string, now time.Time) (from, to time.Time, ok bool) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "now":
		return now, now, true
	case "today":
		return midnight, now, true
	case "yesterday":
		t := now.AddDate(0, 0, -1)
		return t, t, true
	}
	words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(text, ".", " "), "-", " "))
	if len(words) == 2 && words[0] == "last" {
		words = []string{"1", words[1], "ago"}
	}
	if len(words) < 2 || len(words) > 3 || len(words) == 3 && words[2] != "ago" {
		return from, to, false
	}
	n, err := strconv.Atoi(words[0])
	if words[0] == "a" || words[0] == "an" || words[0] == "one" {
		n, err = 1, nil
	}
	const most = 100000
	if err != nil || n < 0 || n > most {
		return from, to, false
	}
	unit := strings.TrimSuffix(words[1], "s")
	if length, ok := units[unit]; ok {
		now = now.Add(-time.Duration(n) * length)
		return now, now, true
	}
	days, ok := map[string][3]int{"day": {0, 0, n}, "week": {0, 0, 7 * n}, "fortnight": {0, 0, 14 * n}, "month": {0, n, 0}, "year": {n, 0, 0}}[unit]
	now = now.AddDate(-days[0], -days[1], -days[2])
	return now, now, ok
}

// units are spans of time that have one length.
var units = map[string]time.Duration{"second": time.Second, "sec": time.Second, "minute": time.Minute, "min": time.Minute, "hour": time.Hour}
