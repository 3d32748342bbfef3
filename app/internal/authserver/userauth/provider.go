package userauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/parley-mcp/parley/oauth"
)

// An upstreamProvider is what a provider says of itself.
type upstreamProvider struct {
	*oidc.Provider
	endpoint oauth2.Endpoint
	// sendsIssuer: responses name their issuer (RFC 9207).
	sendsIssuer bool
}

const (
	// providerLifetime is how long what a provider says of itself is believed.
	providerLifetime = time.Hour
	// providerPause is how long one that does not answer is left alone, so that
	// not every sign-in waits for it in turn.
	providerPause = 5 * time.Second
)

var errProvider = errors.New("OpenID provider cannot be used")

// provider returns the provider, asking it now and then what it is. One that
// does not answer is taken as it was.
func (u *Upstream) provider(ctx context.Context) (*upstreamProvider, error) {
	select {
	case u.lock <- struct{}{}:
		defer func() { <-u.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	age := u.opts.Now().Sub(u.foundAt)
	switch {
	case u.found != nil && age < providerLifetime:
		return u.found, nil
	case u.found == nil && age < providerPause:
		return nil, errProvider
	}
	p, err := u.discover(ctx)
	if ctx.Err() == nil {
		u.foundAt = u.opts.Now()
	}
	if err == nil {
		u.found = p
	} else if u.found == nil {
		return nil, err
	}
	return u.found, nil
}

func (u *Upstream) discover(ctx context.Context) (*upstreamProvider, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, u.client), u.opts.Issuer)
	if err != nil {
		return nil, u.failed(errProvider, err)
	}
	var more struct {
		Methods      []string `json:"token_endpoint_auth_methods_supported"`
		SendsIssuer  bool     `json:"authorization_response_iss_parameter_supported"`
		KeysLocation string   `json:"jwks_uri"`
	}
	if found.Claims(&more) != nil {
		return nil, errProvider
	}
	p := &upstreamProvider{Provider: found, endpoint: found.Endpoint(), sendsIssuer: more.SendsIssuer}
	if _, err := oauth.CheckAuthorizationURL(p.endpoint.AuthURL); err != nil {
		return nil, fmt.Errorf("%w: authorization endpoint: %w", errProvider, err)
	}
	for what, location := range map[string]string{"token endpoint": p.endpoint.TokenURL, "keys": more.KeysLocation} {
		if _, err := oauth.CheckEndpoint(location); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errProvider, what, err)
		}
	}
	// To find out by trying would send the code twice.
	p.endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if u.opts.ClientSecret == "" || more.Methods != nil && !slices.Contains(more.Methods, "client_secret_basic") {
		p.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return p, nil
}

// fetchClient is an http.Client all of whose requests a Fetcher makes, with
// the Fetcher's rules, and none of its own.
func fetchClient(f *oauth.Fetcher) *http.Client {
	return &http.Client{
		Transport: fetchTransport{f},
		// The Fetcher has followed what may be followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type fetchTransport struct{ fetch *oauth.Fetcher }

// maxSent is the size in bytes of the largest form that is sent to a provider.
const maxSent = 64 << 10

// RoundTrip implements http.RoundTripper for what x/oauth2 and go-oidc send:
// GET, and POST of a form.
func (t fetchTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(io.LimitReader(r.Body, maxSent+1))
		_ = r.Body.Close() // it was read
		if err != nil || len(body) > maxSent {
			return nil, errors.New("request to a provider cannot be read")
		}
	}
	var got *oauth.Response
	var err error
	switch r.Method {
	case http.MethodGet:
		got, err = t.fetch.Get(r.Context(), r.URL.String(), r.Header)
	case http.MethodPost:
		var form url.Values
		if form, err = url.ParseQuery(string(body)); err == nil {
			got, err = t.fetch.PostForm(r.Context(), r.URL.String(), form, r.Header)
		}
	default:
		err = fmt.Errorf("requests to a provider are not made with %s", r.Method)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(got.Status), StatusCode: got.Status, Header: got.Header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(got.Body)), ContentLength: int64(len(got.Body)),
	}, nil
}
