package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

// An interaction is an authorization request that was found valid and waits for
// a person. It is stored under a handle that the browser carries in addresses,
// and belongs to the browser's mark. Each step takes it away and stores what
// became of it under a new handle, so that no step happens twice.
type interaction struct {
	// Page is the page of this server, such as "device", that the person signs in for; then there is no client.
	Page     string `json:"page,omitzero"`
	Client   string `json:"client"`
	Redirect string `json:"redirect,omitzero"`
	// Device is the keyed hash of the user code, if the answer is for a device: then there is no Redirect.
	Device string `json:"device,omitzero"`
	// Trusted says that browsers may be sent to Redirect without asking the person.
	Trusted   bool     `json:"trusted,omitzero"`
	State     string   `json:"state,omitzero"`
	Scopes    []string `json:"scopes,omitzero"`
	Resource  string   `json:"resource"`
	Challenge string   `json:"challenge,omitzero"`
	Key       string   `json:"key,omitzero"`
	Nonce     string   `json:"nonce,omitzero"`
	Hint      string   `json:"hint,omitzero"`
	// Fresh asks for a new login, Ask for consent in any case.
	Fresh bool `json:"fresh,omitzero"`
	Ask   bool `json:"ask,omitzero"`
	// Silent requests (prompt=none) are never stored.
	Silent  bool   `json:"-"`
	Browser string `json:"browser"` // hash of the browser's mark
	// Person is nil until somebody signed in; Approved says that the person
	// there agreed.
	Person   *Person   `json:"person,omitzero"`
	Session  string    `json:"session,omitzero"` // of the person
	Approved bool      `json:"approved,omitzero"`
	Expires  time.Time `json:"expires"`
}

// Kinds of records in the Store.
const (
	kindRequest = "request"
	kindTrip    = "trip"
	kindSettled = "settled"
)

// requestLifetime is how long a person may take from the first page to the
// last; tripLifetime bounds a trip to another site within it.
const requestLifetime = 30 * time.Minute

// errOtherBrowser says that a handle came from a browser that it was not given to.
var errOtherBrowser = errors.New("request belongs to another browser")

// keepRequest stores an interaction under a fresh handle.
func (s *Server) keepRequest(ctx context.Context, it *interaction) (handle string, err error) {
	handle = oauth.NewSecret()
	return handle, s.storeRecord(ctx, kindRequest, handle, it, it.Expires.Sub(s.now()))
}

// request reads the interaction of a handle, which this browser must own.
func (s *Server) request(ctx context.Context, handle, mark string) (*interaction, error) {
	var it interaction
	if err := s.readRecord(ctx, kindRequest, Hash(handle), &it); err != nil {
		return nil, err
	}
	if mark == "" || !equal(it.Browser, Hash(mark)) {
		return nil, errOtherBrowser
	}
	return &it, nil
}

// waitingClient returns the client of an interaction, if it still has the redirect URI: by now
// it may be another process, with another configuration, or the client's document may have changed.
// For a page of this server it is nil.
func (s *Server) waitingClient(ctx context.Context, it *interaction) (*Client, error) {
	if it.Page != "" {
		return nil, nil
	}
	c, err := s.client(ctx, it.Client)
	if err != nil {
		return nil, err
	}
	if it.Device == "" && !s.redirects.registered(c, it.Redirect) {
		return nil, invalidRequest("redirect_uri is not registered for this client any more")
	}
	return c, nil
}

// takeRequest takes an interaction away: of any number of callers one gets it.
func (s *Server) takeRequest(ctx context.Context, hash string) (*interaction, error) {
	var it interaction
	if err := s.takeRecord(ctx, kindRequest, hash, &it); err != nil {
		return nil, err
	}
	return &it, nil
}

func (s *Server) storeRecord(ctx context.Context, kind, secret string, v any, lifetime time.Duration) error {
	return s.putRecord(ctx, kind, Hash(secret), v, lifetime)
}

func (s *Server) putRecord(ctx context.Context, kind, hash string, v any, lifetime time.Duration) error {
	data, err := wire.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", kind, err)
	}
	if err := s.store.SetRecord(ctx, kind, hash, data, s.now().Add(lifetime)); err != nil {
		return fmt.Errorf("storing a %s: %w", kind, err)
	}
	return nil
}

