package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A reverse is a reverse proxy over HTTP.
type reverse struct {
	proxy  *Proxy
	target *url.URL
	client http.RoundTripper
}

// hostOf is the name by which the proxy was called, without port.
func hostOf(r *http.Request) string {
	if name, _, err := net.SplitHostPort(r.Host); err == nil {
		return name
	}
	return strings.Trim(r.Host, "[]")
}

// Handler passes requests of HTTP on to the server of a URL, of which scheme and host count, and
// its answers back. Bodies are passed on without compression. An upgrade of the protocol, such as
// to WebSocket, is refused; so is a request over a loopback connection under a name that is none of
// this machine. Requests are sent by rt, by default one of the handler's own, which compresses
// nothing.
func (p *Proxy) Handler(target *url.URL, rt http.RoundTripper) http.Handler {
	if rt == nil {
		rt = &http.Transport{DisableCompression: true, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second}
	}
	return &reverse{proxy: p, target: target, client: rt}
}

// An exchange is a request of HTTP and its response.
type exchange struct {
	*reverse

	w                  http.ResponseWriter
	r                  *http.Request
	body               []byte
	rest               io.Reader // of a body that is too long to be one frame, or nil
	toServer, toClient *flow
}

// ServeHTTP passes one request on.
func (h *reverse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && local.IP.IsLoopback() && !oauth.LoopbackHost(hostOf(r)) {
		// The server would see its own name: a page with a rebound name must not get there by us.
		http.Error(w, "parley chaos listens for this machine alone; call it as localhost or 127.0.0.1", http.StatusForbidden)
		return
	}
	if r.Header.Get("Upgrade") != "" {
		http.Error(w, "parley chaos passes on no connections that change the protocol", http.StatusNotImplemented)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxFrame+1))
	if err != nil {
		http.Error(w, "reading the body of the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	x := &exchange{reverse: h, w: w, r: r, body: body}
	if len(body) > MaxFrame {
		x.rest = r.Body
	}
	number := h.proxy.connections.Add(1)
	earlier := h.proxy.requests.next(r.Method, r.URL.Path, body)
	key := fmt.Sprintf("%s %s %x %d", r.Method, r.URL.Path, sha256.Sum256(body), earlier)
	x.toServer = &flow{proxy: h.proxy, connection: number, key: key, direction: ToServer}
	x.toClient = &flow{proxy: h.proxy, connection: number, key: key, direction: ToClient}
	x.serve(r.Context())
}

// serve answers in the place of the server, or passes the request on.
func (x *exchange) serve(ctx context.Context) {
	expired := &x.proxy.expired
	if expired.has(x.r) {
		x.refuse(http.StatusNotFound, "this session has expired")
		return
	}
	d := x.toClient.decide(0, onResponse, func(f Fault) bool { return f != Expire || expired.takes(x.r) })
	if d == nil || d.fault == ContentType || d.fault == HeadersOnly {
		x.forward(ctx, d)
		return
	}
	x.toClient.log(0, d.fault, 0, "")
	header := x.w.Header()
	switch d.fault {
	case Expire:
		expired.expire(x.r)
		x.refuse(http.StatusNotFound, "this session has expired")
	case Status401:
		header.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		x.refuse(http.StatusUnauthorized, "this token is not valid")
	case Status429:
		seconds := max(1, int((x.proxy.opts.RetryAfter+time.Second-1)/time.Second))
		header.Set("Retry-After", strconv.Itoa(seconds))
		x.refuse(http.StatusTooManyRequests, "there were too many requests")
	case HTML:
		header.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(x.w, "<!DOCTYPE html>\n<title>Welcome</title>\n<p>Please sign in to this network.</p>\n") // gone: nobody reads it
	default:
		x.refuse(http.StatusServiceUnavailable, "the server is not available now")
	}
}

// refuse answers with a status and a text.
func (x *exchange) refuse(status int, text string) { http.Error(x.w, text, status) }

// forward passes the request on, with faults, and then the response. A fault for the whole
// response may be given.
func (x *exchange) forward(ctx context.Context, whole *decision) {
	body, err := x.request(ctx)
	if err == nil {
		var response *http.Response
		response, err = x.send(ctx, body)
		if err == nil {
			defer func() { _ = response.Body.Close() }() // what is left of it nobody wants
			err = x.answer(ctx, response, whole)
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, errUnreachable) && ctx.Err() == nil:
		x.refuse(http.StatusBadGateway, err.Error())
	default:
		panic(http.ErrAbortHandler) // net/http ends the connection
	}
}

// errUnreachable reports that the server did not respond.
var errUnreachable = errors.New("the server did not respond")

// send sends the request to the server.
func (x *exchange) send(ctx context.Context, body io.Reader) (*http.Response, error) {
	out := x.outgoing(ctx)
	out.Body, out.ContentLength = http.NoBody, 0
	if body != nil {
		out.Body, out.ContentLength = io.NopCloser(body), -1
	}
	if b, ok := body.(*bytes.Reader); ok {
		out.ContentLength = int64(b.Len())
	}
	response, err := x.client.RoundTrip(out)
	switch {
	case errors.Is(err, ErrDropped):
		return nil, ErrDropped
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return response, nil
}

// outgoing is the request to the server, without a body.
func (x *exchange) outgoing(ctx context.Context) *http.Request {
	address := *x.r.URL
	address.Scheme, address.Host = x.target.Scheme, x.target.Host
	out := &http.Request{
		Method: x.r.Method, URL: &address, Host: x.target.Host, Header: x.r.Header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	removeHopHeaders(out.Header)
	out.Header.Del("Accept-Encoding")
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", "") // else net/http names itself
	}
	return out.WithContext(ctx)
}

// hopHeaders are for one connection alone (RFC 9110, 7.6.1).
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length"}

func removeHopHeaders(h http.Header) {
	for _, name := range slices.Clone(h["Connection"]) {
		h.Del(name)
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}

// request applies a fault to the body of the request, or none. Nil is a request without a body.
func (x *exchange) request(ctx context.Context) (io.Reader, error) {
	if x.rest != nil {
		return io.MultiReader(bytes.NewReader(x.body), x.rest), nil
	}
	if len(x.body) == 0 {
		return nil, nil
	}
	f := bodyFrame(x.body)
	d := x.toServer.decide(1, onRequest, f.takes)
	if d == nil {
		return bytes.NewReader(x.body), nil
	}
	log := func(detail string) { x.toServer.log(1, d.fault, len(x.body), detail) }
	switch d.fault {
	case Delay:
		wait := x.proxy.delay(d)
		log(wait.String())
		return bytes.NewReader(x.body), x.proxy.opts.Sleep(ctx, wait)
	case Slow:
		log("")
		return x.proxy.slowly(ctx, x.body, d), nil
	case Drop:
		n := d.rand.IntN(len(x.body))
		log(fmt.Sprintf("after %d bytes", n))
		if response, err := x.send(ctx, io.MultiReader(bytes.NewReader(x.body[:n]), failing{})); err == nil {
			_ = response.Body.Close() // it came too early
		}
		return nil, ErrDropped
	case Duplicate:
		log("")
		first, err := x.send(ctx, bytes.NewReader(x.body))
		if err != nil {
			return nil, err
		}
		return bytes.NewReader(x.body), first.Body.Close()
	default:
		changed, detail := f.changed(d)
		log(detail)
		return bytes.NewReader(changed.bytes), nil
	}
}

// A failing reader ends a request in the middle.
type failing struct{}

// Read fails.
func (failing) Read([]byte) (int, error) { return 0, ErrDropped }
