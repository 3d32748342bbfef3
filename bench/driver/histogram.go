package driver

import (
	"math"
	"math/bits"
	"time"
)

// A histogram counts latencies in bounded memory: each power of two of
// nanoseconds has as many steps, so that a value is known to 1/steps.
type histogram struct {
	counts [64 * steps]uint32
	n      int
}

const (
	stepBits = 5
	steps    = 1 << stepBits
)

func (h *histogram) add(d time.Duration) {
	h.counts[place(uint64(max(d, 0)))]++
	h.n++
}

// place is the index of the step that v is in. Below steps each value has one.
func place(v uint64) int {
	if v < steps {
		return int(v)
	}
	shift := bits.Len64(v) - stepBits - 1
	return (shift+1)*steps + int(v>>shift) - steps
}

// middle is the value in the middle of a step.
func middle(place int) float64 {
	if place < steps {
		return float64(place)
	}
	shift := place/steps - 1
	low := uint64(place%steps+steps) << shift
	return float64(low) + float64(uint64(1)<<shift)/2
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
}

// percentile is the latency, in microseconds, that p per cent of all do not
// exceed; 0 of none.
func (h *histogram) percentile(p float64) float64 {
	rank := int(math.Ceil(float64(h.n) * p / 100))
	seen := 0
	for i, n := range h.counts {
		if seen += int(n); n > 0 && seen >= rank {
			return middle(i) / 1000
		}
	}
	return 0
}
