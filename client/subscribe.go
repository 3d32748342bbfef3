package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// maxSubscriptions is how many resources one subscription may watch.
const maxSubscriptions = 1024

// errWatchEnded says that the server ended a subscription in good order.
var errWatchEnded = errors.New("the server ended the subscription")

// A Subscription watches resources, or what an extension tells of, until it is closed,
// also over lost connections: it is renewed by itself, and Options.OnResourceUpdated
// is told about each resource then, because changes may have been missed. An extension
// is told of the acknowledgement.
type Subscription struct {
	w    *watch
	on   func(ctx context.Context, n *Notification) // instead of Extension.OnNotification, or nil
	stop context.CancelFunc
}

// Subscribe watches resources. It returns when the server has agreed to, and
// fails if it agrees to none: with [ErrNotCapable] if it offers no
// subscriptions. Changes are told to Options.OnResourceUpdated.
func (c *Client) Subscribe(ctx context.Context, uris ...string) (*Subscription, error) {
	if len(uris) == 0 || len(uris) > maxSubscriptions {
		return nil, fmt.Errorf("subscribe: between 1 and %d resources, not %d", maxSubscriptions, len(uris))
	}
	if err := c.offers(ctx, mcp.CapResourcesSubscribe); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	wanted := slices.Clone(uris)
	slices.Sort(wanted)
	s, err := c.subscribe(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: slices.Compact(wanted)}, nil, func(s *Subscription) error {
		if len(s.URIs()) == 0 {
			return fmt.Errorf("the server agreed to watch none of %q", uris)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return s, nil
}

// subscribe starts a subscription and waits until the server has agreed; enough says
// why what it agreed to is too little.
func (c *Client) subscribe(ctx context.Context, filter mcp.SubscriptionFilter, on func(context.Context, *Notification),
	enough func(s *Subscription) error,
) (*Subscription, error) {
	s, err := c.watch(filter, on)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.awaiting(ctx, c.opts.CallTimeout)
	defer cancel()
	if err = s.w.wait(ctx); err == nil {
		err = enough(s)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// URIs are the resources that the server agreed to watch.
func (s *Subscription) URIs() []string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return slices.Clone(s.w.acked.ResourceSubscriptions)
}

// Close ends the subscription and returns when it is over.
func (s *Subscription) Close() error {
	s.stop()
	<-s.w.done
	return nil
}

// watchLists watches the lists that handlers were given for, if the server
// tells about any. It waits a moment for the server to agree, so that changes
// after Connect are not missed; a server that does not agree is no error.
func (c *Client) watchLists(ctx context.Context) {
	filter := mcp.SubscriptionFilter{
		ToolsListChanged:     c.opts.OnToolsChanged != nil,
		PromptsListChanged:   c.opts.OnPromptsChanged != nil,
		ResourcesListChanged: c.opts.OnResourcesChanged != nil,
	}
	if empty(&filter) {
		return
	}
	s, err := c.watch(filter, nil)
	if err != nil {
		return
	}
	ctx, cancel := c.awaiting(ctx, c.opts.DiscoverProbe)
	defer cancel()
	if err := s.w.wait(ctx); err != nil {
		c.log.Warn("changes of lists are not told yet", "err", err)
	}
}

// A watch is a subscription that outlives connections.
type watch struct {
	filter mcp.SubscriptionFilter
	sub    *Subscription
	ready  chan struct{} // closed when the server agreed, or never will
	done   chan struct{} // closed when the watch is over

	mu    sync.Mutex
	told  bool // ready is closed
	acked mcp.SubscriptionFilter
	err   error // why it failed or, until the server agrees, why it refused last
}

// A listening is a watch on one connection of the stateless era.
type listening struct {
	w     *watch
	end   context.CancelCauseFunc
	acked *mcp.SubscriptionFilter // nil until acknowledged; conn.mu is held
}

// watch starts a watch, which lives until the subscription or the client is
// closed.
func (c *Client) watch(filter mcp.SubscriptionFilter, on func(context.Context, *Notification)) (*Subscription, error) {
	w := &watch{filter: filter, ready: make(chan struct{}), done: make(chan struct{})}
	ctx, stop := context.WithCancel(c.pausing(c.ctx))
	w.sub = &Subscription{w: w, on: on, stop: stop}
	if !c.spawn(func() { c.keepWatching(ctx, w) }) {
		stop()
		return nil, ErrClosed
	}
	return w.sub, nil
}

// keepWatching renews a watch on each new connection, and when the server
// ends it, with growing pauses (ruling 24).
func (c *Client) keepWatching(ctx context.Context, w *watch) {
	defer close(w.done)
	pause, refusals := firstRetryDelay, 0
	for {
		began := time.Now()
		err := c.guarded("middleware", func() error { return c.watchOnce(ctx, w) })
		if ctx.Err() != nil {
			w.fail(context.Cause(ctx))
			return
		}
		var refusal *watchRefusedError
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrDisconnected) || errors.As(err, &refusal) || w.neverAccepted() && (errors.Is(err, transport.ErrDenied) || errors.Is(err, ErrPanicked)) {
			c.log.Info("a watch ended", "err", err)
			w.fail(err)
			return
		}
		if time.Since(began) > maxRetryDelay {
			pause, refusals = firstRetryDelay, 0
		}
		after := retryDelay(err)
		if mayAcceptLater(err) {
			refusals++
			var failed *RetryError // of an era that repeats its requests by itself
			enough := errors.As(err, &failed) || refusals > c.opts.Retries || after > longestTold
			if failed == nil {
				failed = &RetryError{Tries: refusals, RetryAfter: after, Err: err}
			}
			if w.refused(failed, enough) {
				return
			}
			if refusals == 1 {
				c.log.Warn("the server does not let this client watch now; it will be asked again", "err", err)
			}
		}
		c.log.Debug("a watch will be renewed", "err", err, "after", max(pause, after))
		if sleep(ctx, max(after, pause)+rand.N(pause/4)) == nil {
			pause = min(2*pause, maxRetryDelay)
		}
	}
}

// watchOnce watches until something ends it.
func (c *Client) watchOnce(ctx context.Context, w *watch) error {
	cn, err := c.live(ctx)
	if err != nil {
		return err
	}
	s := cn.session()
	err = s.era.hold(ctx, cn, w)
	var refusal *jsonrpc.Error
	if errors.Is(err, transport.ErrDenied) || mayAcceptLater(err) {
		return err
	}
	if isCut(err) || !errors.As(err, &refusal) { // an error of the server in it is about the session that it has lost
		c.recheck(ctx, cn, s, err)
		return err
	}
	if refusal.Code == mcp.CodeUnsupportedVersion && offeredVersions(refusal) != nil && c.renegotiate(ctx, cn, s, refusal) == nil {
		return err
	}
	if c.recheck(ctx, cn, s, refusal) {
		return err
	}
	return &watchRefusedError{err}
}

// mayAcceptLater reports whether a server that refused a watch may agree to it later.
func mayAcceptLater(err error) bool {
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) && (refusal.Code == mcp.CodeTimeout || refusal.Code == mcp.CodeShuttingDown) {
		return true
	}
	return refused(err, func() bool { return true })
}

// A watchRefusedError says that the server will never agree to a watch.
type watchRefusedError struct{ err error }

func (e *watchRefusedError) Error() string { return e.err.Error() }
func (e *watchRefusedError) Unwrap() error { return e.err }

// wait returns when the server agreed, or an error when it will not.
func (w *watch) wait(ctx context.Context) error {
	select {
	case <-w.ready:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), w.err)
	}
	return context.Cause(ctx)
}

