package server

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// subscribe serves resources/subscribe of the handshake era.
//
// spec 2025-11-25, server/resources. SEC-RES-4: subscriptions are limited.
func (c *Call) subscribe(p *mcp.SubscribeParams) (Result, error) {
	found, ok := c.find(p.URI)
	if !ok {
		return nil, c.notFound(p.URI)
	}
	if err := c.granted(found.scopes); err != nil {
		return nil, err
	}
	f := c.session.feed
	n, has := f.wants(topicURI + p.URI)
	if !has && over(n+1, c.srv.limits.MaxSubscriptions) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "more than %d subscriptions in one session (Limits.MaxSubscriptions); unsubscribe from some first", c.srv.limits.MaxSubscriptions)
	}
	f.follow(p.URI, c.watch)
	subscribed := has
	defer func() {
		if !subscribed { // what OnSubscribe was called with panicked
			f.drop(topicURI + p.URI)
		}
	}()
	res, err := c.subscribing([]string{p.URI}, func() (Result, error) { return &mcp.EmptyResult{}, nil })
	subscribed = true
	return res, err
}

// OnSubscribe has fn called before a client is told that it is subscribed to resources of the
// server, with their URIs as they are there, also where the server is mounted in another: for
// what must have begun by then, other than what [ResourceOptions].Watch does at its own time. fn may
// wait, until ctx ends; nil, or release, which is called when the request of the subscription has
// ended: that of resources/subscribe with its answer, that of subscriptions/listen when the client
// listens no more. A panic of either is the end of the request with an error, and the releases of
// others are called all the same. fn is called by many goroutines. Several functions are called one
// after the other, in the order of the calls of OnSubscribe, and their releases in the opposite one.
// OnSubscribe panics after the first request.
func (s *Server) OnSubscribe(fn func(ctx context.Context, uris []string) (release func())) {
	s.mustBeNew("OnSubscribe")
	s.onSubscribe = append(s.onSubscribe, fn)
}

// watchesSubscriptions reports whether OnSubscribe was called, here or where something is mounted from.
func (s *Server) watchesSubscriptions() bool {
	return len(s.onSubscribe) > 0 || slices.ContainsFunc(s.mounts, func(m *mount) bool { return m.srv.watchesSubscriptions() })
}

// subscribing runs then while the servers that resources belong to know that the caller subscribes to
// them.
func (c *Call) subscribing(uris []string, then func() (Result, error)) (Result, error) {
	if len(uris) > 0 && c.srv.watchesSubscriptions() {
		for s, uris := range c.byServer(uris) {
			for _, fn := range s.onSubscribe {
				if release := fn(c, uris); release != nil {
					defer release() // also if another one panics
				}
			}
		}
	}
	return then()
}

// byServer sorts the URIs of resources by the servers that they belong to and whose OnSubscribe was
// called, with the URIs that they have there.
func (c *Call) byServer(uris []string) map[*Server][]string {
	own := make(map[*Server][]string)
	for _, uri := range uris {
		f, ok := c.find(uri)
		if !ok {
			continue
		}
		for _, p := range f.at {
			if len(p.srv.onSubscribe) == 0 {
				continue
			}
			// What mounting put in front of the URI on its way from there.
			if there, ok := unmounted(strings.TrimSuffix(f.at[len(f.at)-1].uris, p.uris), uri); ok {
				own[p.srv] = append(own[p.srv], there)
			}
		}
	}
	return own
}

// unsubscribe serves resources/unsubscribe of the handshake era. Ending what
// was not begun is no error: the outcome is what the client wanted.
func (c *Call) unsubscribe(p *mcp.UnsubscribeParams) (Result, error) {
	c.session.feed.drop(topicURI + p.URI)
	return &mcp.EmptyResult{}, nil
}

// errUnlistened ends a subscription in good order.
var errUnlistened = errors.New("subscription ended by the server")

// listen serves subscriptions/listen: it acknowledges what it will send, sends
// it, and answers when the server ends the subscription.
//
// spec 2026-07-28, basic/patterns/subscriptions: the acknowledgement "MUST" be
// the first message of the subscription.
func (c *Call) listen(p *mcp.ListenParams) (Result, error) {
	if c.x.AnswerOnly {
		return nil, mcp.NewError(mcp.CodeInvalidRequest, "subscriptions/listen is answered by an event stream; name text/event-stream in the Accept header, too")
	}
	if most, size := c.srv.maxListen(), len(c.x.In.Params.Raw()); over(size, most) {
		return nil, mcp.NewError(mcp.CodeInvalidParams,
			"params of subscriptions/listen have %d bytes, and may have %d; watch fewer resources in one subscription, and leave large icons and metadata out", size, most)
	}
	if err := c.srv.hub.enlist(c); err != nil {
		return nil, err
	}
	defer c.srv.hub.unlist(c)
	f := newFeed(c.srv, c.x.Out, c)
	defer f.close()
	f.hold() // it hears of changes at once, and tells them after the acknowledgement
	c.srv.hub.add(f)
	ack, err := c.accept(f, &p.Notifications)
	if err != nil {
		return nil, err
	}
	return c.subscribing(ack.ResourceSubscriptions, func() (Result, error) { return c.listening(f, ack) })
}

