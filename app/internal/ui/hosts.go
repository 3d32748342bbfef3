package ui

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A Session is what a face needs of a session: see the methods of [host.Session].
type Session interface {
	ID() string
	Info() host.SessionInfo
	Snapshot() *host.Snapshot
	Watch(ctx context.Context, since int64) iter.Seq2[host.Record, error]
	Send(ctx context.Context, in host.Input) error
	Answer(ctx context.Context, question string, a host.Answer) error
	Cancel()
	CancelCall(call string) bool
	Compact(ctx context.Context) error
	Model() host.ModelInfo
	SetModel(m host.Model) error
	Budget() host.Budget
	SetLimit(limit host.Amount) error
	// Context is for requests to servers, so that what they ask is asked here.
	Context(ctx context.Context) context.Context
	// Fork begins a session after a record of this one, which the face leaves.
	Fork(ctx context.Context, at int64) (Session, error)
}

// A Host is what a face needs of a host: see the methods of [host.Host].
type Host interface {
	Catalog() *host.Catalog
	Settle(ctx context.Context, atMost time.Duration) *host.Catalog
	Status() []host.ServerStatus
	Retry(server string) error
	Grants(ctx context.Context) ([]host.Grant, error)
	Revoke(ctx context.Context, id string) error
	// Prompts lists the prompts of a server.
	Prompts(ctx context.Context, server string) ([]*mcp.Prompt, error)
	// Complete asks a server for values of an argument.
	Complete(ctx context.Context, server string, p *mcp.CompleteParams) (*mcp.Completion, error)
}

// OfSession makes a Session of one of a host. Its forks are opened with opts, and the
// session that was forked is closed in this process.
func OfSession(s *host.Session, opts *host.SessionOptions) Session { return &ofSession{s, opts} }

type ofSession struct {
	*host.Session
	opts *host.SessionOptions
}

// Fork opens a fork in the place of the session.
func (s *ofSession) Fork(ctx context.Context, at int64) (Session, error) {
	fork, err := s.Session.Fork(ctx, at, s.opts)
	if err != nil {
		return nil, err
	}
	return &ofSession{fork, s.opts}, s.Close()
}

// OfHost makes a Host of one.
func OfHost(h *host.Host) Host { return ofHost{h} }

type ofHost struct{ *host.Host }

// Prompts lists the prompts of a server that has some.
func (h ofHost) Prompts(ctx context.Context, server string) ([]*mcp.Prompt, error) {
	c, err := h.Client(ctx, server)
	if err != nil {
		return nil, err
	}
	if caps := c.Capabilities(); caps != nil && caps.Prompts == nil {
		return nil, nil
	}
	var list []*mcp.Prompt
	for p, err := range c.Prompts(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// Complete asks a server that can complete.
func (h ofHost) Complete(ctx context.Context, server string, p *mcp.CompleteParams) (*mcp.Completion, error) {
	c, err := h.Client(ctx, server)
	if err != nil {
		return nil, err
	}
	// A server of the first revision declares no capability for it, so that it must be asked.
	values, err := c.Complete(ctx, p)
	var rpc *jsonrpc.Error
	if errors.Is(err, client.ErrNotCapable) || errors.As(err, &rpc) && rpc.Code == mcp.CodeMethodNotFound {
		return &mcp.Completion{}, nil
	}
	return values, err
}

// ResourcesOf returns a function that lists the resources of a server of the host; of a
// server that has none it lists nothing.
func ResourcesOf(h *host.Host) func(ctx context.Context, server string) ([]*mcp.Resource, error) {
	return func(ctx context.Context, server string) ([]*mcp.Resource, error) {
		c, err := h.Client(ctx, server)
		if err != nil {
			return nil, err
		}
		if caps := c.Capabilities(); caps != nil && caps.Resources == nil {
			return nil, nil
		}
		var list []*mcp.Resource
		for r, err := range c.Resources(ctx) {
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		return list, nil
	}
}
