package driver

import (
	"math"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var h histogram
	if got := h.percentile(50); got != 0 {
		t.Errorf("of none: %v", got)
	}
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	for p, want := range map[float64]float64{1: 10, 50: 500, 99: 990, 100: 1000} {
		if got := h.percentile(p); math.Abs(got-want) > want/steps {
			t.Errorf("p%v: %v µs, want %v", p, got, want)
		}
	}
}

// Each value is known to one part in steps, over the whole range.
func TestPlace(t *testing.T) {
	last := -1
	for _, v := range []uint64{0, 1, 31, 32, 33, 63, 64, 65, 1000, 1 << 20, 1<<20 + 12345, 1 << 40, math.MaxInt64} {
		p := place(v)
		if p < last {
			t.Errorf("place of %d is %d, before that of a smaller value", v, p)
		}
		last = p
		if got := middle(p); math.Abs(got-float64(v)) > float64(v)/steps {
			t.Errorf("%d is counted as %v", v, got)
		}
	}
}

func TestMergeHistograms(t *testing.T) {
	var a, b histogram
	a.add(time.Millisecond)
	b.add(3 * time.Millisecond)
	b.add(5 * time.Millisecond)
	a.merge(&b)
	if got := a.percentile(50); a.n != 3 || math.Abs(got-3000) > 100 {
		t.Errorf("%d values, median %v µs", a.n, got)
	}
}
