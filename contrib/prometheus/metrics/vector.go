package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxLabels is how many labels a metric may have.
const maxLabels = 4

// values are the values of a metric's labels.
type values [maxLabels]string

// A vector has a series of T for each combination of label values.
type vector[T any] struct {
	family Family // without samples
	fresh  func() T

	mu     sync.RWMutex
	series map[values]T
}

func (v *vector[T]) init(name, help string, kind Kind, labels []string, fresh func() T) {
	if len(labels) == 0 || len(labels) > maxLabels {
		panic(fmt.Sprintf("metrics: %s has %d labels, and may have 1 to %d", name, len(labels), maxLabels))
	}
	v.family = Family{Name: name, Help: help, Kind: kind, Labels: labels}
	v.fresh, v.series = fresh, make(map[values]T)
}

// at returns the series with these label values.
func (v *vector[T]) at(list []string) T {
	if len(list) != len(v.family.Labels) {
		panic(fmt.Sprintf("metrics: %s has %d labels, not %d", v.family.Name, len(v.family.Labels), len(list)))
	}
	var key values
	copy(key[:], list)
	v.mu.RLock()
	s, ok := v.series[key]
	v.mu.RUnlock()
	if ok {
		return s
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s, ok = v.series[key]; !ok {
		for i := range list { // the caller may reuse the memory of its arguments
			key[i] = strings.Clone(key[i])
		}
		s = v.fresh()
		v.series[key] = s
	}
	return s
}

// state is the family with a sample of each series.
func (v *vector[T]) state(sample func(T) Sample) Family {
	f := v.family
	v.mu.RLock()
	defer v.mu.RUnlock()
	for key, s := range v.series {
		out := sample(s)
		out.Values = slices.Clone(key[:len(f.Labels)])
		f.Samples = append(f.Samples, out)
	}
	slices.SortFunc(f.Samples, func(a, b Sample) int { return slices.Compare(a.Values, b.Values) })
	return f
}

// A Counter counts events, or, made by NewGauge, is a number that goes up and
// down. Its methods may be called by many goroutines at once.
type Counter struct{ v vector[*atomic.Int64] }

// NewCounter makes a counter with 1 to 4 labels. The caller keeps the number of
// their values small.
func NewCounter(name, help string, labels ...string) *Counter {
	return newCounter(name, help, KindCounter, labels)
}

// NewGauge makes a number that goes up and down.
func NewGauge(name, help string, labels ...string) *Counter {
	return newCounter(name, help, KindGauge, labels)
}

func newCounter(name, help string, kind Kind, labels []string) *Counter {
	c := new(Counter)
	c.v.init(name, help, kind, labels, func() *atomic.Int64 { return new(atomic.Int64) })
	return c
}

// Add adds n to the series with these values of the labels.
func (c *Counter) Add(n int64, labels ...string) { c.v.at(labels).Add(n) }

// Families is the counter as it is now.
func (c *Counter) Families() []Family {
	return []Family{c.v.state(func(n *atomic.Int64) Sample { return Sample{Value: float64(n.Load())} })}
}

// A Histogram counts durations. Its methods may be called by many goroutines at
// once.
type Histogram struct {
	bounds []float64
	v      vector[*histogram]
}

// NewHistogram makes a histogram with 1 to 4 labels and these buckets: upper
// bounds in seconds. It panics if they do not rise.
func NewHistogram(name, help string, buckets []float64, labels ...string) *Histogram {
	for i, b := range buckets {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= buckets[i-1] {
			panic("metrics: Buckets must rise, and be finite")
		}
	}
	h := &Histogram{bounds: slices.Clone(buckets)}
	h.v.init(name, help, KindHistogram, labels, func() *histogram {
		return &histogram{buckets: make([]atomic.Uint64, len(h.bounds)+1)}
	})
	return h
}

// Observe counts a duration under these values of the labels.
func (h *Histogram) Observe(seconds float64, labels ...string) {
	h.v.at(labels).observe(h.bounds, seconds)
}

// Families is the histogram as it is now.
func (h *Histogram) Families() []Family {
	return []Family{h.v.state(func(s *histogram) Sample { return s.sample(h.bounds) })}
}

// A histogram is one series. buckets[i] counts what is in bucket i alone; the last
// one reaches to infinity.
type histogram struct {
	buckets []atomic.Uint64
	sum     atomic.Uint64 // the bits of a float64
}

// observe counts a duration.
func (h *histogram) observe(bounds []float64, seconds float64) {
	i, _ := slices.BinarySearch(bounds, seconds)
	h.buckets[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+seconds)) {
			return
		}
	}
}

func (h *histogram) sample(bounds []float64) Sample {
	out := Sample{Sum: math.Float64frombits(h.sum.Load()), Buckets: make(map[float64]uint64, len(bounds))}
	for i := range h.buckets {
		out.Count += h.buckets[i].Load()
		if i < len(bounds) {
			out.Buckets[bounds[i]] = out.Count
		}
	}
	return out
}