// refused notes that the server refused the watch for now. It reports whether
// that ends the watch: enough tries end one that the server never agreed to. Those for
// lists go on: nothing would start them again.
func (w *watch) refused(err error, enough bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told {
		return false
	}
	w.err = err
	if !enough || len(w.filter.ResourceSubscriptions)+len(w.filter.Extra) == 0 {
		return false
	}
	w.told = true
	close(w.ready)
	return true
}

// acknowledged notes what the server agreed to. When it did so before, what
// is watched may have changed in between.
func (w *watch) acknowledged(c *Client, filter *mcp.SubscriptionFilter) {
	w.mu.Lock()
	w.acked = *filter
	again := w.told
	if !again {
		w.told, w.err = true, nil
		close(w.ready)
	}
	w.mu.Unlock()
	if !again {
		return
	}
	// Also the lists of a server that never tells: after a new start it may
	// have others.
	for _, method := range []string{mcp.NotifyToolsListChanged, mcp.NotifyPromptsListChanged, mcp.NotifyResourcesListChanged} {
		if covers(&w.filter, method) {
			c.inbox.changed(change{method: method})
		}
	}
	for _, uri := range filter.ResourceSubscriptions {
		c.inbox.changed(change{mcp.NotifyResourcesUpdated, uri})
	}
}

// neverAccepted reports whether the server never agreed.
func (w *watch) neverAccepted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.told
}

// fail notes that the watch is over.
func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = mcp.SubscriptionFilter{}
	if !w.told {
		w.told, w.err = true, err
		close(w.ready)
	}
}

// within is what the server of a session can tell of what is wanted.
func (w *watch) within(c *Client, s *session) *mcp.SubscriptionFilter {
	f := mcp.SubscriptionFilter{
		ToolsListChanged:     w.filter.ToolsListChanged && tells(s, mcp.CapTools, mcp.CapToolsListChanged),
		PromptsListChanged:   w.filter.PromptsListChanged && tells(s, mcp.CapPrompts, mcp.CapPromptsListChanged),
		ResourcesListChanged: w.filter.ResourcesListChanged && tells(s, mcp.CapResources, mcp.CapResourcesListChanged),
	}
	if s.caps.Has(mcp.CapResourcesSubscribe) {
		f.ResourceSubscriptions = w.filter.ResourceSubscriptions
	}
	f.Extra = c.extensions.extensionsWithin(w.filter.Extra, s)
	return &f
}

