package metrics

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Family is the state of one metric.
type Family struct {
	// Name and Help are as on the page.
	Name, Help string
	// Histogram says that the samples have buckets; otherwise they have a Value.
	Histogram bool
	// Labels are the names of the labels.
	Labels []string
	// Samples are in the order of their label values.
	Samples []Sample
}

// A Sample is the state of one series.
type Sample struct {
	// Values are the values of Family.Labels.
	Values []string
	// Value is that of a gauge.
	Value float64
	// Count and Sum are how many requests there were and the seconds that they
	// took together.
	Count uint64
	Sum   float64
	// Buckets are how many requests took at most so many seconds.
	Buckets map[float64]uint64
}

// Names of labels.
const (
	labelMethod   = "method"
	labelTarget   = "target"
	labelOutcome  = "outcome"
	labelRevision = "revision"
)

// Families are all metrics as they are now; those without samples too.
func (m *Metrics) Families() []Family {
	return append(
		m.families(&m.server, "mcp_server_", "the server"),
		m.families(&m.client, "mcp_client_", "the client")...,
	)
}

func (m *Metrics) families(s *side, prefix, who string) []Family {
	durations := Family{
		Name:      prefix + "request_duration_seconds",
		Help:      "How long requests took " + who + ", each round of a request by itself.",
		Histogram: true,
		Labels:    []string{labelMethod, labelTarget, labelOutcome, labelRevision},
	}
	flight := Family{
		Name:   prefix + "requests_in_flight",
		Help:   "How many requests " + who + " has under way.",
		Labels: []string{labelMethod},
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l, h := range s.series {
		durations.Samples = append(durations.Samples, m.sample(l, h))
	}
	for method, g := range s.gauges {
		flight.Samples = append(flight.Samples, Sample{Values: []string{method}, Value: float64(g.Load())})
	}
	for _, f := range []*Family{&durations, &flight} {
		slices.SortFunc(f.Samples, func(a, b Sample) int { return slices.Compare(a.Values, b.Values) })
	}
	return []Family{durations, flight}
}

func (m *Metrics) sample(l labels, h *histogram) Sample {
	out := Sample{
		Values:  []string{l.method, l.target, l.outcome, l.revision},
		Sum:     math.Float64frombits(h.sum.Load()),
		Buckets: make(map[float64]uint64, len(m.bounds)),
	}
	for i := range h.buckets {
		out.Count += h.buckets[i].Load()
		if i < len(m.bounds) {
			out.Buckets[m.bounds[i]] = out.Count
		}
	}
	return out
}

// WriteTo writes the page in Prometheus' text exposition format, version 0.0.4.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for _, f := range m.Families() {
		f.write(&b)
	}
	return b.WriteTo(w)
}

// ServeHTTP answers with the page.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page of metrics can be read, with GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = m.WriteTo(w) // the connection is closed
}

func (f *Family) write(b *bytes.Buffer) {
	if len(f.Samples) == 0 {
		return
	}
	kind := "gauge"
	if f.Histogram {
		kind = "histogram"
	}
	b.WriteString("# HELP " + f.Name + " " + f.Help + "\n# TYPE " + f.Name + " " + kind + "\n")
	for _, s := range f.Samples {
		if !f.Histogram {
			f.line(b, "", s.Values, "", s.Value)
			continue
		}
		for _, le := range sortedKeys(s.Buckets) {
			f.line(b, "_bucket", s.Values, number(le), float64(s.Buckets[le]))
		}
		f.line(b, "_bucket", s.Values, "+Inf", float64(s.Count))
		f.line(b, "_sum", s.Values, "", s.Sum)
		f.line(b, "_count", s.Values, "", float64(s.Count))
	}
}

// line writes one value. le is the bound of a bucket, or "".
func (f *Family) line(b *bytes.Buffer, suffix string, values []string, le string, value float64) {
	b.WriteString(f.Name + suffix)
	sep := byte('{')
	for i, name := range f.Labels {
		pair(b, sep, name, values[i])
		sep = ','
	}
	if le != "" {
		pair(b, sep, "le", le)
	}
	b.WriteString("} " + number(value) + "\n")
}

func pair(b *bytes.Buffer, sep byte, name, value string) {
	b.WriteByte(sep)
	b.WriteString(name + `="` + escaper.Replace(value) + `"`)
}

// escaper writes what a label value must not have as it is.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func sortedKeys(m map[float64]uint64) []float64 {
	keys := make([]float64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, cmp.Compare)
	return keys
}
