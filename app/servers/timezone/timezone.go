// Package timezone is a server that tells the time in a time zone, and converts times between zones. The
// zones are part of the program, so that it needs none of the system's.
package timezone

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"
	_ "time/tzdata" // zones for systems that have none

	"github.com/parley-mcp/parley/app/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Options are what is not required of the server. A nil *Options, and each zero field, means the
// default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default: the defaults of
	// package server.
	Server *server.Options
	// Local is the name of the zone that descriptions give as the local one. Default: that of the
	// system, see LocalName.
	Local string
	// Now tells the time. Default time.Now.
	Now func() time.Time
}

// ErrUnknownZone says that a name is not that of a time zone.
var ErrUnknownZone = errors.New("there is no such time zone; names are those of the IANA database, such as Europe/Paris or UTC")

// zones are the names of all zones, one on a line, in order.
//
//go:embed zones.txt
var zones string

// Names returns the names of all time zones, in order.
func Names() []string { return strings.Fields(zones) }

// New makes the server. The error is that of a local zone that does not exist. It owns nothing that
// outlives its sessions.
func New(version string, o *Options) (*server.Server, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Local == "" {
		opts.Local, _ = LocalName()
	}
	if _, err := load(opts.Local); err != nil {
		return nil, err
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := server.New("time", version, servers.Options(opts.Server, "Time",
		"The time in a time zone, and times of one zone in another", "The local time zone is "+opts.Local+"."))
	s.Add(tools(&opts)...)
	s.Add(server.Template("time://now/{+timezone}", "current-time", func(_ context.Context, in struct {
		Timezone string `uri:"timezone"`
	},
	) (string, error) {
		now, err := current(opts.Now(), in.Timezone)
		if err != nil {
			return "", server.ErrNotFound
		}
		return servers.Indent(now)
	}).With(server.TemplateOptions{
		Title: "Current time", Description: "The current time in a time zone.", MIMEType: "application/json",
		Cache:    &server.Cache{},
		Complete: map[string]server.Completer{"timezone": complete},
	}))
	return s, nil
}

// complete suggests zones whose name, or whose last part, begins with what was typed.
func complete(_ context.Context, typed string, _ map[string]string) (names []string, _ error) {
	typed = strings.ToLower(typed)
	for _, name := range Names() {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, typed) || strings.HasPrefix(lower[strings.LastIndex(lower, "/")+1:], typed) {
			names = append(names, name)
		}
	}
	return names, nil
}

// load finds a zone. Names are those of the database alone: no path, and no word of Go's.
func load(name string) (*time.Location, error) {
	if name == "" || name == "Local" || len(name) > 100 {
		return nil, ErrUnknownZone
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, ErrUnknownZone
	}
	return loc, nil
}

type currentIn struct {
	Timezone string `json:"timezone" desc:"The IANA name of the zone, such as America/New_York."`
}

type convertIn struct {
	SourceTimezone string `json:"source_timezone" desc:"The IANA name of the zone of the time, such as Europe/London."`
	Time           string `json:"time" desc:"The time of today in that zone, in 24 hours: HH:MM."`
	TargetTimezone string `json:"target_timezone" desc:"The IANA name of the zone to convert it to, such as Asia/Tokyo."`
}

// tools are the tools of the server. Their descriptions name the local zone.
func tools(o *Options) []server.Feature {
	local := " The zone of the person is " + o.Local + ", unless they say otherwise."
	return []server.Feature{
		server.Tool("get_current_time", "Tells the current date and time in a time zone."+local,
			func(_ context.Context, in currentIn) (mcp.With[Time], error) {
				if in.Timezone == "" {
					return mcp.With[Time]{}, mcp.Errorf("Missing required argument: timezone")
				}
				now, err := current(o.Now(), in.Timezone)
				if err != nil {
					return mcp.With[Time]{}, err
				}
				return give(now)
			}).With(server.ToolOptions{Title: "Current time", Annotations: servers.Hints(true, false, true)}),

		server.Tool("convert_time", "Tells what a time of today in one time zone is in another, and the difference of the two."+local,
			func(_ context.Context, in convertIn) (mcp.With[Conversion], error) {
				c, err := convert(o.Now(), in.SourceTimezone, in.Time, in.TargetTimezone)
				if err != nil {
					return mcp.With[Conversion]{}, err
				}
				return give(c)
			}).With(server.ToolOptions{Title: "Convert a time", Annotations: servers.Hints(true, false, true)}),
	}
}
