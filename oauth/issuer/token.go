package issuer

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Bounds of a request to the token, revocation and introspection endpoints.
const (
	maxTokenBody   = 64 << 10
	maxTokenParams = 64
)

// A tokenRequest is a request to the token endpoint while it is served.
type tokenRequest struct {
	*http.Request
	form form
	now  time.Time
	// client is authenticated; public says that it cannot be. It is nil for
	// workloads, which are no clients until their assertion says so.
	client *Client
	public bool
	proof  *jwt.Proof // nil without DPoP
	event  Event
}

// A form holds parameters that were there once and not empty.
type form map[string]string

// grants are the grant types and the methods that serve them.
var grants = map[string]func(*Server, context.Context, *tokenRequest) (*oauth.TokenResponse, error){
	oauth.GrantAuthorizationCode: (*Server).redeemCode,
	oauth.GrantRefreshToken:      (*Server).redeemRefresh,
	oauth.GrantClientCredentials: (*Server).serveCredentials,
	oauth.GrantJWTBearer:         (*Server).redeemAssertion,
	oauth.GrantTokenExchange:     (*Server).exchangeToken,
	oauth.GrantDeviceCode:        (*Server).redeemDevice,
}

// serveToken is the token endpoint (RFC 6749, section 3.2). What it answers is
// for no cache (section 5.1).
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	q := &tokenRequest{Request: r, now: s.now()}
	q.event = Event{Name: "token.refused", Remote: s.opts.Remote(r)}
	answer, err := s.token(w, q)
	if err != nil {
		s.refuseClient(w, q, err)
		return
	}
	q.event.Name, q.event.Outcome = "token.issued", "ok"
	q.event.Scopes, _ = oauth.ParseScope(answer.Scope) // we joined it ourselves
	s.audit(r.Context(), q.event)
	answerJSON(w, http.StatusOK, answer)
}

func (s *Server) token(w http.ResponseWriter, q *tokenRequest) (*oauth.TokenResponse, error) {
	var err error
	if q.form, err = readForm(w, q.Request); err != nil {
		return nil, err
	}
	grantType := q.form["grant_type"]
	if grantType == "" {
		return nil, refuse(oauth.InvalidRequest, "grant_type is missing", nil)
	}
	serve, ok := grants[grantType]
	if !ok || grantType == oauth.GrantDeviceCode && !s.opts.Device.On {
		return nil, refuse(oauth.UnsupportedGrantType, "this grant type is not supported", nil)
	}
	q.event.GrantType = grantType
	if !s.fromWorkload(q) {
		if err := s.identify(q, "token"); err != nil {
			return nil, err
		}
		if !slices.Contains(grantTypes(q.client), grantType) {
			return nil, refuse(oauth.UnauthorizedClient, "the client is not registered for this grant type", nil)
		}
	}
	if err := s.checkProof(w, q); err != nil {
		return nil, err
	}
	answer, err := serve(s, q.Context(), q)
	if err == nil && q.client != nil && q.client.Dynamic {
		if err := s.store.UseClient(q.Context(), q.client.ID, q.now.Add(s.opts.Registration.Used)); err != nil {
			// No reason to keep back tokens whose predecessors are spent.
			s.log.ErrorContext(q.Context(), "noting the use of a client", "client", q.client.ID, "error", err.Error())
		}
	}
	return answer, err
}

// grantTypes are those that a client is registered for (RFC 7591, section 2).
func grantTypes(c *Client) []string {
	if len(c.Metadata.GrantTypes) > 0 {
		return c.Metadata.GrantTypes
	}
	return []string{oauth.GrantAuthorizationCode}
}

