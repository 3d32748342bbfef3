package server

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A notice is a change that clients may want to hear of. Notices of one topic
// are merged while they wait: what counts is that there was a change, or the
// newest state.
type notice struct {
	topic  string
	method string
	params mcp.RawValue // an object, or nil
	item   *Item        // decides which callers may see it, or nil
	state  bool         // it takes the place of one that waits
}

// Topics of the core. Those of extensions carry their identifier.
const (
	topicTools     = "tools"
	topicPrompts   = "prompts"
	topicResources = "resources"
	topicURI       = "uri "
)

// A hub brings changes to the sessions and subscriptions that want them, and
// runs the watchers of resources that clients subscribed to.
type hub struct {
	srv    *Server
	ctx    context.Context //nolint:containedctx // the life of the server's background work
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// durable is the life of detached calls that another process can take up: it
	// ends when Shutdown begins.
	durable    context.Context //nolint:containedctx // as ctx
	endDurable context.CancelCauseFunc
	idle       sync.Cond // no call runs detached any more; of mu

	mu       sync.Mutex
	stopped  bool
	feeds    map[*feed]struct{}
	listens  map[string]int // streams by principal
	detached detachedCalls
	watches  map[string]*watch
	parents  []func(notice) // hubs of servers that this one is mounted in

	undeclared lists // of which Server.undeclared has warned
}

type watch struct {
	users  int
	cancel context.CancelFunc
}

func (h *hub) init(s *Server) {
	h.srv = s
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	h.durable, h.endDurable = context.WithCancelCause(h.ctx)
	h.idle.L = &h.mu
	h.feeds = make(map[*feed]struct{})
	h.listens = make(map[string]int)
	h.watches = make(map[string]*watch)
}

// stop ends all background work and waits for it.
func (h *hub) stop(cause error) {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.cancel(cause)
	h.wg.Wait()
}

// spawn runs f in the background, until the server ends.
func (h *hub) spawn(f func(ctx context.Context)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	h.wg.Go(func() { h.srv.guard(func() { f(h.ctx) }) })
	return true
}

// guard runs an author's function outside of a request. As in a request, its
// panic must not end the process.
func (s *Server) guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("background function panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}

func (h *hub) add(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds[f] = struct{}{}
}

func (h *hub) remove(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.feeds, f)
}

// publish offers a change to all feeds.
func (h *hub) publish(n notice) {
	feeds, parents := h.receivers()
	for _, f := range feeds {
		f.offer(n)
	}
	for _, p := range parents {
		p(n)
	}
}

// receivers are the feeds, and the hubs above. What is offered to them is
// offered without the hub's lock, since feeds and their sessions take locks
// of their own, and call the hub while they hold them.
func (h *hub) receivers() ([]*feed, []func(notice)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.feeds)), h.parents
}

// log offers a log message to the sessions of the handshake era.
func (h *hub) log(p *mcp.LogParams) {
	feeds, _ := h.receivers()
	for _, f := range feeds {
		f.offerLog(p)
	}
}

// listChanged tells that a list has changed.
func (h *hub) listChanged(k Kind) {
	switch k {
	case KindTool:
		h.publish(notice{topic: topicTools, method: mcp.NotifyToolsListChanged})
	case KindPrompt:
		h.publish(notice{topic: topicPrompts, method: mcp.NotifyPromptsListChanged})
	default:
		h.publish(notice{topic: topicResources, method: mcp.NotifyResourcesListChanged})
	}
}

// undeclared warns, once for each list, of clients that cannot see what was added. Its callers hold locks of
// feeds and sessions, which a log that goes to clients takes too ([Server.LogHandler]).
func (s *Server) undeclared(topic string) {
	s.hub.mu.Lock()
	told := s.hub.undeclared&listOf(topic) != 0
	s.hub.undeclared |= listOf(topic)
	s.hub.mu.Unlock()
	if told {
		return
	}
	option := map[string]string{topicTools: "DeclareTools", topicPrompts: "DeclarePrompts", topicResources: "DeclareResources"}[topic]
	s.hub.spawn(func(context.Context) {
		s.log.Warn("clients that are connected cannot use the "+topic+" that were added: in their protocol version a server declares "+
			"its capabilities once; set the option before they connect, or add a feature of the kind", "option", "server.Options."+option)
	})
}

// ResourceUpdated tells the clients that subscribed to uri that the resource
// has changed. They read it again if they like.
func (s *Server) ResourceUpdated(uri string) {
	params, err := wire.Marshal(&mcp.ResourceUpdatedParams{URI: uri})
	if err != nil {
		s.log.Error("resource updated", "err", err)
		return
	}
	s.hub.publish(notice{
		topic: topicURI + uri, method: mcp.NotifyResourcesUpdated, params: params,
		item: &Item{Kind: KindResource, Name: uri},
	})
}

// watching starts the watcher of a resource for its first subscriber, and
// returns what ends the subscriber's share of it.
func (h *hub) watching(uri string, run func(ctx context.Context, changed func())) func() {
	if run == nil {
		return func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[uri]
	if w == nil {
		if h.stopped {
			return func() {}
		}
		ctx, cancel := context.WithCancel(h.ctx)
		w = &watch{cancel: cancel}
		h.watches[uri] = w
		h.wg.Go(func() {
			h.keepWatching(ctx, func() { run(ctx, func() { h.srv.ResourceUpdated(uri) }) })
			h.unwatched(uri, w)
		})
	}
	w.users++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if w.users--; w.users > 0 {
			return
		}
		w.cancel()
		if h.watches[uri] == w {
			delete(h.watches, uri)
		}
	})
}

// A watcher that panicked is started again after watchPause, and after twice the
// pause before each further time, up to watchPauseMost.
const (
	watchPause     = time.Second
	watchPauseMost = time.Minute
)

// keepWatching runs a watcher until it returns, or ctx ends.
func (h *hub) keepWatching(ctx context.Context, watch func()) {
	for pause := watchPause; ; pause = min(2*pause, watchPauseMost) {
		returned := false
		h.srv.guard(func() {
			watch()
			returned = true
		})
		if returned {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// unwatched forgets a watcher that has returned: the next subscriber has it start
// again.
func (h *hub) unwatched(uri string, w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches[uri] == w {
		delete(h.watches, uri)
	}
}

// noticeBody is the params of a notice, tagged with its subscription.
type noticeBody struct {
	sub    jsonrpc.ID
	params mcp.RawValue
}

// AppendJSON writes the tag in front of the members of the notice.
func (b noticeBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	if !b.sub.IsZero() {
		dst = append(dst, `"_meta":{`...)
		dst = wire.AppendString(dst, mcp.MetaSubscriptionID)
		dst = append(dst, ':')
		var err error
		if dst, err = b.sub.AppendJSON(dst); err != nil {
			return nil, err
		}
		dst = append(dst, '}')
	}
	if len(b.params) > 2 { // more than {}
		if !b.sub.IsZero() {
			dst = append(dst, ',')
		}
		return append(dst, b.params[1:]...), nil
	}
	return append(dst, '}'), nil
}

// pollEvery is how often directories are polled while a client subscribes.
const pollEvery = time.Second
