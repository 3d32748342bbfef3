package issuer

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// guesses bound how many user codes are tried in a minute: from one browser, from
// one address, and of all strangers (RFC 8628, section 5.1: SHOULD). Right codes count too,
// so that requests at once count before any of them is answered. People who are
// signed in have limits of their own, each and all of them, so that strangers who guess do
// not keep them out. Each process counts for itself.
type guesses struct{ browser, address, strangers, people *rates }

func newGuesses(now func() time.Time) *guesses {
	const browser, address, strangers, people = 5, 20, 200, 2000
	return &guesses{
		browser: newRates(browser, now), address: newRates(address, now),
		strangers: newRates(strangers, now), people: newRates(people, now),
	}
}

// take counts a try of a browser whose mark is given; session may be nil.
func (g *guesses) take(mark, address string, session *Session) (time.Duration, bool) {
	if session != nil {
		if wait, ok := g.browser.take("person " + session.Person.Subject); !ok {
			return wait, false
		}
		return g.people.take("")
	}
	if wait, ok := g.browser.take("browser " + Hash(mark)); !ok {
		return wait, false
	}
	return g.address.take(address)
}

// A devicePage asks for the code that a device shows. With a Code, from an address
// that the device made, the person compares it instead of typing it (RFC 8628,
// section 3.3.1: SHOULD).
type devicePage struct{ Title, Code, Typed, Wrong, CSRF, Action string }

// deviceForm is what the tokens of the form at the device page are about.
const deviceForm = "device"

// serveDevice is the page at which a person enters the code of a device (RFC
// 8628, section 3.3). Opening it looks nothing up; the form does.
func (s *Server) serveDevice(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.showDevice(w, http.StatusOK, s.browserMark(w, r), r.URL.Query().Get("user_code"), "")
		return
	}
	if !s.ownForm(r, deviceForm) {
		s.refusePage(w, r, http.StatusForbidden, "This form did not come from a page of this server.")
		return
	}
	mark, typed := s.cookies.read(r, s.cookies.browser), r.PostForm.Get("user_code")
	session, err := s.signedIn(r)
	if err != nil {
		s.brokenPage(w, r, "reading a login", err)
		return
	}
	if wait, ok := s.guesses.take(mark, s.bucketOf(r, "user code", ""), session); !ok {
		s.audit(r.Context(), Event{Name: "device.entered", Outcome: oauth.AccessDenied, Remote: s.opts.Remote(r), Reason: "too many codes were tried"})
		setRetryAfter(w.Header(), wait)
		s.refusePage(w, r, http.StatusTooManyRequests, "Too many codes were tried. Wait a minute and try again.")
		return
	}
	if session == nil && s.auto == nil {
		// Strangers together guessed too often: from now on a code counts with a name.
		if _, ok := s.guesses.strangers.take(""); !ok {
			s.signInFor(w, r, "device")
			return
		}
	}
	var d deviceRequest
	hash, err := "", ErrNotFound
	if code := plainUserCode(typed); code != "" {
		hash, err = s.findUserCode(r.Context(), code, &d)
	}
	if errors.Is(err, ErrNotFound) {
		s.audit(r.Context(), Event{Name: "device.entered", Outcome: oauth.AccessDenied, Remote: s.opts.Remote(r), Reason: "no such code"})
		s.showDevice(w, http.StatusBadRequest, mark, "", "No device waits with this code. It may have expired: look at the device again.")
		return
	}
	if err != nil {
		s.brokenPage(w, r, "reading a user code", err)
		return
	}
	it := &interaction{
		Client: d.Client, Device: hash, Resource: d.Resource, Scopes: d.Scopes, Ask: true,
		Browser: Hash(mark), Expires: d.Expires,
	}
	if session != nil {
		it.Person, it.Session = &session.Person, session.ID
	}
	c, problem := s.waitingClient(r.Context(), it)
	if problem != nil {
		s.refuseTarget(w, r, problem)
		return
	}
	s.proceed(w, r, c, it)
}

func (s *Server) showDevice(w http.ResponseWriter, status int, mark, given, wrong string) {
	page := &devicePage{Title: "Connect a device", Wrong: wrong, CSRF: csrf(mark, deviceForm), Action: s.path("device")}
	if code := plainUserCode(given); code != "" {
		page.Code = code[:userCodeLength/2] + "-" + code[userCodeLength/2:]
	}
	s.writePage(w, status, "device", page)
}

// approveDevice gives a grant, which is stored, to the device of an interaction. The first answer
// counts, of whichever browser: a later one finds the user code gone.
func (s *Server) approveDevice(w http.ResponseWriter, r *http.Request, it *interaction, grant *Grant) {
	ctx := r.Context()
	if err := s.answerUserCode(ctx, it, &deviceAnswer{Grant: grant.ID}); err != nil {
		if dropped := s.store.RevokeGrant(ctx, grant.ID, s.now()); dropped != nil {
			s.log.ErrorContext(ctx, "revoking a grant that no device gets", "error", dropped.Error())
		}
		s.refuseAnswer(w, r, err)
		return
	}
	if c, err := s.client(ctx, grant.ClientID); err == nil {
		if err := s.useClient(ctx, c); err != nil {
			s.log.ErrorContext(ctx, "noting the use of a client", "error", err.Error())
		}
	}
	s.audit(ctx, Event{
		Name: "device.approved", Outcome: "ok", Client: grant.ClientID, Subject: grant.Subject, SubjectName: it.Person.Name,
		Grant: grant.ID, Resource: grant.Resource, Scopes: grant.Scopes, GrantType: oauth.GrantDeviceCode, Remote: s.opts.Remote(r),
	})
	s.writePage(w, http.StatusOK, "message", &message{
		Title: "The device is connected", Text: "Go back to your device: it goes on by itself. You can close this page.",
	})
}

// refuseDevice tells the device of an interaction that the person said no, and the person what
// happened. Other problems are for the person alone: the code stays good for another attempt. The
// event is told once it is true.
func (s *Server) refuseDevice(w http.ResponseWriter, r *http.Request, it *interaction, e *oauth.Error, event Event) {
	if e.Code != oauth.AccessDenied {
		s.audit(r.Context(), event)
		s.refusePage(w, r, max(e.Status, http.StatusBadRequest),
			"Something went wrong here. Your device still waits: enter its code again a little later.")
		return
	}
	if err := s.answerUserCode(r.Context(), it, &deviceAnswer{}); err != nil {
		s.refuseAnswer(w, r, err)
		return
	}
	s.audit(r.Context(), event)
	s.writePage(w, http.StatusOK, "message", &message{
		Title: "The device gets no access", Text: "Your device is told that you said no. You can close this page.",
	})
}

// answerUserCode takes the user code of an interaction away and stores the answer
// for the device. ErrNotFound says that there was an answer before, or that the
// code has expired.
func (s *Server) answerUserCode(ctx context.Context, it *interaction, answer *deviceAnswer) error {
	var d deviceRequest
	if err := s.takeRecord(ctx, kindUserCode, it.Device, &d); err != nil {
		return err
	}
	return s.putRecord(ctx, kindDeviceAnswer, d.Device, answer, d.Expires.Sub(s.now())+expiredAge)
}

func (s *Server) refuseAnswer(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrNotFound) {
		s.refusePage(w, r, http.StatusConflict,
			"The code of this device was answered before, or has expired. If the device still waits, start again there.")
		return
	}
	s.brokenPage(w, r, "answering a device", err)
}
