package timezone

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
)

// A Time is a moment in a time zone.
type Time struct {
	Timezone  string `json:"timezone"`
	Datetime  string `json:"datetime" desc:"Date, time and offset, as in 2025-01-31T09:00:00+01:00."`
	DayOfWeek string `json:"day_of_week"`
	IsDST     bool   `json:"is_dst" desc:"Whether it is daylight saving time: clocks are ahead of standard time."`
	Note      string `json:"note,omitzero" desc:"Present if clocks show this time twice or not at all."`
}

// A Conversion is one moment in two time zones.
type Conversion struct {
	Source         Time   `json:"source"`
	Target         Time   `json:"target"`
	TimeDifference string `json:"time_difference" desc:"How far the target is ahead of the source, as in +9.0h."`
}

// layout is ISO 8601 in seconds.
const layout = "2006-01-02T15:04:05-07:00"

// current is the moment now in a zone.
func current(now time.Time, name string) (Time, error) {
	loc, name, err := loadNamed(name)
	if err != nil {
		return Time{}, err
	}
	return inZone(now.In(loc), name), nil
}

func inZone(t time.Time, name string) Time {
	return Time{Timezone: name, Datetime: t.Format(layout), DayOfWeek: t.Weekday().String(), IsDST: isDST(t)}
}

// clock is HH:MM; a digit may be missing.
var clock = regexp.MustCompile(`^(2[0-3]|[01]?[0-9]):([0-5]?[0-9])$`)

// convert tells what a time of the day that it is now in a zone is in another.
func convert(now time.Time, source, text, target string) (Conversion, error) {
	from, source, err := loadNamed(source)
	if err != nil {
		return Conversion{}, err
	}
	to, target, err := loadNamed(target)
	if err != nil {
		return Conversion{}, err
	}
	parts := clock.FindStringSubmatch(text)
	if parts == nil {
		return Conversion{}, mcp.Errorf("Invalid time format. Expected HH:MM [24-hour format], such as 09:30, but it is %.40q", text)
	}
	hour, _ := strconv.Atoi(parts[1]) // the pattern has digits alone
	minute, _ := strconv.Atoi(parts[2])
	year, month, day := now.In(from).Date()
	wall := time.Date(year, month, day, hour, minute, 0, 0, time.UTC) // as the clock shows it
	m := momentOf(wall, from)
	sourceTime := Time{
		Timezone: source, Datetime: wall.Format("2006-01-02T15:04:05") + m.at.In(time.FixedZone("", m.offset)).Format("-07:00"),
		DayOfWeek: wall.Weekday().String(), IsDST: m.dst, Note: m.note,
	}
	there := m.at.In(to)
	_, ahead := there.Zone()
	return Conversion{Source: sourceTime, Target: inZone(there, target), TimeDifference: difference(ahead - m.offset)}, nil
}

// A moment is when a clock in a zone shows a time.
type moment struct {
	at     time.Time
	offset int    // of the clock, in seconds
	dst    bool   // whether it shows daylight saving time
	note   string // why it is not the only one
}

// momentOf finds when a clock in a zone shows a time. Of a time that is shown twice, when clocks are put
// back, it is the first. A time that is left out, when clocks are put forward, counts as if they had not
// been yet. A note reports both.
func momentOf(wall time.Time, loc *time.Location) moment {
	const day = 24 * time.Hour // no other change is as near
	_, before := wall.Add(-day).In(loc).Zone()
	_, after := wall.Add(day).In(loc).Zone()
	shown := func(offset int) (moment, bool) {
		at := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		_, then := at.Zone()
		return moment{at: at, offset: offset, dst: isDST(at)}, then == offset
	}
	first, isFirst := shown(before)
	second, isSecond := shown(after)
	const minutes = "15:04 on 2006-01-02"
	switch {
	case isFirst && isSecond && before != after:
		first.note = fmt.Sprintf("Clocks show %s twice, because they are put back. This is the first time; the second is %s.",
			wall.Format(minutes), second.at.Format(layout))
	case !isFirst && isSecond:
		return second
	case !isFirst:
		first.dst = isDST(wall.Add(-day).In(loc))
		first.note = fmt.Sprintf("Clocks do not show %s, because they are put forward over it. At the moment that was converted they show %s.",
			wall.Format(minutes), first.at.Format(layout))
	}
	return first
}

// isDST reports whether clocks are ahead of the standard time of their zone. For zones whose legal standard
// time is that of summer (Ireland, Morocco, formerly Namibia), the database has winter, or Ramadan, as
// a time with a negative saving, and marks that one instead.
func isDST(t time.Time) bool {
	if t.IsDST() {
		return !isNegative(t)
	}
	const longest = 366 * 24 * time.Hour // a longer period is a standard time
	start, end := t.ZoneBounds()
	if start.IsZero() || end.IsZero() || end.Sub(start) > longest {
		return false
	}
	_, own := t.Zone()
	negative := false
	for _, other := range []time.Time{start.Add(-1), end} {
		if !other.IsDST() {
			continue
		}
		if _, offset := other.Zone(); offset > own {
			return false
		}
		negative = negative || isNegative(other)
	}
	return negative
}

// isNegative reports whether a period that the database marks as daylight saving time is behind the standard
// times around it.
func isNegative(t time.Time) bool {
	start, end := t.ZoneBounds()
	_, own := t.Zone()
	negative := false
	for _, other := range []time.Time{start.Add(-1), end} {
		if other.IsZero() || other.IsDST() {
			continue
		}
		if _, offset := other.Zone(); offset <= own {
			return false
		}
		negative = true
	}
	return negative
}

// difference writes seconds as hours, with one digit after the point, or up to two where there are
// parts of an hour.
func difference(seconds int) string {
	if seconds%3600 == 0 {
		return fmt.Sprintf("%+d.0h", seconds/3600)
	}
	return strings.TrimRight(fmt.Sprintf("%+.2f", float64(seconds)/3600), "0") + "h"
}

// give makes the result of a tool: a value, and its JSON as text.
func give[T any](v T) (mcp.With[T], error) {
	text, err := servers.Indent(v)
	if err != nil {
		return mcp.With[T]{}, err
	}
	return mcp.With[T]{Value: v, Content: []mcp.Content{mcp.Text(text)}}, nil
}
