package web

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/transport"
)

// TapTransport returns next (nil: http.DefaultTransport) with a tap on it: the
// heads and bodies of its requests and responses are shown to t, and the steps
// of the connections they need. A dialer that has a Tap and no Client of its
// own does this by itself; with a Client, wrap its innermost transport, so
// that what authorization adds is shown as well. Requests of a link that has a
// tap are shown to that one, with the link's number.
func TapTransport(next http.RoundTripper, t transport.Tap) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	if t == nil {
		return next
	}
	return &tapped{next, t}
}

type tapped struct {
	next http.RoundTripper
	tap  transport.Tap
}

// RoundTrip carries out r and shows it.
func (t *tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	number, show := tap.Exchange(r.Context(), t.tap)
	x := &tappedExchange{number: number, tap: show}
	x.show(&transport.TapEvent{
		Kind: transport.TapRequest, Method: r.Method, URL: r.URL.String(), Header: requestHeader(r), Data: requestBody(r),
	})
	resp, err := t.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), x.trace())))
	if err != nil {
		x.show(&transport.TapEvent{Kind: transport.TapResponse, Err: err})
		return nil, err
	}
	x.show(&transport.TapEvent{Kind: transport.TapResponse, Status: resp.StatusCode, Proto: resp.Proto, Header: resp.Header})
	if resp.Body != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &tappedBody{ReadCloser: resp.Body, x: x}
	}
	return resp, nil
}

// requestHeader is the header of a request with the host, which net/http keeps
// elsewhere.
func requestHeader(r *http.Request) http.Header {
	h := r.Header.Clone()
	if h == nil {
		h = make(http.Header, 1)
	}
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	h.Set("Host", host)
	return h
}

// requestBody is the body of a request that can give it again.
func requestBody(r *http.Request) []byte {
	if r.GetBody == nil || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = body.Close() }() // a copy in memory
	data, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	return data
}

// A tappedExchange is one HTTP request and its response.
type tappedExchange struct {
	number uint64
	tap    transport.Tap
}

func (x *tappedExchange) show(e *transport.TapEvent) {
	e.Exchange = x.number
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	x.tap(*e)
}

// step shows a step that has ended now.
func (x *tappedExchange) step(name string, b begun, err error) {
	e := transport.TapEvent{Kind: transport.TapStep, Name: name, Detail: b.detail, Time: time.Now(), Err: err}
	if !b.at.IsZero() {
		e.Took = e.Time.Sub(b.at)
	}
	x.show(&e)
}

// trace shows the steps of the connection. Its functions may be called after
// RoundTrip has returned, and several dials may be under way at once.
func (x *tappedExchange) trace() *httptrace.ClientTrace {
	var times dialTimes
	return &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) { times.start(transport.StepDNS, "", i.Host) },
		DNSDone: func(i httptrace.DNSDoneInfo) {
			b := times.end(transport.StepDNS, "")
			for n, a := range i.Addrs {
				if n == 0 {
					b.detail += ":"
				}
				b.detail += " " + a.String()
			}
			x.step(transport.StepDNS, b, i.Err)
		},
		ConnectStart: func(_, address string) { times.start(transport.StepTCP, address, address) },
		ConnectDone: func(_, address string, err error) {
			x.step(transport.StepTCP, times.end(transport.StepTCP, address), err)
		},
		TLSHandshakeStart: func() { times.start(transport.StepTLS, "", "") },
		TLSHandshakeDone: func(s tls.ConnectionState, err error) {
			b := times.end(transport.StepTLS, "")
			if err == nil {
				b.detail = strings.TrimSpace(tls.VersionName(s.Version) + " " + s.NegotiatedProtocol)
			}
			x.step(transport.StepTLS, b, err)
		},
		GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				return
			}
			b := begun{}
			if a := i.Conn.RemoteAddr(); a != nil {
				b.detail = a.String()
			}
			x.step(transport.StepReused, b, nil)
		},
	}
}

// dialTimes are when steps began: several connections may be tried at once.
type dialTimes struct {
	mu    sync.Mutex
	began map[string]begun
}

type begun struct {
	detail string
	at     time.Time
}

// start notes that the step name has begun, for what detail says.
func (d *dialTimes) start(name, address, detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began == nil {
		d.began = make(map[string]begun)
	}
	d.began[name+address] = begun{detail, time.Now()}
}

// end returns what start noted.
func (d *dialTimes) end(name, address string) begun {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.began[name+address]
	delete(d.began, name+address)
	return b
}

// errNotRead says that a body was closed before its end.
var errNotRead = errors.New("the rest of the body was not read")

// A tappedBody is the body of a response that is shown as it is read.
type tappedBody struct {
	io.ReadCloser

	x    *tappedExchange
	once sync.Once
}

// Read reads and shows a part.
func (b *tappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.x.show(&transport.TapEvent{Kind: transport.TapBody, Data: p[:n:n]})
	}
	if err != nil {
		b.end(err)
	}
	return n, err
}

// Close closes the body.
func (b *tappedBody) Close() error {
	b.end(errNotRead)
	return b.ReadCloser.Close()
}

// end shows the end of the body, once.
func (b *tappedBody) end(err error) {
	b.once.Do(func() { b.x.show(&transport.TapEvent{Kind: transport.TapBody, Err: err}) })
}
