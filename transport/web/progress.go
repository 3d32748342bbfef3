package web

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// A RequestProgress records how far a client gets with one HTTP request, so that a failure says
// whether the server may have carried it out. It must not be copied.
type RequestProgress struct {
	trace        httptrace.ClientTrace
	asked, wrote atomic.Bool
}

// Trace returns the context for the request. It is called once.
func (p *RequestProgress) Trace(ctx context.Context) context.Context {
	p.trace.GetConn = func(string) {
		p.asked.Store(true)
		p.wrote.Store(false) // net/http only sends again what cannot have been carried out
	}
	p.trace.WroteHeaders = func() { p.wrote.Store(true) }
	return httptrace.WithClientTrace(ctx, &p.trace)
}

// Unsent reports whether err, the failure of the request, means that it was not sent: no
// connection was made, by the address, by TLS or through a proxy; or a RoundTripper says so by an
// error with a method NotRun that returns true. One that says nothing gets no benefit of the doubt.
func (p *RequestProgress) Unsent(err error) bool {
	var refused interface{ NotRun() bool }
	if errors.As(err, &refused) && refused.NotRun() {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return p.asked.Load() && !p.wrote.Load() || ok && op.Op == "dial"
}
