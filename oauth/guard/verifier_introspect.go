package guard

import (
	"context"
	"crypto"
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
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// IntrospectionOptions adjust Introspection. Either ClientID, with ClientSecret
// or Signer, or Authorize is needed.
type IntrospectionOptions struct {
	// Endpoint is where tokens are asked about. Default: where the metadata of
	// the issuer says.
	Endpoint string
	// ClientID and ClientSecret are the credentials of this resource server,
	// sent by HTTP Basic authentication, or in the form if the metadata lists
	// client_secret_post and not client_secret_basic.
	ClientID, ClientSecret string
	// Signer is the private key of ClientID instead of a secret: the client
	// authenticates by private_key_jwt (RFC 7523, section 3). Algorithm and
	// KeyID have defaults that suit the key: the usual algorithm, and the
	// thumbprint (RFC 7638). Default nil.
	Signer           crypto.Signer
	Algorithm, KeyID string
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
	endpoint string    // "" until it is known
	inForm   bool      // the secret is sent in the form
	answered time.Time // when the last question was answered; the zero time if it was not
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
	if v.opts.Signer == nil {
		return nil
	}
	if v.opts.ClientID == "" || v.opts.ClientSecret != "" {
		return errors.New("introspection: a Signer goes with a ClientID, and without a ClientSecret")
	}
	if _, err := jwt.KeyOf(v.opts.Signer, v.opts.Algorithm, v.opts.KeyID); err != nil {
		return fmt.Errorf("introspection: key of the client: %w", err)
	}
	return nil
}

func (v *introspection) seesRevocation() bool { return true }

// try asks about a token that nobody has: the answer must be that it is not active.
func (v *introspection) try(ctx context.Context) []error {
	body, err := v.ask(ctx, oauth.NewSecret())
	if err == nil {
		var a struct {
			Active *bool `json:"active"`
		}
		switch err = wire.Decode(body, &a); {
		case err != nil:
			err = fmt.Errorf("answer of the introspection endpoint of %s: %w", v.issuer, err)
		case a.Active == nil || *a.Active:
			err = &setupError{fmt.Errorf("the introspection endpoint of %s does not say that a made-up token is not active", v.issuer)}
		}
	}
	if err != nil {
		return []error{unavailable(err)}
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

// ask sends the question, and notes whether it was answered.
func (v *introspection) ask(ctx context.Context, token string) ([]byte, error) {
	body, err := v.send(ctx, token)
	var answered time.Time
	if err == nil {
		answered = v.opts.Now()
	}
	v.mu.Lock()
	v.answered = answered
	v.mu.Unlock()
	return body, err
}

func (v *introspection) send(ctx context.Context, token string) ([]byte, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	endpoint, inForm, err := v.place(ctx)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Accept": {"application/json"}}
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	if err := v.authenticate(ctx, header, form, inForm); err != nil {
		return nil, err
	}
	r, err := v.fetch.PostForm(ctx, endpoint, form, header)
	if err != nil {
		if errors.As(err, new(*oauth.BlockedError)) {
			err = &setupError{err}
		}
		return nil, err
	}
	if err := v.refusal(endpoint, r); err != nil {
		return nil, err
	}
	if r.Status/100 != 2 || !r.JSON() || len(r.Body) > maxIntrospection {
		return nil, fmt.Errorf("%s: status %d and no JSON answer of a usual size", endpoint, r.Status)
	}
	return r.Body, nil
}

// refusal is the error of an answer that refuses the client, not the token (RFC 7662, section 2.3).
func (v *introspection) refusal(endpoint string, r *oauth.Response) error {
	switch {
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
	case r.Status == http.StatusBadRequest && oauth.ParseError(r.Status, r.Body).Code == oauth.InvalidClient:
	default:
		return nil
	}
	return &setupError{fmt.Errorf("%s refuses the client %q of this server (status %d): check its id, its secret or key, "+
		"and that it may introspect", endpoint, v.opts.ClientID, r.Status)}
}

// authenticate adds to a question what proves who asks.
func (v *introspection) authenticate(ctx context.Context, header http.Header, form url.Values, inForm bool) error {
	switch {
	case v.opts.Authorize != nil:
		own, err := v.opts.Authorize(ctx)
		if err != nil {
			return fmt.Errorf("own token: %w", err)
		}
		header.Set("Authorization", "Bearer "+own)
	case v.opts.Signer != nil:
		assertion, err := v.assertion()
		if err != nil {
			return err
		}
		form.Set("client_assertion_type", oauth.ClientAssertionJWT)
		form.Set("client_assertion", assertion)
	case inForm:
		form.Set("client_id", v.opts.ClientID)
		form.Set("client_secret", v.opts.ClientSecret)
	default:
		// RFC 6749, section 2.3.1: both are form-encoded first.
		pair := url.QueryEscape(v.opts.ClientID) + ":" + url.QueryEscape(v.opts.ClientSecret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	return nil
}

// assertionLife is the life of a client assertion: clocks may differ a little.
const assertionLife = time.Minute

// assertion identifies the client by its key (RFC 7523, section 3), to the issuer and nobody else.
func (v *introspection) assertion() (string, error) {
	key, err := jwt.KeyOf(v.opts.Signer, v.opts.Algorithm, v.opts.KeyID)
	if err != nil {
		return "", fmt.Errorf("key of the client: %w", err)
	}
	now := v.opts.Now()
	signed, err := key.Sign(jwt.TypeJWT, &jwt.Claims{
		Issuer: v.opts.ClientID, Subject: v.opts.ClientID, Audience: []string{v.issuer},
		ID: oauth.NewSecret(), IssuedAt: now, Expiry: now.Add(assertionLife),
	})
	if err != nil {
		return "", fmt.Errorf("signing the client assertion: %w", err)
	}
	return signed, nil
}

// place is the endpoint, and whether it takes the secret in the form alone. The metadata is asked
// for both once.
func (v *introspection) place(ctx context.Context) (endpoint string, inForm bool, _ error) {
	v.mu.Lock()
	endpoint, inForm = v.endpoint, v.inForm
	v.mu.Unlock()
	if endpoint != "" {
		return endpoint, inForm, nil
	}
	m, err := v.find(ctx)
	if err != nil {
		return "", false, err
	}
	if m.IntrospectionEndpoint == "" {
		return "", false, &setupError{fmt.Errorf("the metadata of %s names %s (RFC 7662)", v.issuer, absence(m, "introspection_endpoint", "no introspection endpoint"))}
	}
	listed := m.IntrospectionEndpointAuthMethodsSupported
	inForm = slices.Contains(listed, oauth.AuthSecretPost) && !slices.Contains(listed, oauth.AuthSecretBasic)
	v.mu.Lock()
	v.endpoint, v.inForm = m.IntrospectionEndpoint, inForm
	v.mu.Unlock()
	return m.IntrospectionEndpoint, inForm, nil
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
		return nil, failed("active", "the issuer says that the token is not active")
	}
	if a.Issuer != "" && a.Issuer != v.issuer {
		return nil, foreignIssuer(a.Issuer, v.Issuers())
	}
	thumbprint, err := keyOf(a.Confirm)
	if err != nil {
		return nil, failed("proof", "%w", err)
	}
	kinds := []string{"", "bearer", "dpop"}
	if thumbprint == "" {
		kinds = kinds[:2] // bound to a key that is not known
	}
	if !slices.Contains(kinds, strings.ToLower(a.TokenType)) {
		return nil, failed("type", "token_type %.64q is not that of an access token that can be checked", a.TokenType)
	}
	t := &Token{
		nominal: unix(a.Expiry),
		Issuer:  v.issuer, Subject: a.Subject, Client: a.Client, Thumbprint: thumbprint,
		Expiry: later(unix(a.Expiry), v.opts.Skew), NotBefore: later(unix(a.NotBefore), -v.opts.Skew),
	}
	now := v.opts.Now()
	if !t.Expiry.IsZero() && !now.Before(t.Expiry) {
		return nil, failed("expiry", "the token has expired")
	}
	if t.Scopes, err = oauth.ParseScope(a.Scope); err != nil {
		return nil, failed("scope", "scope: %w", err)
	}
	if t.Audience, err = texts(a.Audience); err != nil {
		return nil, failed("audience", "aud: %w", err)
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
