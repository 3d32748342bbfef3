package issuer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// accountPageSize is how many entries of a list the account page shows.
const accountPageSize = 20

// An accountPage is what a person sees of what she has here.
type accountPage struct {
	Title, Person, Done string
	CSRF, Action        string
	// The lists that are shown: all at their beginning, or one of them further on.
	Sessions    *accountList[accountSession]
	Connections *accountList[accountConnection]
	Consents    *accountList[accountConsent]
	// Pages are those of the Login.
	Pages []accountLink
	Whole bool // all lists are shown
}

type accountList[T any] struct {
	Entries []T
	// More leads to the next page; empty at the end.
	More string
}

type accountLink struct{ Text, Target string }

type accountSession struct {
	ID, Browser, Remote string
	Used, Created       time.Time
	This                bool
}

type accountClient struct {
	// ID is the client_id, Host where its answers go, empty if that is not known.
	ID, Name, Host string
	Verified       bool
}

type accountConnection struct {
	Client accountClient
	Access []accountAccess
}

type accountAccess struct {
	Resource string
	Scopes   []Scope
	Since    time.Time
}

type accountConsent struct {
	Client accountClient
	// Value names the consent in the form.
	Value, Resource string
	Until           time.Time
}

// Forms of the account page are about a session, so that one which was shown to one person does
// nothing for the next who signs in at the same browser.
func accountForm(session *Session) string { return "account " + session.ID }

// serveAccount shows a person who is signed in what she has here, and ends what she chooses.
func (s *Server) serveAccount(w http.ResponseWriter, r *http.Request) {
	session, err := s.currentSession(r)
	switch {
	case err != nil:
		s.brokenPage(w, r, "reading a login", err)
	case session == nil && r.Method == http.MethodGet && r.URL.Query().Has("out"):
		s.writePage(w, http.StatusOK, "message", &message{
			Title: "You are signed out", Text: "This browser is signed in no more.", Link: s.path("account"), LinkText: "Sign in again",
		})
	case session == nil:
		s.signInFor(w, r, "account")
	case r.Method == http.MethodGet:
		s.showAccount(w, r, session)
	case !s.ownForm(r, accountForm(session)):
		s.refusePage(w, r, http.StatusForbidden, "This form did not come from a page of this server.")
	default:
		s.changeAccount(w, r, session)
	}
}

// currentSession returns the session of a browser whose person is still there, or nil.
func (s *Server) currentSession(r *http.Request) (*Session, error) {
	session, err := s.signedIn(r)
	if err != nil || session == nil {
		return nil, err
	}
	ok, err := s.current(r.Context(), session.Person.Subject, session.Person.Stamp)
	if err != nil || !ok {
		return nil, err
	}
	return session, nil
}

// errNoEntry says that what a form names is not there, or is of another person.
var errNoEntry = errors.New("no such entry")

// changeAccount does what a person chose.
func (s *Server) changeAccount(w http.ResponseWriter, r *http.Request, session *Session) {
	form := r.PostForm
	var done string
	var err error
	switch {
	case form.Has("session"):
		if id := form.Get("session"); id == session.ID {
			s.signOutHere(w, r, session)
			return
		}
		done, err = "session", s.endSession(r, session, form.Get("session"))
	case form.Get("do") == "sign-out":
		s.signOutHere(w, r, session)
		return
	case form.Get("do") == "others":
		done, err = "others", s.endOthers(r, session)
	case form.Has("client"):
		done, err = "client", s.disconnect(r, session, form.Get("client"))
	case form.Has("consent"):
		done, err = "consent", s.forget(r, session, form.Get("consent"))
	default:
		s.refusePage(w, r, http.StatusBadRequest, "This form cannot be read.")
		return
	}
	switch {
	case errors.Is(err, errNoEntry):
		s.writePage(w, http.StatusNotFound, "message", &message{
			Title: "This is not there", Text: "It is not there any more, or never was. Nothing was changed.",
			Link: s.path("account"), LinkText: "Back to your account",
		})
	case err != nil:
		s.brokenPage(w, r, "changing an account", err)
	default:
		redirect(w, s.accountDone(done, s.cookies.read(r, s.cookies.browser)))
	}
}

// accountDone is the address of the account page that says what was done. The token keeps others
// from having the page say so.
func (s *Server) accountDone(done, mark string) string {
	return s.path("account") + "?" + url.Values{"done": {done}, "proof": {csrf(mark, "done "+done)}}.Encode()
}

