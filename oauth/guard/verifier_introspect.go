package guard

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

// IntrospectionOptions adjust Introspection. Either ClientID or Authorize is
// needed.
type IntrospectionOptions struct {
	// Endpoint is where tokens are asked about. Default: where the metadata of
	// the issuer says.
	Endpoint string
	// ClientID and ClientSecret are the credentials of this resource server,
	// sent by HTTP Basic authentication.
	ClientID, ClientSecret string
	// Authorize gives a bearer token of this resource server instead. It is
	// called for each question. Default nil.
	Authorize func(ctx context.Context) (string, error)
	// Skew is how far the clock of the issuer may differ. Default 30 s; -1: not at all.
	Skew time.Duration
	// Fetch asks. Default: oauth.NewFetcher(nil), which never reaches into
	// private networks.
	Fetch *oauth.Fetcher
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Introspection verifies tokens by asking issuer about each (RFC 7662): for
// tokens that are no JWTs, or must be known to be revoked. How often it is
// asked about the same token depends on [Options].CacheAge.
func Introspection(issuer string, o *IntrospectionOptions) Verifier {
	v := &introspection{}
	if o != nil {
		v.opts = *o
	}
	v.opts.Skew = tolerance(v.opts.Skew)
	if v.opts.Now == nil {
		v.opts.Now = time.Now
	}
	v.endpoint = v.opts.Endpoint
	where := issuer
	if v.endpoint != "" {
		where = v.endpoint
	}
	v.metadataFinder = newFinder(issuer, v.opts.Fetch, onLoopback(where))
	return v
}

// maxIntrospection is the size in bytes of the largest answer.
const maxIntrospection = 64 << 10

type introspection struct {
	metadataFinder
	opts IntrospectionOptions

	mu       sync.Mutex
	endpoint string // "" until it is known
}

func (v *introspection) check() error {
	if _, err := oauth.CheckIssuer(v.issuer); err != nil {
		return fmt.Errorf("issuer: %w", err)
	}
	if v.opts.Endpoint != "" {
		if _, err := oauth.CheckEndpoint(v.opts.Endpoint); err != nil {
			return fmt.Errorf("introspection endpoint: %w", err)
		}
	}
	if (v.opts.ClientID == "") == (v.opts.Authorize == nil) {
		return errors.New("introspection needs either ClientID or Authorize")
	}
	return nil
}

// Issuers is part of Verifier.
func (v *introspection) Issuers() []string { return []string{v.issuer} }

// Verify is part of Verifier.
func (v *introspection) Verify(ctx context.Context, token string) (*Token, error) {
	body, err := v.ask(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("%w: introspection: %w", ErrUnavailable, err)
	}
	o, err := wire.ParseObject(body, wire.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%w: answer of the introspection endpoint: %w", ErrUnavailable, err)
	}
	return v.read(o)
}

// ask sends the question.
func (v *introspection) ask(ctx context.Context, token string) ([]byte, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	endpoint, err := v.place(ctx)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Accept": {"application/json"}}
	if v.opts.Authorize != nil {
		own, err := v.opts.Authorize(ctx)
		if err != nil {
			return nil, fmt.Errorf("own token: %w", err)
		}
		header.Set("Authorization", "Bearer "+own)
	} else {
		// RFC 6749, section 2.3.1: both are form-encoded first.
		pair := url.QueryEscape(v.opts.ClientID) + ":" + url.QueryEscape(v.opts.ClientSecret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	r, err := v.fetch.PostForm(ctx, endpoint, url.Values{"token": {token}, "token_type_hint": {"access_token"}}, header)
	if err != nil {
		return nil, err
	}
	if r.Status != http.StatusOK || !r.JSON() || len(r.Body) > maxIntrospection {
		return nil, fmt.Errorf("status %d and no JSON answer of a usual size", r.Status)
	}
	return r.Body, nil
}

// place is the endpoint, which the metadata is asked for once.
func (v *introspection) place(ctx context.Context) (string, error) {
	v.mu.Lock()
	endpoint := v.endpoint
	v.mu.Unlock()
	if endpoint != "" {
		return endpoint, nil
	}
	m, err := v.find(ctx)
	if err != nil {
		return "", err
	}
	if m.IntrospectionEndpoint == "" {
		return "", fmt.Errorf("the metadata of %s names no introspection endpoint", v.issuer)
	}
	v.mu.Lock()
	v.endpoint = m.IntrospectionEndpoint
	v.mu.Unlock()
	return m.IntrospectionEndpoint, nil
}

// read is what an answer says of a token.
func (v *introspection) read(o wire.Object) (*Token, error) {
	var a struct {
		Active    bool                     `json:"active"`
		Issuer    string                   `json:"iss"`
		Subject   string                   `json:"sub"`
		Client    string                   `json:"client_id"`
		Audience  wire.RawValue            `json:"aud"`
		Scope     string                   `json:"scope"`
		TokenType string                   `json:"token_type"`
		Expiry    *float64                 `json:"exp"`
		NotBefore *float64                 `json:"nbf"`
		Confirm   map[string]wire.RawValue `json:"cnf"`
	}
	if err := wire.Decode(o.Raw(), &a); err != nil {
		return nil, fmt.Errorf("%w: answer of the introspection endpoint: %w", ErrUnavailable, err)
	}
	if !a.Active {
		return nil, errors.New("the issuer says that the token is not active")
	}
	if a.Issuer != "" && a.Issuer != v.issuer {
		return nil, fmt.Errorf("the token is of another issuer, %q", a.Issuer)
	}
	thumbprint, err := keyOf(a.Confirm)
	if err != nil {
		return nil, err
	}
	kinds := []string{"", "bearer", "dpop"}
	if thumbprint == "" {
		kinds = kinds[:2] // bound to a key that is not known
	}
	if !slices.Contains(kinds, strings.ToLower(a.TokenType)) {
		return nil, fmt.Errorf("token_type %q is not that of an access token that can be checked", a.TokenType)
	}
	t := &Token{
		Issuer: v.issuer, Subject: a.Subject, Client: a.Client, Thumbprint: thumbprint,
		Expiry: later(unix(a.Expiry), v.opts.Skew), NotBefore: later(unix(a.NotBefore), -v.opts.Skew),
	}
	now := v.opts.Now()
	if !t.Expiry.IsZero() && !now.Before(t.Expiry) {
		return nil, errors.New("the token has expired")
	}
	if t.Scopes, err = oauth.ParseScope(a.Scope); err != nil {
		return nil, fmt.Errorf("scope: %w", err)
	}
	if t.Audience, err = texts(a.Audience); err != nil {
		return nil, fmt.Errorf("aud: %w", err)
	}
	return t, nil
}

// keyOf reads what a token is bound to (RFC 7800): to nothing, or by jkt alone.
// A binding that is not checked must not be taken for none.
func keyOf(confirm map[string]wire.RawValue) (thumbprint string, err error) {
	if len(confirm) == 0 {
		return "", nil
	}
	raw, ok := confirm["jkt"]
	if ok {
		ok = wire.Decode(raw, &thumbprint) == nil && thumbprint != ""
	}
	if !ok || len(confirm) > 1 {
		return "", errors.New("the token is bound to a key in a way that is not checked here")
	}
	return thumbprint, nil
}

// texts reads a text or a list of texts.
func texts(raw wire.RawValue) ([]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var one string
	if wire.Decode(raw, &one) == nil {
		return []string{one}, nil
	}
	var list []string
	err := wire.Decode(raw, &list)
	return list, err
}

// latest is the last time that is taken for one, in Unix seconds: the year 9999.
const latest = 253402300799

// unix is a time of whole seconds; nil is absent, and nothing is before
// 1970.
func unix(seconds *float64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return time.Unix(int64(max(0, min(*seconds, latest))), 0)
}
