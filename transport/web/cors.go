package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/internal/httptoken"
)

// preflightAge is how many seconds a browser may rely on a preflight.
const preflightAge = "600"

// allowOrigin adds what lets a page of a listed origin read the response.
// Credentials of the browser are never allowed: a token in a header is what
// such a page has to bring.
func allowOrigin(h http.Header, origin string, c *CORS) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	if len(c.Exposed) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(c.Exposed, ", "))
	}
}

// preflight answers the question that a browser asks before it lets a page
// send a request, and reports whether r was one.
func preflight(w http.ResponseWriter, r *http.Request, c *CORS) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", strings.Join(c.Methods, ", "))
	if names := c.agreed(r.Header["Access-Control-Request-Headers"]); len(names) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(names, ", "))
	}
	h.Set("Access-Control-Max-Age", preflightAge)
	h.Del("Access-Control-Expose-Headers") // is for the request itself
	w.WriteHeader(http.StatusNoContent)
	return true
}

// agreed picks those of the requested header names that may be sent.
func (c *CORS) agreed(requested []string) []string {
	var names []string
	for _, line := range requested {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); c.takes(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// takes reports whether the request header may be sent.
func (c *CORS) takes(name string) bool {
	return httptoken.Valid(name) && slices.ContainsFunc(c.Headers, func(entry string) bool {
		prefix, open := strings.CutSuffix(entry, "*")
		return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) && (open || len(name) == len(prefix))
	})
}
