package sse

import (
	"cmp"
	"log/slog"
	"math"
	"time"

	"github.com/parley-mcp/parley/transport/frame"
	"github.com/parley-mcp/parley/transport/web"
)

// Defaults of [Options].
const (
	DefaultMaxSessions             = 10_000
	DefaultMaxSessionsPerPrincipal = 100
	DefaultMaxSessionsPerAddress   = 1000
	DefaultReadTimeout             = 30 * time.Second
	DefaultKeepAlive               = 15 * time.Second
)

// Options adjust an endpoint. The zero value, and nil, give the defaults,
// which are safe; -1 switches a limit of number or size off.
type Options struct {
	// Access decides which callers may reach the endpoint.
	Access web.Access
	// MaxMessage is the size in bytes of the largest request body; more is
	// answered 413. Default 4 MiB.
	MaxMessage int
	// MaxDepth is how deep JSON may be nested. Default 64.
	MaxDepth int
	// MaxSessions is the most streams open at once; those of anonymous callers
	// may be nine tenths of them. More are answered 429: a stream that is open is
	// never ended for another one. Default 10,000.
	MaxSessions int
	// MaxSessionsPerPrincipal is the most streams of one caller that
	// authentication has named; more are answered 429. Default 100.
	MaxSessionsPerPrincipal int
	// MaxSessionsPerAddress is the most streams of the anonymous callers of one
	// address, who may be many people behind a proxy; more are answered 429.
	// Default 1,000.
	MaxSessionsPerAddress int
	// ReadTimeout is how long a client may take to send a body, before it is
	// answered 408. Default 30 s.
	ReadTimeout time.Duration
	// WriteStall is how long a client may take none of what is written, and a
	// second more for each 64 KiB of it, before its session ends. Default 30 s.
	WriteStall time.Duration
	// KeepAlive is the time after which a silent stream gets a comment, so
	// that no proxy between closes it, and a client that is gone is noticed.
	// Default 15 s.
	KeepAlive time.Duration
	// Logger is told what the operator should mend, and at debug what clients do
	// wrong. Default: slog.Default.
	Logger *slog.Logger
}

// defaults returns a copy of o, which may be nil, with its gaps filled.
func (o *Options) defaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.MaxMessage = limit(d.MaxMessage, frame.DefaultMaxMessage)
	d.MaxDepth = limit(d.MaxDepth, frame.DefaultMaxDepth)
	d.MaxSessions = limit(d.MaxSessions, DefaultMaxSessions)
	d.MaxSessionsPerPrincipal = limit(d.MaxSessionsPerPrincipal, DefaultMaxSessionsPerPrincipal)
	d.MaxSessionsPerAddress = limit(d.MaxSessionsPerAddress, DefaultMaxSessionsPerAddress)
	d.ReadTimeout = orDefault(d.ReadTimeout, DefaultReadTimeout)
	d.WriteStall = orDefault(d.WriteStall, frame.DefaultWriteStall)
	d.KeepAlive = orDefault(d.KeepAlive, DefaultKeepAlive)
	d.Logger = cmp.Or(d.Logger, slog.Default())
	return d
}

// limit is n, its default if it is zero, or no limit if it is negative.
func limit(n, byDefault int) int {
	if n < 0 {
		return math.MaxInt / 2 // leaves room to add to
	}
	return cmp.Or(n, byDefault)
}

// orDefault is d, or its default if it is no time at all.
func orDefault(d, byDefault time.Duration) time.Duration {
	if d <= 0 {
		return byDefault
	}
	return d
}