// tells reports whether a server can tell of changes of a list. One of a stateless revision
// that does not declare the list yet may agree to tell of it, or end the subscription once it
// has it: it omits from its acknowledgement what it cannot tell (spec 2026-07-28,
// SubscriptionsAcknowledgedNotificationParams).
func tells(s *session, list, listChanged string) bool {
	return s.caps.Has(listChanged) || !s.facts.Handshake && !s.caps.Has(list)
}

// wantsUndeclared reports whether the server of a session does not declare a list that is watched.
func (w *watch) wantsUndeclared(s *session) bool {
	f := &w.filter
	return f.ToolsListChanged && !s.caps.Has(mcp.CapTools) || f.PromptsListChanged && !s.caps.Has(mcp.CapPrompts) ||
		f.ResourcesListChanged && !s.caps.Has(mcp.CapResources)
}

// covers says whether a filter lets a notification pass.
func covers(f *mcp.SubscriptionFilter, method string) bool {
	switch method {
	case mcp.NotifyToolsListChanged:
		return f.ToolsListChanged
	case mcp.NotifyPromptsListChanged:
		return f.PromptsListChanged
	case mcp.NotifyResourcesListChanged:
		return f.ResourcesListChanged
	}
	return len(f.ResourceSubscriptions) > 0
}

func empty(f *mcp.SubscriptionFilter) bool {
	return !f.ToolsListChanged && !f.PromptsListChanged && !f.ResourcesListChanged && len(f.ResourceSubscriptions)+len(f.Extra) == 0
}

// acknowledged takes the first message of a subscription. What was not asked
// for is not believed.
func (cn *conn) acknowledged(m *jsonrpc.Incoming, p *mcp.AcknowledgedParams) error {
	l := cn.listening(p.Meta.SubscriptionID)
	if l == nil {
		return errors.New("it acknowledges no subscription of ours")
	}
	want, got := &l.w.filter, p.Notifications
	if len(got.ResourceSubscriptions) > maxSubscriptions {
		return errors.New("it acknowledges more than was asked for")
	}
	got.ToolsListChanged = got.ToolsListChanged && want.ToolsListChanged
	got.PromptsListChanged = got.PromptsListChanged && want.PromptsListChanged
	got.ResourcesListChanged = got.ResourcesListChanged && want.ResourcesListChanged
	got.ResourceSubscriptions = slices.DeleteFunc(got.ResourceSubscriptions, func(uri string) bool {
		return !slices.Contains(want.ResourceSubscriptions, uri)
	})
	onlyWanted(got.Extra, want.Extra)
	cn.mu.Lock()
	first := l.acked == nil
	if first {
		l.acked = &got
	}
	cn.mu.Unlock()
	if !first {
		return errors.New("the subscription is acknowledged already")
	}
	l.w.acknowledged(cn.c, &got)
	cn.extensionAcknowledged(l, m)
	return nil
}

// listening returns the subscription with an id, or nil.
func (cn *conn) listening(id mcp.ID) *listening {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	return cn.listens[id]
}

func (cn *conn) forget(id mcp.ID) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	delete(cn.listens, id)
}

// countWatchers changes the number of watchers of a resource, and returns it.
func (cn *conn) countWatchers(uri string, n int) int {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.refs[uri] += n
	left := cn.refs[uri]
	if left <= 0 {
		delete(cn.refs, uri)
	}
	return left
}

// wait returns when ctx or the connection ends, with why.
func (cn *conn) wait(ctx context.Context) error {
	select {
	case <-cn.done:
		return cn.cause
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isClosed says whether the connection has ended.
func (cn *conn) isClosed() bool {
	select {
	case <-cn.done:
		return true
	default:
		return false
	}
}

// cancel cancels a request at the server.
func (cn *conn) cancel(id mcp.ID, cause error) {
	if cn.isClosed() {
		return
	}
	reason := "cancelled by the client"
	if errors.Is(cause, ErrTimeout) {
		reason = "timed out"
	}
	ctx, stop := context.WithTimeout(cn.c.ctx, cancelNoticeTimeout)
	defer stop()
	m := &jsonrpc.Outgoing{Method: mcp.NotifyCancelled, Params: jsonrpc.JSON(&mcp.CancelledParams{RequestID: id, Reason: reason})}
	var route transport.Route
	if s := cn.session(); s != nil && cn.link.Traits().Routes {
		route = s.era.route(&call{method: mcp.NotifyCancelled})
	}
	if err := cn.link.Post(ctx, m, route); err != nil {
		cn.c.log.Debug("a cancellation was lost", "id", id.String(), "err", err)
	}
}
