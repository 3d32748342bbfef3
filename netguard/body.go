package netguard

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A TooLargeError says that a body is larger than Rules.MaxBody.
type TooLargeError struct {
	// Limit is the size in bytes of the largest body.
	Limit int64
}

func (e *TooLargeError) Error() string { return fmt.Sprintf("answer is larger than %d bytes", e.Limit) }

// A guardedBody is the body of a response: at most so many bytes, and no clean
// end that is none.
type guardedBody struct {
	io.Reader
	io.Closer

	ctx   context.Context //nolint:containedctx // of the request, which the body is a part of
	limit int64
	left  int64
	err   error // what ended it
}

// Read implements io.Reader. The transport closes the connection when the
// context ends, and a server that is told so (TLS, close_notify) may end its
// body in good order; such an end is not one.
func (b *guardedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.Reader.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		n, err = n-1, &TooLargeError{Limit: b.limit}
	case errors.Is(err, io.EOF) && b.ctx.Err() != nil:
		err = context.Cause(b.ctx)
	}
	b.err = err
	return n, err
}

// slack is how much larger than its content a compressed body may be: less
// than nothing in what is honest, and it bounds bodies that are all frames and
// no content.
const slack = 64 << 10

// guardBody puts the limits around the body of a response. If the transport
// asked for compression, it is taken off.
func (t *Transport) guardBody(ctx context.Context, resp *http.Response, asked bool) error {
	limit := t.rules.MaxBody
	body := &guardedBody{Reader: resp.Body, Closer: resp.Body, ctx: ctx, limit: limit, left: limit}
	if asked {
		encoding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
		raw := &guardedBody{Reader: resp.Body, ctx: ctx, limit: limit, left: limit + slack}
		switch encoding {
		case "", "identity":
		case "gzip", "x-gzip":
			body.Reader = &decoder{raw: raw, open: func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }}
		case "deflate":
			body.Reader = &decoder{raw: raw, open: openDeflate}
		default:
			return fmt.Errorf("answer is encoded as %.40q, which was not asked for", encoding)
		}
		if body.Reader != io.Reader(resp.Body) {
			resp.Header.Del("Content-Encoding")
			resp.Header.Del("Content-Length")
			resp.ContentLength, resp.Uncompressed = -1, true
		}
	}
	resp.Body = body
	return nil
}

// A decoder begins to decode when it is first read. No bytes at all are an
// empty body.
type decoder struct {
	raw  io.Reader
	open func(*bufio.Reader) (io.Reader, error)
	from io.Reader
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.from == nil {
		from, err := d.open(bufio.NewReader(d.raw))
		if err != nil {
			return 0, err
		}
		d.from = from
	}
	return d.from.Read(p)
}

// openDeflate reads the encoding "deflate": the zlib format (RFC 9110, section
// 8.4.1.2), or, as some servers send, the data without its header.
func openDeflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	switch {
	case len(head) == 0:
		return nil, err
	case len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0:
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}
