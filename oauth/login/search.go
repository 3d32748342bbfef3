package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/parley-mcp/parley/oauth"
)

// A search goes through the places where a document may be, and remembers what was wrong with those
// that it passed.
type search struct {
	step Step
	// promised is the place that was named, rather than guessed; it may be empty.
	promised string

	tried []*DiscoveryError
	some  bool // something was there, or was promised
}

// fetch fetches what may be a document. Without one it notes why, and returns nil. An error ends the
// search: a host that cannot be reached has no other place either.
func (s *search) fetch(ctx context.Context, f *oauth.Fetcher, place string, header http.Header) (*oauth.Response, error) {
	var answered atomic.Bool
	resp, err := f.Get(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() { answered.Store(true) },
	}), place, header)
	switch {
	case err != nil && answered.Load() && ctx.Err() == nil: // with a page that is too large, or redirects to one for people
		d := fetchError(s.step, place, err)
		d.Advice = adviceTellServer
		s.add(d)
	case errors.As(err, new(*oauth.BlockedError)):
		s.add(fetchError(s.step, place, err))
	case err != nil:
		return nil, fetchError(s.step, place, err)
	case resp.Status == http.StatusTooManyRequests || resp.Status/100 == 5: // some fail for places that they do not have
		s.add(newDiscoveryError(s.step, place, &Error{Retry: true, Err: fmt.Errorf("the server answered %d", resp.Status)}, "", "try again later"))
	case resp.Status/100 == 2 && resp.Document():
		return resp, nil
	default:
		s.absent(place, resp.Status)
	}
	return nil, nil
}

// absent notes that there is no document at a place: the server said so in any way of the 400s, or
// gave a page.
func (s *search) absent(place string, status int) {
	what := fmt.Errorf("no document there (status %d)", status)
	if place != s.promised {
		s.tried = append(s.tried, newDiscoveryError(s.step, place, what, "", ""))
		return
	}
	s.add(newDiscoveryError(s.step, place, what, "RFC 9728, section 5.1: resource_metadata is the URL of the metadata",
		"the resource's challenge names a wrong place: tell its operator"))
}

// add notes a *DiscoveryError.
func (s *search) add(err error) {
	if d, ok := errors.AsType[*DiscoveryError](err); ok {
		s.tried, s.some = append(s.tried, d), true
	}
}

// err is the error of a search that ended in vain: it names every place. It is nil if there was
// nothing at all.
func (s *search) err(about string) error {
	switch {
	case !s.some:
		return nil
	case len(s.tried) == 1:
		return s.tried[0]
	}
	all := newDiscoveryError(s.step, about, placesError(s.tried), "", "")
	for _, d := range s.tried {
		if d.Advice != "" { // of the first that has something to say
			all.Rule, all.Advice = d.Rule, d.Advice
			break
		}
	}
	return all
}

// notes say what was passed over before a document was found at a place, and in it.
func (s *search) notes(place string, ignored []string) []note {
	var notes []note
	if s.some {
		for _, d := range s.tried {
			notes = append(notes, note{d.URL, d.Err.Error(), cmp.Or(d.Advice, adviceTellServer)})
		}
	}
	return append(notes, noteMembers(place, ignored)...)
}

// A note says what was passed over on the way to a token, for people.
type note struct{ url, text, advice string }

// noteMembers notes the members of an answer that were passed over, if there are any.
func noteMembers(place string, members []string) []note {
	if len(members) == 0 {
		return nil
	}
	return []note{{redactURL(place), "members that cannot be used as they are: " + strings.Join(members, ", "), adviceTellServer}}
}

// logNotes logs what was passed over.
func (c *Client) logNotes(ctx context.Context, notes []note) {
	for _, n := range notes {
		c.log.InfoContext(ctx, "passed over", "url", n.url, "what", n.text)
	}
}

// placesError says what was wrong with each place.
type placesError []*DiscoveryError

// Error names the places and their errors.
func (e placesError) Error() string {
	var all []string
	for _, d := range e {
		all = append(all, optional("", d.URL, ": ")+d.Err.Error())
	}
	return strings.Join(all, "; ")
}

// Unwrap returns the errors.
func (e placesError) Unwrap() []error {
	all := make([]error, len(e))
	for i, d := range e {
		all[i] = d
	}
	return all
}
