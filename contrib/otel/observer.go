package otelmcp

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// ServerObserver measures what a server's middleware does not see: sessions, and
// requests that are refused before it.
//
//	s.Observe(otelmcp.ServerObserver(nil))
func ServerObserver(o *Options) server.Observer {
	opts := o.filled()
	m := newSessions(&opts, "server", "How long sessions with clients lasted.")
	refused, err := opts.meter().Int64Counter("parley.server.refused", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that were refused before middleware ran."))
	if err != nil {
		otel.Handle(err)
		refused = noop.Int64Counter{}
	}
	var codes codeLabels
	return server.Observer{
		Refused: func(ctx context.Context, r transport.Refusal) {
			refused.Add(ctx, 1, metric.WithAttributes(refusal(r, &codes)...))
		},
		SessionOpened: func(s server.SessionInfo) { m.opened(ofSession(s.Transport, s.Version)) },
		SessionEnded: func(s server.SessionInfo, cause error) {
			kind := ""
			switch {
			case errors.Is(cause, transport.ErrClosed):
			case errors.Is(cause, transport.ErrStalled):
				kind = errorTimeout
			default:
				kind = errorOther
			}
			m.ended(ofSession(s.Transport, s.Version), time.Since(s.Opened), kind)
		},
	}
}

// ClientObserver measures the sessions of a client:
//
//	client.Options{Observers: []client.Observer{otelmcp.ClientObserver(nil)}}
func ClientObserver(o *Options) client.Observer {
	opts := o.filled()
	m := newSessions(&opts, "client", "How long sessions with servers lasted.")
	return client.Observer{
		SessionOpened: func(s client.SessionInfo) { m.opened(ofSession("", s.Version)) },
		SessionEnded: func(s client.SessionInfo, cause error) {
			kind := ""
			if !errors.Is(cause, client.ErrClosed) && !errors.Is(cause, transport.ErrClosed) {
				kind = kindOf(cause)
			}
			m.ended(ofSession("", s.Version), time.Since(s.Opened), kind)
		},
	}
}

// sessions are the instruments for sessions of one side.
type sessions struct {
	duration metric.Float64Histogram
	open     metric.Int64UpDownCounter
}

func newSessions(o *Options, side, description string) *sessions {
	open, err := o.meter().Int64UpDownCounter("parley."+side+".sessions", metric.WithUnit("{session}"),
		metric.WithDescription("Sessions that are open."))
	if err != nil {
		otel.Handle(err)
		open = noop.Int64UpDownCounter{}
	}
	return &sessions{o.histogram("mcp."+side+".session.duration", description), open}
}

func (m *sessions) opened(labels []attribute.KeyValue) {
	m.open.Add(context.Background(), 1, metric.WithAttributes(labels...))
}

// ended records the end of a session, with the kind of its error if there was one.
func (m *sessions) ended(labels []attribute.KeyValue, after time.Duration, kind string) {
	m.open.Add(context.Background(), -1, metric.WithAttributes(labels...))
	if kind != "" {
		labels = append(labels, keyError.String(kind))
	}
	m.duration.Record(context.Background(), after.Seconds(), metric.WithAttributes(labels...))
}

func ofSession(transportName, version string) []attribute.KeyValue {
	return append([]attribute.KeyValue{keyVersion.String(version)}, network(transportName)...)
}

// refusal are the attributes of a request that was refused. The peer chose its
// method.
func refusal(r transport.Refusal, codes *codeLabels) []attribute.KeyValue {
	kind := errorOther
	if codes.takes(r.Err.Code) {
		kind = code(r.Err.Code)
	}
	labels := []attribute.KeyValue{keyError.String(kind)}
	if r.Method != "" {
		method := errorOther
		if _, core := mcp.Lookup(r.Method); core {
			method = r.Method
		}
		labels = append(labels, keyMethod.String(method))
	}
	if r.Err.Limit != "" {
		labels = append(labels, keyLimit.String(r.Err.Limit))
	}
	if r.Transport != nil {
		labels = append(labels, network(r.Transport.Name)...)
	}
	return labels
}
