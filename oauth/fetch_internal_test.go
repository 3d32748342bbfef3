package oauth

import (
	"bytes"
	"context"
	"errors"
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

// A body that ends because the fetch was given up is not whole, however well
// it ends. Over TLS it is up to the scheduler whether the end is read; here it
// always is.
func TestFetchEndedByContext(t *testing.T) {
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
	f := NewFetcher(nil).Loopback()
	f.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &politeConn{Conn: conn, reading: cancel, closing: closing, ended: make(chan struct{})}, err
	}
	r, err := f.Get(ctx, server.URL, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got answer %v and error %v, want context.Canceled", r != nil, err)
	}
}
