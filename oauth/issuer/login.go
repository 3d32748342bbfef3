package issuer

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

// A Login authenticates the person at the browser: with a form for a password, say,
// or by sending the browser to another site and reading what it brings back. It
// may be used by many goroutines at once.
type Login interface {
	// ServeLogin answers a request at v.Path or below it, which belongs to the
	// person and the client that v tells. It answers with a page of its own
	// ([Visit.Page]), sends the browser elsewhere, or ends the visit with
	// Done, Cancel or Fail, which write the answer. Until then it may be
	// called for the same visit again, and from the beginning. A POST has been
	// checked to come from a form that holds [Visit.CSRF].
	ServeLogin(w http.ResponseWriter, r *http.Request, v *Visit)
	// External says that the person signs in at another site, where this
	// server is one client for all of its own clients. Then the person is asked
	// about the client before the browser leaves, since that site will not ask
	// (spec 2026-07-28, basic/authorization/security-considerations, "Confused
	// Deputy Problem": MUST).
	External() bool
}

// A Person is the result of a Login.
type Person struct {
	// Subject is the identifier of the person at this issuer, of 1 to 255
	// bytes, which never becomes that of another.
	Subject string `json:"subject"`
	// Name is what the person sees of it. Default: Subject.
	Name string `json:"name,omitzero"`
	// AuthTime is when the person proved it. Default: now.
	AuthTime time.Time `json:"auth_time,omitzero"`
	// Claims are further claims for access tokens, as a JSON object. Default none.
	Claims []byte `json:"claims,omitzero"`
	// Groups are those that the person is in, for scopes that are for some; at most 200, of
	// 1 to 255 bytes each. Default none.
	Groups []string `json:"groups,omitzero"`
	// Stamp is what Options.Subjects recognises this proof by, of at most 255
	// bytes: something that changes with the password, say. It is stored as it
	// is. Default none.
	Stamp string `json:"stamp,omitzero"`
}

// Subjects says whether people are still there. It may be used by many
// goroutines at once.
type Subjects interface {
	// Current reports whether what a person began stands: the person is still
	// there, and nothing has happened that ends it, such as a changed password.
	// stamp is the Person.Stamp of the login that it began with.
	Current(ctx context.Context, subject, stamp string) (bool, error)
}

// current asks Options.Subjects, if there are any.
func (s *Server) current(ctx context.Context, subject, stamp string) (bool, error) {
	if s.opts.Subjects == nil {
		return true, nil
	}
	ok, err := s.opts.Subjects.Current(ctx, subject, stamp)
	if err != nil {
		return false, fmt.Errorf("asking whether a person is still there: %w", err)
	}
	return ok, nil
}

// maxGroups is how many groups a person can be in.
const maxGroups = 200

func (p *Person) check() error {
	if p.Subject == "" || len(p.Subject) > 255 || len(p.Name) > 1024 || len(p.Stamp) > 255 {
		return errors.New("subject must have 1 to 255 bytes, name at most 1,024, stamp at most 255")
	}
	if len(p.Groups) > maxGroups || slices.ContainsFunc(p.Groups, func(g string) bool { return g == "" || len(g) > 255 }) {
		return fmt.Errorf("there must be at most %d groups, of 1 to 255 bytes each", maxGroups)
	}
	if p.Claims != nil {
		if _, err := wire.ParseObject(p.Claims, wire.Limits{Bytes: 16 << 10}); err != nil {
			return errors.New("claims must be a JSON object of at most 16 KiB")
		}
	}
	return nil
}

// AutoApprove is a Login for tests and for development: every visitor is
// subject, and agrees to everything without being shown a page. [New] refuses
// it unless the issuer is on loopback. A client that is not of the
// configuration still needs consent if its answers leave this machine:
// otherwise every page that the developer looks at could fetch itself a token.
func AutoApprove(subject string) Login {
	return &autoApprove{person: Person{Subject: subject}}
}

type autoApprove struct{ person Person }

var _ Login = (*autoApprove)(nil)

// ServeLogin is for browsers that come by an address they remember.
func (a *autoApprove) ServeLogin(w http.ResponseWriter, r *http.Request, v *Visit) {
	v.Done(w, r, a.person)
}

func (a *autoApprove) External() bool { return false }

// A Visit is one person on the way through a Login, bound to the browser that
// asked for it. It belongs to one call of ServeLogin.
type Visit struct {
	// Path is where the Login is mounted, such as "/login"; all below is its own.
	Path string
	// URL is Path with the origin of the issuer, for redirect URIs at another
	// site: URL + "/callback".
	URL string
	// Client is the requesting client, and Host where the person will be sent in the end.
	// The client says so itself, unless Verified. Both are empty if the person signs in
	// for a page of this server.
	Client, Host string
	Verified     bool
	// Hint is the person that the client expects (login_hint), or empty. It proves nothing.
	Hint string
	// Fresh asks for a new authentication of the person, also if the Login, or
	// the other site, remembers one (prompt=login).
	Fresh bool
	// Data is what Leave was given, once the browser is back; else nil.
	Data []byte

	server *Server
	handle string
	mark   string
	client *Client
	it     *interaction
}

