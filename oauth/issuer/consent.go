package issuer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/oauth"
)

// serveConsent shows what a client asks for and takes the person's answer.
func (s *Server) serveConsent(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	handle := r.URL.Query().Get("visit")
	it, err := s.request(ctx, handle, s.cookies.read(r, s.cookies.browser))
	if err != nil {
		s.refuseRequest(w, r, handle, err)
		return
	}
	c, err := s.waitingClient(ctx, it)
	if err != nil {
		s.refuseTarget(w, r, err)
		return
	}
	if it.Page != "" || it.Person == nil && !s.login.External() {
		redirect(w, s.path("login")+"?visit="+handle)
		return
	}
	if r.Method == http.MethodGet {
		s.showConsent(w, r, c, it, handle)
		return
	}
	if !s.ownForm(r, handle) {
		s.refusePage(w, r, http.StatusForbidden, "This form did not come from a page of this server.")
		return
	}
	answer := r.PostForm.Get("answer")
	if !slices.Contains([]string{"approve", "deny", "switch"}, answer) {
		s.refusePage(w, r, http.StatusBadRequest, "This form cannot be read.")
		return
	}
	if it, err = s.settle(ctx, handle, it); err != nil {
		s.refuseRequest(w, r, handle, err)
		return
	}
	s.decide(w, r, c, it, answer)
}

// decide does what the person said.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, c *Client, it *interaction, answer string) {
	switch answer {
	case "deny":
		s.answerError(w, r, it, &oauth.Error{Code: oauth.AccessDenied, Description: "the person said no"}, "consent was denied")
		return
	case "switch":
		event := Event{Name: "logout", Outcome: "ok", Remote: s.opts.Remote(r)}
		event.by(c)
		if it.Person != nil {
			event.of(it.Person)
			s.audit(r.Context(), event)
		}
		s.signOut(w, r)
		it.Person, it.Session, it.Fresh = nil, "", true
	case "approve":
		it.Approved = true
		event := Event{
			Name: "consent", Outcome: "ok", Resource: it.Resource, Scopes: it.Scopes, Remote: s.opts.Remote(r),
		}
		event.by(c)
		if it.Person != nil {
			event.of(it.Person)
		}
		s.audit(r.Context(), event)
	}
	s.proceed(w, r, c, it)
}

// mayRemember says whether a consent may stand for later requests. A client that
// registered itself, or has its document fetched, is only known by where its
// answers go: on this device every program can be there in its place, so it is
// asked about each time (RFC 8252, section 8.6). Nor does it stand for a device, which
// is anywhere and may be a stranger's (RFC 8628, section 5.4).
func (s *Server) mayRemember(c *Client, it *interaction) bool {
	if s.opts.ConsentLifetime < 0 || it.Device != "" {
		return false
	}
	return s.isPreregistered(c) || !isDeviceRedirect(it.Redirect)
}

// remember keeps the consent of the person who is signed in by now, to what was granted.
func (s *Server) remember(ctx context.Context, c *Client, it *interaction, scopes []string) error {
	if !it.Approved || s.auto != nil || !s.mayRemember(c, it) {
		return nil
	}
	now := s.now()
	return s.store.SetConsent(ctx, &Consent{
		Subject: it.Person.Subject, ClientID: c.ID, Resource: it.Resource, Scopes: scopes,
		Redirect: it.Redirect, Created: now, Expires: now.Add(s.opts.ConsentLifetime),
	})
}

// remembered says whether the person agreed to all of this before: the same
// client, resource and redirect URI (of a loopback one the port is free), and
// no further scope.
func (s *Server) remembered(ctx context.Context, c *Client, it *interaction) (bool, error) {
	if it.Ask || !s.mayRemember(c, it) {
		return false, nil
	}
	old, err := s.store.Consent(ctx, it.Person.Subject, c.ID, it.Resource, s.now())
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !oauth.MatchRedirectURI(old.Redirect, it.Redirect, true) {
		return false, nil
	}
	res, scopes, err := s.grantFor(ctx, c, it)
	if errors.Is(err, errNoneOfScopes) {
		return false, nil // which the page of the question finds, too
	}
	if err != nil || old.Created.Before(res.Since) {
		return false, err
	}
	stands := func(name string) bool { return res.stands(name, &Grant{Created: old.Created}) }
	return includes(slices.DeleteFunc(old.Scopes, func(name string) bool { return !stands(name) }), scopes), nil
}

