package frame

import "time"

// What a pace goes by; see there.
const (
	near     = 250 * time.Microsecond // from one request to the next, while they come quickly
	quick    = 20 * time.Microsecond  // what a request may take that runs on the reader
	warmUp   = 8                      // requests that have to come quickly before one runs on the reader
	minPause = 16                     // requests on goroutines of their own after one that did not fit
	maxPause = 1024                   // the same when it happens over and over
	owed     = 8                      // what a slow request counts for; a quick one takes one off
	maxOwed  = 4 * owed               // where it is enough
)

// A pace decides where the next request runs: on the goroutine that reads,
// which saves waking another one and lets answers gather, or on a goroutine of
// its own, beside the reading and all others.
//
//   - On the reader run requests that come quickly after each other. A few
//     that come alone gain nothing, and would need watching (see watch).
//   - One that holds the reading up until it is handed on, or that sends
//     something before its answer, sends those after it to goroutines: 16 at
//     first, twice as many each next time, at most 1,024.
//   - So does one in nine that takes over 20 us. That is a few times what it
//     costs to wake a thread: what takes longer gains little here, and what uses
//     the processor for longer should use several of them, as it does on
//     goroutines. Tools of 30 us run side by side but for 4 in 1,000.
//   - A thousand that fit make the pauses short again.
//
// A clock that stands still between requests, as in a testing/synctest bubble,
// tells nothing: then each request has its goroutine.
type pace struct {
	last  time.Duration // when the last request came
	wait  int           // how many are still to run on goroutines
	pause int           // how many will be, the next time
	debt  int           // of slow requests
	fit   int           // requests that were quick since the last pause
}

// here reports whether the request that comes now is to run on the reader.
func (p *pace) here(now time.Duration) bool {
	gap := now - p.last
	p.last = now
	if gap <= 0 || gap > near {
		p.wait = max(p.wait, warmUp)
		return false
	}
	if p.wait > 0 {
		p.wait--
		return false
	}
	return true
}

// took notes that a request ran on the reader, and for how long.
func (p *pace) took(d time.Duration) {
	if d > quick {
		if p.debt += owed; p.debt >= maxOwed {
			p.rest()
		}
		return
	}
	p.debt = max(p.debt-1, 0)
	if p.fit++; p.fit >= maxPause {
		p.pause, p.fit = minPause, 0
	}
}

// rest has the next requests run on goroutines.
func (p *pace) rest() {
	p.wait = max(p.pause, minPause)
	p.pause = min(2*p.wait, maxPause)
	p.debt, p.fit = 0, 0
}
