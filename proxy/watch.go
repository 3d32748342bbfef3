package proxy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
)

// Bounds of what is watched upstream.
const (
	// maxWatched is how many resources are. Those beyond, which came last, are
	// watched when there is room.
	maxWatched = 1024
	// watchPause is the least time between two changes of the subscription.
	watchPause = 50 * time.Millisecond
	// retryWatch is the first pause after the upstream server did not agree. It
	// doubles up to longWatch.
	retryWatch = 5 * time.Second
	longWatch  = 5 * time.Minute
	// watchWait is how long a call waits until the upstream server has been asked to
	// tell of what callers subscribed to before.
	watchWait = time.Second
)

// watches are the resources that callers subscribed to. The upstream server has
// one subscription with all of them, however many callers there are.
type watches struct {
	wake chan struct{} // has an element when what is watched has changed

	mu            sync.Mutex
	byURI         map[string]*watched
	count         uint64        // of those that came
	asking, asked uint64        // how many of those the upstream server is, and was, asked for
	news          chan struct{} // closed when asked grows; nil if nobody waits for that
}

// A watched is a resource that callers subscribed to.
type watched struct {
	uri  string
	came uint64 // its place in the order in which they came
	tell map[*func()]struct{}
}

func (w *watches) init() {
	w.wake = make(chan struct{}, 1)
	w.byURI = make(map[string]*watched)
}

// subscribing notes what a caller subscribes to before it is answered, so that its calls find it
// noted, and waits until the upstream server was asked for it; see settle.
func (p *Proxy) subscribing(ctx context.Context, uris []string) (release func()) {
	none := func() {}
	for _, uri := range uris {
		p.watch.add(uri, &none)
	}
	p.watch.settle(ctx)
	return func() {
		for _, uri := range uris {
			p.watch.remove(uri, &none)
		}
	}
}

// watchResource tells of changes of a resource until ctx ends.
func (p *Proxy) watchResource(ctx context.Context, uri string, changed func()) {
	p.watch.add(uri, &changed)
	defer p.watch.remove(uri, &changed)
	select {
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
}

// keepWatch has the upstream server tell of what is watched, until the proxy is
// closed. It tries again if that fails.
func (p *Proxy) keepWatch() {
	var (
		sub   subscribed
		again <-chan time.Time
		wait  time.Duration
	)
	for {
		select {
		case <-p.ctx.Done():
			return // the client ends what is left
		case <-p.watch.wake:
		case <-again:
		}
		next, err := p.renewWatch(sub)
		p.watch.settled()
		if err == nil && wait > 0 {
			p.watch.missed(next.Subscription)
		}
		sub, wait, again = next, 0, nil
		if err != nil && !errors.Is(err, client.ErrNotCapable) {
			wait = min(max(2*wait, retryWatch), longWatch)
			again = time.After(wait)
		}
		p.sleep(watchPause)
	}
}

// A subscribed is the subscription upstream, nil if there is none, with what it was asked for, in
// order.
type subscribed struct {
	*client.Subscription
	asked []string
}

// renewWatch subscribes upstream to what is watched now, in the place of sub, which
// goes on if there is an error, or if it is of the same resources.
func (p *Proxy) renewWatch(sub subscribed) (subscribed, error) {
	uris, more := p.watch.uris()
	if more > 0 {
		p.log.Warn("changes of some resources are not told: too many are watched", "server", p.name(), "watched", maxWatched, "more", more)
	}
	slices.Sort(uris)
	if sub.Subscription != nil && slices.Equal(uris, sub.asked) {
		return sub, nil
	}
	next := subscribed{asked: uris}
	if len(uris) > 0 {
		var err error
		if next.Subscription, err = p.client.Subscribe(p.ctx, uris...); err != nil {
			p.log.Info("the upstream server does not tell of changes of resources for now", "server", p.name(), "resources", len(uris), "err", err)
			return sub, err
		}
		if agreed := next.URIs(); len(agreed) < len(uris) {
			p.log.Info("the upstream server does not tell of changes of some resources", "server", p.name(), "watched", len(agreed), "resources", len(uris))
		}
	}
	if sub.Subscription != nil {
		_ = sub.Close() // it is never an error
	}
	return next, nil
}

// settle waits until the upstream server was asked for all that callers have subscribed to
// so far, so that what the call of one of them changes is told to it.
func (w *watches) settle(ctx context.Context) {
	w.mu.Lock()
	came := w.count
	w.mu.Unlock()
	var late <-chan time.Time
	for {
		w.mu.Lock()
		if w.asked >= came {
			w.mu.Unlock()
			return
		}
		if w.news == nil {
			w.news = make(chan struct{})
		}
		news := w.news
		w.mu.Unlock()
		if late == nil {
			timer := time.NewTimer(watchWait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-news:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// settled notes that the upstream server was asked for what uris gave last, whatever it
// answered.
func (w *watches) settled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = w.asking
	if w.news != nil {
		close(w.news)
		w.news = nil
	}
}

// missed notifies the watchers of what the upstream server has agreed to only now: it
// may have changed in between.
func (w *watches) missed(sub *client.Subscription) {
	if sub == nil {
		return
	}
	for _, uri := range sub.URIs() {
		w.changed(uri)
	}
}

// add adds a watcher of a resource.
func (w *watches) add(uri string, changed *func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.byURI[uri]
	if r == nil {
		w.count++
		r = &watched{uri, w.count, make(map[*func()]struct{})}
		w.byURI[uri] = r
		w.renew()
	}
	r.tell[changed] = struct{}{}
}

func (w *watches) remove(uri string, changed *func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.byURI[uri]
	if r == nil { // it was there twice, as a URI of a list can be
		return
	}
	delete(r.tell, changed)
	if len(r.tell) == 0 {
		delete(w.byURI, uri)
		w.renew()
	}
}

// renew has the subscription renewed.
func (w *watches) renew() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// uris are what is watched, the first that came first, and how many more there are.
func (w *watches) uris() (uris []string, more int) {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.byURI))
	w.asking = w.count
	w.mu.Unlock()
	if len(all) > maxWatched {
		slices.SortFunc(all, func(a, b *watched) int { return cmp.Compare(a.came, b.came) })
		more = len(all) - maxWatched
		all = all[:maxWatched]
	}
	for _, r := range all {
		uris = append(uris, r.uri)
	}
	return uris, more
}

// changed notifies the watchers of a resource, or of one that it lies beneath.
func (w *watches) changed(uri string) {
	w.mu.Lock()
	var tell []*func()
	for _, r := range w.byURI {
		if isPartOf(uri, r.uri) {
			tell = slices.AppendSeq(tell, maps.Keys(r.tell))
		}
	}
	w.mu.Unlock()
	for _, f := range tell {
		(*f)()
	}
}

// isPartOf reports whether uri is base, or a part of it: what an upstream server
// names when it says that a part of a watched resource changed.
func isPartOf(uri, base string) bool {
	rest, ok := strings.CutPrefix(uri, base)
	return ok && (rest == "" || strings.HasSuffix(base, "/") || strings.ContainsAny(rest[:1], "/?#"))
}
