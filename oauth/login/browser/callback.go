package browser

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxCallbackHeader = 32 << 10 // bytes
	maxCallbackQuery  = 16 << 10 // bytes
	maxCallbackParams = 32
	maxCallbackConns  = 64 // at once: browsers open some ahead
)

// The pages say the same whatever was asked, so that nothing of a request can get into them.
const (
	pageHead  = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Sign-in</title>\n"
	pageDone  = pageHead + "<p>You can close this window and go back to the program.</p>\n</html>\n"
	pageWrong = pageHead + "<p>This page belongs to no sign-in that is under way. You can close this window.</p>\n</html>\n"
)

// callbackPage is the handler at the redirect URI.
type callbackPage struct {
	once     firstResponse
	hosts    []string
	path     string
	accept   func(url.Values) bool
	received chan<- url.Values
}

func (c *callbackPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	values, status := c.read(r)
	if status == http.StatusOK && c.once.take(values, c.accept) != responseTaken {
		status = http.StatusBadRequest
	}
	if status != http.StatusOK {
		c.write(w, status, pageWrong)
		return
	}
	c.write(w, http.StatusOK, pageDone)
	// Only now, since what comes after closes the connection.
	c.received <- values
}

// read checks a request and returns the parameters of the response in it, or the status of a
// refusal.
func (c *callbackPage) read(r *http.Request) (url.Values, int) {
	switch {
	case !slices.ContainsFunc(c.hosts, func(own string) bool { return strings.EqualFold(own, r.Host) }):
		// Another name that leads here: DNS rebinding.
		return nil, http.StatusForbidden
	case r.URL.Path != c.path || r.URL.RawPath != "" || r.URL.Host != "":
		return nil, http.StatusNotFound
	case r.Method != http.MethodGet:
		return nil, http.StatusMethodNotAllowed
	case len(r.URL.RawQuery) > maxCallbackQuery:
		return nil, http.StatusRequestURITooLong
	}
	values, ok := parseResponse(r.URL.RawQuery)
	if !ok {
		return nil, http.StatusBadRequest
	}
	return values, http.StatusOK
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
