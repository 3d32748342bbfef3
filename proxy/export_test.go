package proxy

// Kept is how many calls are kept for callers of stateless revisions.
func Kept(p *Proxy) int {
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	return len(p.kept.byKey)
}
