package proxy

// Turns is how many calls wait for their turn, and how many are under way.
func Turns(p *Proxy) (queued, under int) {
	p.order.mu.Lock()
	defer p.order.mu.Unlock()
	return len(p.order.queue), len(p.order.under)
}

// Kept is how many calls are kept for callers of stateless revisions.
func Kept(p *Proxy) int {
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	return len(p.kept.byKey)
}
