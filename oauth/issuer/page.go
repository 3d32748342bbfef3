package issuer

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the pages and their style
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The pages work without scripts, and load nothing from anywhere.
var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string

	pages = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("pages").Funcs(template.FuncMap{
			"day":   func(t time.Time) string { return t.Format(time.DateOnly) },
			"exact": func(t time.Time) string { return t.Format(time.RFC3339) },
			"time":  func(t time.Time) string { return t.Format("2006-01-02 15:04 UTC") },
			"style": func() template.CSS { return template.CSS(pageStyle) }, // #nosec G203 -- our own file
		}).Parse(pageText))
	})

	pagePolicy = makePolicy(pageStyle)
)

// makePolicy is the Content-Security-Policy of all pages: our style, and nothing
// else. There is no form-action on purpose: Chromium applies it to where a
// form's answer redirects, which is the client, and from there to where the
// client redirects, which is not known here. Nothing that a stranger sends
// becomes markup, so no foreign form can be in a page.
func makePolicy(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; frame-ancestors 'none'"
}

// guardPage sets what holds for all that a browser is shown. The referrer stays
// within this origin, where it is needed: with "no-referrer" browsers send
// "Origin: null" with forms.
func guardPage(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Pragma", "no-cache")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// A frame is a page around a body that another package made.
type frame struct {
	Title string
	Body  template.HTML
}

// A redirectPage is a page that a person leaves for another site, if at all, with
// open eyes.
type redirectPage struct{ Title, Text, Host, Target string }

// A message is a page that says one thing, and may lead on.
type message struct{ Title, Text, Link, LinkText string }

func (s *Server) writePage(w http.ResponseWriter, status int, name string, data any) {
	var page bytes.Buffer
	if err := pages().ExecuteTemplate(&page, name, data); err != nil {
		s.log.Error("writing a page", "page", name, "error", err.Error())
		http.Error(w, "something went wrong", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	guardPage(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // a client that hung up does not need it
}

// refusePage tells a person what is wrong, in a fixed text.
func (s *Server) refusePage(w http.ResponseWriter, r *http.Request, status int, text string) {
	s.log.InfoContext(r.Context(), "page was refused", "path", r.URL.Path, "status", status, "text", text, "remote", s.opts.Remote(r))
	s.writePage(w, status, "message", &message{Title: "This did not work", Text: text})
}
