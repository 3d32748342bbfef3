package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/bench/driver"
	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/bench/report"
)

// A scenario is what servers are measured in.
type scenario struct {
	report.Scenario

	servers []string
	// enter starts a server and makes it ready. x is the place in a series.
	enter func(ctx context.Context, b *bench, server string, x int) (*contestant, error)
	// xs are the places of a series.
	xs []int
	// exact says that one round is as good as many.
	exact bool
	// peers says that it needs programs of others, of module interop.
	peers bool
}

// measure measures all servers of a scenario; in a series, place by place.
func (s *scenario) measure(ctx context.Context, b *bench) (all []report.Result, err error) {
	xs := s.xs
	if xs == nil {
		xs = []int{0}
	}
	for _, x := range xs {
		var field []*contestant
		for _, server := range s.servers {
			c, err := s.enter(ctx, b, server, x)
			if err != nil {
				for _, c := range field {
					err = errors.Join(err, c.stop())
				}
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			c.x = float64(x)
			field = append(field, c)
		}
		rounds := b.rounds
		switch {
		case s.exact:
			rounds = 1
		case s.xs != nil:
			rounds = min(rounds, 3)
		}
		results, err := contest(ctx, s.Name, rounds, field)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

// Names of the scenarios.
const (
	httpModernJSON = "http-modern-json"
	httpModernSSE  = "http-modern-sse"
	httpSession    = "http-legacy-session"
	httpLegacy     = "http-legacy-stateless"
	stdioOne       = "stdio-sequential"
	stdioMany      = "stdio-pipelined"
	stdioLegacy    = "stdio-legacy-pipelined"
	listLong       = "list-1000"
	echoLarge      = "echo-1mib"
	blobLarge      = "blob-10mib"
	progressMany   = "progress-1000"
	sessionMany    = "session-progress-1000"
	idleSession    = "idle-session"
	idleStream     = "idle-stream"
	inMemory       = "in-memory"
	seriesPayload  = "series-payload"
	seriesList     = "series-list"
	seriesConns    = "series-connections"
	clientHTTP     = "client-http" // of package clients
)

const (
	connections = 32
	inFlight    = 64
	sessions    = 2000
	manyTools   = 1000
	largeText   = 1 << 20
	largeBlob   = 10 << 20
	manyEvents  = 1000
)

var (
	traffic = []report.Metric{report.Rate, report.CPU, report.Allocs, report.Bytes, report.P50, report.P99, report.PeakRSS}
	large   = []report.Metric{report.CPU, report.P50, report.Allocs, report.Bytes, report.Size, report.PeakRSS}

	everybody = []string{report.Floor, report.Parley, report.GoSDK, report.MCPGo, report.TS}
	inGo      = []string{report.Floor, report.Parley, report.GoSDK, report.MCPGo}
)

// scenarios are all of them, in the order of the report.
func scenarios() []*scenario {
	return slices.Concat(small(), big(), still(), series(), bridges(), loads(), referenceScenarios(), instructions())
}

// small is traffic of small messages.
func small() []*scenario {
	echo, answer := driver.Echo(fixture.Text), driver.Result(fixture.Text, 0)
	web := func(name, title, about, mode string, era driver.Era, servers ...string) *scenario {
		return &scenario{
			Scenario: report.Scenario{Name: name, Title: title, About: about, Columns: traffic},
			servers:  servers,
			enter: func(ctx context.Context, b *bench, server string, _ int) (*contestant, error) {
				return b.web(ctx, server, []string{"-mode", mode}, driver.Load{Era: era, Conns: connections, Call: echo, Check: answer})
			},
		}
	}
	stdio := func(name, title, about string, slots int, era driver.Era) *scenario {
		return &scenario{
			Scenario: report.Scenario{Name: name, Title: title, About: about, Columns: traffic},
			servers:  everybody,
			enter: func(ctx context.Context, b *bench, server string, _ int) (*contestant, error) {
				return b.pipe(ctx, server, slots, era)
			},
		}
	}
	events := web(httpModernSSE, "HTTP "+fixture.Modern+", a stream with one notification and the result",
		"A call that reports progress once, so that every server answers with an event stream; 32 connections.", fixture.ModeSSE, driver.Stateless, everybody...)
	events.enter = func(ctx context.Context, b *bench, server string, _ int) (*contestant, error) {
		return b.web(ctx, server, []string{"-mode", fixture.ModeSSE},
			driver.Load{Era: driver.Stateless, Conns: connections, Call: driver.Progress(1), Check: driver.Stream(fixture.Done)})
	}
	return []*scenario{
		web(httpModernJSON, "HTTP "+fixture.Modern+", answered as JSON", "Calls of echo with a text of 52 bytes over 32 connections.",
			fixture.ModeJSON, driver.Stateless, everybody...),
		events,
		web(httpSession, "HTTP "+fixture.Legacy+", one session", "Calls of echo in one session over 32 connections.",
			fixture.ModeSession, driver.Session, inGo...),
		web(httpLegacy, "HTTP "+fixture.Legacy+" without sessions",
			"Calls of echo without handshake or session, which some libraries serve beyond the specification; Parley does not.",
			fixture.ModeJSON, driver.LegacyStateless, report.Floor, report.GoSDK, report.MCPGo, report.TS),
		stdio(stdioOne, "stdio "+fixture.Modern+", one after the other", "Calls of echo, the next when the answer is there.", 1, driver.Stateless),
		stdio(stdioMany, "stdio "+fixture.Modern+", 64 under way", "Calls of echo, so many under way at once.", inFlight, driver.Stateless),
		stdio(stdioLegacy, "stdio "+fixture.Legacy+", 64 under way", "The same after a handshake: each message is shorter.", inFlight, driver.Session),
	}
}

// big is traffic of large messages, and of many, on one connection.
func big() []*scenario {
	one := func(name, title, about string, columns []report.Metric, call driver.Call, check driver.Check, args ...string) *scenario {
		return &scenario{
			Scenario: report.Scenario{Name: name, Title: title, About: about, Columns: columns},
			servers:  inGo,
			enter: func(ctx context.Context, b *bench, server string, _ int) (*contestant, error) {
				return b.web(ctx, server, args, driver.Load{Conns: 1, Call: call, Check: check})
			},
		}
	}
	progress := []report.Metric{report.Delivered, report.CPU, report.P50, report.Allocs, report.Bytes, report.PeakRSS}
	session := one(sessionMany, "1,000 progress notifications in a session", "The same in "+fixture.Legacy+"; the events are kept for a client that comes back.",
		progress, driver.Progress(manyEvents), driver.Stream(fixture.Done))
	session.servers = []string{report.Parley}
	session.enter = func(ctx context.Context, b *bench, server string, _ int) (*contestant, error) {
		return b.web(ctx, server, []string{"-mode", fixture.ModeSession},
			driver.Load{Era: driver.Session, Conns: 1, Call: driver.Progress(manyEvents), Check: driver.Stream(fixture.Done)})
	}
	return []*scenario{
		one(listLong, "tools/list of 1,000", "All tools in one page. The floor writes bytes that are ready.", large,
			driver.List(), driver.Result(fixture.Filler(manyTools-1), 400*manyTools), "-tools", strconv.Itoa(manyTools)),
		one(echoLarge, "Echo of 1 MiB", "A text with a line break and a letter that takes two bytes in every 46. The floor sends back what it got.", large,
			driver.Echo(text(largeText)), driver.Result(textEnd, largeText*8/10)),
		one(blobLarge, "Blob of 10 MiB", "resources/read. The floor encodes base64 into the connection.", large,
			driver.Read(), driver.Result(fixture.BlobURI, largeBlob*4/3), "-blob", strconv.Itoa(largeBlob)),
		one(progressMany, "1,000 progress notifications", "One call that reports so often. The floor writes and flushes so many events.",
			progress, driver.Progress(manyEvents), driver.Stream(fixture.Done), "-mode", fixture.ModeSSE),
		session,
	}
}

// textEnd is at the end of every text.
const textEnd = "the end of the text"

// text is a text of so many bytes, as JSON.
func text(size int) string {
	const piece = `the quick brown fox jumps over the l\u00e9zy dog\n`
	return strings.Repeat(piece, max(size-len(textEnd), 0)/len(piece)) + textEnd
}

// still is what costs something without traffic, or without a transport.
func still() []*scenario {
	idle := func(name, title, about string, stream bool) *scenario {
		return &scenario{
			Scenario: report.Scenario{
				Name: name, Title: title, About: about,
				Columns: []report.Metric{report.Memory, report.RSS, report.Goroutines, report.Elapsed},
			},
			servers: inGo,
			enter: func(_ context.Context, b *bench, server string, _ int) (*contestant, error) {
				return b.idle(server, b.sessions, stream, []string{"-mode", fixture.ModeSession}), nil
			},
		}
	}
	return []*scenario{
		idle(idleSession, "Idle sessions", "2,000 legacy sessions without a stream, after a collection of garbage. Elapsed is what opening one took.", false),
		idle(idleStream, "Idle sessions with a stream", "The same, each with its GET stream open. The floor holds the connection.", true),
		{
			Scenario: report.Scenario{
				Name: inMemory, Title: "In memory", About: "A call of echo by a client in the same process, both sides together.",
				Columns: []report.Metric{report.Elapsed, report.CPU, report.Allocs, report.Bytes},
			},
			servers: []string{report.Parley, report.GoSDK, report.MCPGo},
			enter: func(ctx context.Context, b *bench, server string, _ int) (*contestant, error) {
				return b.mem(ctx, server)
			},
		},
	}
}

// series are costs against a size, to see that they grow with it and no faster.
func series() []*scenario {
	line := func(name, title, about, axis string, xs []int, enter func(x int) ([]string, driver.Load)) *scenario {
		return &scenario{
			Scenario: report.Scenario{Name: name, Title: title, About: about, Columns: []report.Metric{report.CPU}, Axis: axis},
			servers:  inGo,
			xs:       xs,
			enter: func(ctx context.Context, b *bench, server string, x int) (*contestant, error) {
				args, load := enter(x)
				return b.short().web(ctx, server, args, load)
			},
		}
	}
	return []*scenario{
		line(seriesPayload, "Cost against payload", "Server CPU of one echo.", "bytes of text",
			[]int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}, func(x int) ([]string, driver.Load) {
				return []string{"-max-message", strconv.Itoa(64 << 20)},
					driver.Load{Conns: 1, Call: driver.Echo(text(x)), Check: driver.Result(textEnd, x*8/10)}
			}),
		line(seriesList, "Cost against the length of a list", "Server CPU of one tools/list.", "tools",
			[]int{10, 30, 100, 300, 1000, 3000}, func(x int) ([]string, driver.Load) {
				return []string{"-tools", strconv.Itoa(x)},
					driver.Load{Conns: 1, Call: driver.List(), Check: driver.Result(fixture.Filler(x-1), 400*x)}
			}),
		line(seriesConns, "Cost against connections", "Server CPU of one call of echo, with so many connections busy.", "connections",
			[]int{1, 2, 4, 8, 16, 32, 64, 128}, func(x int) ([]string, driver.Load) {
				return nil, driver.Load{Conns: x, Call: driver.Echo(fixture.Text), Check: driver.Result(fixture.Text, 0)}
			}),
	}
}
