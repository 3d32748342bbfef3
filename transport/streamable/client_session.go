package streamable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// sessionLost is why a link ends whose session the server has forgotten.
func sessionLost(cause error) error {
	if status, ok := errors.AsType[*web.StatusError](cause); ok && status.Status == http.StatusNotFound {
		cause = &sessionStatus{status}
	}
	return fmt.Errorf("%w: the server has ended the session: %w", transport.ErrClosed, cause)
}

// A sessionStatus is the 404 of a lost session. It does not advise to check the URL, where the session
// was.
type sessionStatus struct{ status *web.StatusError }

func (e *sessionStatus) Error() string {
	said := "the server answered 404 Not Found"
	if e.status.Text != "" {
		said += fmt.Sprintf(" (it said: %s)", e.status.Text)
	}
	return said
}

func (e *sessionStatus) Unwrap() error { return e.status }

// begin notes that a message is sent, and end that its status is there. There may be no
// session.
func (s *clientSession) begin() { s.count(1) }
func (s *clientSession) end()   { s.count(-1) }

func (s *clientSession) count(n int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending += n; s.pending == 0 && s.drained != nil {
		close(s.drained)
		s.drained = nil
	}
}

// answered returns a channel that is closed once no message is without a status.
func (s *clientSession) answered() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	drained := s.drained
	if s.pending == 0 {
		close(s.drained)
		s.drained = nil
	}
	return drained
}

// lossTime is how long the end of a lost session waits for the status of messages under way.
const lossTime = time.Second

// lose ends the link, whose session is lost. Other messages of the session are on their way to
// the same refusal: they are not cut off before they have it, for a little, since a request that
// is cut off may have run and is not sent again.
func (l *link) lose(ctx context.Context, s *clientSession, lost error) {
	late := time.NewTimer(lossTime)
	defer late.Stop()
	select {
	case <-s.answered():
	case <-late.C:
	case <-ctx.Done():
	}
	l.fail(lost)
}

// known looks at an answer, which can be an error that says that the session is lost.
func (x *clientCall) known(in *jsonrpc.Incoming, err error) (*jsonrpc.Incoming, error) {
	if err != nil || !x.s.tracked() {
		return in, err
	}
	if e := in.Error; e != nil && (!slices.Contains(otherReasons, e.Code) || uninitialized().MatchString(e.Message)) && x.forgotten(e.Message) {
		return nil, x.lost(in.Error)
	}
	return in, nil
}

// otherReasons are codes of errors that say by themselves what is wrong, whatever their words:
// a resource that does not exist, and pages to visit first, say because a sign-in has expired.
var otherReasons = []int64{-32002, -32042}

// saidOutside returns the words of an error in what should be a message and is none:
// {"error":"Session not found"}.
func saidOutside(data []byte) string {
	o, err := wire.ParseObject(data, wire.Limits{})
	if err != nil {
		return ""
	}
	said, _ := o.Member("error")
	if len(said) == 0 || said[0] != '"' {
		return ""
	}
	return wire.Text(said)
}

// lost ends the link, whose session the server says that it does not know, and returns why
// the request has no answer. The words of a server are less certain than 404: the request
// may have run.
func (x *clientCall) lost(cause error) error {
	lost := sessionLost(cause)
	x.l.lose(x.own, x.s, lost)
	return fmt.Errorf("%w: %w", transport.ErrInterrupted, lost)
}

// notInitialized is what a server writes that has begun again, and waits for initialize.
const notInitialized = `(?i)\b(server|session) (is )?not initialized\b`

// The expressions are compiled when they are first needed: most sessions stay known.
var uninitialized = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(notInitialized) })

// unknownSession matches what servers write when they do not know the id of a session:
// "No valid session ID provided", "Session not found", "Invalid session ID", "sessionId not found".
var unknownSession = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(unknown|unrecognized|expired|no such|no valid|invalid|invalid or missing|missing or invalid) ` +
		`(mcp )?session( id)?( provided)? ?($|[.:;,()}!])` +
		`|\bno (valid|active) (mcp )?session( id)?\b` +
		`|\binvalid (mcp )?request or session\b` +
		`|` + notInitialized +
		`|\bsession( with)?( id)?( is| was| has| has been| does)? ` +
		`(not (found|valid|known|exist|recognized)|doesn t exist|unknown|invalid|expired|terminated|no longer (valid|known|exists))\b`)
})

// askSession finds out with a ping whether the server knows the session, where 404 to a GET
// leaves that open. If it does not, the link is over, and why is the error.
func (l *link) askSession(ctx context.Context, s *clientSession) error {
	if !s.tracked() {
		return nil
	}
	m := &jsonrpc.Outgoing{ID: jsonrpc.StringID("session-" + rand.Text()), Method: "ping"} // the client's own ids are numbers
	req, p, err := l.postRequest(ctx, m, transport.Route{}, s)
	if err != nil {
		return nil // nothing is known of the session
	}
	l.show(transport.TapSent, req, p.content, nil)
	resp, err := l.roundTrip(req, p)
	if err != nil {
		return nil // nothing is known of the session
	}
	defer func() { _ = resp.Body.Close() }() // the status says all
	if resp.StatusCode != http.StatusNotFound {
		return nil
	}
	lost := sessionLost(web.NewStatusError(resp))
	l.lose(ctx, s, lost)
	return lost
}

// refusesSession reports whether a status may mean that the session is lost, if the words say so: 400, and
// 401 or 403 without a challenge (modelcontextprotocol/rust-sdk#559, LanternOps/breeze#3744), with which a
// request was not carried out. If a sign-in is meant all the same, the request that begins the next
// session is told.
func refusesSession(status *web.StatusError) bool {
	switch status.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return len(status.Header.Values("WWW-Authenticate")) == 0
	}
	return status.Status == http.StatusBadRequest
}

// maxWords is how many bytes of a server's words are looked at.
const maxWords = 512

// forgotten reports whether a server's words mean that it does not know the session any
// more (ruling 40).
func (x *clientCall) forgotten(words string) bool {
	if !x.s.tracked() {
		return false
	}
	words = strings.ToLower(strings.ReplaceAll(words[:min(len(words), maxWords)], x.s.id, ""))
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`_-", r) }), " ")
	return unknownSession().MatchString(strings.ReplaceAll(words, "sessionid", "session id"))
}
