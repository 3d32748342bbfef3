// Package load sends calls to a server from many clients and measures how long they take.
//
// Without a rate each client sends a call as soon as the one before has ended. With a rate calls
// are due at regular times, and the time of a call counts from when it was due, not from when it
// was sent: a server that stops for a second then shows a second in every call that it held up, and
// not in one alone (coordinated omission).
package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Limits and defaults.
const (
	// MaxClients is the most clients.
	MaxClients = 1000
	// MaxRate is the highest rate, in calls per second.
	MaxRate = 1e6
	// MaxDuration is the longest run.
	MaxDuration = 24 * time.Hour
	// MaxRequests is the most calls of a run.
	MaxRequests = 1e9
	// DefaultDuration is how long a run takes if neither its time nor its calls are limited.
	DefaultDuration = 10 * time.Second
	// connecting is how many clients connect at once.
	connecting = 8
	// longest is the longest time that is told apart; what takes longer counts as this.
	longest = 24 * time.Hour
	// digits is how many digits of a time are right.
	digits = 3
	// MaxKinds is the most kinds of errors that a report tells apart; further ones count as
	// OtherKinds.
	MaxKinds   = 10
	OtherKinds = "(other)"
)

// ErrFailed is, or is wrapped by, what Conn.Call returns for a call that was answered, and whose
// answer says that it failed. Such calls have a count of their own, Report.Failed.
var ErrFailed = errors.New("the answer says that the call failed")

// A Conn is the connection of one client, which makes one call after another.
type Conn struct {
	// Call makes one call.
	Call func(ctx context.Context) error
	// Close ends the connection.
	Close func() error
}

// Options configure a run.
type Options struct {
	// Connect makes the connection of a client.
	Connect func(ctx context.Context) (*Conn, error)
	// Kind names the kind of an error of a call, in few words. The first MaxKinds are told apart.
	Kind func(err error) string
	// Clients is how many clients there are; default 1.
	Clients int
	// Rate is how many calls per second all clients make together; 0 is as many as they can.
	Rate float64
	// Duration is how long calls are sent; Requests is how many. The first limit that is
	// reached ends the run; default DefaultDuration.
	Duration time.Duration
	Requests int64
	// TimeAll counts the times of calls with an error too; default is those without.
	TimeAll bool
}

// A Report says how a run went. Times are right to three digits, and those of calls without error
// unless Options.TimeAll says otherwise.
type Report struct {
	// Clients and Rate are those of the options.
	Clients int     `json:"clients"`
	Rate    float64 `json:"rate,omitzero"`
	// Requests is how many calls were sent, OK how many had no error, Failed how many ended with
	// ErrFailed, and Errors the others by kind.
	Requests int64            `json:"requests"`
	OK       int64            `json:"ok"`
	Failed   int64            `json:"failed,omitzero"`
	Errors   map[string]int64 `json:"errors"`
	// NotSent is how many calls were due by the end of the time, and not sent because every
	// client still waited.
	NotSent int64 `json:"notSent,omitzero"`
	// Seconds is the time from the first call to the end of the last one, and PerSecond how
	// many calls without error there were in a second of it.
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	// Latency are the times of calls, in milliseconds; nil if there are none.
	Latency *Latency `json:"latencyMs,omitzero"`
	// Interrupted says that the run was ended before its time. Calls that were under way then
	// count nowhere but in Requests.
	Interrupted bool `json:"interrupted,omitzero"`
}

// A Latency is how long calls took, in milliseconds.
type Latency struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Check refuses options out of bounds, and fills in defaults.
func (o *Options) Check() error {
	if o.Clients == 0 {
		o.Clients = 1
	}
	if o.Duration == 0 && o.Requests == 0 {
		o.Duration = DefaultDuration
	}
	switch {
	case o.Clients < 0 || o.Clients > MaxClients:
		return fmt.Errorf("%d clients are too few or too many; there may be 1 to %d", o.Clients, MaxClients)
	case !(o.Rate >= 0 && o.Rate <= MaxRate): // not a number is neither
		return fmt.Errorf("a rate of %v per second is too low or too high; it may be up to %.0f", o.Rate, MaxRate)
	case o.Duration < 0 || o.Duration > MaxDuration:
		return fmt.Errorf("a run of %v is too short or too long; it may take up to %v", o.Duration, MaxDuration)
	case o.Requests < 0 || o.Requests > MaxRequests:
		return fmt.Errorf("%d requests are too few or too many; there may be up to %.0f", o.Requests, MaxRequests)
	}
	return nil
}

// A run is one run.
type run struct {
	Options

	start   time.Time
	tickets atomic.Int64 // calls that were taken by clients
	sent    atomic.Int64

	mu         sync.Mutex
	times      *hdrhistogram.Histogram // in microseconds
	ok, failed int64
	errors     map[string]int64
}

