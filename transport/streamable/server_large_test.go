package streamable_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/internal/racetest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
)

// A large result is a JSON string of so many bytes, of which it may fail to
// give the last.
type large struct {
	size int64
	torn bool
}

var errTorn = errors.New("the rest cannot be read")

func (l large) JSONSize() int64 { return l.size }

func (l large) AppendJSON(dst []byte) ([]byte, error) {
	var b bytes.Buffer
	err := l.WriteJSON(&b)
	return append(dst, b.Bytes()...), err
}

func (l large) WriteJSON(w io.Writer) error {
	const piece = 64 << 10
	text := bytes.Repeat([]byte{'a'}, piece)
	if _, err := w.Write([]byte(`{"text":"`)); err != nil {
		return err
	}
	for left := l.size - int64(len(`{"text":""}`)); left > 0; left -= piece {
		if l.torn && left < l.size/2 {
			return errTorn
		}
		if _, err := w.Write(text[:min(left, piece)]); err != nil {
			return err
		}
	}
	_, err := w.Write([]byte(`"}`))
	return err
}

// A large result is never held as a whole, as long as it is no event.
func TestLargeResult(t *testing.T) {
	mcptest.NoLeaks(t)
	const size = 10 << 20
	result := func(context.Context, *transport.Exchange) (jsonrpc.Body, error) { return large{size: size}, nil }
	s := newSite(t, newPeer(map[string]method{
		"large": result,
		"after": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			if err := notify(ctx, x.Out, 1); err != nil {
				return nil, err
			}
			return result(ctx, x)
		},
		"torn": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
			return large{size: size, torn: true}, nil
		},
	}), nil)
	read := func(name string) (length, n int64, err error) {
		r, err := s.do(t.Context(), http.MethodPost, modernBody(1, name, ""), "MCP-Protocol-Version", v2607, "Mcp-Method", name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		n, err = io.Copy(io.Discard, r.Body)
		return r.ContentLength, n, err
	}
	_, bytes := spent(5, func() {
		const frame = `{"jsonrpc":"2.0","id":1,"result":}`
		if length, n, err := read("large"); length != size+int64(len(frame)) || n != length || err != nil {
			t.Errorf("content length %d, read %d bytes, %v", length, n, err)
		}
	})
	if bytes > 1<<20 && !racetest.Enabled {
		t.Errorf("%d bytes were taken for a result of %d", bytes, size)
	}
	if _, n, err := read("after"); n < size || err != nil {
		t.Errorf("as an event: read %d bytes, %v", n, err)
	}
	if _, n, err := read("torn"); n >= size || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of a result that ends in the middle: read %d bytes, %v", n, err)
	}
}

// What a slow client has not taken yet is bounded: who sends more waits for it.
func TestSendWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20_000
		sent := 0
		s := newPipes(t, newPeer(map[string]method{"count": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			for ; sent < many; sent++ {
				if err := notify(ctx, x.Out, sent); err != nil {
					return nil, err
				}
			}
			return jsonrpc.Empty(), nil
		}}), nil)
		f := s.follow(http.MethodPost, modernBody(1, "count", ""), "MCP-Protocol-Version", v2607, "Mcp-Method", "count")
		synctest.Wait()
		if sent == 0 || sent > many/4 {
			t.Errorf("%d of %d notifications were sent to a client that reads none", sent, many)
		}
		for n := range many {
			f.wants(noted(n))
		}
		f.wants(`"result"`)
		f.ends()
	})
}
