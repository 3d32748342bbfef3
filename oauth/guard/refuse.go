package guard

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// A kind is a reason why a request does not pass.
type kind uint8

const (
	kindNone        kind = iota
	kindMissing          // no token
	kindMalformed        // a header that is none
	kindInvalid          // a token that does not count
	kindScope            // a token that does not suffice
	kindProof            // a DPoP proof that does not count
	kindNonce            // a DPoP proof without a nonce of ours
	kindUnavailable      // it cannot be verified now
	kinds
)

// An answer is a refusal, made once: its texts are fixed, so that nothing of a
// token, and nothing about it, can be in them.
type answer struct {
	kind      kind
	status    int
	challenge string
	body      []byte
}

// answers are all refusals, with challenges of either scheme.
type answers [kinds][2]answer

func (a *answers) of(k kind, dpop bool) *answer {
	if dpop {
		return &a[k][schemeDPoP]
	}
	return &a[k][schemeBearer]
}

// refusals says of each kind what is told. RFC 6750, section 3.1, RFC 9449,
// section 7.1; spec 2026-07-28, basic/authorization, Error Handling.
var refusals = [kinds]struct {
	status            int
	code, description string
}{
	// RFC 6750, section 3.1: no error code where there is no token.
	kindMissing:     {http.StatusUnauthorized, "", "An access token is needed."},
	kindMalformed:   {http.StatusBadRequest, oauth.InvalidRequest, "The request needs one Authorization header with one token."},
	kindInvalid:     {http.StatusUnauthorized, oauth.InvalidToken, "The access token is malformed, expired, revoked, or not for this resource."},
	kindScope:       {http.StatusForbidden, oauth.InsufficientScope, "The access token lacks a scope that this request needs."},
	kindProof:       {http.StatusUnauthorized, oauth.InvalidDPoPProof, "The request needs one fresh DPoP proof of the key that the token is bound to."},
	kindNonce:       {http.StatusUnauthorized, oauth.UseDPoPNonce, "The DPoP proof needs the nonce of the DPoP-Nonce header."},
	kindUnavailable: {http.StatusServiceUnavailable, oauth.TemporarilyUnavailable, "The access token cannot be checked now."},
}

// prepare makes all answers.
func (g *Guard) prepare() (a answers) {
	for k := kindMissing; k < kinds; k++ {
		told := refusals[k]
		body, err := wire.Marshal(struct {
			Error       string `json:"error,omitzero"`
			Description string `json:"error_description"`
		}{told.code, told.description})
		if err != nil {
			panic("guard: a fixed text that is no JSON: " + err.Error())
		}
		for _, s := range []scheme{schemeBearer, schemeDPoP} {
			a[k][s] = answer{kind: k, status: told.status, body: body}
			if k != kindUnavailable {
				a[k][s].challenge = g.compose(s, k, g.opts.Scopes)
			}
		}
	}
	return a
}

// compose makes a challenge. scope is what the operation needs in all, so that
// one round of authorization does (spec 2026-07-28, basic/authorization,
// Runtime Insufficient Scope Errors: SHOULD).
func (g *Guard) compose(s scheme, k kind, scopes []string) string {
	params := map[string]string{"resource_metadata": g.document.url}
	if told := refusals[k]; told.code != "" {
		params["error"], params["error_description"] = told.code, told.description
	}
	if len(scopes) > 0 {
		params["scope"] = oauth.JoinScope(scopes)
	}
	if s == schemeDPoP {
		params["algs"] = strings.Join(jwt.DefaultAlgorithms(), " ")
	}
	return oauth.Challenge{Scheme: s.String(), Params: params}.String()
}

// challenge is what a caller whose token lacks scopes is told: all that the
// operation needs. spec 2026-07-28, basic/authorization, Refresh Tokens:
// offline_access SHOULD NOT be in it.
func (g *Guard) challenge(s scheme, scopes []string) string {
	all := oauth.UnionScopes(g.opts.Scopes, scopes)
	return g.compose(s, kindScope, slices.DeleteFunc(all, func(scope string) bool {
		return checkScopes([]string{scope}) != nil
	}))
}

// exposed are the headers that scripts of allowed pages may read.
const exposed = "WWW-Authenticate, DPoP-Nonce, Retry-After"

// refuse answers a request that does not pass.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, a *answer) {
	h := w.Header()
	if page := g.page(r); page != "" {
		h.Set("Access-Control-Allow-Origin", page)
		h.Set("Access-Control-Expose-Headers", exposed)
	}
	if len(g.opts.Origins) > 0 {
		h.Add("Vary", "Origin")
	}
	if a.challenge != "" {
		h.Set("WWW-Authenticate", a.challenge)
	}
	switch a.kind {
	case kindUnavailable:
		if h.Get("Retry-After") == "" {
			h.Set("Retry-After", "1")
		}
	case kindNonce:
		h.Set("DPoP-Nonce", g.nonces.fresh(g.opts.Now()))
	default:
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may have gone
}

// setRetryAfter says when to try again, if that is known: not before the time has passed.
func setRetryAfter(h http.Header, wait time.Duration) {
	if wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
}
