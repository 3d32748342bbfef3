package timezone

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/servers"
	"github.com/parley-mcp/parley/mcp"
)

// A Time is a moment in a time zone.
type Time struct {
	Timezone  string `json:"timezone"`
	Datetime  string `json:"datetime" desc:"Date, time and offset, as in 2025-01-31T09:00:00+01:00."`
	DayOfWeek string `json:"day_of_week"`
	IsDST     bool   `json:"is_dst" desc:"Whether it is daylight saving time."`
}

// A Conversion is one moment in two time zones.
type Conversion struct {
	Source         Time   `json:"source"`
	Target         Time   `json:"target"`
	TimeDifference string `json:"time_difference" desc:"How far the target is ahead of the source, as in +9.0h."`
}

// layout is ISO 8601 in seconds.
const layout = "2006-01-02T15:04:05-07:00"

func unknown(name string) error {
	return mcp.Errorf("Invalid timezone: %q: %w", name, ErrUnknownZone)
}

// current is the moment now in a zone.
func current(now time.Time, name string) (Time, error) {
	loc, err := load(name)
	if err != nil {
		return Time{}, unknown(name)
	}
	return inZone(now.In(loc), name), nil
}

func inZone(t time.Time, name string) Time {
	return Time{Timezone: name, Datetime: t.Format(layout), DayOfWeek: t.Weekday().String(), IsDST: t.IsDST()}
}

// clock is HH:MM; a digit may be missing.
var clock = regexp.MustCompile(`^(2[0-3]|[01]?[0-9]):([0-5]?[0-9])$`)

// convert tells what a time of the day that it is now in a zone is in another.
func convert(now time.Time, source, text, target string) (Conversion, error) {
	from, err := load(source)
	if err != nil {
		return Conversion{}, unknown(source)
	}
	to, err := load(target)
	if err != nil {
		return Conversion{}, unknown(target)
	}
	parts := clock.FindStringSubmatch(text)
	if parts == nil {
		return Conversion{}, mcp.Errorf("Invalid time format. Expected HH:MM [24-hour format], such as 09:30, but it is %.40q", text)
	}
	hour, _ := strconv.Atoi(parts[1]) // the pattern has digits alone
	minute, _ := strconv.Atoi(parts[2])
	year, month, day := now.In(from).Date()
	wall := time.Date(year, month, day, hour, minute, 0, 0, time.UTC) // as the clock shows it
	at, offset, dst := moment(wall, from)
	sourceTime := Time{
		Timezone: source, Datetime: wall.In(time.UTC).Format("2006-01-02T15:04:05") + at.In(time.FixedZone("", offset)).Format("-07:00"),
		DayOfWeek: wall.Weekday().String(), IsDST: dst,
	}
	there := at.In(to)
	_, ahead := there.Zone()
	return Conversion{Source: sourceTime, Target: inZone(there, target), TimeDifference: difference(ahead - offset)}, nil
}

// moment finds when a clock in a zone shows a time. Of a time that is there twice, when clocks are put
// back, it is the first. A time that is left out, when clocks are put forward, counts as if they had not
// been yet. offset is that of the clock in seconds, and dst whether it shows daylight saving time.
func moment(wall time.Time, loc *time.Location) (at time.Time, offset int, dst bool) {
	const day = 24 * time.Hour
	before := wall.Add(-day).In(loc) // a day before and after there is no other change
	_, offset = before.Zone()
	dst = before.IsDST()
	at = wall.Add(-time.Duration(offset) * time.Second)
	if _, then := at.In(loc).Zone(); then == offset {
		return at, offset, at.In(loc).IsDST()
	}
	after := wall.Add(day).In(loc)
	_, other := after.Zone()
	late := wall.Add(-time.Duration(other) * time.Second)
	if _, then := late.In(loc).Zone(); then == other {
		return late, other, after.IsDST()
	}
	return at, offset, dst // left out
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
