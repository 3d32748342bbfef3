package oauth

import (
	"html"
	"net/http"
	"regexp"
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

// ParseError reads the body of an error response with this status. Servers write errors in many
// forms: the code and the words are looked for in the members that they use, in lists and objects
// within, in JSON-RPC errors, in plain text and in the title of a page. Without a code, Code is "" and
// the Description begins with the status. Of an answer that reports success (2xx) nothing but an
// error member is read.
//
// The words are those of the server, which may repeat what it was sent.
func ParseError(status int, data []byte) *Error {
	e := &Error{Status: status}
	obj, err := wire.ParseObject(data, wire.Limits{Bytes: maxDocument, Depth: maxDepth})
	var text string
	switch _, named := obj.Member("error"); {
	case err == nil && (named || status/100 != 2):
		e.Code, text = errorCode(obj), errorText(obj.Raw(), 0)
		e.URI = cleanText(memberText(obj, "error_uri"), maxErrorText)
	case err != nil && status/100 != 2:
		text = pageText(data)
	}
	if text = cleanText(text, maxErrorText); text == e.Code {
		text = ""
	}
	e.Description = text
	if e.Code == "" {
		e.Description = "answer is no OAuth error: " + statusText(status)
		if text != "" {
			e.Description += ": " + text
		}
	}
	return e
}

// Longest parts of an error that are kept, in bytes.
const (
	maxErrorCode = 128
	maxErrorText = 1024
)

// codeNames are the members that have the code of an error, and textNames those with its words: OAuth's
// own first, then those of other kinds of servers. In some of them it is an object or a list.
var (
	codeNames = []string{"error", "error_code", "errorCode", "code"}
	textNames = []string{
		"error_description", "error", "message", "detail", "msg", "description",
		"error_message", "errorMessage", "errorSummary", "reason", "title", "errors",
	}
)

// errorCode is the code in an error, or "".
func errorCode(obj wire.Object) string {
	for _, name := range codeNames {
		raw, ok := obj.Member(name)
		if !ok {
			continue
		}
		code := memberText(obj, name)
		if inner, isObject := obj.Object(name); isObject && raw[0] == '{' {
			code = errorCode(inner)
		}
		if len(code) <= maxErrorCode && isScopeText(code) {
			return code
		}
	}
	return ""
}

// errorText is what an error says to people: itself, if it is a text, or the first of its members or
// items that says something.
func errorText(raw wire.RawValue, depth int) string {
	const deepest = 4
	switch {
	case len(raw) == 0 || depth > deepest:
	case raw[0] == '"':
		return wire.Text(raw)
	case raw[0] == '[':
		items, err := wire.ParseArray(raw, wire.Limits{Depth: maxDepth}, maxList)
		if err != nil {
			return ""
		}
		for _, item := range items {
			if text := errorText(item, depth+1); text != "" {
				return text
			}
		}
	case raw[0] == '{':
		obj, err := wire.ParseObject(raw, wire.Limits{Depth: maxDepth})
		if err != nil {
			return ""
		}
		code := ""
		for _, name := range textNames {
			member, _ := obj.Member(name)
			switch text := errorText(member, depth+1); {
			case text == "":
			case name == "error" && member[0] == '"' && isScopeText(text): // a code, unless nothing else is said
				code = text
			default:
				return text
			}
		}
		return code
	}
	return ""
}

// pageText is what an answer that is no object says to people: a text, or the title of a page.
func pageText(data []byte) string {
	text := string(data[:min(len(data), maxDocument)])
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "<") {
		title := pageTitle.FindStringSubmatch(trimmed)
		if title == nil {
			return ""
		}
		return html.UnescapeString(title[1])
	}
	if raw := wire.RawValue(strings.TrimSpace(text)); len(raw) > 0 && raw[0] == '[' {
		return errorText(raw, 0)
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return "" // an object that is none
	}
	return cleanText(text, maxPageText)
}

// maxPageText is how much of a text that is no error is shown, in bytes.
const maxPageText = 256

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

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
