package prommcp

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/contrib/prometheus/metrics"
	"github.com/parley-mcp/parley/server"
)

// Server is middleware that counts the requests of a server in a registry; nil
// is prometheus.DefaultRegisterer. Several servers may count in one registry.
// It panics if the registry has metrics of these names from elsewhere.
func Server(reg prometheus.Registerer) server.Middleware { return in(reg).Server() }

// ServerObserver counts in a registry what a server's middleware does not see:
// requests that are refused before it, and sessions. See Server.
//
//	s.Observe(prommcp.ServerObserver(nil))
func ServerObserver(reg prometheus.Registerer) server.Observer { return in(reg).ServerObserver() }

// Client is middleware that counts the requests of a client in a registry; see
// Server.
//
//	client.Options{Middleware: []client.Middleware{prommcp.Client(nil)}}
func Client(reg prometheus.Registerer) client.Middleware { return in(reg).Client() }

// ClientObserver counts the sessions of a client in a registry; see Server.
func ClientObserver(reg prometheus.Registerer) client.Observer { return in(reg).ClientObserver() }

// Register gives metrics that were made with options of their own to a registry.
// The error is that of the registry.
func Register(reg prometheus.Registerer, m *metrics.Metrics) error {
	return orDefault(reg).Register(newCollector(m))
}

func orDefault(reg prometheus.Registerer) prometheus.Registerer {
	if reg == nil {
		return prometheus.DefaultRegisterer
	}
	return reg
}

// in returns the metrics of a registry, new ones if it has none.
func in(reg prometheus.Registerer) *metrics.Metrics {
	m := metrics.New(nil)
	err := Register(reg, m)
	if err == nil {
		return m
	}
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if c, ok := there.ExistingCollector.(*collector); ok {
			return c.metrics
		}
	}
	panic(fmt.Sprintf("prommcp: %v", err))
}

// A collector shows metrics to a registry.
type collector struct {
	metrics *metrics.Metrics
	descs   map[string]*prometheus.Desc // by the name of the family
}

func newCollector(m *metrics.Metrics) *collector {
	c := &collector{m, make(map[string]*prometheus.Desc)}
	for _, f := range m.Families() {
		c.descs[f.Name] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	return c
}

// Describe names the metrics, which are always the same.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect gives the metrics as they are now.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, f := range c.metrics.Families() {
		for _, s := range f.Samples {
			switch f.Kind {
			case metrics.KindHistogram:
				out <- prometheus.MustNewConstHistogram(c.descs[f.Name], s.Count, s.Sum, s.Buckets, s.Values...)
			case metrics.KindCounter:
				out <- prometheus.MustNewConstMetric(c.descs[f.Name], prometheus.CounterValue, s.Value, s.Values...)
			default:
				out <- prometheus.MustNewConstMetric(c.descs[f.Name], prometheus.GaugeValue, s.Value, s.Values...)
			}
		}
	}
}
