package webtest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A Response is a whole response.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// NewRequest makes a request with headers, which are pairs of names and values. Host is one of
// them. A body that is empty is none.
func NewRequest(tb testing.TB, ctx context.Context, method, url, body string, header ...string) *http.Request {
	tb.Helper()
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return r
}

// Read sends a request and reads the whole response.
func Read(c *http.Client, r *http.Request) (Response, error) {
	resp, err := c.Do(r)
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return Response{resp.StatusCode, resp.Header, string(body)}, err
}

// Send sends a request as NewRequest makes it, and reads the whole response.
func Send(tb testing.TB, c *http.Client, method, url, body string, header ...string) Response {
	tb.Helper()
	r, err := Read(c, NewRequest(tb, tb.Context(), method, url, body, header...))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// Raw writes text on a TCP connection of its own, and returns it and what reads from it. It is
// closed when the test ends.
func Raw(tb testing.TB, address, text string) (net.Conn, *bufio.Reader) {
	tb.Helper()
	conn, err := new(net.Dialer).DialContext(tb.Context(), "tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		tb.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// A RoundTripper is a server without a connection.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// NewResponse makes a response for a RoundTripper. A Content-Type or a body that is empty is none.
func NewResponse(status int, contentType, body string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: make(http.Header), ContentLength: int64(len(body)), Body: http.NoBody}
	if contentType != "" {
		resp.Header.Set("Content-Type", contentType)
	}
	if body != "" {
		resp.Body = io.NopCloser(strings.NewReader(body))
	}
	return resp
}

// A Direct is a RoundTripper that has a handler answer, whole.
type Direct struct{ http.Handler }

// RoundTrip calls the handler.
func (d Direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
