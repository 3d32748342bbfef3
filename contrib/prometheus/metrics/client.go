package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Client is middleware that counts the requests of a client, each once with all
// that it takes:
//
//	client.Options{Middleware: []client.Middleware{m.Client()}}
//
// A name becomes a label value once a request with it ends in another way than
// with the error that servers have for names they do not know (-32602). The
// revision is empty for requests that ended before there was one.
func (m *Metrics) Client() client.Middleware {
	return func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (res client.Result, err error) {
			s := &m.client
			method, target, outcome := s.methods.take(r.Method(), true), "", outcomes[server.OutcomeFailed]
			s.flight.Add(1, method)
			start := time.Now()
			defer func() {
				if named(r.Method()) {
					answer, _ := errors.AsType[*jsonrpc.Error](err)
					target = s.targets.take(r.Target(), answer == nil || answer.Code != jsonrpc.CodeInvalidParams)
				}
				s.flight.Add(-1, method)
				s.durations.Observe(time.Since(start).Seconds(), method, target, outcome, r.Version())
			}()
			res, err = next(ctx, r)
			outcome = outcomes[outcomeOf(res, err)]
			return res, err
		}
	}
}

// outcomeOf is how a request of a client went, in the words for servers.
func outcomeOf(res client.Result, err error) server.Outcome {
	answer, answered := errors.AsType[*jsonrpc.Error](err)
	out, tool := res.(*mcp.CallToolResult)
	switch {
	case err == nil && tool && out != nil && out.IsError:
		return server.OutcomeToolError
	case err == nil:
		return server.OutcomeOK
	case errors.Is(err, client.ErrTimeout), errors.Is(err, context.DeadlineExceeded), answered && answer.Code == mcp.CodeTimeout:
		return server.OutcomeTimedOut
	case errors.Is(err, context.Canceled), errors.Is(err, client.ErrClosed):
		return server.OutcomeCancelled
	case answered && answer.Code != mcp.CodeInternalError, errors.Is(err, client.ErrInputRefused), errors.Is(err, client.ErrNotCapable):
		return server.OutcomeRefused
	}
	return server.OutcomeFailed
}

// ClientObserver counts the sessions of a client; their transport is not known:
//
//	client.Options{Observers: []client.Observer{m.ClientObserver()}}
func (m *Metrics) ClientObserver() client.Observer {
	s := &m.client
	return client.Observer{
		SessionOpened: func(i client.SessionInfo) { s.open.Add(1, "", i.Version) },
		SessionEnded: func(i client.SessionInfo, cause error) {
			s.ended("", i.Version, time.Since(i.Opened), cause)
		},
	}
}
