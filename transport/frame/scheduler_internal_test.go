package frame

import (
	"testing"
	"time"
)

// run lets n requests come, gap after each other, that take as long as takes
// says if they run on the reader, and returns how many did.
func (p *scheduler) run(n int, gap time.Duration, takes func(i int) time.Duration) (here int) {
	for i := range n {
		if p.onReader(p.lastArrival + gap) {
			here++
			p.record(takes(i))
		}
	}
	return here
}

func always(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

func TestPace(t *testing.T) {
	const us = time.Microsecond
	for _, test := range []struct {
		name        string
		gap         time.Duration
		takes       func(i int) time.Duration
		least, most int // of 10,000
	}{
		{"quick", 10 * us, always(2 * us), 9990, 9995},
		{"seldom", time.Millisecond, always(2 * us), 0, 0},
		{"the clock stands still", 0, always(0), 0, 0},
		{"slow", 100 * us, always(100 * us), 20, 80},
		{"not quite quick", 30 * us, always(30 * us), 20, 80},
		{"a slow one now and then", 10 * us, func(i int) time.Duration {
			if i%20 == 0 {
				return 100 * us
			}
			return 2 * us
		}, 9990, 9995},
		{"one in four slow", 10 * us, func(i int) time.Duration {
			if i%4 == 0 {
				return 100 * us
			}
			return 2 * us
		}, 50, 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &scheduler{remaining: warmUp}
			if here := p.run(10000, test.gap, test.takes); here < test.least || here > test.most {
				t.Errorf("%d of 10,000 ran on the reader, want %d to %d", here, test.least, test.most)
			}
		})
	}
}

// The pause after one that held the reading up doubles, up to a bound, and is
// short again after enough that did not.
func TestPauses(t *testing.T) {
	p := &scheduler{}
	pause := func() (n int) {
		p.backOff()
		for !p.onReader(p.lastArrival + maxGap) {
			n++
		}
		return n
	}
	for _, want := range []int{16, 32, 64, 128, 256, 512, 1024, 1024} {
		if got := pause(); got != want {
			t.Errorf("a pause of %d, want %d", got, want)
		}
	}
	p.run(maxBackoff, maxQuick, always(maxQuick))
	if got := pause(); got != minBackoff {
		t.Errorf("a pause of %d after many good requests, want %d", got, minBackoff)
	}
}
