package metrics

import (
	"cmp"
	"sync"
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
	server, client side

	refused       *Counter
	codes, limits names
}

// New makes metrics. It panics if the buckets do not rise.
func New(o *Options) *Metrics {
	var opts Options
	if o != nil {
		opts = *o
	}
	if len(opts.Buckets) == 0 {
		opts.Buckets = DefaultBuckets()
	}
	m := new(Metrics)
	m.server.init("mcp_server_", "the server", &opts)
	m.client.init("mcp_client_", "the client", &opts)
	m.refused = NewCounter("mcp_server_requests_refused_total",
		"How many requests were refused before middleware ran.", labelCode, labelLimit, labelMethod)
	m.codes.most, m.limits.most = maxCodes, maxLimits
	return m
}

// How many methods, codes of errors, names of limits and transports become label
// values: those of the protocol and the library, and some of extensions.
const (
	maxMethods    = 64
	maxCodes      = 16
	maxLimits     = 16
	maxTransports = 8
)

// other stands for all values of a label that have no series of their own.
const other = "other"

// A side is what is counted of servers, or of clients.
type side struct {
	methods, targets, transports names

	durations *Histogram
	flight    *Counter
	open      *Counter
	sessions  *Histogram
}

func (s *side) init(prefix, who string, o *Options) {
	s.methods.most, s.targets.most, s.transports.most = maxMethods, cmp.Or(o.MaxNames, 100), maxTransports
	s.durations = NewHistogram(prefix+"request_duration_seconds",
		"How long requests took "+who+", each round of a request by itself.",
		o.Buckets, labelMethod, labelTarget, labelOutcome, labelRevision)
	s.flight = NewGauge(prefix+"requests_in_flight", "How many requests "+who+" has under way.", labelMethod)
	s.open = NewGauge(prefix+"sessions", "How many sessions "+who+" has open.", labelTransport, labelRevision)
	s.sessions = NewHistogram(prefix+"session_duration_seconds", "How long sessions of "+who+" lasted.",
		sessionBuckets, labelTransport, labelRevision, labelOutcome)
}

// sessionBuckets are the upper bounds of durations of sessions: 1 s to a day.
var sessionBuckets = []float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}

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
