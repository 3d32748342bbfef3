package frame_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"sync"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// A channels is a pipe of Go channels: all that a transport of one's own has to
// say is how one message is read, how some are written, and how it ends.
type channels struct {
	in, out chan []byte
	closed  chan struct{} // of both ends
	once    *sync.Once
}

func pair() (here, there *channels) {
	a, b := make(chan []byte), make(chan []byte)
	closed, once := make(chan struct{}), &sync.Once{}
	return &channels{a, b, closed, once}, &channels{b, a, closed, once}
}

func (p *channels) Read() ([]byte, error) {
	select {
	case message := <-p.in:
		return message, nil
	case <-p.closed:
		return nil, io.EOF
	}
}

func (p *channels) Write(messages [][]byte) error {
	for _, m := range messages {
		select {
		case p.out <- append([]byte(nil), m...): // m is void once Write returns
		case <-p.closed:
			return io.ErrClosedPipe
		}
	}
	return nil
}

func (p *channels) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// A dialer serves each connection with a server in this process.
type dialer struct{ s *server.Server }

func (d dialer) Dial(_ context.Context, in transport.Inbox) (transport.Link, error) {
	here, there := pair()
	go func() { _ = frame.Serve(context.Background(), there, d.s, nil) }()
	return frame.Dial(here, in, nil), nil
}

func (d dialer) Key() string { return "channels" }

// A transport of one's own.
func Example() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets.", func(context.Context, mcp.None) (string, error) { return "Hello!", nil }))
	ctx := context.Background()
	c, err := client.Connect(ctx, dialer{s}, nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := client.Call[string](ctx, c, "greet", nil)
	fmt.Println(text, err, c.Close())
	// Output: Hello! <nil> <nil>
}
