package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/parley-mcp/parley/oauth/login"
)

// A browser is an Authorizer whose person agrees to everything at once.
type browser struct {
	sync.Mutex

	port   string                                         // of the redirect URI; "": 5555
	host   string                                         // of the redirect URI; "": 127.0.0.1
	fixed  bool                                           // takes no hint of registered ones
	begun  int                                            // visits
	tamper func(answer url.Values, u *url.URL) url.Values // the response on its way
	hold   chan struct{}                                  // waits for it to be closed
	inWait chan struct{}                                  // told when a visit waits
	urls   []*url.URL
}

func (b *browser) Begin(_ context.Context, registered []string) (login.Visit, error) {
	b.Lock()
	defer b.Unlock()
	b.begun++
	host, port := b.host, b.port
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "5555"
	}
	redirect := "http://" + host + ":" + port + "/callback"
	if len(registered) > 0 && !b.fixed {
		redirect = registered[0]
	}
	return &trip{b: b, redirect: redirect}, nil
}

type trip struct {
	b        *browser
	redirect string
}

func (v *trip) RedirectURI() string { return v.redirect }
func (v *trip) Close() error        { return nil }

func (v *trip) Wait(ctx context.Context, u *url.URL, accept func(url.Values) bool) (url.Values, error) {
	v.b.Lock()
	v.b.urls = append(v.b.urls, u)
	tamper := v.b.tamper
	v.b.Unlock()
	if v.b.inWait != nil {
		select {
		case v.b.inWait <- struct{}{}:
		case <-ctx.Done():
		}
	}
	if v.b.hold != nil {
		select {
		case <-v.b.hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, fmt.Errorf("the page was %d", resp.StatusCode)
	}
	answer := to.Query()
	if tamper != nil {
		answer = tamper(answer, u)
	}
	if !accept(answer) {
		return nil, errors.New("the response was not accepted")
	}
	return answer, nil
}

func (b *browser) visits() int {
	b.Lock()
	defer b.Unlock()
	return len(b.urls)
}

// webAuthorizer is that of a web application, which is told where the browser
// would go.
type webAuthorizer func(target string) error

func (a webAuthorizer) Begin(context.Context, []string) (login.Visit, error) { return a, nil }
func (webAuthorizer) RedirectURI() string                                    { return "https://app.example/cb" }
func (webAuthorizer) Close() error                                           { return nil }

func (a webAuthorizer) Wait(_ context.Context, u *url.URL, _ func(url.Values) bool) (url.Values, error) {
	return nil, a(u.String())
}
