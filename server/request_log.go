package server

import (
	"context"
	"log/slog"

	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// RequestLogs returns a slog.Handler that says, in each record whose context
// belongs to a request, which request that is, and hands the record to h:
//
//	slog.SetDefault(slog.New(server.RequestLogs(slog.NewTextHandler(os.Stderr, nil))))
//
// so that slog.InfoContext(ctx, "opened") in a handler writes
//
//	level=INFO msg=opened mcp.method=tools/call mcp.target=open mcp.id=7 mcp.revision=… mcp.transport=stdio mcp.principal=local
//
// The group mcp has: method, target, id, revision, transport, session,
// principal (the subject, or "@" and the address of an anonymous caller), client
// (of OAuth) and round, each if there is one. session is a digest
// (Call.SessionRef), since a session's id is a key to it. Arguments are not
// there. A server's own logger and LogHandler do this by themselves.
func RequestLogs(h slog.Handler) slog.Handler { return &requestLogs{base: h, now: h} }

type requestLogs struct {
	base slog.Handler // outside all groups that are open
	// open are the groups since base, and the attributes in them.
	open []func(slog.Handler) slog.Handler
	now  slog.Handler // base within open
}

// describedKey is in the context of a record that says its request already.
type describedKey struct{}

func (h *requestLogs) Enabled(ctx context.Context, l slog.Level) bool { return h.now.Enabled(ctx, l) }

func (h *requestLogs) Handle(ctx context.Context, r slog.Record) error {
	c := CallFrom(ctx)
	if c == nil || ctx.Value(describedKey{}) != nil {
		return h.now.Handle(ctx, r)
	}
	ctx = context.WithValue(ctx, describedKey{}, true)
	request := slog.Attr{Key: "mcp", Value: slog.GroupValue(c.logAttrs()...)}
	if len(h.open) == 0 {
		r = r.Clone()
		r.AddAttrs(request)
		return h.base.Handle(ctx, r)
	}
	within := h.base.WithAttrs([]slog.Attr{request})
	for _, f := range h.open {
		within = f(within)
	}
	return within.Handle(ctx, r)
}

func (h *requestLogs) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	if len(h.open) == 0 {
		return RequestLogs(h.base.WithAttrs(attrs))
	}
	return h.with(func(in slog.Handler) slog.Handler { return in.WithAttrs(attrs) })
}

func (h *requestLogs) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(func(in slog.Handler) slog.Handler { return in.WithGroup(name) })
}

func (h *requestLogs) with(f func(slog.Handler) slog.Handler) slog.Handler {
	return &requestLogs{base: h.base, open: append(h.open[:len(h.open):len(h.open)], f), now: f(h.now)}
}

// logAttrs say which request it is.
func (c *Call) logAttrs() []slog.Attr {
	attrs := make([]slog.Attr, 0, 9)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("method", clip(c.Method()))
	add("target", clip(c.target))
	add("id", clip(c.ID().String()))
	if c.facts != nil {
		add("revision", c.facts.Version)
	}
	add("transport", c.Transport())
	add("session", c.SessionRef())
	switch p := c.Principal(); {
	case p == nil:
	case p == principal.Local:
		add("principal", p.Subject)
	case p.Anonymous():
		add("principal", p.LimitKey())
	default:
		add("principal", clip(p.Subject))
		add("client", clip(p.Client))
	}
	if round := c.Round(); round > 0 {
		attrs = append(attrs, slog.Int("round", round))
	}
	return attrs
}

// SessionRef names the session that the request came in, for logs and traces: a
// digest of SessionID (transport.SessionRef). It is "" where SessionID is.
func (c *Call) SessionRef() string { return transport.SessionRef(c.SessionID()) }
