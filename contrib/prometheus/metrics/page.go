package metrics

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Family is the state of one metric.
type Family struct {
	// Name and Help are as on the page.
	Name, Help string
	// Kind says what the samples are.
	Kind Kind
	// Labels are the names of the labels.
	Labels []string
	// Samples are in the order of their label values.
	Samples []Sample
}

// A Kind is a kind of metric, under the name that Prometheus has for it.
type Kind string

// The kinds of metrics. The samples of a histogram have buckets, the others a
// Value.
const (
	KindGauge     Kind = "gauge"
	KindCounter   Kind = "counter"
	KindHistogram Kind = "histogram"
)

// A Sample is the state of one series.
type Sample struct {
	// Values are the values of Family.Labels.
	Values []string
	// Value is that of a gauge or counter.
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

	labelCode      = "code"
	labelLimit     = "limit"
	labelTransport = "transport"
)

// Families are all metrics as they are now; those without samples too.
func (m *Metrics) Families() []Family {
	return families(m.server.durations, m.server.flight, m.refused, m.server.open, m.server.sessions,
		m.client.durations, m.client.flight, m.client.open, m.client.sessions)
}

// A Source is what a page shows: Metrics, or a Counter or Histogram of the
// program's own.
type Source interface{ Families() []Family }

func families(sources ...Source) []Family {
	var out []Family
	for _, s := range sources {
		out = append(out, s.Families()...)
	}
	return out
}

// A Page is an http.Handler that shows several sources.
type Page []Source

// WriteTo writes the page in Prometheus' text exposition format, version 0.0.4.
func (p Page) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for _, f := range families(p...) {
		f.write(&b)
	}
	return b.WriteTo(w)
}

// WriteTo writes the page, as that of Page does.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) { return Page{m}.WriteTo(w) }

// ServeHTTP answers with the page.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { Page{m}.ServeHTTP(w, r) }

// ServeHTTP answers with the page.
func (p Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page of metrics can be read, with GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = p.WriteTo(w) // the connection is closed
}

func (f *Family) write(b *bytes.Buffer) {
	if len(f.Samples) == 0 {
		return
	}
	b.WriteString("# HELP " + f.Name + " " + f.Help + "\n# TYPE " + f.Name + " " + string(f.Kind) + "\n")
	for _, s := range f.Samples {
		if f.Kind != KindHistogram {
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
		sep = ','
	}
	if sep == ',' {
		b.WriteByte('}')
	}
	b.WriteString(" " + number(value) + "\n")
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