// Run connects all clients, lets them make calls, and closes them. It ends with ctx; what was
// measured until then is in the report. A client that cannot connect is an error.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	conns, err := connect(ctx, &o)
	defer closeAll(conns)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, start: time.Now(), times: hdrhistogram.New(1, longest.Microseconds(), digits), errors: make(map[string]int64)}
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { r.client(ctx, c) })
	}
	wg.Wait()
	return r.report(time.Since(r.start), ctx.Err() != nil), nil
}

// connect connects the clients, some at once.
func connect(ctx context.Context, o *Options) ([]*Conn, error) {
	var (
		mu     sync.Mutex
		conns  []*Conn
		failed error
		wg     sync.WaitGroup
		left   atomic.Int64
	)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	left.Store(int64(o.Clients))
	for range min(connecting, o.Clients) {
		wg.Go(func() {
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				c, err := o.Connect(ctx)
				mu.Lock()
				switch {
				case err == nil:
					conns = append(conns, c)
				case failed == nil:
					failed = fmt.Errorf("connecting client %d of %d: %w", len(conns)+1, o.Clients, err)
				}
				mu.Unlock()
				if err != nil {
					stop() // the others too
				}
			}
		})
	}
	wg.Wait()
	if failed == nil && len(conns) < o.Clients {
		failed = context.Cause(ctx)
	}
	return conns, failed
}

// closeAll closes connections, some at once.
func closeAll(conns []*Conn) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(connecting, len(conns)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(conns); i = next.Add(1) - 1 {
				_ = conns[i].Close() // the measuring is over
			}
		})
	}
	wg.Wait()
}

// client makes the calls of one client.
func (r *run) client(ctx context.Context, c *Conn) {
	for ctx.Err() == nil {
		ticket := r.tickets.Add(1) - 1
		if r.Requests > 0 && ticket >= r.Requests {
			return
		}
		due, ok := r.due(ctx, ticket)
		if !ok {
			return
		}
		r.sent.Add(1)
		err := c.Call(ctx)
		if err != nil && ctx.Err() != nil {
			return // it was cut off
		}
		r.note(time.Since(due), err)
	}
}

// due waits until a call is due, and says since when it is. It is not ok if the time of the run is
// over.
func (r *run) due(ctx context.Context, ticket int64) (due time.Time, ok bool) {
	now := time.Since(r.start)
	if r.Duration > 0 && now >= r.Duration {
		return time.Time{}, false
	}
	if r.Rate == 0 {
		return r.start.Add(now), true
	}
	after := time.Duration(float64(ticket) / r.Rate * float64(time.Second))
	if r.Duration > 0 && after >= r.Duration {
		return time.Time{}, false
	}
	due = r.start.Add(after)
	if after <= now {
		return due, true
	}
	timer := time.NewTimer(after - now)
	defer timer.Stop()
	select {
	case <-timer.C:
		return due, true
	case <-ctx.Done():
		return time.Time{}, false
	}
}

// note counts a call.
func (r *run) note(took time.Duration, err error) {
	kind, failed := "", errors.Is(err, ErrFailed)
	if err != nil && !failed {
		kind = r.Kind(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch _, known := r.errors[kind]; {
	case err == nil:
		r.ok++
	case failed:
		r.failed++
	case known || len(r.errors) < MaxKinds:
		r.errors[kind]++
	default:
		r.errors[OtherKinds]++
	}
	if err != nil && !r.TimeAll {
		return
	}
	_ = r.times.RecordValue(min(max(took.Microseconds(), 1), longest.Microseconds())) // within its bounds
}

// report puts together what was counted.
func (r *run) report(took time.Duration, interrupted bool) *Report {
	p := &Report{
		Clients: r.Clients, Rate: r.Rate, Requests: r.sent.Load(), OK: r.ok, Failed: r.failed, Errors: r.errors,
		Seconds: took.Seconds(), Interrupted: interrupted,
	}
	if r.Rate > 0 && r.Duration > 0 && !interrupted {
		due := int64(math.Ceil(r.Rate * r.Duration.Seconds()))
		if r.Requests > 0 {
			due = min(due, r.Requests)
		}
		p.NotSent = max(0, due-p.Requests)
	}
	if took > 0 {
		p.PerSecond = float64(p.OK) / took.Seconds()
	}
	if r.times.TotalCount() > 0 {
		ms := func(percentile float64) float64 { return float64(r.times.ValueAtPercentile(percentile)) / 1000 }
		p.Latency = &Latency{
			Min: float64(r.times.Min()) / 1000, Mean: r.times.Mean() / 1000, P50: ms(50), P90: ms(90), P99: ms(99), P999: ms(99.9), Max: float64(r.times.Max()) / 1000,
		}
	}
	return p
}
