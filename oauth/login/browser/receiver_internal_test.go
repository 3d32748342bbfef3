package browser

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
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
