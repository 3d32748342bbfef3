package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/oauth/login"
)

// redirectURI is where authorization servers send the browser. Nothing listens
// there: the fixture looks where it is sent, and does not go.
const redirectURI = "http://localhost:3000/callback"

// browser stands for the person and the browser: the suite's authorization
// servers ask no person, but redirect at once.
type browser struct {
	next http.RoundTripper // which follows no redirect
}

var _ login.Authorizer = (*browser)(nil)

func newBrowser() *browser {
	return &browser{&http.Transport{DisableKeepAlives: true}} // idle connections would stay open
}

// Begin implements [login.Authorizer].
func (b *browser) Begin(context.Context, []string) (login.Visit, error) { return &visit{b}, nil }

type visit struct{ *browser }

func (v *visit) RedirectURI() string { return redirectURI }

func (v *visit) Close() error { return nil }

// Wait asks for the authorization URL and reads the response out of the
// redirect.
func (v *visit) Wait(ctx context.Context, authorizationURL *url.URL, accept func(url.Values) bool) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, authorizationURL.String(), nil)
	if err != nil {
		return nil, errors.New("the authorization URL cannot be requested") // the cause would show it
	}
	resp, err := v.next.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("visiting the authorization server: %w", err)
	}
	if err := resp.Body.Close(); err != nil {
		return nil, fmt.Errorf("visiting the authorization server: %w", err)
	}
	where, query, ok := strings.Cut(resp.Header.Get("Location"), "?")
	if !ok || where != redirectURI {
		return nil, fmt.Errorf("the authorization server answered %s, not with a redirect to %s", resp.Status, redirectURI)
	}
	answer, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("the authorization response cannot be read")
	}
	if !accept(answer) {
		return nil, errors.New("the authorization response is that of another request")
	}
	return answer, nil
}
