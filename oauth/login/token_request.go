package login

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// grantRequest is what a Grant works with.
type grantRequest struct {
	fetch    *oauth.Fetcher
	meta     *oauth.ServerMetadata
	creds    *Credentials
	resource string
	scopes   []string
	dpop     *dpopSigner // nil without DPoP
	now      func() time.Time
}

// form begins a token request (spec 2026-07-28, basic/authorization: with resource, MUST).
func (q *grantRequest) form(grantType string) url.Values {
	form := url.Values{"grant_type": {grantType}}
	if len(q.scopes) > 0 {
		form.Set("scope", oauth.JoinScope(q.scopes))
	}
	if q.resource != "" {
		form.Set("resource", q.resource)
	}
	return form
}

// requestToken makes a token request: authenticates the client (basic, post, private_key_jwt with
// the issuer as audience, none), adds a DPoP proof if there is a signer, and repeats it once with
// the nonce the server asked for. An error response is an *oauth.Error. form is not written to.
func requestToken(ctx context.Context, q *grantRequest, form url.Values) (*oauth.TokenResponse, error) {
	res, method, err := postToken(ctx, q, form)
	if err != nil {
		return nil, fmt.Errorf("token request: %w", err)
	}
	tokens, err := oauth.ParseTokenResponse(res.Body)
	said, listed := oauth.ParseError(res.Status, res.Body), q.meta.TokenEndpointAuthMethodsSupported
	succeeded := res.Status/100 == 2 // RFC 6749, section 5.1, says 200; some servers create a token with 201
	switch {
	case succeeded && err == nil:
		return tokens, nil
	case succeeded && said.Code == "":
		err = fmt.Errorf("answer of the authorization server: %w", err)
	case succeeded: // some servers report errors so
		err = said
	case res.Status == http.StatusTooManyRequests, res.Status >= 500, said.Code == oauth.TemporarilyUnavailable, said.Code == oauth.ServerError:
		err = &Error{Retry: true, Err: said}
	case said.Code == oauth.InvalidClient && method == oauth.AuthNone && len(listed) > 0:
		err = fmt.Errorf("%w (%s)", said, authAdvice(listed))
	default:
		err = said
	}
	return nil, fmt.Errorf("token request: %w", err)
}

// postToken sends the request, and once more if the server asks for a nonce in the proof (RFC 9449,
// section 8), with another assertion and proof. It returns how the client authenticated.
func postToken(ctx context.Context, q *grantRequest, form url.Values) (*oauth.Response, string, error) {
	endpoint := q.meta.TokenEndpoint
	if endpoint == "" {
		return nil, "", errors.New("the authorization server has no token endpoint")
	}
	for repeated := false; ; repeated = true {
		body, header := maps.Clone(form), jsonHeader()
		method, err := q.authenticate(body, header)
		if err != nil {
			return nil, "", err
		}
		var sent string
		if q.dpop != nil {
			var proof string
			if proof, sent, err = q.dpop.proof(http.MethodPost, endpoint, "", q.now()); err != nil {
				return nil, "", fmt.Errorf("DPoP proof: %w", err)
			}
			header.Set(headerDPoP, proof)
		}
		res, err := q.fetch.PostForm(ctx, endpoint, body, header)
		if err != nil {
			return nil, "", unreachable(err)
		}
		if q.dpop == nil {
			return res, method, nil
		}
		q.dpop.learn(endpoint, res.Header)
		nonce := nonceIn(res.Header)
		if repeated || nonce == "" || nonce == sent || res.Status < 400 ||
			oauth.ParseError(res.Status, res.Body).Code != oauth.UseDPoPNonce {
			return res, method, nil
		}
	}
}

// revokeToken asks the server to forget a token (RFC 7009), with the client authenticated as at the
// token endpoint. hint is "access_token", "refresh_token" or empty. A server without a revocation
// endpoint is no error, nor is a token that it does not know (RFC 7009, section 2.2).
func revokeToken(ctx context.Context, q *grantRequest, token, hint string) error {
	if q.meta.RevocationEndpoint == "" || token == "" {
		return nil
	}
	form, header := url.Values{"token": {token}}, jsonHeader()
	if hint != "" {
		form.Set("token_type_hint", hint)
	}
	_, err := q.authenticate(form, header)
	var res *oauth.Response
	if err == nil {
		res, err = q.fetch.PostForm(ctx, q.meta.RevocationEndpoint, form, header)
	}
	if err == nil && res.Status/100 != 2 {
		err = oauth.ParseError(res.Status, res.Body)
	}
	if err != nil {
		return fmt.Errorf("revoking a token: %w", err)
	}
	return nil
}
