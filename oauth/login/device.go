package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A DevicePrompt is what a person needs to sign in on another device (RFC 8628, section 3.3).
type DevicePrompt struct {
	// Prompt says what the person is asked for.
	Prompt
	// UserCode is to be entered at VerificationURI. It must be shown in any case (section 3.3.1: MUST).
	UserCode, VerificationURI string
	// VerificationURIComplete has the code in it, for a link or a QR code; it may be empty.
	VerificationURIComplete string
	// Expires is when the code ends.
	Expires time.Time
}

// authorizeDevice has a person sign in on another device, and waits for that. The answer of the
// token endpoint needs no check of its issuer (RFC 9207): it comes in no browser.
func (c *Client) authorizeDevice(ctx context.Context, p *plan) (*session, *Credentials, error) {
	creds, err := c.deviceClient(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	q := c.request(p.found, p.meta, creds, p.dpop)
	q.scopes = p.scopes
	asked, err := requestDevice(ctx, q)
	if err != nil {
		return nil, creds, newDiscoveryError(StepAuthorize, p.meta.DeviceAuthorizationEndpoint, err, "", adviceTellServer)
	}
	c.log.InfoContext(ctx, "asking a person to sign in on another device",
		"resource", p.resourceID(), "issuer", p.meta.Issuer, "why", string(p.why))
	p.asked = true
	life := time.Duration(asked.ExpiresIn) * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, life, errCodeExpired) // from now on, not from when the person was told
	defer cancel()
	if err := c.o.Device(ctx, DevicePrompt{
		Prompt: p.prompt(), UserCode: asked.UserCode, VerificationURI: asked.VerificationURI,
		VerificationURIComplete: asked.VerificationURIComplete, Expires: c.o.Now().Add(life),
	}); err != nil {
		return nil, creds, fmt.Errorf("sign in to %s at %s: %w", p.resourceID(), p.meta.Issuer, err)
	}
	tokens, err := pollToken(ctx, q, asked)
	if err != nil {
		return nil, creds, p.deviceError(err)
	}
	s, err := c.saveResponse(ctx, p, creds, tokens)
	return s, creds, err
}

var errCodeExpired = errors.New("nobody entered the code in time; sign in again for a new one")

// deviceError is the error of a sign-in on another device that brought no tokens.
func (p *plan) deviceError(err error) error {
	said, ok := errors.AsType[*oauth.Error](err)
	switch {
	case ok && said.Code == oauth.AccessDenied:
		return &AuthorizationError{Issuer: p.meta.Issuer, Code: said.Code, Description: said.Description}
	case ok && said.Code == oauth.ExpiredToken:
		return &AuthorizationError{Issuer: p.meta.Issuer, Code: said.Code, Reason: errCodeExpired.Error()}
	}
	return fmt.Errorf("sign in to %s at %s: %w", p.resourceID(), p.meta.Issuer, err)
}

// deviceClient are credentials for the device flow. A dynamic registration with a redirect URI is
// for browsers, and stays: there are tokens that belong to it.
func (c *Client) deviceClient(ctx context.Context, p *plan) (*Credentials, error) {
	unlock, err := c.o.Store.Lock(ctx, storeName(kindClient, p.meta.Issuer))
	if err != nil {
		return nil, fmt.Errorf("wait for another registration: %w", err)
	}
	defer unlock()
	creds, err := c.knownCredentials(ctx, p.meta)
	if err != nil || creds != nil && (!creds.Dynamic || len(creds.RedirectURIs) == 0) {
		return creds, err
	}
	return c.register(ctx, p, "")
}

// requestDevice asks for a device code and a user code (RFC 8628, section 3.1), with the client
// authenticated as at the token endpoint. A refusal is an *oauth.Error.
func requestDevice(ctx context.Context, q *grantRequest) (*oauth.DeviceAuthorization, error) {
	form, header := q.form(""), jsonHeader()
	form.Del("grant_type")
	if _, err := q.authenticate(form, header); err != nil {
		return nil, err
	}
	res, err := q.fetch.PostForm(ctx, q.meta.DeviceAuthorizationEndpoint, form, header)
	if err != nil {
		return nil, unreachable(err)
	}
	asked, err := oauth.ParseDeviceAuthorization(res.Body)
	said := q.said(res, form)
	switch {
	case res.Status == http.StatusTooManyRequests, res.Status >= 500:
		return nil, &Error{Retry: true, Err: said}
	case res.Status/100 != 2, err != nil && said.Code != "": // some servers report errors with 200
		return nil, said
	case err == nil && q.passed != nil:
		q.passed(ctx, noteMembers(q.meta.DeviceAuthorizationEndpoint, asked.Ignored))
	}
	return asked, err
}

// slowDown is by how much slow_down makes the interval longer, for good (RFC 8628, section 3.5: MUST).
const slowDown = 5 * time.Second

// pollToken waits for the tokens of a device code, until ctx ends (RFC 8628, sections 3.4 and 3.5).
// Between two requests it waits for the interval, and twice as long after each that brought no
// answer (MUST). Any other error ends it.
func pollToken(ctx context.Context, q *grantRequest, asked *oauth.DeviceAuthorization) (*oauth.TokenResponse, error) {
	form := url.Values{"grant_type": {oauth.GrantDeviceCode}, "device_code": {asked.DeviceCode}}
	if q.resource != "" {
		form.Set("resource", q.resource)
	}
	interval := time.Duration(asked.Interval) * time.Second
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
		tokens, err := requestToken(ctx, q, form)
		switch {
		case err == nil:
			return tokens, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, &oauth.Error{Code: oauth.AuthorizationPending}):
		case errors.Is(err, &oauth.Error{Code: oauth.SlowDown}):
			interval += slowDown
		case isTransient(err):
			interval *= 2
		default:
			return nil, err
		}
		timer.Reset(interval)
	}
}