// Action is the address of the Login for a form or a link: the path below Path
// (such as "/password", or "") with what leads back to this visit.
func (v *Visit) Action(path string) string {
	return v.Path + path + "?visit=" + v.handle
}

// CSRF is the value of the field "csrf" that each form must have.
func (v *Visit) CSRF() string {
	return csrf(v.mark, v.handle)
}

// Page answers with a page in the looks of the others: body stands below
// title, which is escaped; a page takes no scripts and nothing from elsewhere.
func (v *Visit) Page(w http.ResponseWriter, status int, title string, body template.HTML) {
	v.server.writePage(w, status, "frame", &frame{Title: title, Body: body})
}

// Leave prepares a trip to another site: it returns the state that the site
// must bring back as the query parameter "state" of a GET request to a path
// below v.URL. It works once, for at most ten minutes, and in this browser alone.
// Data is kept meanwhile and must not be nil: a nonce and a verifier, say. It
// is an error for a Login that is not External. (spec, security best practices:
// state MUST be single use, set only after consent.)
func (v *Visit) Leave(ctx context.Context, data []byte) (state string, err error) {
	if !v.server.login.External() || !v.it.Approved {
		return "", errors.New("this login is not one that leaves")
	}
	if data == nil || len(data) > maxForm {
		return "", errors.New("data of a trip must be there and have at most 16 KiB")
	}
	state = oauth.NewSecret()
	err = v.server.storeRecord(ctx, kindTrip, state, &externalVisit{Request: Hash(v.handle), Browser: v.it.Browser, Data: data}, tripLifetime)
	if err != nil {
		return "", err
	}
	return state, nil
}

// Done ends the visit: the person is known, and the browser goes on to consent
// or back to the client.
func (v *Visit) Done(w http.ResponseWriter, r *http.Request, p Person) {
	s := v.server
	if err := p.check(); err != nil {
		v.Fail(w, r, err)
		return
	}
	if p.AuthTime.IsZero() {
		p.AuthTime = s.now()
	}
	p.AuthTime = p.AuthTime.UTC().Truncate(time.Second)
	if !v.take(w, r) {
		return
	}
	id, err := s.signIn(w, r, &p)
	if err != nil {
		s.answerError(w, r, v.it, s.broken(r.Context(), "keeping a login", err), "")
		return
	}
	event := Event{Name: "login", Outcome: "ok", Resource: v.it.Resource, Remote: s.opts.Remote(r)}
	event.by(v.client)
	event.of(&p)
	s.audit(r.Context(), event)
	v.it.Person, v.it.Session, v.it.Fresh = &p, id, false
	s.proceed(w, r, v.client, v.it)
}

// Refused tells the audit log that the Login did not believe the browser, and
// why: a wrong password, say. The visit goes on; the Login answers. subject is
// the person whose account it was about, if there is such a one, else empty.
// reason is one of a few fixed texts, and holds nothing that was typed in.
func (v *Visit) Refused(r *http.Request, subject, reason string) {
	event := Event{
		Name: "login", Outcome: oauth.AccessDenied, Subject: subject, Resource: v.it.Resource,
		Remote: v.server.opts.Remote(r), Reason: reason,
	}
	event.by(v.client)
	v.server.audit(r.Context(), event)
}

// Cancel ends the visit: the person does not want to sign in, or may not. The
// client is told access_denied.
func (v *Visit) Cancel(w http.ResponseWriter, r *http.Request) {
	if v.take(w, r) {
		v.server.answerError(w, r, v.it, &oauth.Error{Code: oauth.AccessDenied, Description: "the person did not sign in"}, "login was cancelled")
	}
}

// Fail ends the visit: the Login cannot do its work for now. The client is told
// temporarily_unavailable; the log is told why.
func (v *Visit) Fail(w http.ResponseWriter, r *http.Request, err error) {
	if v.take(w, r) {
		v.server.log.ErrorContext(r.Context(), "signing in", "error", err.Error())
		v.server.answerError(w, r, v.it, &oauth.Error{Code: oauth.TemporarilyUnavailable, Description: "signing in does not work for now"}, "login failed")
	}
}

// take ends the visit for all other requests that run for it; false means that
// one of them was first, and that a page says so.
func (v *Visit) take(w http.ResponseWriter, r *http.Request) bool {
	_, err := v.server.settle(r.Context(), v.handle, v.it)
	if err != nil {
		v.server.refuseRequest(w, r, v.handle, err)
	}
	return err == nil
}