// accountTexts are what the account page says of what was done.
var accountTexts = map[string]string{
	"session": "That browser is signed out.",
	"others":  "All other browsers are signed out.",
	"client":  "The application has no access any more.",
	"consent": "You will be asked again.",
}

// signOutHere signs this browser out.
func (s *Server) signOutHere(w http.ResponseWriter, r *http.Request, session *Session) {
	s.signOut(w, r)
	s.auditAccount(r, "session.revoked", session, "")
	redirect(w, s.path("account")+"?out")
}

func (s *Server) auditAccount(r *http.Request, name string, session *Session, client string) {
	s.audit(r.Context(), Event{
		Name: name, Outcome: "ok", Client: client, Subject: session.Person.Subject, Remote: s.opts.Remote(r),
	})
}

// endSession signs another browser of the person out.
func (s *Server) endSession(r *http.Request, session *Session, id string) error {
	if !storableText(id) {
		return errNoEntry
	}
	other, err := s.store.Session(r.Context(), id, s.now())
	if errors.Is(err, ErrNotFound) || err == nil && other.Person.Subject != session.Person.Subject {
		return errNoEntry
	}
	if err == nil {
		err = s.store.RemoveSession(r.Context(), id)
	}
	if err == nil {
		s.auditAccount(r, "session.revoked", session, "")
	}
	return err
}

// endOthers signs the person out of all other browsers.
func (s *Server) endOthers(r *http.Request, session *Session) error {
	n, err := s.store.RemoveSessions(r.Context(), session.Person.Subject, session.ID, s.now())
	if err == nil && n > 0 {
		s.auditAccount(r, "session.revoked", session, "")
	}
	return err
}

// disconnect revokes what the person granted a client, and forgets the consents to it.
func (s *Server) disconnect(r *http.Request, session *Session, client string) error {
	if !storableText(client) || client == "" {
		return errNoEntry
	}
	// The consents go first: with one the client could get another grant after its grants ended.
	if err := s.store.RemoveConsents(r.Context(), session.Person.Subject, client); err != nil {
		return err
	}
	n, err := s.store.RevokeGrants(r.Context(), session.Person.Subject, client, s.now())
	switch {
	case err != nil:
		return err
	case n == 0:
		return errNoEntry
	}
	s.auditAccount(r, "grant.revoked", session, client)
	return nil
}

// forget forgets the consents of the person to a client. value is a consent in the form.
func (s *Server) forget(r *http.Request, session *Session, value string) error {
	resource, client, _ := strings.Cut(value, " ")
	if !storableText(value) || client == "" {
		return errNoEntry
	}
	_, err := s.store.Consent(r.Context(), session.Person.Subject, client, resource, s.now())
	if errors.Is(err, ErrNotFound) {
		return errNoEntry
	}
	if err == nil {
		err = s.store.RemoveConsents(r.Context(), session.Person.Subject, client)
	}
	if err == nil {
		s.auditAccount(r, "consent.revoked", session, client)
	}
	return err
}

// storableText says whether a database can look for a text of a form.
func storableText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// showAccount answers with the account page: all lists, or one of them from where "after" says.
func (s *Server) showAccount(w http.ResponseWriter, r *http.Request, session *Session) {
	q := r.URL.Query()
	mark := s.browserMark(w, r)
	p := &accountPage{
		Title: "Your account", Person: session.Person.Name, CSRF: csrf(mark, accountForm(session)), Action: s.path("account"),
	}
	if p.Person == "" {
		p.Person = session.Person.Subject
	}
	done := q.Get("done")
	proved := equal(q.Get("proof"), csrf(mark, "done "+done))
	if proved {
		p.Done = accountTexts[done]
	}
	list, after := q.Get("list"), q.Get("after")
	if !storableText(after) || !slices.Contains([]string{"browsers", "applications", "answers"}, list) {
		list, after, p.Whole = "", "", true
	}
	var err error
	if p.Whole || list == "browsers" {
		p.Sessions, err = s.accountSessions(r.Context(), session, after)
	}
	if err == nil && (p.Whole || list == "applications") {
		p.Connections, err = s.accountConnections(r.Context(), session, after)
	}
	if err == nil && (p.Whole || list == "answers") {
		p.Consents, err = s.accountConsents(r.Context(), session, after)
	}
	if err != nil {
		s.brokenPage(w, r, "reading an account", err)
		return
	}
	for _, page := range s.pages {
		if p.Done == "" && proved && done == "account/"+page.Name {
			p.Done = page.Done
		}
		if page.Link != "" {
			p.Pages = append(p.Pages, accountLink{page.Link, s.path("account/" + page.Name)})
		}
	}
	s.writePage(w, http.StatusOK, "account", p)
}

