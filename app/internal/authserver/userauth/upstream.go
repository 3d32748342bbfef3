package userauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/parley-mcp/parley/app/internal/printable"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// UpstreamOptions say where people sign in. Issuer and ClientID are required.
type UpstreamOptions struct {
	// Issuer is the OpenID provider, an https URL, or an http one on loopback.
	Issuer string
	// ClientID and ClientSecret are what the provider gave this server, for
	// the redirect URI "<issuer of this server>/login/callback". A client
	// without a secret is public.
	ClientID, ClientSecret string
	// Scopes that are asked for there, besides openid. Default: profile, email.
	// The operator should put them into issuer.Options.Upstream as well.
	Scopes []string
	// GroupsClaim is the claim of the ID token with the groups of the user, an array of texts or one
	// text, such as "groups": the first 200 whose names have at most 255 bytes, which can be printed.
	// Default: groups are not read.
	GroupsClaim string
	// OnGroups is told the groups of each user who signs in, none too, if GroupsClaim is set, so that
	// what was granted before follows them (issuer.Options.Groups). Its error ends the sign-in.
	// Default: nobody is.
	OnGroups func(ctx context.Context, subject string, groups []string) error
	// Accept checks the claims of the ID token, a JSON object, and may change
	// the Person, or refuse the sign-in with an error: the client is told that
	// access is denied, but not why. Default: every user of the provider, as
	// Issuer, "|" and the subject there.
	Accept func(ctx context.Context, claims []byte, p *issuer.Person) error
	// Fetch makes all requests to the provider. Redirects are not followed to
	// other origins. Default: oauth.NewFetcher(nil); either way loopback is
	// possible if Issuer is on loopback, and else is not.
	Fetch *oauth.Fetcher
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// An Upstream is an issuer.Login that sends people to an OpenID provider.
type Upstream struct {
	opts    UpstreamOptions
	client  *http.Client
	host    string        // of the provider
	lock    chan struct{} // guards what follows
	found   *upstreamProvider
	foundAt time.Time // or when it was last tried
}

var _ issuer.AccountLogin = (*Upstream)(nil)

// NewUpstream checks the options. The provider is first asked when a user
// signs in.
func NewUpstream(o UpstreamOptions) (*Upstream, error) {
	base, err := oauth.CheckIssuer(o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("OpenID provider: %w", err)
	}
	if o.ClientID == "" {
		return nil, errors.New("OpenID provider: there is no client ID")
	}
	if o.Scopes == nil {
		o.Scopes = []string{"profile", "email"}
	}
	if o.Fetch == nil {
		o.Fetch = oauth.NewFetcher(nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	fetch := o.Fetch
	if oauth.LoopbackHost(base.Hostname()) {
		fetch = fetch.Loopback()
	}
	return &Upstream{opts: o, client: fetchClient(fetch), host: base.Host, lock: make(chan struct{}, 1)}, nil
}

// External implements issuer.Login: the user is asked before leaving.
func (u *Upstream) External() bool { return true }

// AccountPages implements issuer.AccountLogin: at the addresses of the pages for passwords, which a link
// of an invitation leads to, or one that somebody kept, it says that there are none.
func (u *Upstream) AccountPages() []issuer.AccountPage {
	return []issuer.AccountPage{
		{Name: pagePassword, Open: true, Serve: u.serveNoPassword},
		{Name: pageInvitation, Open: true, Serve: u.serveNoPassword},
	}
}

func (u *Upstream) serveNoPassword(w http.ResponseWriter, r *http.Request, v *issuer.AccountVisit) {
	v.Refused(r, "", "people sign in at another provider")
	writeAccountPage(w, v, http.StatusGone, "You need no password here", "message", &accountMessage{
		Title: "You need no password here",
		Text:  "People sign in to this server with their accounts at " + u.host + ". If you have none there, ask the one who sent you here.",
		Link:  v.Account, LinkText: "Sign in at " + u.host,
	})
}

// A pendingLogin is the state of a redirect to the provider.
type pendingLogin struct {
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Began    int64  `json:"began"`
}

// ServeLogin implements issuer.Login. The Visit binds the state to the browser
// and lets it work once.
func (u *Upstream) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	if v.Data == nil {
		u.redirect(w, r, v)
		return
	}
	person, err := u.callback(r, v)
	switch {
	case errors.Is(err, errDenied):
		v.Cancel(w, r)
	case err != nil:
		v.Fail(w, r, err)
	default:
		v.Done(w, r, *person)
	}
}

func (u *Upstream) redirect(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	p, err := u.provider(r.Context())
	if err != nil {
		v.Fail(w, r, err)
		return
	}
	j := pendingLogin{Nonce: oauth.NewSecret(), Verifier: oauth.NewVerifier(), Began: u.opts.Now().Unix()}
	data, err := json.Marshal(&j)
	if err != nil {
		v.Fail(w, r, errors.New("state of a login cannot be encoded"))
		return
	}
	state, err := v.Leave(r.Context(), data)
	if err != nil {
		v.Fail(w, r, err)
		return
	}
	params := []oauth2.AuthCodeOption{oidc.Nonce(j.Nonce), oauth2.S256ChallengeOption(j.Verifier)}
	if v.Fresh {
		params = append(params, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	if v.Hint != "" {
		params = append(params, oauth2.SetAuthURLParam("login_hint", v.Hint))
	}
	http.Redirect(w, r, u.config(p, v).AuthCodeURL(state, params...), http.StatusSeeOther)
}

func (u *Upstream) config(p *upstreamProvider, v *issuer.Visit) *oauth2.Config {
	scopes := append([]string{oidc.ScopeOpenID}, u.opts.Scopes...)
	return &oauth2.Config{
		ClientID: u.opts.ClientID, ClientSecret: u.opts.ClientSecret, Endpoint: p.endpoint,
		RedirectURL: v.URL + "/callback", Scopes: slices.Compact(scopes),
	}
}

// Errors of the way back. Whatever the provider says stays there: its answers
// can hold codes and tokens.
var (
	errDenied   = errors.New("provider says that the person did not sign in")
	errResponse = errors.New("response of the provider cannot be used")
	errRefused  = errors.New("provider reports an error instead of a code")
	errIssuer   = errors.New("response is not of the provider that was asked")
	errExchange = errors.New("provider does not take the code")
	errNoToken  = errors.New("provider gives no ID token")
	errIDToken  = errors.New("ID token is not one for this login")
	errStale    = errors.New("provider did not ask the person again, as it was told to")
)

// callback handles the return from the provider.
func (u *Upstream) callback(r *http.Request, v *issuer.Visit) (*issuer.Person, error) {
	var j pendingLogin
	if err := json.Unmarshal(v.Data, &j); err != nil || j.Nonce == "" || j.Verifier == "" {
		return nil, errors.New("state of a login cannot be read")
	}
	p, err := u.provider(r.Context())
	if err != nil {
		return nil, err
	}
	code, err := u.response(r.URL.Query(), p)
	if err != nil {
		return nil, err
	}
	ctx := oidc.ClientContext(r.Context(), u.client)
	token, err := u.config(p, v).Exchange(ctx, code, oauth2.VerifierOption(j.Verifier))
	if err != nil {
		return nil, u.failed(errExchange, err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, errNoToken
	}
	return u.identify(ctx, p, raw, &j, v.Fresh)
}

// response reads the parameters of the response.
func (u *Upstream) response(q url.Values, p *upstreamProvider) (code string, err error) {
	for _, values := range q {
		if len(values) > 1 {
			return "", errResponse
		}
	}
	// RFC 9207, section 2.4; on errors as well.
	if q.Get("iss") != u.opts.Issuer && (q.Has("iss") || p.sendsIssuer) {
		return "", errIssuer
	}
	switch code, problem := q.Get("code"), q.Get("error"); {
	case problem == oauth.AccessDenied:
		return "", errDenied
	case problem != "":
		return "", errRefused
	case code != "":
		return code, nil
	}
	return "", errResponse
}

// identify verifies an ID token and returns its person.
func (u *Upstream) identify(ctx context.Context, p *upstreamProvider, raw string, j *pendingLogin, fresh bool) (*issuer.Person, error) {
	verifier := p.Verifier(&oidc.Config{ClientID: u.opts.ClientID, Now: u.opts.Now})
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, u.failed(errIDToken, err)
	}
	var claims struct {
		AuthorizedParty string  `json:"azp"`
		AuthTime        float64 `json:"auth_time"`
		Name            string  `json:"name"`
		Email           string  `json:"email"`
	}
	var whole json.RawMessage
	if id.Claims(&claims) != nil || id.Claims(&whole) != nil {
		return nil, errIDToken
	}
	// OpenID Connect Core, section 3.1.3.7.
	if id.Nonce != j.Nonce || id.Subject == "" || claims.AuthorizedParty != "" && claims.AuthorizedParty != u.opts.ClientID ||
		len(id.Audience) > 1 && claims.AuthorizedParty == "" {
		return nil, errIDToken
	}
	const skew = 60
	if fresh && claims.AuthTime != 0 && int64(claims.AuthTime) < j.Began-skew {
		return nil, errStale
	}
	person := &issuer.Person{Subject: upstreamSubject(id.Issuer, id.Subject)}
	for _, name := range []string{claims.Name, claims.Email} {
		if person.Name == "" && len(name) <= 255 {
			person.Name = name
		}
	}
	if claims.AuthTime > 0 && int64(claims.AuthTime) <= u.opts.Now().Unix() {
		person.AuthTime = time.Unix(int64(claims.AuthTime), 0)
	}
	if u.opts.GroupsClaim != "" {
		person.Groups = groupsIn(whole, u.opts.GroupsClaim)
	}
	if u.opts.Accept != nil {
		if err := u.opts.Accept(ctx, whole, person); err != nil {
			return nil, fmt.Errorf("%w: %w", errDenied, err)
		}
	}
	if u.opts.OnGroups != nil && u.opts.GroupsClaim != "" {
		if err := u.opts.OnGroups(ctx, person.Subject, person.Groups); err != nil {
			return nil, fmt.Errorf("keeping the groups of a person: %w", err)
		}
	}
	return person, nil
}

// groupsIn reads the groups of a claim: an array of texts, or one text, which is one group whatever is in it.
// What is neither has none. Names are compared as they are.
func groupsIn(claims []byte, name string) []string {
	const most, longest = 200, 255
	var all map[string]json.RawMessage
	if json.Unmarshal(claims, &all) != nil {
		return nil
	}
	var names []any
	if json.Unmarshal(all[name], &names) != nil {
		var one string
		if json.Unmarshal(all[name], &one) != nil {
			return nil
		}
		names = []any{one}
	}
	var groups []string
	for _, name := range names {
		group, ok := name.(string)
		if ok && printable.Name(group, longest) && len(groups) < most && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// upstreamSubject is the user's identifier here, which no other provider and
// no other person has.
func upstreamSubject(iss, subject string) string {
	whole := iss + "|" + subject
	if len(whole) <= 255 {
		return whole
	}
	return "sha256|" + issuer.Hash(whole)
}

// failed keeps of a provider's error what holds no secrets.
func (u *Upstream) failed(what, err error) error {
	if e, ok := errors.AsType[*oauth.BlockedError](err); ok {
		return fmt.Errorf("%w: %w", what, e)
	}
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && slices.Contains(knownErrors, e.ErrorCode) {
		return fmt.Errorf("%w: %s", what, e.ErrorCode)
	}
	if _, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
		return fmt.Errorf("%w: it has expired", what)
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", what, known)
		}
	}
	return what
}

// knownErrors are error codes of a token endpoint (RFC 6749, section 5.2).
var knownErrors = strings.Fields("invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type invalid_scope")
