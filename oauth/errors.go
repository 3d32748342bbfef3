package oauth

import (
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/internal/wire"
)

// An Error is an error response of OAuth: from the token endpoint (RFC 6749,
// section 5.2), registration, introspection, or in an authorization response.
type Error struct {
	// Code is the registered word, such as invalid_grant.
	Code string `json:"error"`
	// Description and URI are for people. What a stranger sent is bounded and
	// has no control characters.
	Description string `json:"error_description,omitzero"`
	URI         string `json:"error_uri,omitzero"`
	// Status is the HTTP status it came or goes with; 0 is 400.
	Status int `json:"-"`
}

// Error is code and description.
func (e *Error) Error() string {
	switch {
	case e.Code == "" && e.Description == "":
		return "unknown OAuth error"
	case e.Code == "":
		return e.Description
	case e.Description == "":
		return e.Code
	}
	return e.Code + ": " + e.Description
}

// Is makes errors.Is compare by Code alone, so that
// errors.Is(err, &oauth.Error{Code: oauth.InvalidGrant}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ParseError reads the body of an error response with this status. A body that
// is none gives an Error with Code "" and a Description of its own, which
// names the status.
func ParseError(status int, data []byte) *Error {
	e := &Error{Status: status}
	obj, err := wire.ParseObject(data, wire.Limits{Bytes: maxDocument, Depth: maxDepth})
	if err == nil {
		e.Code = memberText(obj, "error")
	}
	if len(e.Code) > maxErrorCode || !isScopeText(e.Code) {
		return &Error{Status: status, Description: "answer is no OAuth error: " + statusText(status)}
	}
	e.Description = cleanText(memberText(obj, "error_description"), maxErrorText)
	e.URI = cleanText(memberText(obj, "error_uri"), maxErrorText)
	return e
}

// Longest parts of an error that are kept, in bytes.
const (
	maxErrorCode = 128
	maxErrorText = 1024
)

func statusText(status int) string {
	return strings.TrimSpace("status " + strconv.Itoa(status) + " " + http.StatusText(status))
}

// memberText is a member that is a text, or "".
func memberText(obj wire.Object, name string) string {
	raw, _ := obj.Member(name)
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return wire.Text(raw)
}

// cleanText makes what a stranger wrote for people fit to be shown: one line,
// only what prints (nothing that moves a cursor or turns the direction of
// writing), at most limit bytes.
func cleanText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
	}
	return s
}

// Registered error codes.
const (
	InvalidRequest          = "invalid_request"
	InvalidClient           = "invalid_client"
	InvalidGrant            = "invalid_grant"
	UnauthorizedClient      = "unauthorized_client"
	UnsupportedGrantType    = "unsupported_grant_type"
	UnsupportedResponseType = "unsupported_response_type"
	UnsupportedTokenType    = "unsupported_token_type"
	InvalidScope            = "invalid_scope"
	InvalidTarget           = "invalid_target"
	AccessDenied            = "access_denied"
	AuthorizationPending    = "authorization_pending"
	SlowDown                = "slow_down"
	ExpiredToken            = "expired_token"
	ServerError             = "server_error"
	TemporarilyUnavailable  = "temporarily_unavailable"
	LoginRequired           = "login_required"
	ConsentRequired         = "consent_required"
	InteractionRequired     = "interaction_required"
	InvalidToken            = "invalid_token"
	InsufficientScope       = "insufficient_scope"
	InvalidRedirectURI      = "invalid_redirect_uri"
	InvalidClientMetadata   = "invalid_client_metadata"
	InvalidDPoPProof        = "invalid_dpop_proof"
	UseDPoPNonce            = "use_dpop_nonce"
)
