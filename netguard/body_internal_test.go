package netguard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A politeConn tells the other side that it is about to close, as TLS does with
// close_notify, and closes when what the other side said to that was read.
type politeConn struct {
	net.Conn

	reading func()        // called when the body is being read
	close   sync.Once     // of closing
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when the end of the body was read
	n       int           // bytes read
}

func (c *politeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.n += n; c.n > 32<<10 {
		c.reading()
	}
	if bytes.HasSuffix(p[:n], []byte("0\r\n\r\n")) {
		close(c.ended)
	}
	return n, err
}

func (c *politeConn) Close() error {
	c.close.Do(func() { close(c.closing) })
	<-c.ended
	return c.Conn.Close()
}

// A body that ends because the request was given up is not whole, however well
// it ends. Over TLS it is up to the scheduler whether the end is read; here it
// always is.
func TestBodyEndedByContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	closing := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// More than is read ahead of the body.
		_, _ = w.Write(make([]byte, 64<<10))
		_ = http.NewResponseController(w).Flush()
		<-closing
	}))
	t.Cleanup(server.Close)
	guarded := NewTransport(&Rules{Loopback: true})
	guarded.next.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &politeConn{Conn: conn, reading: cancel, closing: closing, ended: make(chan struct{})}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := guarded.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if data, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %d bytes and error %v, want context.Canceled", len(data), err)
	}
}
