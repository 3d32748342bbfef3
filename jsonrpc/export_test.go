package jsonrpc

// InFlight counts the requests in flight, those of the other end and ours.
func (p *Peer) InFlight() (inbound, outbound int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.allInbound {
		inbound++
	}
	return inbound, len(p.outbound)
}