func (s *Server) readRecord(ctx context.Context, kind, hash string, v any) error {
	data, err := s.store.Record(ctx, kind, hash, s.now())
	return decodeRecord(kind, data, err, v)
}

func (s *Server) takeRecord(ctx context.Context, kind, hash string, v any) error {
	data, err := s.store.TakeRecord(ctx, kind, hash, s.now())
	return decodeRecord(kind, data, err, v)
}

func decodeRecord(kind string, data []byte, err error, v any) error {
	if err == nil {
		err = wire.Decode(data, v)
	}
	if err != nil {
		return fmt.Errorf("reading a %s: %w", kind, err)
	}
	return nil
}

// settle removes an interaction because its person has answered, and records
// that for a second answer, by a double click say. The record comes first: it is
// true for each of two requests that remove the interaction.
func (s *Server) settle(ctx context.Context, handle string, it *interaction) (*interaction, error) {
	if err := s.storeRecord(ctx, kindSettled, handle, &finishedInteraction{Browser: it.Browser}, tripLifetime); err != nil {
		return nil, err
	}
	return s.takeRequest(ctx, Hash(handle))
}

// finishedInteraction is what is left of an interaction.
type finishedInteraction struct {
	Browser string `json:"browser"`
}

// adopt gives an interaction to another window of the browser, or to another
// browser, as long as no person has signed in or agreed to anything in it: it is
// worth no more than the link that it began with. So those who open two windows
// at once, of which each brings a mark, need not start again. A device's is worth the
// code, which was entered in the first browser: another one is sent to the page that
// asks for it, so that nobody is led past the comparison (RFC 8628, section 5.4). It
// says whether it did, and has answered.
func (s *Server) adopt(w http.ResponseWriter, r *http.Request, handle, mark string) bool {
	var it interaction
	if mark == "" || s.readRecord(r.Context(), kindRequest, Hash(handle), &it) != nil || it.Person != nil || it.Approved {
		return false
	}
	if it.Device != "" {
		redirect(w, s.path("device"))
		return true
	}
	taken, err := s.takeRequest(r.Context(), Hash(handle))
	if err != nil {
		return false
	}
	taken.Browser = Hash(mark)
	if handle, err = s.keepRequest(r.Context(), taken); err != nil {
		return false
	}
	redirect(w, s.path("login")+"?visit="+handle) // which knows what comes first
	return true
}

// refuseRequest answers a browser whose handle leads nowhere.
func (s *Server) refuseRequest(w http.ResponseWriter, r *http.Request, handle string, err error) {
	mark := s.cookies.read(r, s.cookies.browser)
	var before finishedInteraction
	switch {
	case errors.Is(err, errOtherBrowser) && s.adopt(w, r, handle, mark):
	case errors.Is(err, ErrNotFound) && mark != "" && s.readRecord(r.Context(), kindSettled, Hash(handle), &before) == nil &&
		equal(before.Browser, Hash(mark)):
		// Not a second code, and not the first one again: the client has it.
		s.writePage(w, http.StatusOK, "message", &message{
			Title: "Already answered",
			Text:  "Your first answer counts. Go back to the application. If it still waits for you, start again there.",
		})
	case errors.Is(err, ErrNotFound):
		s.refusePage(w, r, http.StatusBadRequest,
			"This request has expired or was already answered. Go back to the application and start again.")
	case errors.Is(err, errOtherBrowser):
		s.audit(r.Context(), Event{Name: "authorize", Outcome: oauth.AccessDenied, Remote: s.opts.Remote(r), Reason: err.Error()})
		s.refusePage(w, r, http.StatusForbidden,
			"This request was started in another browser. If somebody sent you this link, do not go on.")
	default:
		s.brokenPage(w, r, "reading a request", err)
	}
}

// brokenPage is broken for a person whose client cannot be told.
func (s *Server) brokenPage(w http.ResponseWriter, r *http.Request, doing string, err error) {
	e := s.broken(r.Context(), doing, err)
	s.refusePage(w, r, e.Status, "Something went wrong here. Try again later.")
}

// broken logs a failure of ours and returns what strangers are told of it.
func (s *Server) broken(ctx context.Context, doing string, err error) *oauth.Error {
	s.log.ErrorContext(ctx, doing, "error", err.Error())
	return failure()
}
