package server

import (
	"math"
	"time"
)

// Unlimited switches a limit of [Limits] off. It is spelled out, so that a
// reader sees the danger.
const Unlimited = -1

// Limits bound what peers may ask of a server. A zero field means its default;
// [Unlimited] switches a limit off where that makes sense.
//
// A limit of each caller counts by identity (see principal.Principal): all
// connections, sessions and requests of one caller together. Anonymous callers
// are counted by network address, and one address may be many people: a proxy,
// an office, a host of agents. For them rates are ten times as high, and the
// counts have fields of their own. An address is that of the connection, or
// what a trusted proxy says (web.Access.TrustedProxies). [principal.Local],
// the owner of a pipe, has no rates.
//
// A request over a rate by up to a second waits for its turn on the server;
// beyond that it is refused with the time after which to try again.
//
// Transports count connections and sessions: see the options of
// transport/streamable, transport/sse and transport/websocket.
type Limits struct {
	// MaxInFlight is the most requests under way on one connection or in one
	// session, and the most self-contained requests (stateless revision, over
	// HTTP) of one identified caller. Default 256.
	MaxInFlight int
	// MaxAnonymousInFlight is the most self-contained requests under way of
	// the anonymous callers of one address. Default 1,024.
	MaxAnonymousInFlight int
	// MaxBatch is the most messages in a JSON-RPC array. Default 100.
	MaxBatch int
	// CallTimeout ends a call that shows no progress. It is stopped while a
	// person is asked. Default 60 s, and 10 min for principal.Local.
	CallTimeout time.Duration
	// MaxCallTime ends a call in spite of its progress; time in which a
	// person is asked does not count. Default 10 min.
	MaxCallTime time.Duration
	// MaxAskTime is how long a question may be open where a handler waits for the
	// answer: in sessions, and in the Asker of an extension. For ElicitURL it is
	// the time of the question and that of what the person does then, each. The
	// handler gets ErrAskFailed. Default 24 h.
	MaxAskTime time.Duration
	// MaxRounds is how often one request may be answered "input required". Default 8.
	MaxRounds int
	// MaxState is the most bytes that a requestState holds, before it is sealed,
	// which makes it longer by a third. Default 16 KiB.
	MaxState int
	// StateExpiry is how long a requestState is good for. Default 10 min.
	StateExpiry time.Duration
	// MaxListens is the most subscriptions/listen streams of one identified
	// caller. Default 16.
	MaxListens int
	// MaxAnonymousListens is the most subscriptions/listen streams of the
	// anonymous callers of one address. Default 1,000.
	MaxAnonymousListens int
	// MaxDetached is the most calls of one identified caller that run detached,
	// MaxAnonymousDetached those of the anonymous callers of one address, and
	// MaxAllDetached those of all callers together: see Call.Detach, which fails
	// with a DetachLimitError. Defaults 100, 200 and 2,000.
	MaxDetached, MaxAnonymousDetached, MaxAllDetached int
	// MaxDetachedTime ends a detached call, counted from Call.Detach, also
	// where Server.Resume took it up again. The cause is ErrTimeout. Default
	// 24 h.
	MaxDetachedTime time.Duration
	// MaxSubscriptions is the most resources watched by one listen or session,
	// and bounds the params of a listen: 64 KiB, and 1 KiB for each. Default 256.
	MaxSubscriptions int
	// ChangeRate is the most change notices per second and session. Notices
	// of the same thing are merged, none is lost. Default 50.
	ChangeRate float64
	// PageSize is the most items of one page of a list. Default 100.
	PageSize int
	// MaxResource is the most bytes that resources/read gives. Default 16 MiB.
	MaxResource int
	// MaxArgument is the most bytes of one prompt argument or completion
	// value. Default 64 KiB.
	MaxArgument int
	// MaxURI is the most bytes of a resource URI. Default 8 KiB.
	MaxURI int
	// ToolRate is the most requests per second of each caller for one tool,
	// prompt or resource. ListRate counts each of these methods on its own: the
	// lists, logging/setLevel and subscriptions/listen. CompletionRate and
	// PingRate count completion/complete and ping. Each rate allows a burst of
	// ten seconds' worth, ListRate of five; server/discover is not counted. For
	// the anonymous callers of one address each is ten times as high;
	// principal.Local has none. Defaults 50, 100, 50 and 50.
	ToolRate, ListRate, CompletionRate, PingRate float64
	// LogRate is the most log messages per second of one session or request;
	// what is over it is counted and told in the next. Default 100.
	LogRate float64
}

// filled returns the limits with defaults in place of zeros.
func (l Limits) filled() Limits {
	fill(&l.MaxInFlight, 256)
	fill(&l.MaxAnonymousInFlight, 1024)
	fill(&l.MaxBatch, 100)
	fill(&l.CallTimeout, 60*time.Second)
	fill(&l.MaxCallTime, 10*time.Minute)
	fill(&l.MaxAskTime, 24*time.Hour)
	fill(&l.MaxRounds, 8)
	fill(&l.MaxState, 16<<10)
	fill(&l.StateExpiry, 10*time.Minute)
	fill(&l.MaxListens, 16)
	fill(&l.MaxAnonymousListens, 1000)
	fill(&l.MaxDetached, 100)
	fill(&l.MaxAnonymousDetached, 200)
	fill(&l.MaxAllDetached, 2000)
	fill(&l.MaxDetachedTime, 24*time.Hour)
	fill(&l.MaxSubscriptions, 256)
	fill(&l.ChangeRate, 50)
	fill(&l.PageSize, 100)
	fill(&l.MaxResource, 16<<20)
	fill(&l.MaxArgument, 64<<10)
	fill(&l.MaxURI, 8<<10)
	fill(&l.ToolRate, 50)
	fill(&l.ListRate, 100)
	fill(&l.CompletionRate, 50)
	fill(&l.PingRate, 50)
	fill(&l.LogRate, 100)
	return l
}

// localCallTimeout is the default of CallTimeout for principal.Local, who can
// end the process.
const localCallTimeout = 10 * time.Minute

// fill sets a zero to its default.
func fill[T int | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// bound is a limit for code that knows no Unlimited.
func bound(limit int) int {
	if limit < 0 {
		return math.MaxInt
	}
	return limit
}

// over reports whether n is beyond limit, which Unlimited never is.
func over(n, limit int) bool { return limit >= 0 && n > limit }
