package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// An ExtensionNotification is a notification of an extension. It reaches
// Extension.OnNotification only from servers that offer the extension.
type ExtensionNotification struct {
	// Name is the notification, for example "notifications/tasks". It is none of the
	// core's, and unique among the extensions of a client.
	Name string
	// Filter is the member of the filter of a subscription that asks for it, for
	// example "taskIds". In revisions with subscriptions/listen, which are those of
	// Stateless, it is taken only for a subscription of this client of which the
	// server acknowledged that member. Sessions need none: there the extension has
	// its own way to ask for it.
	Filter string
	// Revisions are those that have it. Default: Stateless.
	Revisions Revisions
}

// A Notification is one that came for an extension. It must not be written to.
type Notification struct {
	// Client is whose server sent it.
	Client *Client
	// Subscription is what it belongs to, in revisions with subscriptions/listen;
	// nil in others.
	Subscription *Subscription
	// Method is its name. [mcp.NotifySubscriptionsAcknowledged] says that the server
	// has agreed to the subscription: what it agreed to
	// Subscription.Acknowledged tells. After the first time it says that the
	// connection was lost and is there again, so that notifications may have been
	// missed.
	Method string
	// Params are its parameters, with _meta, an object or empty.
	Params mcp.RawValue
}

// An extensionNotification is a notification with the extension that it belongs to.
type extensionNotification struct {
	ExtensionNotification

	ext *Extension
}

// coreFilters are the members of mcp.SubscriptionFilter.
var coreFilters = []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"}

// addNotification adds a notification of an extension.
func (x *extensions) addNotification(e *Extension, n ExtensionNotification) error {
	_, core := mcp.Lookup(n.Name)
	owner := x.filters[n.Filter]
	switch {
	case n.Name == "" || core:
		return fmt.Errorf("%q is no notification of an extension", n.Name)
	case x.notifications[n.Name] != nil:
		return fmt.Errorf("notification %s exists already", n.Name)
	case n.Filter == "" && revision.Set(n.Revisions).Overlaps(revision.Stateless):
		return fmt.Errorf("notification %s: the Filter that asks for it is missing", n.Name)
	case slices.Contains(coreFilters, n.Filter), owner != nil && owner != e:
		return fmt.Errorf("notification %s: Filter %s exists already", n.Name, n.Filter)
	}
	if x.notifications == nil {
		x.notifications, x.filters = make(map[string]*extensionNotification), make(map[string]*Extension)
	}
	x.notifications[n.Name] = &extensionNotification{n, e}
	if n.Filter != "" {
		x.filters[n.Filter] = e
	}
	return nil
}

// handle reports whether an extension or a subscription of one may have a handler of
// notifications.
func (x *extensions) handle() bool {
	return slices.ContainsFunc(x.list, func(e *Extension) bool { return e.OnNotification != nil || len(e.Notifications) > 0 })
}

// SubscribeExtension asks a server for notifications of an extension: members are
// what its filter adds to that of subscriptions/listen, with values that encode as
// JSON. Their names are those of Extension.Notifications. It returns when the server
// has agreed to, and fails if it agrees to none of them: with a [NoExtensionError] if
// it does not offer the extension, and with [ErrNotCapable] in revisions without
// subscriptions/listen. The subscription is renewed when the connection was lost.
//
// With a handler, what comes for the subscription goes to that in the place of
// Extension.OnNotification, as it would go there; more than one is a mistake of the
// caller.
//
// spec 2026-07-28, basic/patterns/subscriptions.
func (c *Client) SubscribeExtension(ctx context.Context, extension string, members map[string]any,
	handler ...func(ctx context.Context, n *Notification),
) (*Subscription, error) {
	s, err := c.subscribeExtension(ctx, extension, members, handler)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", extension, err)
	}
	return s, nil
}

