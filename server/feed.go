package server

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A feed is one receiver of changes: a session of the handshake era, or a
// subscription of the stateless one. It has a goroutine only while something
// waits to be sent.
type feed struct {
	srv     *Server
	out     jsonrpc.Sender
	call    *Call    // the subscription, or nil; its id tags what is sent
	session *session // the session, or nil; it wants to hear of all lists
	sender  *sender  // made for the first notice; belongs to start and run
	wg      sync.WaitGroup

	mu      sync.Mutex
	topics  map[string]func() // what is wanted beside lists → what ends its watcher
	grown   chan struct{}     // of a subscription: closed once it has a list that it lacked; nil if it lacks none
	follows map[string]int    // topics of Call.Follow → followers
	waiting []notice
	logs    []*mcp.LogParams
	queued  map[string]bool
	held    bool
	running bool // a goroutine sends notices
	logging bool // a goroutine sends log messages
	closed  bool
	lacks   lists // that the server did not have when they were asked for
}

// lists are a set of lists that change. There is one for each session, so that it is small.
type lists uint8

// listOf is the list that has a topic; none for other topics.
func listOf(topic string) lists {
	switch topic {
	case topicTools:
		return 1
	case topicPrompts:
		return 2
	case topicResources:
		return 4
	}
	return 0
}

// sender is the state of a feed that has something to send.
type sender struct {
	ctx     context.Context //nolint:containedctx // the life of the feed
	cancel  context.CancelFunc
	limiter *rate.Limiter // of notices
	logs    logState
}

// newFeed makes a feed that wants nothing yet.
func newFeed(s *Server, out jsonrpc.Sender, c *Call) *feed {
	return &feed{srv: s, out: out, call: c}
}

// subscription is the id of the subscription, zero for a session.
func (f *feed) subscription() jsonrpc.ID {
	if f.call == nil {
		return jsonrpc.ID{}
	}
	return f.call.ID()
}

func (s *Server) newSender() *sender {
	n := new(sender)
	limit := rate.Inf
	if r := s.limits.ChangeRate; r >= 0 {
		limit = rate.Limit(r)
	}
	n.limiter = rate.NewLimiter(limit, max(1, int(s.limits.ChangeRate)))
	n.ctx, n.cancel = context.WithCancel(s.hub.ctx)
	return n
}

// want adds a topic, unless the feed is closed.
func (f *feed) want(topic string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if f.topics == nil {
		f.topics = make(map[string]func())
	}
	if _, ok := f.topics[topic]; !ok {
		f.topics[topic] = nil
	}
}

// lack notes the topic of a list that is wanted and that the server does not have, unless it has
// it by now.
func (f *feed) lack(topic string, offered func() bool) {
	f.mu.Lock()
	f.lacks |= listOf(topic)
	if f.grown == nil && f.session == nil {
		f.grown = make(chan struct{})
	}
	f.mu.Unlock()
	if offered() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.appeared(topic)
	}
}

// appeared handles the first change of a list that the server lacked: it ends a subscription, so
// that the client learns what the server offers now. The client of a session cannot learn it. The
// lock is held.
func (f *feed) appeared(topic string) {
	list := listOf(topic)
	if f.lacks&list == 0 {
		return
	}
	if f.lacks &^= list; f.session != nil {
		f.srv.undeclared(topic)
		return
	}
	select {
	case <-f.grown:
	default:
		close(f.grown)
	}
}

// addFollower counts a follower of a topic, unless that would make more topics than
// most, and reports whether there was room.
func (f *feed) addFollower(topic string, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows[topic] == 0 && over(len(f.follows)+1, most) {
		return false
	}
	if f.closed {
		return true
	}
	if f.follows == nil {
		f.follows = make(map[string]int)
	}
	f.follows[topic]++
	return true
}

// removeFollower ends what addFollower began.
func (f *feed) removeFollower(topic string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows[topic] > 1 {
		f.follows[topic]--
		return
	}
	delete(f.follows, topic) // also after the feed was closed
}

// wanted reports whether topic is among those of the feed. The lock is held.
func (f *feed) wanted(topic string) bool {
	switch topic {
	case topicTools, topicPrompts, topicResources:
		if f.session != nil {
			return true
		}
	}
	_, ok := f.topics[topic]
	return ok || f.follows[topic] > 0
}

// follow adds a resource as a topic, and then starts what watches it, so that
// no change between the two is missed. watch returns what ends the watching,
// which is called when the topic is no longer wanted.
func (f *feed) follow(uri string, watch func(uri string) (end func())) {
	topic := topicURI + uri
	f.want(topic)
	end := watch(uri)
	f.mu.Lock()
	old := end
	if _, ok := f.topics[topic]; ok { // neither dropped nor closed meanwhile
		old = f.topics[topic]
		f.topics[topic] = end
	}
	f.mu.Unlock()
	if old != nil {
		old()
	}
}

// drop takes a topic out and reports whether it was there.
func (f *feed) drop(topic string) bool {
	f.mu.Lock()
	end, ok := f.topics[topic]
	delete(f.topics, topic)
	f.mu.Unlock()
	if end != nil {
		end()
	}
	return ok
}

