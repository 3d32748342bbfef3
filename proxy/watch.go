package proxy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/client"
)

// watches are the resources that callers subscribed to. The upstream server has
// one subscription with all of them, however many callers there are.
type watches struct {
	mu    sync.Mutex
	byURI map[string]map[*func()]struct{}

	renewing sync.Mutex // held while the subscription changes
	sub      *client.Subscription
}

func (w *watches) init() { w.byURI = make(map[string]map[*func()]struct{}) }

// watchResource tells of changes of a resource until ctx ends.
func (p *Proxy) watchResource(ctx context.Context, uri string, changed func()) {
	if p.watch.add(uri, &changed) {
		p.renewWatch(p.ctx, uri) // who comes after this one may rely on it, so ctx does not end it
	}
	select {
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	if p.watch.remove(uri, &changed) {
		p.renewWatch(p.ctx, "")
	}
}

// renewWatch subscribes upstream to what is watched now.
func (p *Proxy) renewWatch(ctx context.Context, added string) {
	w := &p.watch
	w.renewing.Lock()
	defer w.renewing.Unlock()
	uris := w.uris()
	var sub *client.Subscription
	if len(uris) > 0 && p.ctx.Err() == nil {
		var err error
		sub, err = p.client.Subscribe(ctx, uris...)
		if err != nil || added != "" && !slices.Contains(sub.URIs(), added) {
			p.log.Info("the upstream server does not tell of changes of a resource", "server", p.name(), "uri", added, "err", err)
		}
		if err != nil {
			return // what was subscribed to before still is
		}
	}
	if w.sub != nil {
		_ = w.sub.Close() // it is never an error
	}
	w.sub = sub
}

// add notes who watches a resource, and reports whether nobody did before.
func (w *watches) add(uri string, changed *func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byURI[uri] == nil {
		w.byURI[uri] = make(map[*func()]struct{})
	}
	w.byURI[uri][changed] = struct{}{}
	return len(w.byURI[uri]) == 1
}

// remove reports whether nobody watches the resource any more.
func (w *watches) remove(uri string, changed *func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byURI[uri], changed)
	if len(w.byURI[uri]) > 0 {
		return false
	}
	delete(w.byURI, uri)
	return true
}

func (w *watches) uris() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.byURI))
}

// changed tells those who watch a resource, or one that it lies beneath.
func (w *watches) changed(uri string) {
	w.mu.Lock()
	var tell []*func()
	for watched, who := range w.byURI {
		if beneath(uri, watched) {
			tell = slices.AppendSeq(tell, maps.Keys(who))
		}
	}
	w.mu.Unlock()
	for _, f := range tell {
		(*f)()
	}
}

// beneath reports whether uri is base, or a part of it: what an upstream server
// names when it says that a part of a watched resource changed.
func beneath(uri, base string) bool {
	rest, ok := strings.CutPrefix(uri, base)
	return ok && (rest == "" || strings.HasSuffix(base, "/") || strings.ContainsAny(rest[:1], "/?#"))
}