func (c *Client) subscribeExtension(ctx context.Context, extension string, members map[string]any,
	handler []func(ctx context.Context, n *Notification),
) (*Subscription, error) {
	known := c.session()
	wanted := make(map[string]mcp.RawValue, len(members))
	for name, value := range members {
		e := c.extensions.filters[name]
		if e == nil || e.ID != extension {
			return nil, fmt.Errorf("%w: the extension of this client has no notification with the filter %q", ErrNotCapable, name)
		}
		raw, err := wire.Marshal(value)
		if err == nil {
			err = wire.Valid(raw, wire.Limits{})
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("filter %q: %w", name, err)
		case !known.facts.ListenStreams:
			return nil, fmt.Errorf("%w: revision %s has no filters", ErrNotCapable, known.facts.Version)
		case !e.offered(known):
			return nil, &NoExtensionError{extension, known.facts.Version}
		}
		wanted[name] = raw
	}
	var on func(ctx context.Context, n *Notification)
	switch {
	case len(wanted) == 0:
		return nil, errors.New("no member of a filter is given")
	case len(handler) > 1:
		return nil, fmt.Errorf("%d handlers of one subscription", len(handler))
	case len(handler) == 1:
		on = handler[0]
	}
	return c.subscribe(ctx, mcp.SubscriptionFilter{Extra: wanted}, on, func(s *Subscription) error {
		for name := range wanted {
			if s.Acknowledged(name) != nil {
				return nil
			}
		}
		return fmt.Errorf("the server agreed to none of %q", slices.Sorted(maps.Keys(wanted)))
	})
}

// Acknowledged is what the server agreed to of a member that SubscribeExtension asked
// for, in the words of the extension; nil while it agrees to nothing, which is also
// so while the connection is lost and after the end. It must not be written to.
func (s *Subscription) Acknowledged(member string) mcp.RawValue {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.acked.Extra[member]
}

// extensionsWithin is what the server of a session can tell of the members that are
// wanted.
func (x *extensions) extensionsWithin(wanted map[string]mcp.RawValue, s *session) map[string]mcp.RawValue {
	if len(wanted) == 0 || !s.facts.ListenStreams {
		return nil
	}
	within := maps.Clone(wanted)
	maps.DeleteFunc(within, func(name string, _ mcp.RawValue) bool { return !x.filters[name].offered(s) })
	return within
}

// onlyWanted drops what was not asked for, or not agreed to.
func onlyWanted(got, want map[string]mcp.RawValue) {
	maps.DeleteFunc(got, func(name string, value mcp.RawValue) bool {
		_, asked := want[name]
		return !asked || bytes.Equal(value, []byte("null"))
	})
}

// tell hands a notification to the handler of its subscription, or to that of the
// extension.
func (e *Extension) tell(c *Client, s *Subscription, m *jsonrpc.Incoming) {
	on := e.OnNotification
	if s != nil && s.on != nil {
		on = s.on
	}
	if on == nil {
		return
	}
	c.inbox.event(m, func(ctx context.Context) {
		on(ctx, &Notification{Client: c, Subscription: s, Method: m.Method, Params: m.Params.Raw()})
	})
}

// extensionAcknowledged tells the extensions whose members were agreed to.
func (cn *conn) extensionAcknowledged(l *listening, m *jsonrpc.Incoming) {
	x := cn.c.extensions
	for _, e := range x.list {
		for name := range l.acked.Extra {
			if x.filters[name] == e {
				e.tell(cn.c, l.w.sub, m)
				break
			}
		}
	}
}

// extensionNotified takes a notification of an extension, if it was asked for.
func (cn *conn) extensionNotified(n *extensionNotification, m *jsonrpc.Incoming) error {
	s := cn.session()
	switch {
	case s == nil:
		return errors.New("it came before negotiation was over")
	case !n.Revisions.include(s.facts):
		return errors.New("the revision does not have it")
	case !n.ext.offered(s):
		return errors.New("the server does not offer its extension")
	}
	meta, _ := m.Params.Object("_meta")
	sub, err := s.era.subscription(cn, n.Filter, meta)
	if err != nil {
		return err
	}
	n.ext.tell(cn.c, sub, m)
	return nil
}