// readForm reads the parameters of a request from its body alone: those in
// the address would end in logs (RFC 6749, section 2.3.1). Each may be there
// once (section 3.2); one without a value counts as absent.
func readForm(w http.ResponseWriter, r *http.Request) (form, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, &refusal{out: &oauth.Error{
			Code: oauth.InvalidRequest, Description: "the body must be application/x-www-form-urlencoded",
			Status: http.StatusUnsupportedMediaType,
		}}
	}
	body, err := readBody(w, r, maxTokenBody)
	if err != nil {
		return nil, &refusal{
			out:    &oauth.Error{Code: oauth.InvalidRequest, Description: "the body cannot be read", Status: bodyStatus(err)},
			reason: err,
		}
	}
	values, err := url.ParseQuery(string(body))
	if err != nil || len(values) > maxTokenParams {
		// The reason would quote what was sent.
		return nil, refuse(oauth.InvalidRequest, "the body is no form", nil)
	}
	f := form{}
	for name, list := range values {
		if len(list) > 1 {
			if name == "resource" {
				return nil, refuse(oauth.InvalidTarget, "a token is for one resource", nil)
			}
			return nil, refuse(oauth.InvalidRequest, "a parameter is there more than once", nil)
		}
		if list[0] != "" {
			f[name] = list[0]
		}
	}
	return f, nil
}

// scopes are those that the request asks for.
func (f form) scopes() ([]string, error) {
	scopes, err := oauth.ParseScope(f["scope"])
	if err != nil {
		return nil, refuse(oauth.InvalidScope, "the scope parameter cannot be read", err)
	}
	return scopes, nil
}

// A refusal is an error with two faces: what the caller is told, which is
// fixed, and what the log is.
type refusal struct {
	out    *oauth.Error
	reason error
}

func (e *refusal) Error() string {
	if e.reason == nil {
		return e.out.Error()
	}
	return e.reason.Error()
}

func (e *refusal) Unwrap() []error {
	if e.reason == nil {
		return []error{e.out}
	}
	return []error{e.out, e.reason}
}

// refuse makes a refusal with a fixed text; reason may be nil.
func refuse(code, text string, reason error) error {
	return &refusal{out: &oauth.Error{Code: code, Description: text}, reason: reason}
}

// failure is what a caller is told when the fault is ours.
func failure() *oauth.Error {
	return &oauth.Error{Code: oauth.ServerError, Description: "try again later", Status: http.StatusInternalServerError}
}

// refuseClient answers a client with what err has for it, and tells the audit
// log.
func (s *Server) refuseClient(w http.ResponseWriter, q *tokenRequest, err error) {
	out, reason := failure(), err.Error()
	if e, ok := errors.AsType[*oauth.Error](err); ok {
		copied := *e
		out = &copied
		if e.Error() == reason {
			reason = ""
		}
	}
	if out.Code == oauth.InvalidClient {
		// RFC 6749, section 5.2, and RFC 9110, section 15.5.2: MUST have a challenge.
		out.Status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="client"`)
	}
	if wait, ok := errors.AsType[*waitError](err); ok {
		setRetryAfter(w.Header(), wait.wait)
	}
	if doubt, ok := errors.AsType[*jwt.DoubtError](err); ok {
		setRetryAfter(w.Header(), doubt.Wait)
	}
	if out.Code == oauth.AuthorizationPending || out.Code == oauth.SlowDown {
		answerJSON(w, http.StatusBadRequest, out) // a device that waits is no event
		return
	}
	q.event.Outcome, q.event.Reason = out.Code, reason
	s.audit(q.Context(), q.event)
	s.refuseJSON(w, q.Request, out, reason)
}

// A waitError is the reason of a refusal that ends by itself.
type waitError struct{ wait time.Duration }

func (e *waitError) Error() string { return "too many requests" }

// count counts a request of a client, or of an unknown one.
func (s *Server) count(q *tokenRequest, endpoint, client string) error {
	if wait, ok := s.allow(q.Request, endpoint, client); !ok {
		return refuseWait(wait)
	}
	return nil
}

func refuseWait(wait time.Duration) error {
	return &refusal{
		out:    &oauth.Error{Code: oauth.TemporarilyUnavailable, Description: "too many requests", Status: http.StatusTooManyRequests},
		reason: &waitError{wait},
	}
}
