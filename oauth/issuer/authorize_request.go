package issuer

import (
	"context"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// Bounds of what a request may carry along, in bytes.
const (
	maxState = 4096
	maxNonce = 512
	maxHint  = 256
)

// Errors of OpenID Connect Core 1.0, section 3.1.2.6, for what is not spoken here.
const (
	requestNotSupported      = "request_not_supported"
	requestURINotSupported   = "request_uri_not_supported"
	registrationNotSupported = "registration_not_supported"
)

// readRequest reads the parameters of a request whose client and redirect URI
// are verified into it. State comes first, since errors carry it too.
func (s *Server) readRequest(ctx context.Context, it *interaction, c *Client, q url.Values) *oauth.Error {
	if len(q["state"]) == 1 && len(q.Get("state")) <= maxState {
		it.State = q.Get("state")
	}
	if problem := checkForm(q); problem != nil {
		return problem
	}
	if !mayAuthorize(c) {
		return &oauth.Error{Code: oauth.UnauthorizedClient, Description: "this client may not ask for codes"}
	}
	// spec 2026-07-28, basic/authorization/security-considerations: PKCE MUST,
	// and S256 alone. "plain" is the default of RFC 7636, so the method must be named.
	if q.Get("code_challenge_method") != oauth.MethodS256 || !oauth.ValidChallenge(q.Get("code_challenge")) {
		return invalidRequest("code_challenge with code_challenge_method S256 is required")
	}
	it.Challenge = q.Get("code_challenge")
	if it.Key = q.Get("dpop_jkt"); it.Key != "" && !oauth.ValidChallenge(it.Key) {
		return invalidRequest("dpop_jkt is not a thumbprint") // it has the form of a challenge: SHA-256 in base64url
	}
	it.Nonce, it.Hint = q.Get("nonce"), q.Get("login_hint")
	if problem := it.readPrompt(q.Get("prompt")); problem != nil {
		return problem
	}
	return s.readTarget(ctx, it, c, q)
}

// checkForm checks what concerns all parameters, and refuses what would change
// the meaning of the others.
func checkForm(q url.Values) *oauth.Error {
	for name, values := range q {
		// RFC 6749, section 3.1: no parameter more than once. resource may come
		// several times (RFC 8707), but a token is for one here.
		if len(values) > 1 {
			if name == "resource" {
				return &oauth.Error{Code: oauth.InvalidTarget, Description: "one resource at a time"}
			}
			return invalidRequest("a parameter is there twice")
		}
	}
	for name, code := range map[string]string{
		"request": requestNotSupported, "request_uri": requestURINotSupported, "registration": registrationNotSupported,
	} {
		if q.Has(name) {
			return &oauth.Error{Code: code, Description: "parameters must be given one by one"}
		}
	}
	switch {
	case len(q.Get("state")) > maxState, len(q.Get("nonce")) > maxNonce, len(q.Get("login_hint")) > maxHint:
		return invalidRequest("a parameter is too long")
	case q.Get("response_type") == "":
		return invalidRequest("response_type is missing")
	case q.Get("response_type") != "code":
		return &oauth.Error{Code: oauth.UnsupportedResponseType, Description: "response_type must be code"}
	case q.Get("response_mode") != "" && q.Get("response_mode") != "query":
		return invalidRequest("response_mode must be query")
	}
	return nil
}

// readPrompt reads what the client wants the person to be asked (OpenID Connect
// Core 1.0, section 3.1.2.1).
func (it *interaction) readPrompt(prompt string) *oauth.Error {
	words := strings.Fields(prompt)
	for _, word := range words {
		switch word {
		case "none":
			if len(words) > 1 {
				return invalidRequest("prompt none stands alone")
			}
			it.Silent = true
		case "login", "select_account":
			it.Fresh = true
		case "consent":
			it.Ask = true
		default:
			return invalidRequest("prompt is unknown")
		}
	}
	return nil
}

// readTarget reads for what and how much the request asks.
func (s *Server) readTarget(ctx context.Context, it *interaction, c *Client, q url.Values) *oauth.Error {
	res, err := s.resourceFor(ctx, q.Get("resource"), c)
	if err != nil {
		return asError(err)
	}
	it.Resource = res.URI
	var asked []string
	if q.Get("scope") != "" {
		if asked, err = oauth.ParseScope(q.Get("scope")); err != nil {
			return &oauth.Error{Code: oauth.InvalidScope, Description: "scope cannot be read"}
		}
	}
	if it.Scopes, err = s.grantableScopes(res, c, asked); err != nil {
		return asError(err)
	}
	return nil
}

func invalidRequest(text string) *oauth.Error {
	return &oauth.Error{Code: oauth.InvalidRequest, Description: text}
}
