package streamable

import (
	"log/slog"
	"math"
	"time"

	"github.com/parley-mcp/parley/transport/web"
)

// Options adjust an endpoint. The zero value, and nil, give the defaults,
// which are safe; -1 switches a limit of number or size off, and a time that
// is not positive is its default.
type Options struct {
	// Access says who may reach the endpoint.
	Access web.Access
	// MaxMessage is the size in bytes of the largest request body. Default 4 MiB.
	MaxMessage int
	// MaxDepth is how deep JSON may be nested. Default 64; -1 means 10,000,
	// since reading takes stack for each level.
	MaxDepth int
	// Sessionless serves clients of revisions with a handshake without sessions,
	// so that each request may reach another replica, without affinity:
	// initialize is answered without Mcp-Session-Id, and each request by itself,
	// in the revision that its MCP-Protocol-Version names (2025-03-26 without).
	// What needs a session is not offered: handlers cannot ask such clients for
	// anything (ErrNotCapable), they cannot subscribe, hear of no changes of
	// lists, set no log level and resume no stream; GET and DELETE are 405.
	// Progress and log messages of a request still go on its own stream. Clients
	// of revisions without handshake notice nothing, and can be asked. Replicas
	// need the same StateKeys in their server.Options. Default: sessions.
	Sessionless bool
	// MaxSessions is the most sessions of revisions with a handshake at once;
	// those of anonymous callers may be nine tenths of them. One more ends the
	// session that was idle the longest of the anonymous callers of the address
	// that has the most; an anonymous caller whose own address has as many ends
	// one of those. It is answered 429 if each such session has a request under
	// way or a stream open. Sessions of callers whom authentication has named
	// make place for nobody. As many sessions again may begin or end. Default
	// 10,000.
	MaxSessions int
	// MaxSessionsPerPrincipal is the most sessions of one caller whom
	// authentication has named; more are answered 429. Default 100.
	MaxSessionsPerPrincipal int
	// MaxSessionsPerAddress is the most sessions of the anonymous callers of
	// one address, who may be many people behind a proxy. One more ends the
	// session among them that was idle the longest; it is answered 429 only if
	// each has a request under way or a stream open. Default 1,000.
	MaxSessionsPerAddress int
	// OnSession is told when a session opens, changes and ends, for metrics and
	// for records that Restore opens it from elsewhere. It is called before the
	// client learns of what it tells; for one session one call at a time, for
	// several many. It must be quick, and wait for nothing that happens to the
	// same session. A panic of it is logged. Default: nobody is told.
	OnSession func(e SessionEvent)
	// SessionIdle ends a session that nobody uses: no request under way, no
	// stream open. Default 30 min.
	SessionIdle time.Duration
	// ReplayBuffer is how many bytes of events one stream of a session keeps
	// for clients that come back, ReplayTime for how long. Defaults 1 MiB, 5 min.
	ReplayBuffer int
	ReplayTime   time.Duration
	// ReplayMemory is how many bytes the events of all streams may take in
	// memory, those of each write counted with 256 bytes more than they have.
	// Beyond it the caller with the most, one with a name or the anonymous callers
	// of an address, loses its oldest; a client that asks for those is answered
	// 400. Default 256 MiB.
	ReplayMemory int
	// Events keeps the events of streams, and ReplayMemory does not hold for it.
	// Default: in memory.
	Events EventStore
	// ReadTimeout is how long a client may take to send a body. Default 30 s.
	ReadTimeout time.Duration
	// WriteStall is how long a client may take none of what is written, and a
	// second more for each 64 KiB of it. Default 30 s.
	WriteStall time.Duration
	// KeepAlive is the time after which a silent stream gets a comment, so
	// that nobody between closes it. Default 15 s.
	KeepAlive time.Duration
	// PollAfter ends the response of a request that takes longer, in
	// revisions whose clients then ask again for what they have missed (2025:
	// "polling"), so that a long call holds no connection. Default: never.
	PollAfter time.Duration
	// Retry is how long such a client is told to wait before it asks again.
	// Default 1 s.
	Retry time.Duration
	// HTTP adjusts the HTTP server that [Serve] makes; NewHandler makes none.
	// Its Shutdown is called before the endpoint's own.
	HTTP web.ServeOptions
	// Logger is told what the operator should mend, and at debug what clients do
	// wrong. Default: slog.Default.
	Logger *slog.Logger
}

// unboundedDepth is what MaxDepth -1 means: reading takes stack for each level.
const unboundedDepth = 10_000

// filled returns a copy of o, which may be nil, with its gaps filled.
func (o *Options) filled() Options {
	var d Options
	if o != nil {
		d = *o
	}
	size(&d.MaxMessage, 4<<20)
	if d.MaxDepth < 0 {
		d.MaxDepth = unboundedDepth
	}
	size(&d.MaxDepth, 64)
	size(&d.MaxSessions, 10_000)
	size(&d.MaxSessionsPerPrincipal, 100)
	size(&d.MaxSessionsPerAddress, 1000)
	size(&d.ReplayBuffer, 1<<20)
	size(&d.ReplayMemory, 256<<20)
	span(&d.SessionIdle, 30*time.Minute)
	span(&d.ReplayTime, 5*time.Minute)
	span(&d.ReadTimeout, 30*time.Second)
	span(&d.WriteStall, 30*time.Second)
	span(&d.KeepAlive, 15*time.Second)
	span(&d.Retry, time.Second)
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	return d
}

// size fills in a limit of number or size.
func size(field *int, value int) {
	switch {
	case *field == 0:
		*field = value
	case *field < 0:
		*field = math.MaxInt
	}
}

// span fills in a time.
func span(field *time.Duration, value time.Duration) {
	if *field <= 0 {
		*field = value
	}
}
