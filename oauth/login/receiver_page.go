package login

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

const (
	// maxCallbackHeader and maxCallbackQuery are sizes in bytes of what a
	// request may have, and maxCallbackParams is how many parameters.
	maxCallbackHeader = 32 << 10
	maxCallbackQuery  = 16 << 10
	maxCallbackParams = 32
	// maxCallbackConns is how many connections there may be at once: browsers
	// open some ahead.
	maxCallbackConns = 64
)

// The pages say the same whatever was asked, so that nothing of a request can
// get into them.
const (
	pageHead  = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Sign-in</title>\n"
	pageDone  = pageHead + "<p>You can close this window and go back to the program.</p>\n</html>\n"
	pageWrong = pageHead + "<p>This page belongs to no sign-in that is under way. You can close this window.</p>\n</html>\n"
)

// callbackPage is the handler at the redirect URI.
type callbackPage struct {
	once     oneResponse
	hosts    []string
	path     string
	accept   func(url.Values) bool
	received chan<- url.Values
}

func (c *callbackPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	values, status := c.read(r)
	if status != http.StatusOK {
		c.write(w, status, pageWrong)
		return
	}
	if c.once.take(values, c.accept) != responseTaken {
		c.write(w, http.StatusBadRequest, pageWrong)
		return
	}
	c.write(w, http.StatusOK, pageDone)
	// Only now, since what comes after closes the connection.
	c.received <- values
}

// read checks a request and returns the parameters of the response in it, or
// the status with which it is turned away.
func (c *callbackPage) read(r *http.Request) (url.Values, int) {
	switch {
	case !c.own(r.Host):
		// Somebody's name that leads here: DNS rebinding.
		return nil, http.StatusForbidden
	case r.URL.Path != c.path || r.URL.RawPath != "" || r.URL.Host != "":
		return nil, http.StatusNotFound
	case r.Method != http.MethodGet:
		return nil, http.StatusMethodNotAllowed
	case len(r.URL.RawQuery) > maxCallbackQuery:
		return nil, http.StatusRequestURITooLong
	}
	values, ok := parseResponse(r.URL.RawQuery)
	if !ok || !isResponse(values) {
		return nil, http.StatusBadRequest
	}
	return values, http.StatusOK
}

func (c *callbackPage) own(host string) bool {
	for _, h := range c.hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

// write sends a page whole, so that it has left when write returns.
func (c *callbackPage) write(w http.ResponseWriter, status int, page string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Connection", "close")
	if status == http.StatusMethodNotAllowed {
		h.Set("Allow", http.MethodGet)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page))
	_ = http.NewResponseController(w).Flush()
}

// parseResponse reads the parameters of a response: none may be there twice
// (RFC 6749, section 3.1).
func parseResponse(query string) (url.Values, bool) {
	if len(query) > maxCallbackQuery || strings.Count(query, "&") >= maxCallbackParams {
		return nil, false
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, false
	}
	for _, v := range values {
		if len(v) != 1 {
			return nil, false
		}
	}
	return values, true
}

// isResponse reports whether parameters can be a response at all.
func isResponse(values url.Values) bool { return values.Has("code") || values.Has("error") }

// A verdict is what became of a response.
type verdict int

const (
	responseRefused verdict = iota // not ours
	responseTaken                  // ours, and the first
	responseSpent                  // another was first
)

// oneResponse lets one response through, of however many come in at once.
type oneResponse struct {
	mu   sync.Mutex
	done bool
}

// take asks accept whether a response is ours. accept is called by one
// goroutine at a time, and not again once it has said yes.
func (o *oneResponse) take(values url.Values, accept func(url.Values) bool) verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return responseSpent
	}
	if !accept(values) {
		return responseRefused
	}
	o.done = true
	return responseTaken
}