// wants reports how many resources the feed is subscribed to, and whether
// topic is among its topics.
func (f *feed) wants(topic string) (uris int, has bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.topics {
		if len(t) > len(topicURI) && t[:len(topicURI)] == topicURI {
			uris++
		}
	}
	_, has = f.topics[topic]
	return uris, has
}

// over reports whether nothing may be sent any more. The request of a subscription
// ends before its feed is closed. The lock is held.
func (f *feed) over() bool { return f.closed || f.call != nil && f.call.Err() != nil }

// offer queues a change, unless it is not wanted or waits already. A newer state
// takes the place in the queue that the older one has, so that a topic that changes
// all the time neither is put off nor delays others.
func (f *feed) offer(n notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over() {
		return
	}
	f.appeared(n.topic)
	if !f.wanted(n.topic) {
		return
	}
	if f.queued[n.topic] {
		if n.state {
			f.waiting[slices.IndexFunc(f.waiting, func(w notice) bool { return w.topic == n.topic })] = n
		}
		return
	}
	if f.queued == nil {
		f.queued = make(map[string]bool)
	}
	f.queued[n.topic] = true
	f.waiting = append(f.waiting, n)
	f.start()
}

// maxQueuedLogs bounds the log messages that wait for a slow session.
const maxQueuedLogs = 256

// offerLog queues a log message for a session whose level it meets, or counts it
// as dropped.
func (f *feed) offerLog(p *mcp.LogParams) {
	if f.session == nil || !p.Level.AtLeast(f.session.level()) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if f.sender == nil {
		f.sender = f.srv.newSender()
	}
	if len(f.logs) >= maxQueuedLogs {
		f.sender.logs.drop()
		return
	}
	if p, ok := f.sender.logs.admit(p, f.srv.limits.LogRate); ok {
		f.logs = append(f.logs, p)
		f.start()
	}
}

// start runs the senders that are needed: notices and log messages have one each,
// since their rates are different. The lock is held.
func (f *feed) start() {
	if f.held || f.closed || len(f.waiting)+len(f.logs) == 0 {
		return
	}
	if f.sender == nil {
		f.sender = f.srv.newSender()
	}
	if len(f.waiting) > 0 && !f.running {
		f.running = true
		f.wg.Go(f.run)
	}
	if len(f.logs) > 0 && !f.logging {
		f.logging = true
		f.wg.Go(f.runLogs)
	}
}

// hold keeps notices back until release: nothing may come before the
// acknowledgement of a subscription.
func (f *feed) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

func (f *feed) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
	f.start()
}

// run sends the notices that wait, at the pace that the limits allow, until none does.
func (f *feed) run() {
	for {
		if err := f.sender.limiter.Wait(f.sender.ctx); err != nil {
			f.idle()
			return
		}
		m, item := f.next()
		if m == nil {
			return
		}
		if item != nil && !f.sees(*item) {
			continue
		}
		if err := f.out.Send(f.sender.ctx, m); err != nil {
			f.srv.log.Debug("change notice not delivered", "method", m.Method, "err", err)
		}
	}
}

func (f *feed) idle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = false
}

// runLogs sends the log messages that wait.
func (f *feed) runLogs() {
	for m := f.nextLog(); m != nil; m = f.nextLog() {
		if err := f.out.Send(f.sender.ctx, m); err != nil {
			f.srv.log.Debug("log message not delivered", "err", err)
		}
	}
}

// nextLog takes the oldest log message off the queue; nil ends their sender.
func (f *feed) nextLog() *jsonrpc.Outgoing {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.logs) == 0 || f.closed {
		f.logging = false
		return nil
	}
	p := f.logs[0]
	f.logs = f.logs[1:]
	return outgoingLog(p)
}

// next takes the oldest notice off the queue; nil ends their sender.
func (f *feed) next() (*jsonrpc.Outgoing, *Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 || f.over() {
		f.running = false
		return nil, nil
	}
	n := f.waiting[0]
	f.waiting = f.waiting[1:]
	delete(f.queued, n.topic)
	return &jsonrpc.Outgoing{Method: n.method, Params: noticeBody{f.subscription(), n.params}}, n.item
}

// sees reports whether the receiver may hear of an item.
func (f *feed) sees(it Item) (seen bool) {
	c := f.call
	if c == nil {
		c = f.srv.newCall(f.sender.ctx, &transport.Exchange{In: new(jsonrpc.Incoming), Out: noResponder{}}, f.session)
		c.caps = f.session.clientCaps()
		c.use(f.session.negotiated())
	}
	f.srv.guard(func() { seen = c.CanRead(it.Name) || c.lostFile(it.Name) }) // asks the author's Visible
	return seen
}

// close ends the feed and waits for its sender.
func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	topics, sends := f.topics, f.sender
	f.topics, f.follows = nil, nil
	f.mu.Unlock()
	for _, end := range topics {
		if end != nil {
			end()
		}
	}
	if sends != nil {
		sends.cancel()
	}
	f.srv.hub.remove(f)
	f.wg.Wait()
}
