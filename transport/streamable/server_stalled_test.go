package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// dial gives a bare connection to the site.
func (s *site) dial() net.Conn {
	s.Helper()
	c, err := s.client.Transport.(*http.Transport).DialContext(s.Context(), "tcp", "localhost:80")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c
}

// wirePost is a POST as it goes over the wire.
func wirePost(body string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nX-User: ada\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// A client that sends the next request early keeps net/http from noticing
// anything on the connection. Shutdown cancels its request all the same, at once.
func TestHandlerShutdownPipelined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := newPipes(t, newPeer(map[string]method{"wait": g.wait}), &streamable.Options{KeepAlive: time.Hour})
		c := s.dial()
		if _, err := io.WriteString(c, wirePost(modernBody(1, "wait", ""))); err != nil {
			t.Fatal(err)
		}
		<-g.entered
		synctest.Wait()
		if _, err := io.WriteString(c, "P"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		if err := s.h.Shutdown(ctx); err == nil {
			t.Error("Shutdown did not need to cut anything off")
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("Shutdown took %v", waited)
		}
	})
}

// lateBody is a body that comes when it is let go.
type lateBody struct {
	io.Reader
	release chan struct{}
}

func (b *lateBody) Read(p []byte) (int, error) {
	<-b.release
	return b.Reader.Read(p)
}

// A request whose handler begins when nobody is waited for any more ends too,
// also where a writer takes no deadlines.
func TestHandlerShutdownMeetsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		h := streamable.NewHandler(newPeer(map[string]method{"wait": g.wait}), nil)
		body := &lateBody{strings.NewReader(modernBody(1, "wait", "")), make(chan struct{})}
		go func() {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/", body)
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan error, 1)
		go func() { done <- h.Shutdown(ctx) }()
		synctest.Wait()
		close(body.release)
		synctest.Wait()
		select {
		case <-done: //nolint:errcheck // that it ended is enough
		default:
			t.Error("Shutdown waits for a request that nobody told to end")
			g.release <- struct{}{}
			<-done //nolint:errcheck // that it ended is enough
		}
	})
}

// A client that does not even take the answer to a notification, or a refusal,
// is given up.
func TestShortAnswerStalls(t *testing.T) {
	for name, body := range map[string]string{
		"notification": strings.Replace(modernBody(1, "note", ""), `"id":1,`, "", 1),
		"malformed":    `{"jsonrpc":"2.0","id":1}`,
		"no session":   rpc(1, "echo", ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newPipes(t, newPeer(nil), nil).dial()
				if _, err := io.WriteString(c, wirePost(body)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // twice WriteStall
				synctest.Wait()
				if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
					t.Errorf("after a minute there are still %d bytes, error %v", n, err)
				}
			})
		})
	}
}

// Nobody comes back while the endpoint ends: Shutdown does not wait for those
// who wait for room on the stream of a client that is away, or goes now.
func TestHandlerShutdownAway(t *testing.T) {
	for name, away := range map[string]bool{"before": true, "meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := make(chan error, 1)
				s := newPipes(t, newPeer(map[string]method{"flood": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
					for n := 0; ; n++ {
						if err := notify(ctx, x.Out, n); err != nil {
							failed <- err
							return nil, err
						}
					}
				}}), &streamable.Options{ReplayBuffer: 4096})
				id := s.open(v2511)
				f := s.follow(http.MethodPost, rpc(1, "flood", ""), "Mcp-Session-Id", id)
				if away {
					f.hangUp()
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- s.h.Shutdown(ctx) }()
				synctest.Wait()
				f.hangUp()
				begun := time.Now()
				if err := <-done; err != nil {
					t.Errorf("Shutdown: %v after %v", err, time.Since(begun))
				}
				if err := <-failed; !errors.Is(err, transport.ErrClosed) {
					t.Errorf("Send failed with %v, want ErrClosed", err)
				}
			})
		})
	}
}