// listening acknowledges a subscription, and sends what it is for until it ends.
func (c *Call) listening(f *feed, ack *mcp.SubscriptionFilter) (Result, error) {
	tag := mcp.NotificationBase{Meta: mcp.NotificationMeta{SubscriptionID: c.ID()}}
	params := &mcp.AcknowledgedParams{NotificationBase: tag, Notifications: *ack}
	if err := c.notify(c, mcp.NotifySubscriptionsAcknowledged, params); err != nil {
		return nil, err
	}
	f.release()
	var over <-chan struct{} // nil, which never ends, without a connection
	if c.session != nil {
		over = c.session.inputEnded()
	}
	select {
	case <-c.Done():
		if cause := context.Cause(c); !errors.Is(cause, context.DeadlineExceeded) {
			return nil, cause
		}
		// The time that the caller was given, such as that of its token: with
		// another one it may subscribe anew.
	case <-f.grown:
		// The server has a list now that the subscription was to tell of: the client
		// subscribes again, after it has learned of that.
	case <-over:
	case <-c.x.Ending:
	case <-c.srv.done:
	}
	f.close() // no notice comes after the end
	return c.unlisten()
}

// maxListen is the most bytes of the params of a subscription, which are kept for
// as long as it lasts: what a handshake may have, and a kilobyte for each
// resource; Unlimited if their number is.
func (s *Server) maxListen() int {
	n := s.limits.MaxSubscriptions
	if n < 0 || n > math.MaxInt>>11 {
		return Unlimited
	}
	return maxHandshake + n<<10
}

// unlisten ends a subscription from our side. Ruling 24: where all share one
// channel the client is told with notifications/cancelled too.
func (c *Call) unlisten() (Result, error) {
	if c.session != nil && c.session.conn.Shared() {
		params := &mcp.CancelledParams{RequestID: c.ID(), Reason: errUnlistened.Error()}
		if err := c.x.Out.Send(c, &jsonrpc.Outgoing{Method: mcp.NotifyCancelled, Params: jsonrpc.JSON(params)}); err != nil {
			return nil, err
		}
	}
	res := &mcp.ListenResult{}
	res.Meta.SubscriptionID = c.ID()
	return res, nil
}

// accept makes a feed want what the filter asks for and the server has. It
// returns what is acknowledged: what exists and the caller may read (ruling 24).
// It refuses all if a scope is lacking, so that the client can ask for it.
func (c *Call) accept(f *feed, want *mcp.SubscriptionFilter) (*mcp.SubscriptionFilter, error) {
	s := c.srv
	if over(len(want.ResourceSubscriptions), s.limits.MaxSubscriptions) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "more than %d resourceSubscriptions in one subscription (Limits.MaxSubscriptions)", s.limits.MaxSubscriptions)
	}
	ack := &mcp.SubscriptionFilter{}
	for _, l := range []struct {
		want  bool
		offer string
		topic string
		ack   *bool
	}{
		{want.ToolsListChanged, mcp.CapTools, topicTools, &ack.ToolsListChanged},
		{want.PromptsListChanged, mcp.CapPrompts, topicPrompts, &ack.PromptsListChanged},
		{want.ResourcesListChanged, mcp.CapResources, topicResources, &ack.ResourcesListChanged},
	} {
		switch {
		case !l.want:
		case s.offers(c.facts, l.offer):
			f.want(l.topic)
			*l.ack = true
		default:
			f.lack(l.topic, func() bool { return s.offers(c.facts, l.offer) })
		}
	}
	var needed []string // scopes
	for _, uri := range want.ResourceSubscriptions {
		if _, has := f.wants(topicURI + uri); has {
			continue
		}
		found, ok := c.find(uri)
		if !ok {
			continue
		}
		needed = append(needed, found.scopes...)
		if c.granted(found.scopes) == nil {
			f.follow(uri, c.watch)
			ack.ResourceSubscriptions = append(ack.ResourceSubscriptions, uri)
		}
	}
	slices.Sort(needed)
	if err := c.granted(slices.Compact(needed)); err != nil {
		return nil, err
	}
	return ack, c.acceptExtra(f, want, ack)
}

// enlist counts a subscription in, or refuses it.
func (h *hub) enlist(c *Call) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, anonymous := c.limitKey(), c.Principal().Anonymous()
	most := h.srv.limits.MaxListens
	if anonymous {
		most = h.srv.limits.MaxAnonymousListens
	}
	if over(h.listens[key]+1, most) {
		return tooManyListens(anonymous, most)
	}
	h.listens[key]++
	return nil
}

func (h *hub) unlist(c *Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := c.limitKey()
	if h.listens[key]--; h.listens[key] == 0 {
		delete(h.listens, key)
	}
}
