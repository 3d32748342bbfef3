package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/oauth"
)

const (
	// manualRedirect is where the browser ends up if nothing else is said: a page that does not
	// load, with the answer in the address bar.
	manualRedirect = "http://127.0.0.1:41765/callback"
	// maxPaste is the size in bytes of the longest text that is taken.
	maxPaste = 16 << 10
	// maxPastes is how many texts are read for one visit.
	maxPastes = 20
)

// ManualOptions adjust a Manual. Show and Read are required.
type ManualOptions struct {
	// RedirectURI is a registered one, which need not lead anywhere. Default: the first registered
	// one on this machine, else http://127.0.0.1:41765/callback.
	RedirectURI string
	// Show shows the person the URL to open, anywhere.
	Show func(authorizationURL string)
	// Read returns what the person pastes: the address of the page that they ended at, or its query.
	// It must return when its context ends.
	Read func(ctx context.Context) (string, error)
	// Refused is told why a text was not taken, without the text. Reading goes on then, up to 20
	// times. Default: the first bad text ends the visit with that error.
	Refused func(err error)
	// Timeout is how long the person has. Default 5 min.
	Timeout time.Duration
}

// A Manual works without a browser on this machine: the person opens the URL elsewhere, and pastes
// the address of the page at which they end. Many goroutines may use it at once if Show, Read and
// Refused may be called so.
type Manual struct{ o ManualOptions }

// NewManual makes a Manual. The options are copied; nil is none.
func NewManual(o *ManualOptions) *Manual {
	m := &Manual{}
	if o != nil {
		m.o = *o
	}
	m.o.Timeout = cmp.Or(m.o.Timeout, visitTimeout)
	return m
}

// Begin makes ready for one response.
func (m *Manual) Begin(_ context.Context, registered []string) (Visit, error) {
	if m.o.Show == nil || m.o.Read == nil {
		return nil, errors.New("signing in by hand: Show and Read are required")
	}
	redirect := m.redirect(registered)
	if err := oauth.CheckRedirectURI(redirect, true); err != nil {
		return nil, fmt.Errorf("signing in by hand: %w", err)
	}
	life, end := context.WithCancelCause(context.Background())
	return &manualVisit{o: &m.o, redirect: redirect, life: life, end: end}, nil
}

func (m *Manual) redirect(registered []string) string {
	if m.o.RedirectURI != "" {
		return m.o.RedirectURI
	}
	for _, raw := range registered {
		if u, err := url.Parse(raw); err == nil && u.Scheme == "http" && oauth.LoopbackHost(u.Hostname()) {
			return raw
		}
	}
	return manualRedirect
}

type manualVisit struct {
	o        *ManualOptions
	redirect string
	once     firstResponse
	life     context.Context //nolint:containedctx // it ends with Close
	end      context.CancelCauseFunc
}

func (v *manualVisit) RedirectURI() string { return v.redirect }

// Wait shows the URL and reads texts until one holds the response.
func (v *manualVisit) Wait(ctx context.Context, authorizationURL *url.URL, accept func(url.Values) bool) (url.Values, error) {
	checked, err := checkURL(authorizationURL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := visitContext(ctx, v.life, v.o.Timeout)
	defer cancel()
	v.o.Show(checked.String())
	in := &pasteReader{redirect: v.redirect, read: v.o.Read, refused: v.o.Refused}
	values, err := in.wait(ctx, &v.once, accept)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("signing in by hand: %w", err)
	}
	return values, nil
}

// Close ends Wait.
func (v *manualVisit) Close() error {
	v.end(errClosed)
	return nil
}

// A pasteError says what was wrong with a text, and what to paste.
type pasteError struct{ problem, redirect string }

func (e *pasteError) Error() string {
	return e.problem + "; paste the whole address of the page that the browser ended at, which begins with " + e.redirect
}

// A pasteReader reads the response from what a person pastes.
type pasteReader struct {
	redirect string
	read     func(context.Context) (string, error)
	refused  func(error)
}

// wait reads texts until one is accepted, reading ends, or there were too many.
func (p *pasteReader) wait(ctx context.Context, one *firstResponse, accept func(url.Values) bool) (url.Values, error) {
	for range maxPastes {
		line := <-inBackground(ctx, new(sync.WaitGroup), p.read)
		if line.err != nil {
			return nil, line.err
		}
		if strings.TrimSpace(line.value) == "" {
			continue
		}
		values, err := parsePasted(line.value, p.redirect)
		if err == nil {
			switch one.take(values, accept) {
			case responseTaken:
				return values, nil
			case responseTooLate:
				return nil, errClosed
			case responseRefused:
				err = &pasteError{"that address belongs to another sign-in", p.redirect}
			}
		}
		if p.refused == nil {
			return nil, err
		}
		p.refused(err)
	}
	return nil, &pasteError{fmt.Sprintf("none of %d texts held the answer", maxPastes), p.redirect}
}

// parsePasted reads the parameters of a response out of what a person pasted: the address, with or
// without its scheme, which browsers hide, or the query alone. The error is a *pasteError and shows
// nothing of the text.
func parsePasted(text, redirect string) (url.Values, error) {
	if len(text) > maxPaste {
		return nil, &pasteError{"that text is too long", redirect}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1 // terminals break long lines
		}
		return r
	}, text)
	query, problem := pastedQuery(strings.Trim(text, `"'<>`), redirect)
	if problem != "" {
		return nil, &pasteError{problem, redirect}
	}
	query, _, _ = strings.Cut(query, "#")
	values, ok := parseResponse(query)
	if !ok || len(values["code"])+len(values["error"]) != 1 { // the person may have copied a part
		return nil, &pasteError{"that address has no answer in it", redirect}
	}
	return values, nil
}

// pastedQuery finds the query in a text, or says why it is not there.
func pastedQuery(text, redirect string) (query, problem string) {
	if query, ok := strings.CutPrefix(text, "?"); ok {
		return query, ""
	}
	want, own, _ := strings.Cut(withoutScheme(redirect), "?")
	if rest, ok := strings.CutPrefix(withoutScheme(text), want+"?"); ok {
		// A redirect URI may have a query of its own, which the response keeps (RFC 6749, section 3.1.2).
		if rest, ok = strings.CutPrefix(rest, own); ok {
			return strings.TrimPrefix(rest, "&"), ""
		}
	}
	switch i := strings.IndexAny(text, "/?="); {
	case i < 0:
		return "", "a code alone is not enough"
	case text[i] == '=':
		return text, ""
	}
	return "", "that is another address"
}

// withoutScheme cuts a scheme off the beginning of a URL.
func withoutScheme(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || strings.ContainsAny(scheme, "/?=:") {
		return s
	}
	return rest
}
