package frame

import "github.com/parley-mcp/parley/transport"

// A tappedPipe shows what its pipe carries.
type tappedPipe struct {
	Pipe

	tap transport.Tap
}

// Read returns the next message.
func (p *tappedPipe) Read() ([]byte, error) {
	data, err := p.Pipe.Read()
	if err == nil {
		p.tap(transport.TapEvent{Kind: transport.TapReceived, Data: data})
	}
	return data, err
}

// Write sends messages.
func (p *tappedPipe) Write(messages [][]byte) error {
	for _, m := range messages { // they are void once they are written
		p.tap(transport.TapEvent{Kind: transport.TapSent, Data: m})
	}
	return p.Pipe.Write(messages)
}
