package login

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
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
	// passed is called with what was passed over in an answer, for people. nil: nobody wants to know.
	passed func(ctx context.Context, notes []note)
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
	res, sent, method, err := postToken(ctx, q, form)
	if err != nil {
		return nil, fmt.Errorf("token request: %w", err)
	}
	tokens, err := oauth.ParseTokenResponse(res.Body)
	said, listed := q.said(res, sent), q.meta.TokenEndpointAuthMethodsSupported
	succeeded := res.Status/100 == 2 // RFC 6749, section 5.1, says 200; some servers create a token with 201
	switch {
	case succeeded && err == nil:
		if q.passed != nil {
			q.passed(ctx, noteMembers(q.meta.TokenEndpoint, tokens.Ignored))
		}
		return tokens, nil
	case succeeded && said.Code == "":
		err = fmt.Errorf("answer of the authorization server: %w", err)
		if _, words, ok := strings.Cut(said.Description, http.StatusText(res.Status)+": "); ok {
			err = fmt.Errorf("%w; it says: %s", err, words)
		}
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

// secretFields are the parameters of requests that no error may show.
var secretFields = []string{
	"code", "code_verifier", "refresh_token", "device_code", "token",
	"client_secret", "client_assertion", "assertion", "subject_token",
}

// said is the error in the answer to a form, without the secrets that were sent, which some servers
// repeat.
func (q *grantRequest) said(res *oauth.Response, sent url.Values) *oauth.Error {
	// What is shorter is no secret, and stands in many words. The parts between characters that are
	// escaped in some way are the same in each.
	const shortest, shortestPart = 4, 8
	var pairs []string
	hide := func(secret string) {
		if len(secret) < shortest {
			return
		}
		pairs = append(pairs, secret, "[hidden]", url.QueryEscape(secret), "[hidden]")
		for _, part := range strings.FieldsFunc(secret, isEscaped) {
			if len(part) >= shortestPart {
				pairs = append(pairs, part, "[hidden]")
			}
		}
	}
	for _, name := range secretFields {
		hide(sent.Get(name))
	}
	if q.creds != nil {
		hide(q.creds.Secret)
		hide(strings.TrimPrefix(basic(q.creds.ClientID, q.creds.Secret), "Basic "))
	}
	hidden := strings.NewReplacer(pairs...)
	// Before, so that none is cut in two, and after, for those that JSON wrote in another way.
	e := oauth.ParseError(res.Status, []byte(hidden.Replace(string(res.Body))))
	e.Code, e.Description, e.URI = hidden.Replace(e.Code), hidden.Replace(e.Description), hidden.Replace(e.URI)
	return e
}

// isEscaped reports whether URLs, JSON or HTML may write a character of a secret in another way.
func isEscaped(r rune) bool {
	return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._", r)
}

// postToken sends the request, and once more if the server asks for a nonce in the proof (RFC 9449,
// section 8), with another assertion and proof. It returns what was sent, and how the client
// authenticated.
func postToken(ctx context.Context, q *grantRequest, form url.Values) (res *oauth.Response, sent url.Values, method string, err error) {
	endpoint := q.meta.TokenEndpoint
	if endpoint == "" {
		return nil, nil, "", errors.New("the authorization server has no token endpoint")
	}
	for repeated := false; ; repeated = true {
		header := jsonHeader()
		sent = maps.Clone(form)
		if method, err = q.authenticate(sent, header); err != nil {
			return nil, nil, "", err
		}
		var used string
		if q.dpop != nil {
			var proof string
			if proof, used, err = q.dpop.proof(http.MethodPost, endpoint, "", q.now()); err != nil {
				return nil, nil, "", fmt.Errorf("DPoP proof: %w", err)
			}
			header.Set(headerDPoP, proof)
		}
		if res, err = q.fetch.PostForm(ctx, endpoint, sent, header); err != nil {
			return nil, nil, "", unreachable(err)
		}
		if q.dpop == nil {
			return res, sent, method, nil
		}
		q.dpop.learn(endpoint, res.Header)
		nonce := nonceIn(res.Header)
		if repeated || nonce == "" || nonce == used || res.Status < 400 ||
			oauth.ParseError(res.Status, res.Body).Code != oauth.UseDPoPNonce {
			return res, sent, method, nil
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
		err = q.said(res, form)
	}
	if err != nil {
		return fmt.Errorf("revoking a token: %w", err)
	}
	return nil
}
