package streamable

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// sessionLost is why a link ends whose session the server has forgotten.
func sessionLost(cause error) error {
	return fmt.Errorf("%w: the server has ended the session: %w", transport.ErrClosed, cause)
}

// known notes that the server knows the session of a request that it has answered,
// unless the answer is an error that says otherwise.
func (x *clientCall) known(in *jsonrpc.Incoming, err error) (*jsonrpc.Incoming, error) {
	if err != nil || !x.s.tracked() {
		return in, err
	}
	if in.Error != nil && x.forgotten(in.Error.Message) {
		return nil, x.lost(in.Error)
	}
	x.s.knew.Store(true)
	return in, nil
}

// lost ends the link, whose session the server says that it does not know, and returns why
// the request has no answer. The words of a server are less certain than 404: the request
// may have run.
func (x *clientCall) lost(cause error) error {
	lost := sessionLost(cause)
	x.l.fail(lost)
	return fmt.Errorf("%w: %w", transport.ErrInterrupted, lost)
}

// unknownSession matches what servers write when they do not know the id of a session:
// "No valid session ID provided", "Session not found", "Invalid session ID".
var unknownSession = regexp.MustCompile(`\b(unknown|unrecognized|expired|no such|no valid|invalid|invalid or missing|missing or invalid) ` +
	`(mcp )?session( id)?( provided)? ?($|[.:;,()}!])` +
	`|\bsession( id)?( is| was| has| has been| does)? ` +
	`(not (found|valid|known|exist|recognized)|doesn t exist|unknown|invalid|expired|terminated|no longer (valid|known|exists))\b`)

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
	l.fail(lost)
	return lost
}

// maxWords is how many bytes of a server's words are looked at.
const maxWords = 512

// forgotten reports whether a server's words mean that it does not know the session any
// more. Of a session in which it has answered nothing yet that is not believed: a new
// one would be no better.
func (x *clientCall) forgotten(words string) bool {
	if !x.s.tracked() || !x.s.knew.Load() {
		return false
	}
	words = strings.ToLower(strings.ReplaceAll(words[:min(len(words), maxWords)], x.s.id, ""))
	blank := func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`_-", r) }
	return unknownSession.MatchString(strings.Join(strings.FieldsFunc(words, blank), " "))
}
