package dev

import (
	"context"
	"encoding/json"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// listen has a subscription go on at each process that becomes the current one. The client learns
// that everything may have changed, in the place of what the further processes agree to: that is the
// same, since the servers of this package declare all that can be subscribed to. It learns it also if
// the first process of its link had ended before it subscribed.
func (l *link) listen(ctx context.Context, in *jsonrpc.Incoming) (*jsonrpc.Incoming, error) {
	for again := false; ; again = true {
		g, err := l.r.take(ctx, "")
		if err != nil {
			return nil, err
		}
		g.done() // a subscription keeps no process from ending
		out := &responder{link: l, id: in.ID}
		if again || g != l.first { // what was read before this process came may be old
			out.notice = func(m *jsonrpc.Incoming) []*jsonrpc.Incoming {
				switch {
				case m.Method != mcp.NotifySubscriptionsAcknowledged:
					return []*jsonrpc.Incoming{m}
				case again:
					return changes(in)
				}
				return append([]*jsonrpc.Incoming{m}, changes(in)...)
			}
		}
		answer, err := l.serve(ctx, g, in, out)
		if ctx.Err() != nil || l.life.Err() != nil {
			return answer, err
		}
		select {
		case <-g.ending:
		default:
			return answer, err
		}
	}
}

// changes are the notifications that everything which a subscription is about may have changed.
func changes(in *jsonrpc.Incoming) []*jsonrpc.Incoming {
	var p mcp.ListenParams
	raw, _ := in.Params.Member("notifications")
	if err := json.Unmarshal(raw, &p.Notifications); err != nil {
		return nil // a server has agreed to it before
	}
	tag := mcp.NotificationBase{Meta: mcp.NotificationMeta{SubscriptionID: in.ID}}
	var list []*jsonrpc.Incoming
	add := func(method string, params any) {
		if m, err := parsed(&jsonrpc.Outgoing{Method: method, Params: jsonrpc.JSON(params)}); err == nil {
			list = append(list, m)
		}
	}
	for _, each := range []struct {
		method string
		wanted bool
	}{
		{mcp.NotifyToolsListChanged, p.Notifications.ToolsListChanged},
		{mcp.NotifyPromptsListChanged, p.Notifications.PromptsListChanged},
		{mcp.NotifyResourcesListChanged, p.Notifications.ResourcesListChanged},
	} {
		if each.wanted {
			add(each.method, &tag)
		}
	}
	for _, uri := range p.Notifications.ResourceSubscriptions {
		add(mcp.NotifyResourcesUpdated, &mcp.ResourceUpdatedParams{NotificationBase: tag, URI: uri})
	}
	return list
}
