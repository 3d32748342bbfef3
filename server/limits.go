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
type Limits struct {
	// MaxInFlight is the most requests under way per connection or session. Default 256.
	MaxInFlight int
	// MaxBatch is the most messages in a JSON-RPC array. Default 100.
	MaxBatch int
	// CallTimeout ends a call that shows no progress. It is stopped while a
	// person is asked. Default 60 s.
	CallTimeout time.Duration
	// MaxCallTime ends a call in spite of its progress; time in which a
	// person is asked does not count. Default 10 min.
	MaxCallTime time.Duration
	// MaxRounds is how often one request may be answered "input required". Default 8.
	MaxRounds int
	// MaxState is the most bytes of a requestState. Default 16 KiB.
	MaxState int
	// StateExpiry is how long a requestState is good for. Default 10 min.
	StateExpiry time.Duration
	// MaxListens is the most subscriptions/listen streams of one principal. Default 16.
	MaxListens int
	// MaxSubscriptions is the most resources watched by one listen or session. Default 256.
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
	// ToolRate is the most calls per second of one tool by one principal;
	// ListRate, CompletionRate and PingRate count all such requests of one
	// principal. Each allows a burst of one second. Defaults 50, 20, 20 and 10.
	ToolRate, ListRate, CompletionRate, PingRate float64
	// LogRate is the most log messages per second of one session or request;
	// what is over it is counted and told in the next. Default 100.
	LogRate float64
}

// filled returns the limits with defaults in place of zeros.
func (l Limits) filled() Limits {
	fill(&l.MaxInFlight, 256)
	fill(&l.MaxBatch, 100)
	fill(&l.CallTimeout, 60*time.Second)
	fill(&l.MaxCallTime, 10*time.Minute)
	fill(&l.MaxRounds, 8)
	fill(&l.MaxState, 16<<10)
	fill(&l.StateExpiry, 10*time.Minute)
	fill(&l.MaxListens, 16)
	fill(&l.MaxSubscriptions, 256)
	fill(&l.ChangeRate, 50)
	fill(&l.PageSize, 100)
	fill(&l.MaxResource, 16<<20)
	fill(&l.MaxArgument, 64<<10)
	fill(&l.MaxURI, 8<<10)
	fill(&l.ToolRate, 50)
	fill(&l.ListRate, 20)
	fill(&l.CompletionRate, 20)
	fill(&l.PingRate, 10)
	fill(&l.LogRate, 100)
	return l
}

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
