package frame

import "time"

// Parameters of a scheduler; see there.
const (
	maxGap     = 250 * time.Microsecond // from one request to the next, while they come quickly
	maxQuick   = 20 * time.Microsecond  // what a request may take that runs on the reader
	warmUp     = 8                      // requests that have to come quickly before one runs on the reader
	minBackoff = 16                     // requests on goroutines of their own after one that did not fit
	maxBackoff = 1024                   // the same when it happens over and over
	slowCost   = 8                      // what a slow request counts for; a quick one takes one off
	maxDebt    = 4 * slowCost           // where it is enough
)

// A scheduler decides where the next request runs: on the goroutine that reads,
// which saves waking another one and lets answers leave in one write, or on a
// goroutine of its own, concurrently with the reader and all others.
//
//   - On the reader run requests that come quickly after each other. A few
//     that come alone gain nothing, and would need a monitor.
//   - After one that blocks the reader until the hand-off, or that sends
//     something before its answer, requests run on goroutines: 16 at first,
//     twice as many each next time, at most 1,024.
//   - So does one in nine that takes over 20 us. That is a few times what it
//     costs to wake a thread: what takes longer gains little here, and what uses
//     the processor for longer should use several of them, as it does on
//     goroutines. Tools of 30 us run concurrently but for 4 in 1,000.
//   - A thousand quick ones reset the backoff.
//
// A clock that stands still between requests, as in a testing/synctest bubble,
// tells nothing: then each request has its goroutine.
type scheduler struct {
	lastArrival time.Duration // when the last request came
	remaining   int           // how many are still to run on goroutines
	backoff     int           // how many will be, the next time
	debt        int           // of slow requests
	quickRuns   int           // requests that were quick since the last pause
}

// onReader reports whether the request that comes now is to run on the reader.
func (p *scheduler) onReader(now time.Duration) bool {
	gap := now - p.lastArrival
	p.lastArrival = now
	if gap <= 0 || gap > maxGap {
		p.remaining = max(p.remaining, warmUp)
		return false
	}
	if p.remaining > 0 {
		p.remaining--
		return false
	}
	return true
}

// record notes that a request ran on the reader, and for how long.
func (p *scheduler) record(d time.Duration) {
	if d > maxQuick {
		if p.debt += slowCost; p.debt >= maxDebt {
			p.backOff()
		}
		return
	}
	p.debt = max(p.debt-1, 0)
	if p.quickRuns++; p.quickRuns >= maxBackoff {
		p.backoff, p.quickRuns = minBackoff, 0
	}
}

// backOff has the next requests run on goroutines.
func (p *scheduler) backOff() {
	p.remaining = max(p.backoff, minBackoff)
	p.backoff = min(2*p.remaining, maxBackoff)
	p.debt, p.quickRuns = 0, 0
}