// A question is what the consent page shows. All of it but the fixed text is
// escaped by the template, and all that clients say of themselves is bounded.
type question struct {
	Title  string
	Client string
	// Verified clients were registered by the operator.
	Verified bool
	// Voucher is the host of the client's document, if it has one.
	Voucher string
	// Host is where the code goes, Local that it stays on this computer, App
	// that it goes to whatever program has claimed the scheme.
	Host       string
	Local, App bool
	// Device says that the answer goes to a device, instead.
	Device   bool
	Redirect string
	// Nothing says that the person may grant none of what is asked for.
	Nothing bool
	// Elsewhere: the document is of another host than the redirect URI.
	Elsewhere bool
	Resource  string
	URI       string
	Scopes    []Scope
	Person    string
	External  bool
	Upstream  Upstream
	CSRF      string
	Action    string
}

func (s *Server) showConsent(w http.ResponseWriter, r *http.Request, c *Client, it *interaction, handle string) {
	res, scopes, err := s.grantFor(r.Context(), c, it)
	nothing := err == errNoneOfScopes //nolint:errorlint // it is that very one, and another account may grant some
	if err != nil && !nothing {
		s.refuseTarget(w, r, err)
		return
	}
	name, host, verified := s.introduce(c, it.Redirect)
	q := &question{
		Title: "Allow access?", Client: name, Verified: verified, Voucher: documentHost(c.ID),
		Host: host, Redirect: it.Redirect, Resource: res.Name, URI: res.URI, Scopes: describe(res, scopes),
		External: it.Person == nil, Upstream: s.opts.Upstream,
		CSRF:   csrf(s.cookies.read(r, s.cookies.browser), handle),
		Action: s.path("consent") + "?visit=" + handle, Device: it.Device != "", Nothing: nothing,
	}
	if it.Person != nil {
		q.Person = it.Person.Name
		if q.Person == "" {
			q.Person = it.Person.Subject
		}
	}
	target, err := url.Parse(it.Redirect)
	if err != nil {
		s.brokenPage(w, r, "reading a stored redirect URI", err)
		return
	}
	q.App = !q.Device && !isWeb(target)
	q.Local = !q.Device && !q.App && isDeviceRedirect(it.Redirect)
	q.Elsewhere = !q.Device && !verified && q.Voucher != "" && !q.Local && !q.App && !strings.EqualFold(q.Voucher, target.Host)
	s.writePage(w, http.StatusOK, "consent", q)
}

// introduce is what people are told of a client: its name, the host that a
// redirect URI leads to, and whether the name is the operator's word.
func (s *Server) introduce(c *Client, uri string) (name, host string, verified bool) {
	if uri == "" {
		host = "a device"
	} else if u, err := url.Parse(uri); err == nil {
		if host = u.Host; !isWeb(u) {
			host = u.Scheme + ":"
		}
	}
	verified = s.isPreregistered(c)
	if name = plainName(c.Metadata.ClientName); name == "" {
		name = "An application without a name"
		if verified {
			name = c.ID
		}
	}
	return name, host, verified
}

// plainName cuts a name that a client gave itself, and takes out what would
// make it look like something else: controls, directions of writing, line
// breaks and blanks in number.
func plainName(name string) string {
	const longest = 60
	name = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsGraphic(c), unicode.Is(unicode.Cf, c), c == unicode.ReplacementChar:
			return -1
		}
		return c
	}, name)
	runes := []rune(strings.Join(strings.Fields(name), " "))
	if len(runes) > longest {
		runes = append(runes[:longest-1], '…')
	}
	return string(runes)
}

// describe finds the scopes' descriptions.
func describe(res *Resource, names []string) []Scope {
	scopes := make([]Scope, 0, len(names))
	for _, name := range names {
		scope := Scope{Name: name, Description: name}
		for _, known := range res.Scopes {
			if known.Name == name && known.Description != "" {
				scope.Description = known.Description
			}
		}
		scopes = append(scopes, scope)
	}
	return scopes
}