// moreOf leads to the next page of a list.
func (s *Server) moreOf(list, next string) string {
	if next == "" {
		return ""
	}
	return s.path("account") + "?" + url.Values{"list": {list}, "after": {next}}.Encode()
}

// accountSessions lists the sessions of a person: this one first, the others by their last use,
// as far as they are on one page.
func (s *Server) accountSessions(ctx context.Context, session *Session, after string) (*accountList[accountSession], error) {
	all, next, err := s.store.SessionsOf(ctx, session.Person.Subject, after, accountPageSize, s.now())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *Session) int { return b.Used.Compare(a.Used) })
	out := &accountList[accountSession]{More: s.moreOf("browsers", next)}
	if after == "" {
		out.Entries = append(out.Entries, accountSessionOf(session, true))
	}
	for _, other := range all {
		if other.ID != session.ID {
			out.Entries = append(out.Entries, accountSessionOf(other, false))
		}
	}
	return out, nil
}

func accountSessionOf(s *Session, this bool) accountSession {
	return accountSession{
		ID: s.ID, Browser: browserName(s.Agent), Remote: s.Remote, Used: s.Used.UTC(), Created: s.Created.UTC(), This: this,
	}
}

func (s *Server) accountConnections(ctx context.Context, session *Session, after string) (*accountList[accountConnection], error) {
	all, next, err := s.store.ConnectionsOf(ctx, session.Person.Subject, after, accountPageSize, s.now())
	if err != nil {
		return nil, err
	}
	out := &accountList[accountConnection]{More: s.moreOf("applications", next)}
	for _, c := range all {
		entry := accountConnection{Client: s.accountClient(ctx, c.ClientID)}
		for _, a := range c.Access {
			res := s.knownResource(ctx, a.Resource)
			entry.Access = append(entry.Access, accountAccess{res.Name, describe(res, a.Scopes), a.Since.UTC()})
		}
		out.Entries = append(out.Entries, entry)
	}
	return out, nil
}

func (s *Server) accountConsents(ctx context.Context, session *Session, after string) (*accountList[accountConsent], error) {
	all, next, err := s.store.ConsentsOf(ctx, session.Person.Subject, after, accountPageSize, s.now())
	if err != nil {
		return nil, err
	}
	out := &accountList[accountConsent]{More: s.moreOf("answers", next)}
	for _, c := range all {
		out.Entries = append(out.Entries, accountConsent{
			Client: s.accountClient(ctx, c.ClientID), Value: c.Resource + " " + c.ClientID,
			Resource: s.knownResource(ctx, c.Resource).Name, Until: c.Expires.UTC(),
		})
	}
	return out, nil
}

// knownResource returns a resource, also one that is not served any more.
func (s *Server) knownResource(ctx context.Context, uri string) *Resource {
	if res, err := s.resourceFor(ctx, uri, nil); err == nil && uri != "" {
		return res
	}
	return &Resource{URI: uri, Name: uri}
}

// accountClient is what a person is told of a client. Documents are not fetched for it.
func (s *Server) accountClient(ctx context.Context, id string) accountClient {
	c := &Client{ID: id}
	if isDocument(id) {
		if found := s.docs.known(id); found != nil {
			c = found
		}
	} else if found, err := s.client(ctx, id); err == nil {
		c = found
	}
	out := accountClient{ID: id, Host: documentHost(id)}
	redirect := ""
	if len(c.Metadata.RedirectURIs) > 0 {
		redirect = c.Metadata.RedirectURIs[0]
	}
	name, host, verified := s.introduce(c, redirect)
	out.Name, out.Verified = name, verified
	if out.Host == "" && redirect != "" {
		out.Host = host
	}
	return out
}

// browserName is what a browser calls itself, for people: "Firefox on Linux".
func browserName(agent string) string {
	first := func(words [][2]string) string {
		for _, w := range words {
			if strings.Contains(agent, w[0]) {
				return w[1]
			}
		}
		return ""
	}
	browser := first([][2]string{
		{"Edg", "Edge"},
		{"OPR/", "Opera"},
		{"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"},
		{"Chrome/", "Chrome"},
		{"Safari/", "Safari"},
	})
	system := first([][2]string{
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Android", "Android"},
		{"Windows", "Windows"},
		{"Mac OS X", "macOS"},
		{"CrOS", "ChromeOS"},
		{"Linux", "Linux"},
	})
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	}
	if name := plainName(agent); name != "" {
		return name
	}
	return "A browser without a name"
}
