package chaos

import (
	"cmp"
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A Direction is that of a frame. Answers of HTTP that the proxy gives itself go to the client.
type Direction string

// The directions.
const (
	ToServer Direction = "server"
	ToClient Direction = "client"
)

// Limits and defaults.
const (
	// MaxFrame is the size of the largest frame that faults are applied to; a longer one is
	// passed on as it is.
	MaxFrame = 16 << 20
	// DefaultMaxDelay is the longest delay.
	DefaultMaxDelay = 500 * time.Millisecond
	// DefaultWriteStall is how long a client over HTTP may take none of what is written.
	DefaultWriteStall = 30 * time.Second
	// DefaultRetryAfter is what an answer 429 asks for.
	DefaultRetryAfter = time.Second
)

// Options configure a Proxy. The zero value works.
type Options struct {
	// Seed decides where faults are applied, and how.
	Seed uint64
	// Rates say how likely each fault is; default DefaultRates.
	Rates Rates
	// To is the one direction in which faults are applied; default both.
	To Direction
	// MaxDelay is the longest delay, and what the pauses of slow frames come to at most twice;
	// default 500 ms.
	MaxDelay time.Duration
	// RetryAfter is what an answer 429 asks for, in whole seconds; default 1 s.
	RetryAfter time.Duration
	// WriteStall is how long a client over HTTP may take none of what is written, and a second
	// more for each 64 KiB of it, before its connection ends; default 30 s. On a pipe the server
	// waits for the client.
	WriteStall time.Duration
	// Sleep waits, or returns the cause of ctx if that ends first; default by the system's clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log is told of each fault before it is applied, one at a time; default not.
	Log func(Event)
}

// An Event is a fault that was applied.
type Event struct {
	// Connection numbers the pipes of a proxy, or its requests of HTTP in the order in which
	// they came, from 1.
	Connection uint64 `json:"connection"`
	// Direction is that of the frame.
	Direction Direction `json:"to"`
	// Frame numbers the frames of a direction of a connection, from 1; it is 0 for what is done
	// to an HTTP response as a whole.
	Frame uint64 `json:"frame"`
	// Fault was applied.
	Fault Fault `json:"fault"`
	// Bytes is the size of the frame.
	Bytes int `json:"bytes"`
	// Detail says more for a person, such as where the frame was cut. Nothing of the frame
	// itself is in it.
	Detail string `json:"detail,omitzero"`
}

// A Proxy applies faults. Its methods may be called by many goroutines.
type Proxy struct {
	opts        Options
	connections atomic.Uint64
	logging     sync.Mutex
	requests    requestCounts
	expired     sessions
}

// New makes a proxy.
func New(o Options) *Proxy {
	if o.Rates == nil {
		o.Rates = DefaultRates()
	}
	o.MaxDelay = cmp.Or(max(o.MaxDelay, 0), DefaultMaxDelay)
	o.WriteStall = cmp.Or(max(o.WriteStall, 0), DefaultWriteStall)
	o.RetryAfter = cmp.Or(max(o.RetryAfter, 0), DefaultRetryAfter)
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &Proxy{opts: o}
}

// sleep waits by the system's clock.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A flow is one direction of a connection, or of an exchange of HTTP.
type flow struct {
	proxy      *Proxy
	connection uint64 // as events show it
	key        string // the connection, as far as faults depend on it
	direction  Direction
	frames     uint64
}

// A decision is a fault for one frame, and the random numbers that it is applied with.
type decision struct {
	fault Fault
	rand  *rand.Rand
}

// randomFor is the source of random numbers for one purpose at one place.
func (l *flow) randomFor(frame uint64, purpose string) *rand.Rand {
	h := fnv.New128a()
	_, _ = io.WriteString(h, l.key+"\n"+string(l.direction)+"\n"+strconv.FormatUint(frame, 10)+"\n"+purpose) // a hash takes everything
	sum := h.Sum(nil)
	var high, low uint64
	for i := range 8 {
		high, low = high<<8|uint64(sum[i]), low<<8|uint64(sum[i+8])
	}
	return rand.New(rand.NewPCG(l.proxy.opts.Seed^high, low))
}

// decide says which fault is applied at a place to the frame of that number, if any. A fault is
// drawn by itself, so that the rate of one has no influence on where another is applied, but for
// frames that both would be applied to.
func (l *flow) decide(frame uint64, at place, applies func(Fault) bool) *decision {
	if to := l.proxy.opts.To; to != "" && to != l.direction {
		return nil
	}
	var drawn []decision
	for _, r := range rows {
		rate := l.proxy.opts.Rates[r.fault]
		if rate <= 0 || r.places&at == 0 || !applies(r.fault) {
			continue
		}
		random := l.randomFor(frame, string(r.fault))
		if random.Float64() < rate {
			drawn = append(drawn, decision{r.fault, random})
		}
	}
	switch len(drawn) {
	case 0:
		return nil
	case 1:
		return &drawn[0]
	}
	return &drawn[l.randomFor(frame, "choice").IntN(len(drawn))]
}

// log tells of a fault.
func (l *flow) log(frame uint64, f Fault, size int, detail string) {
	if l.proxy.opts.Log == nil {
		return
	}
	l.proxy.logging.Lock()
	defer l.proxy.logging.Unlock()
	l.proxy.opts.Log(Event{Connection: l.connection, Direction: l.direction, Frame: frame, Fault: f, Bytes: size, Detail: detail})
}
