package issuer

import (
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// An AccountLogin is a Login that has pages of its own beside the account page, such as one for
// another password. AccountPages is asked once, by [New].
type AccountLogin interface {
	Login
	AccountPages() []AccountPage
}

// An AccountPage is a page of a Login, at /account/Name of the issuer.
type AccountPage struct {
	// Name is one word of letters and digits, such as "password".
	Name string
	// Link is the text of a link to it on the account page. Default: no link.
	Link string
	// Done is what the account page says after [AccountVisit.Back]. Default: nothing.
	Done string
	// Open pages are for people who are not signed in: AccountVisit.Person is nil. The others have
	// them sign in first.
	Open bool
	// Serve answers a GET or POST. A POST has been checked to come from a form that holds
	// [AccountVisit.CSRF]. Its forms are parsed, and of at most 16 KiB. It may be called by many
	// goroutines at once. Required.
	Serve func(w http.ResponseWriter, r *http.Request, v *AccountVisit)
}

// An AccountVisit is a request to an AccountPage.
type AccountVisit struct {
	// Path is that of the page, for the action of a form.
	Path string
	// Account is the path of the account page.
	Account string
	// LoginURL is the Visit.URL of visits to the Login.
	LoginURL string
	// Person is who is signed in; nil on Open pages.
	Person *Person

	server *Server
	name   string
	mark   string
	form   string
}

// CSRF is the value of the field "csrf" that each form must have.
func (v *AccountVisit) CSRF() string { return csrf(v.mark, v.form) }

// Page answers with a page, as [Visit.Page] does.
func (v *AccountVisit) Page(w http.ResponseWriter, status int, title string, body template.HTML) {
	v.server.writePage(w, status, "frame", &frame{Title: title, Body: body})
}

// Fail answers that something does not work for now. The log is told why, without values.
func (v *AccountVisit) Fail(w http.ResponseWriter, r *http.Request, err error) {
	v.server.brokenPage(w, r, "serving account/"+v.name, err)
}

// Refused tells the audit log that what the person asked for was refused, as an event
// "account." and the name of the page. subject and reason are as of [Visit.Refused].
func (v *AccountVisit) Refused(r *http.Request, subject, reason string) {
	v.server.audit(r.Context(), Event{
		Name: "account." + v.name, Outcome: oauth.AccessDenied, Subject: subject, Remote: v.server.opts.Remote(r), Reason: reason,
	})
}

// Done tells the audit log, as Refused does, that it was done.
func (v *AccountVisit) Done(r *http.Request, subject string) {
	v.server.audit(r.Context(), Event{
		Name: "account." + v.name, Outcome: "ok", Subject: subject, Remote: v.server.opts.Remote(r),
	})
}

// SignIn gives this browser a new session of a person who has just proved who it is, in place of
// the one that it had, which may have ended. It writes no answer.
func (v *AccountVisit) SignIn(w http.ResponseWriter, r *http.Request, p Person) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.AuthTime.IsZero() {
		p.AuthTime = v.server.now()
	}
	p.AuthTime = p.AuthTime.UTC().Truncate(time.Second)
	_, err := v.server.signIn(w, r, &p)
	return err
}

// Back sends the browser to the account page, which says what AccountPage.Done is.
func (v *AccountVisit) Back(w http.ResponseWriter) {
	redirect(w, v.server.accountDone("account/"+v.name, v.mark))
}

// addAccount adds the account page and those of the Login. A Login that lets everybody in has no
// sessions that a person could look at.
func (s *Server) addAccount(routes map[string]http.Handler) error {
	if s.auto != nil {
		return nil
	}
	routes[s.path("account")] = s.browser("account", s.serveAccount)
	for _, page := range s.pages {
		path := s.path("account/" + page.Name)
		if !isPageName(page.Name) || page.Serve == nil || routes[path] != nil {
			return fmt.Errorf("account page %q needs a name of letters and digits that no other has, and Serve", page.Name)
		}
		routes[path] = s.browser("account/"+page.Name, func(w http.ResponseWriter, r *http.Request) { s.serveAccountPage(w, r, &page) })
	}
	return nil
}

func isPageName(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// serveAccountPage has the Login answer, once it is known who comes, where that matters.
func (s *Server) serveAccountPage(w http.ResponseWriter, r *http.Request, page *AccountPage) {
	v := &AccountVisit{
		Path: s.path("account/" + page.Name), Account: s.path("account"), LoginURL: s.endpoint("login"),
		server: s, name: page.Name, form: "account/" + page.Name,
	}
	if !page.Open {
		session, err := s.currentSession(r)
		if err != nil {
			s.brokenPage(w, r, "reading a login", err)
			return
		}
		if session == nil {
			s.signInFor(w, r, "account/"+page.Name)
			return
		}
		v.Person, v.form = &session.Person, v.form+" "+session.ID
	}
	if r.Method == http.MethodPost && !s.ownForm(r, v.form) {
		s.refusePage(w, r, http.StatusForbidden, "This form did not come from a page of this server.")
		return
	}
	v.mark = s.browserMark(w, r)
	page.Serve(w, r, v)
}