// An externalVisit is a browser that is away at another site.
type externalVisit struct {
	Request string `json:"request"` // hash of the handle of the interaction
	Browser string `json:"browser"`
	Data    []byte `json:"data"`
}

const tripLifetime = 10 * time.Minute

func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request) {
	mark := s.cookies.read(r, s.cookies.browser)
	handle, data, err := s.enter(r, mark)
	if err != nil {
		s.refuseRequest(w, r, handle, err)
		return
	}
	it, err := s.request(r.Context(), handle, mark)
	if err != nil {
		s.refuseRequest(w, r, handle, err)
		return
	}
	if r.Method == http.MethodPost {
		if !s.ownForm(r, handle) {
			s.refusePage(w, r, http.StatusForbidden, "This form did not come from a page of this server.")
			return
		}
	}
	if s.login.External() && !it.Approved {
		redirect(w, s.path("consent")+"?visit="+handle)
		return
	}
	c, problem := s.waitingClient(r.Context(), it)
	if problem != nil {
		s.refuseTarget(w, r, problem)
		return
	}
	var name, host string
	verified := it.Page != ""
	if c != nil {
		name, host, verified = s.introduce(c, it.Redirect)
	}
	path := strings.TrimSuffix(s.path("login"), "/")
	s.login.ServeLogin(w, r, &Visit{
		Path: path, URL: s.endpoint("login"), Client: name, Host: host, Verified: verified,
		Hint: it.Hint, Fresh: it.Fresh, Data: data,
		server: s, handle: handle, mark: mark, client: c, it: it,
	})
}

// enter finds the handle of the visit that a request is about: it is in the
// address, or the browser comes back from a trip. Then the trip is over, and the
// visit has a new handle, so that a page that saw the old one at the other site
// has nothing.
func (s *Server) enter(r *http.Request, mark string) (handle string, data []byte, err error) {
	q := r.URL.Query()
	if len(q["visit"]) == 1 {
		return q.Get("visit"), nil, nil
	}
	if len(q["state"]) != 1 || r.Method != http.MethodGet || !s.login.External() {
		return "", nil, ErrNotFound
	}
	var t externalVisit
	if err := s.takeRecord(r.Context(), kindTrip, Hash(q.Get("state")), &t); err != nil {
		return "", nil, err
	}
	if mark == "" || !equal(t.Browser, Hash(mark)) {
		return "", nil, errOtherBrowser
	}
	it, err := s.takeRequest(r.Context(), t.Request)
	if err != nil {
		return "", nil, err
	}
	if handle, err = s.keepRequest(r.Context(), it); err != nil {
		return "", nil, err
	}
	return handle, t.Data, nil
}

// signIn stores the session and gives the browser its cookie. The session has a
// secret of its own each time, so that none can be planted beforehand. It returns
// the ID of the session.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, p *Person) (string, error) {
	s.signOut(w, r)
	secret, now := oauth.NewSecret(), s.now()
	made := &Session{
		ID: Hash(secret), Issuer: s.issuer, Person: *p, Remote: s.opts.Remote(r), Agent: agent(r),
		Created: now, Used: now, Expires: now.Add(s.opts.LoginLifetime),
	}
	if err := s.store.AddSession(r.Context(), made); err != nil {
		return "", fmt.Errorf("storing a session: %w", err)
	}
	s.cookies.set(w, s.cookies.login, secret)
	return made.ID, nil
}

// agent is what a browser says of itself, in what a store can keep.
func agent(r *http.Request) string {
	const longest = 255
	text := r.UserAgent()
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c == unicode.ReplacementChar {
			return -1
		}
		return c
	}, text[:min(len(text), longest)])
	return strings.ToValidUTF8(text, "")
}

// useInterval is how often the use of a session is noted.
const useInterval = time.Minute

// signedIn returns the session of a browser, or nil.
func (s *Server) signedIn(r *http.Request) (*Session, error) {
	secret := s.cookies.read(r, s.cookies.login)
	if secret == "" {
		return nil, nil
	}
	now := s.now()
	found, err := s.store.Session(r.Context(), Hash(secret), now)
	if errors.Is(err, ErrNotFound) || err == nil && found.Issuer != s.issuer {
		return nil, nil
	}
	if err == nil && now.Sub(found.Used) >= useInterval {
		err = s.store.UseSession(r.Context(), found.ID, now)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// signOut forgets the session of a browser.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	secret := s.cookies.read(r, s.cookies.login)
	if secret == "" {
		return
	}
	s.cookies.set(w, s.cookies.login, "")
	if err := s.store.RemoveSession(r.Context(), Hash(secret)); err != nil {
		s.log.ErrorContext(r.Context(), "forgetting a session", "error", err.Error())
	}
}
