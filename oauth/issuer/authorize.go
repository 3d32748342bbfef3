package issuer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/oauth"
)

// serveAuthorize is the authorization endpoint (RFC 6749, section 3.1). A POST
// becomes a GET of the same request, so that the browser brings its cookies
// along, which it does not on a POST from another site.
func (s *Server) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		if len(r.PostForm.Encode()) > maxForm {
			s.refusePage(w, r, http.StatusBadRequest, "This request cannot be read.")
			return
		}
		redirect(w, s.path("authorize")+"?"+r.PostForm.Encode())
		return
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.refusePage(w, r, http.StatusBadRequest, "This request cannot be read.")
		return
	}
	c, target, problem := s.verifyTarget(r.Context(), q)
	if problem != nil {
		s.refuseTarget(w, r, problem)
		return
	}
	it := &interaction{
		Client: c.ID, Redirect: target,
		Trusted: s.isPreregistered(c) || isDeviceRedirect(target), Expires: s.now().Add(requestLifetime),
	}
	if problem := s.readRequest(r.Context(), it, c, q); problem != nil {
		s.answerError(w, r, it, problem, "")
		return
	}
	if err := s.noteClient(r.Context(), c); err != nil {
		s.answerError(w, r, it, s.broken(r.Context(), "noting a client", err), "")
		return
	}
	it.Browser = Hash(s.browserMark(w, r))
	if !it.Fresh {
		session, err := s.signedIn(r)
		if err != nil {
			s.answerError(w, r, it, s.broken(r.Context(), "reading a login", err), "")
			return
		}
		if session != nil {
			it.Person, it.Session = &session.Person, session.ID
		}
	}
	s.proceed(w, r, c, it)
}

// verifyTarget finds the client and where its answers go. Before both are known
// for good, nothing is redirected anywhere (RFC 6749, section 4.1.2.1; spec
// 2026-07-28, basic/authorization/security-considerations, "Open Redirection":
// MUST).
func (s *Server) verifyTarget(ctx context.Context, q url.Values) (*Client, string, *oauth.Error) {
	if len(q["client_id"]) != 1 || len(q["redirect_uri"]) > 1 {
		return nil, "", &oauth.Error{Code: oauth.InvalidRequest, Description: "client_id and redirect_uri must be there once"}
	}
	c, err := s.client(ctx, q.Get("client_id"))
	if err != nil {
		return nil, "", asError(err)
	}
	given := q.Get("redirect_uri")
	if !q.Has("redirect_uri") {
		if len(c.Metadata.RedirectURIs) != 1 {
			return nil, "", invalidRequest("redirect_uri is missing")
		}
		given = c.Metadata.RedirectURIs[0]
	}
	if !s.redirects.registered(c, given) {
		return nil, "", invalidRequest("redirect_uri is not registered for this client")
	}
	return c, given, nil
}

// A step is where an interaction goes next.
type step int

const (
	stepLogin step = iota
	stepConsent
	stepIssue
)

// next says what is missing before a code may be issued. A Login that leaves
// for another site comes after consent; any other before it.
func (s *Server) next(ctx context.Context, c *Client, it *interaction) (step, error) {
	switch {
	case it.Person == nil && s.login.External() && !it.Approved:
		return stepConsent, nil
	case it.Person == nil:
		return stepLogin, nil
	case it.Approved:
		return stepIssue, nil
	}
	ok, err := s.remembered(ctx, c, it)
	if err != nil || !ok {
		return stepConsent, err
	}
	return stepIssue, nil
}

// proceed sends the browser where the interaction goes next.
func (s *Server) proceed(w http.ResponseWriter, r *http.Request, c *Client, it *interaction) {
	if s.auto != nil && it.Page == "" {
		person := *s.auto
		person.AuthTime = s.now()
		it.Person = &person
		it.Approved = it.Approved || s.isPreregistered(c) || it.Device == "" && isDeviceRedirect(it.Redirect)
	} else if err := s.dropStalePerson(r, it); err != nil {
		s.answerError(w, r, it, s.broken(r.Context(), "proceeding", err), "")
		return
	}
	if it.Page != "" {
		s.proceedToPage(w, r, it)
		return
	}
	next, err := s.next(r.Context(), c, it)
	if err != nil {
		s.answerError(w, r, it, s.broken(r.Context(), "reading a consent", err), "")
		return
	}
	if next == stepIssue {
		s.issue(w, r, c, it)
		return
	}
	if it.Silent {
		problem := &oauth.Error{Code: oauth.LoginRequired, Description: "nobody is signed in"}
		if it.Person != nil {
			problem = &oauth.Error{Code: oauth.ConsentRequired, Description: "the person must be asked"}
		}
		s.answerError(w, r, it, problem, "")
		return
	}
	handle, err := s.keepRequest(r.Context(), it)
	if err != nil {
		s.answerError(w, r, it, s.broken(r.Context(), "keeping a request", err), "")
		return
	}
	page := "login"
	if next == stepConsent {
		page = "consent"
	}
	redirect(w, s.path(page)+"?visit="+handle)
}

