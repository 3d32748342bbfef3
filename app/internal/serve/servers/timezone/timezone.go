// Package timezone is a server that returns the time in a time zone, and converts times between zones. The
// zones are part of the program, so that it does not depend on the system's zones.
package timezone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
	_ "time/tzdata" // zones for systems that have none

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Options are what is not required of the server. A nil *Options, and each zero field, means the
// default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default: the defaults of
	// package server.
	Server *server.Options
	// Local is the name of the zone that descriptions give as the local one, and that is the default of
	// arguments. Default: the system's, see LocalName.
	Local string
	// Now tells the time. Default time.Now.
	Now func() time.Time
}

// ErrUnknownZone means that no time zone has a name.
var ErrUnknownZone = errors.New("unknown time zone; it must be a name of the IANA database, such as Europe/Paris or UTC")

// New makes the server. It fails if the local zone does not exist. It owns nothing that
// outlives its sessions.
func New(version string, o *Options) (*server.Server, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Local == "" {
		opts.Local, _ = LocalName()
	}
	var err error
	if _, opts.Local, err = load(opts.Local); err != nil {
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

// complete suggests zones whose name, or whose last part, begins with a text.
func complete(_ context.Context, typed string, _ map[string]string) ([]string, error) {
	return begins(typed), nil
}

// The names of time zones in the arguments of a call; "" is the local zone. Their schemas have it as default.
type (
	zone       string
	sourceZone string
	targetZone string
)

type currentIn struct {
	Timezone zone `json:"timezone,omitzero"`
}

type convertIn struct {
	SourceTimezone sourceZone `json:"source_timezone,omitzero"`
	Time           string     `json:"time" desc:"The time of today in that zone, in 24 hours: HH:MM." maxlen:"100"`
	TargetTimezone targetZone `json:"target_timezone,omitzero"`
}

func zoneSchema(description, local string) mcp.RawValue {
	return mcp.RawValue(fmt.Sprintf(`{"type":"string","description":%q,"maxLength":100,"default":%q}`, description+" Default: the local zone.", local))
}

// tools are the tools of the server. Their descriptions and schemas name the local zone.
func tools(o *Options) []server.Feature {
	local := " The zone of the person is " + o.Local + ", unless they say otherwise."
	options := func(title string) server.ToolOptions {
		return server.ToolOptions{
			Title: title, Annotations: servers.Hints(true, false, true),
			Types: map[reflect.Type]mcp.RawValue{
				reflect.TypeFor[zone]():       zoneSchema("The IANA name of the zone, such as America/New_York.", o.Local),
				reflect.TypeFor[sourceZone](): zoneSchema("The IANA name of the zone of the time, such as Europe/London.", o.Local),
				reflect.TypeFor[targetZone](): zoneSchema("The IANA name of the zone to convert it to, such as Asia/Tokyo.", o.Local),
			},
		}
	}
	return []server.Feature{
		server.Tool("get_current_time", "Tells the current date and time in a time zone."+local,
			func(_ context.Context, in currentIn) (mcp.With[Time], error) {
				now, err := current(o.Now(), cmp.Or(string(in.Timezone), o.Local))
				if err != nil {
					return mcp.With[Time]{}, err
				}
				return give(now)
			}).With(options("Current time")),

		server.Tool("convert_time", "Tells what a time of today in one time zone is in another, and the difference of the two."+local,
			func(_ context.Context, in convertIn) (mcp.With[Conversion], error) {
				c, err := convert(o.Now(), cmp.Or(string(in.SourceTimezone), o.Local), in.Time, cmp.Or(string(in.TargetTimezone), o.Local))
				if err != nil {
					return mcp.With[Conversion]{}, err
				}
				return give(c)
			}).With(options("Convert a time")),
	}
}
