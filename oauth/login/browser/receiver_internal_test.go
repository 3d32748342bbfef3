package browser

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
)

// The listeners are closed when Wait has returned. Their port says nothing of it: it may be
// somebody else's by then.
func TestReceiverListensNoMore(t *testing.T) {
	v, err := NewReceiver(&ReceiverOptions{Open: func(context.Context, *url.URL) error { return nil }}).Begin(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	waited := make(chan error, 1)
	go func() {
		_, err := v.Wait(t.Context(), &url.URL{Scheme: "https", Host: "as.example"}, func(url.Values) bool { return true })
		waited <- err
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.RedirectURI()+"?code=c", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(res.Body.Close(), <-waited); err != nil {
		t.Fatal(err)
	}
	for _, l := range v.(*loopbackVisit).listeners {
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s still listens: %v", l.Addr(), err)
		}
	}
}

// Attack: connections that are held open without a request do not keep the person waiting.
func TestAttackHeldConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := webtest.NewMemory(t)
		life, end := context.WithCancelCause(t.Context())
		v := &loopbackVisit{
			o:         &ReceiverOptions{Timeout: time.Hour, Open: func(context.Context, *url.URL) error { return nil }},
			listeners: []net.Listener{m}, page: &callbackPage{hosts: []string{"127.0.0.1"}, path: "/callback"},
			life: life, end: end, ended: make(chan struct{}),
		}
		defer v.Close()
		waited := make(chan error, 1)
		start := time.Now()
		go func() {
			_, err := v.Wait(t.Context(), &url.URL{Scheme: "https", Host: "as.example"}, func(url.Values) bool { return true })
			waited <- err
		}()
		for range 20 {
			m.Conn()
		}
		if r := webtest.Send(t, m.Client(), http.MethodGet, "http://127.0.0.1/callback?code=c", ""); r.Status != http.StatusOK {
			t.Errorf("status %d", r.Status)
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("they kept the person waiting for %v", took)
		}
	})
}

// A response that came at the same time as the end of the visit, or as an error of the browser, counts: the
// person was told that it did.
func TestReceiverTakesLastResponse(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		for _, o := range []*ReceiverOptions{
			{Open: func(context.Context, *url.URL) error { return nil }},
			{Open: func(context.Context, *url.URL) error { return errors.New("no browser") }},
		} {
			v := &loopbackVisit{o: o, page: &callbackPage{}}
			received := make(chan url.Values, 1)
			received <- url.Values{"code": {"c"}}
			got, err := v.await(over, &url.URL{Scheme: "https", Host: "as.example"}, nil, received)
			if err != nil || got.Get("code") != "c" {
				t.Fatalf("%v, %v", got, err)
			}
		}
	}
}