// signInFor has the person sign in and come back to a page of this server.
func (s *Server) signInFor(w http.ResponseWriter, r *http.Request, page string) {
	s.proceed(w, r, nil, &interaction{
		Page: page, Browser: Hash(s.browserMark(w, r)), Expires: s.now().Add(requestLifetime),
	})
}

// proceedToPage sends the browser to the page of an interaction, by way of the login if
// nobody is signed in.
func (s *Server) proceedToPage(w http.ResponseWriter, r *http.Request, it *interaction) {
	if it.Person != nil {
		redirect(w, s.path(it.Page))
		return
	}
	it.Approved = true // no client asks for anything
	handle, err := s.keepRequest(r.Context(), it)
	if err != nil {
		s.answerError(w, r, it, s.broken(r.Context(), "keeping a request", err), "")
		return
	}
	redirect(w, s.path("login")+"?visit="+handle)
}

// dropStalePerson takes the person out of an interaction who is not there any more,
// has another password, or was signed out of this browser: the browser must sign
// in again.
func (s *Server) dropStalePerson(r *http.Request, it *interaction) error {
	if it.Person == nil {
		return nil
	}
	ok, err := s.current(r.Context(), it.Person.Subject, it.Person.Stamp)
	if err == nil && ok {
		_, err = s.store.Session(r.Context(), it.Session, s.now())
		if ok = !errors.Is(err, ErrNotFound); !ok {
			err = nil
		}
	}
	if err != nil || ok {
		return err
	}
	s.audit(r.Context(), Event{
		Name: "login", Outcome: oauth.LoginRequired, Client: it.Client, Subject: it.Person.Subject,
		SubjectName: it.Person.Name, Resource: it.Resource, Remote: s.opts.Remote(r), Reason: errPersonGone.Error(),
	})
	it.Person, it.Session, it.Approved = nil, "", false
	return nil
}

// issue grants what was asked for and sends the code to the client.
func (s *Server) issue(w http.ResponseWriter, r *http.Request, c *Client, it *interaction) {
	ctx, now := r.Context(), s.now()
	grant, err := s.newGrant(ctx, c, it)
	if err != nil {
		s.answerError(w, r, it, asError(err), "")
		return
	}
	switch err := s.store.AddGrant(ctx, grant); {
	case errors.Is(err, ErrRevoked):
		s.refuseLate(w, r, it)
		return
	case err != nil:
		s.answerError(w, r, it, s.broken(ctx, "storing a grant", err), "")
		return
	case it.Device != "":
		s.approveDevice(w, r, it, grant)
		return
	}
	secret := oauth.NewSecret()
	code := &Code{
		Grant: grant.ID, ClientID: c.ID, Challenge: it.Challenge, Resource: it.Resource,
		Key: it.Key, Nonce: it.Nonce, RedirectURI: it.Redirect, Expires: now.Add(s.opts.CodeLifetime),
	}
	if err = s.store.AddCode(ctx, Hash(secret), code); err == nil {
		err = s.remember(ctx, c, it, grant.Scopes)
	}
	if err == nil {
		err = s.useClient(ctx, c)
	}
	if err != nil {
		s.answerError(w, r, it, s.broken(ctx, "storing a code", err), "")
		return
	}
	s.audit(ctx, Event{
		Name: "code.issued", Outcome: "ok", Client: c.ID, ClientName: c.Metadata.ClientName, Subject: grant.Subject,
		SubjectName: it.Person.Name, Grant: grant.ID, Resource: grant.Resource, Scopes: grant.Scopes,
		GrantType: oauth.GrantAuthorizationCode, Remote: s.opts.Remote(r),
	})
	s.answerClient(w, it, url.Values{"code": {secret}})
}

// refuseLate refuses an interaction whose client, or person, is no longer the one that it was at the
// beginning of this request.
func (s *Server) refuseLate(w http.ResponseWriter, r *http.Request, it *interaction) {
	if _, err := s.waitingClient(r.Context(), it); err != nil {
		s.refuseTarget(w, r, err)
		return
	}
	s.answerError(w, r, it, &oauth.Error{Code: oauth.LoginRequired, Description: "sign in again"}, ErrRevoked.Error())
}

