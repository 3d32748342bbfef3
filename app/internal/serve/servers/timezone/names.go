package timezone

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// zones are the names of all zones, one on a line, in order.
//
//go:embed zones.txt
var zones string

// windows has the names that Windows gives to zones, each with a tab and the name of the IANA database. The
// pairs are those of the Unicode CLDR (windowsZones.xml, territory 001), as in package time of Go.
//
//go:embed windows.txt
var windows string

// Names returns the names of all time zones, in order.
func Names() []string { return strings.Fields(zones) }

// abbreviations are abbreviations that people use for zones, with the zones that they can mean. Those that
// are names of the IANA database themselves, such as EST and CET, are not among them.
var abbreviations = map[string]string{
	"ACDT": "Australia/Adelaide", "ACST": "Australia/Adelaide or Australia/Darwin", "ADT": "America/Halifax",
	"AEDT": "Australia/Sydney", "AEST": "Australia/Sydney or Australia/Brisbane", "AKDT": "America/Anchorage",
	"AKST": "America/Anchorage", "ART": "America/Argentina/Buenos_Aires", "AST": "America/Halifax or Asia/Riyadh",
	"AWST": "Australia/Perth", "BRT": "America/Sao_Paulo", "BST": "Europe/London or Asia/Dhaka",
	"CAT": "Africa/Maputo", "CDT": "America/Chicago or America/Havana", "CEST": "Europe/Paris or Europe/Berlin",
	"CST": "America/Chicago, Asia/Shanghai or America/Havana", "EAT": "Africa/Nairobi", "EDT": "America/New_York",
	"EEST": "Europe/Helsinki or Europe/Athens", "GST": "Asia/Dubai", "HKT": "Asia/Hong_Kong",
	"ICT": "Asia/Bangkok", "IDT": "Asia/Jerusalem", "IST": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
	"JST": "Asia/Tokyo", "KST": "Asia/Seoul", "MDT": "America/Denver", "MSK": "Europe/Moscow",
	"NDT": "America/St_Johns", "NST": "America/St_Johns", "NZDT": "Pacific/Auckland", "NZST": "Pacific/Auckland",
	"PDT": "America/Los_Angeles", "PKT": "Asia/Karachi", "PST": "America/Los_Angeles or Asia/Manila",
	"SAST": "Africa/Johannesburg", "SGT": "Asia/Singapore", "WAT": "Africa/Lagos", "WEST": "Europe/Lisbon",
	"WIB": "Asia/Jakarta",
}

// load finds a zone by its name in the IANA database, by its name in Windows, or by the path of its file in
// a folder named zoneinfo, as TZ can have it. It returns the name in the database. Any other name is an
// error that matches ErrUnknownZone and suggests names.
func load(name string) (*time.Location, string, error) {
	if len(name) > 100 {
		return nil, "", fmt.Errorf("%w, and no longer than 100 bytes", ErrUnknownZone)
	}
	iana := strings.TrimPrefix(strings.TrimSpace(name), ":")
	if _, file, found := strings.Cut(iana, "/zoneinfo/"); found {
		iana = strings.TrimPrefix(file, "posix/")
	}
	if iana != "" && iana != "Local" { // words of package time
		if loc, err := time.LoadLocation(iana); err == nil {
			return loc, iana, nil
		}
	}
	if found, ok := ofWindows(iana); ok {
		loc, err := time.LoadLocation(found)
		return loc, found, err
	}
	if hint := suggest(iana); hint != "" {
		return nil, "", fmt.Errorf("%w; %s", ErrUnknownZone, hint)
	}
	return nil, "", ErrUnknownZone
}

// loadNamed is load for an argument: its error is for the model, with the name.
func loadNamed(name string) (*time.Location, string, error) {
	loc, iana, err := load(name)
	if err != nil {
		return nil, "", mcp.Errorf("Invalid timezone: %.40q: %w", name, err)
	}
	return loc, iana, nil
}

// ofWindows returns the IANA name of a zone of Windows, in upper or lower case.
func ofWindows(name string) (iana string, found bool) {
	for line := range strings.Lines(windows) {
		if known, iana, _ := strings.Cut(strings.TrimSpace(line), "\t"); strings.EqualFold(known, name) {
			return iana, true
		}
	}
	return "", false
}

// suggest says which zones a name can mean, or returns "".
func suggest(name string) string {
	if meant := abbreviations[strings.ToUpper(name)]; meant != "" {
		return "the abbreviation can mean " + meant
	}
	if m := offset.FindStringSubmatch(name); m != nil {
		return ofOffset(m[1], m[2], m[3])
	}
	const most = 5
	near := slices.DeleteFunc(begins(strings.ReplaceAll(name, " ", "_")), func(zone string) bool {
		return strings.HasPrefix(zone, "Etc/GMT") // whose sign is the other way round
	})
	if name != "" && len(near) > 0 && len(near) <= most {
		return "did you mean " + strings.Join(near, ", ") + "?"
	}
	return ""
}

// offset matches an offset from UTC, as people write it: its sign, hours and minutes.
var offset = regexp.MustCompile(`(?i)^(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?$`)

// ofOffset returns the name of the zone with an offset from UTC, or that there is none. Such names have the
// sign the other way round: Etc/GMT-5 is ahead of UTC.
func ofOffset(sign, hours, minutes string) string {
	n, _ := strconv.Atoi(hours) // two digits
	ahead := sign == "+"
	shown := fmt.Sprintf("UTC%s%d", sign, n)
	parted := strings.Trim(minutes, "0") != ""
	if parted {
		shown += ":" + minutes
	}
	const east, west = 14, 12 // the most hours of zones that are named by their offset
	switch {
	case parted, ahead && n > east, !ahead && n > west:
		return "no zone is named by the offset " + shown + "; name a city that has it"
	case n == 0:
		return "the offset " + shown + " is the zone UTC"
	}
	reversed, side, plural := "+", "behind", "s"
	if ahead {
		reversed, side = "-", "ahead of"
	}
	if n == 1 {
		plural = ""
	}
	return fmt.Sprintf("the offset %s is the zone Etc/GMT%s%d, which is %d hour%s %s UTC", shown, reversed, n, n, plural, side)
}

// begins returns the zones whose name, or whose last part, begins with a text, in upper or lower case.
func begins(text string) (names []string) {
	text = strings.ToLower(text)
	for _, name := range Names() {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, text) || strings.HasPrefix(lower[strings.LastIndex(lower, "/")+1:], text) {
			names = append(names, name)
		}
	}
	return names
}
