package metrics

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Options are what is not required. A nil *Options, and each zero field, means
// the default that is told.
type Options struct {
	// MaxNames is how many names of tools and prompts become label values, for
	// servers and clients each. Default 100.
	MaxNames int
	// Buckets are the upper bounds of the duration histograms in seconds,
	// rising. Default: those of OpenTelemetry's conventions for MCP, 10 ms to
	// 5 min.
	Buckets []float64
}

// DefaultBuckets are those of OpenTelemetry's conventions for MCP.
func DefaultBuckets() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

// Metrics counts requests. It is an http.Handler, the page. Its methods may be
// called by many goroutines at once; several servers and clients may share it.
type Metrics struct {
	bounds         []float64
	server, client side
}

// New makes metrics. It panics if the buckets do not rise.
func New(o *Options) *Metrics {
	var opts Options
	if o != nil {
		opts = *o
	}
	m := &Metrics{bounds: slices.Clone(opts.Buckets)}
	if len(m.bounds) == 0 {
		m.bounds = DefaultBuckets()
	}
	for i, b := range m.bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= m.bounds[i-1] {
			panic("metrics: Buckets must rise, and be finite")
		}
	}
	most := cmp.Or(opts.MaxNames, 100)
	for _, s := range []*side{&m.server, &m.client} {
		s.methods.most, s.targets.most = maxMethods, most
		s.series = make(map[labels]*histogram)
		s.gauges = make(map[string]*atomic.Int64)
		s.buckets = len(m.bounds) + 1
	}
	return m
}

// maxMethods is how many methods become label values: those of the protocol,
// and some of extensions.
const maxMethods = 64

// other stands for all values of a label that have no series of their own.
const other = "other"

// labels name a series of the histogram.
type labels struct{ method, target, outcome, revision string }

// A side is what is counted of servers, or of clients.
type side struct {
	methods, targets names
	buckets          int // with the one to infinity

	mu     sync.RWMutex
	series map[labels]*histogram
	gauges map[string]*atomic.Int64 // by method
}

// A histogram counts durations. buckets[i] counts those in bucket i alone.
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

// histogram returns the series with these labels.
func (s *side) histogram(l labels) *histogram {
	s.mu.RLock()
	h := s.series[l]
	s.mu.RUnlock()
	if h != nil {
		return h
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h = s.series[l]; h == nil {
		h = &histogram{buckets: make([]atomic.Uint64, s.buckets)}
		s.series[l] = h
	}
	return h
}

// gauge returns the number of requests of a method that are under way.
func (s *side) gauge(method string) *atomic.Int64 {
	s.mu.RLock()
	g := s.gauges[method]
	s.mu.RUnlock()
	if g != nil {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g = s.gauges[method]; g == nil {
		g = new(atomic.Int64)
		s.gauges[method] = g
	}
	return g
}

// maxName is the longest label value in bytes: names of tools have at most half
// of it.
const maxName = 256

// names are the values of a label that have series of their own: the first ones.
type names struct {
	most int

	mu    sync.RWMutex
	known map[string]struct{}
}

// take returns name if it is known, or can be made known because there is room
// and add is set; otherwise "other". What is no UTF-8 would break the whole page.
func (n *names) take(name string, add bool) string {
	if len(name) > maxName || !utf8.ValidString(name) {
		return other
	}
	n.mu.RLock()
	_, known := n.known[name]
	full := len(n.known) >= n.most
	n.mu.RUnlock()
	switch {
	case known:
		return name
	case full || !add:
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known = n.known[name]; known {
		return name
	}
	if len(n.known) >= n.most {
		return other
	}
	if n.known == nil {
		n.known = make(map[string]struct{})
	}
	n.known[name] = struct{}{}
	return name
}