// newGrant is what the person of an interaction grants the client.
func (s *Server) newGrant(ctx context.Context, c *Client, it *interaction) (*Grant, error) {
	res, scopes, err := s.grantFor(ctx, c, it)
	if err != nil {
		return nil, err
	}
	now, wait, lifetime := s.now(), s.opts.CodeLifetime, s.opts.RefreshLifetime
	if res.RefreshLifetime > 0 {
		lifetime = res.RefreshLifetime
	}
	lifetime = bounded(lifetime, c.RefreshLifetime)
	if it.Device != "" {
		wait = it.Expires.Sub(now) + s.lastPoll() // a device may come for its tokens until then
	}
	// The family outlives its last access token, or that one would be void.
	lifetime = max(lifetime, wait+max(s.opts.AccessLifetime, res.AccessLifetime))
	return &Grant{
		ID: oauth.NewSecret(), ClientID: c.ID, Subject: it.Person.Subject, Scopes: scopes, Resource: it.Resource,
		Key: it.Key, AuthTime: it.Person.AuthTime, Created: now, Expires: now.Add(lifetime), Claims: it.Person.Claims,
		Stamp: it.Person.Stamp, Groups: it.Person.Groups, ClientStamp: c.Stamp,
	}, nil
}

// answerError tells the client that it gets nothing. The texts of e are fixed.
// A redirect URI that any client can have registered is only followed after the
// person did something here; else a link to this server would be one to
// everywhere (RFC 9700, section 4.11.2; spec 2026-07-28,
// basic/authorization/security-considerations, "Open Redirection": SHOULD).
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, it *interaction, e *oauth.Error, reason string) {
	event := Event{
		Name: "authorize", Outcome: e.Code, Client: it.Client, Resource: it.Resource, Remote: s.opts.Remote(r),
		Reason: reason,
	}
	if event.Reason == "" {
		event.Reason = e.Description
	}
	if it.Person != nil {
		event.of(it.Person)
	}
	if it.Device != "" {
		event.GrantType = oauth.GrantDeviceCode
	}
	if it.Device != "" {
		s.refuseDevice(w, r, it, e, event)
		return
	}
	s.audit(r.Context(), event)
	if it.Page != "" {
		s.refusePage(w, r, max(e.Status, http.StatusBadRequest), "You are not signed in. Open the page again to try once more.")
		return
	}
	params := url.Values{"error": {e.Code}, "error_description": {e.Description}}
	if it.Trusted || it.Approved || r.Method == http.MethodPost {
		s.answerClient(w, it, params)
		return
	}
	target := s.answerURL(it, params)
	u, err := url.Parse(target)
	if err != nil {
		s.brokenPage(w, r, "reading a redirect URI", err)
		return
	}
	s.writePage(w, max(e.Status, http.StatusBadRequest), "leave", &redirectPage{
		Title: "This did not work", Text: "The application that sent you here asked for something that this server does not grant.",
		Host: u.Host, Target: target,
	})
}

// answerClient sends the browser to the redirect URI, which was verified, with
// state and iss in success and in error (RFC 9207; spec 2026-07-28,
// basic/authorization: SHOULD). 303 makes a GET of it, so that no form goes along.
func (s *Server) answerClient(w http.ResponseWriter, it *interaction, params url.Values) {
	redirect(w, s.answerURL(it, params))
}

func (s *Server) answerURL(it *interaction, params url.Values) string {
	params.Set("iss", s.issuer)
	if it.State != "" {
		params.Set("state", it.State)
	}
	sep := "?"
	switch {
	case strings.HasSuffix(it.Redirect, "?"), strings.HasSuffix(it.Redirect, "&"):
		sep = ""
	case strings.Contains(it.Redirect, "?"):
		sep = "&"
	}
	return it.Redirect + sep + params.Encode()
}

// redirect answers with 303 and without a Referer.
func redirect(w http.ResponseWriter, target string) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Location", target)
	w.WriteHeader(http.StatusSeeOther)
}

// refuseTarget answers a request whose client or redirect URI is not verified:
// with a page, never with a redirect.
func (s *Server) refuseTarget(w http.ResponseWriter, r *http.Request, problem error) {
	e := asError(problem)
	s.audit(r.Context(), Event{Name: "authorize", Outcome: e.Code, Remote: s.opts.Remote(r), Reason: e.Description})
	switch {
	case e.Status >= http.StatusInternalServerError:
		s.refusePage(w, r, e.Status, "Something went wrong here. Try again later.")
	case e.Code == oauth.InvalidClient:
		s.refusePage(w, r, http.StatusBadRequest,
			"The application that sent you here is not known to this server. Go back to it and start again.")
	default:
		s.refusePage(w, r, http.StatusBadRequest,
			"The application that sent you here made a request that does not fit what it registered. Nothing was sent to it.")
	}
}

// mayAuthorize says whether a client registered for codes (RFC 7591, section 2:
// the default).
func mayAuthorize(c *Client) bool {
	m := &c.Metadata
	return (len(m.GrantTypes) == 0 || slices.Contains(m.GrantTypes, oauth.GrantAuthorizationCode)) &&
		(len(m.ResponseTypes) == 0 || slices.Contains(m.ResponseTypes, "code"))
}
