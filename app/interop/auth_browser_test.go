package interop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"
)

// person is who sits at the browser; the password is good everywhere.
const (
	person   = "ada"
	password = "secret"
)

// A browser is a person at a browser without a screen: it follows redirects,
// keeps cookies, and fills in the forms that it meets, until it is back on a
// page without any.
type browser struct {
	client *http.Client
	mu     sync.Mutex
	pages  []string
	// fill are values for fields by their names, besides those that the forms
	// have; a button is pressed by its value.
	fill map[string]string
	// stay ends the way at the first redirect to another host, which is not
	// followed; a page there is no good end.
	stay bool
}

func newBrowser(t *testing.T, fill map[string]string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{fill: map[string]string{
		"login": person, "username": person, "password": password, "answer": "approve",
	}}
	for k, v := range fill {
		b.fill[k] = v
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	b.client = &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return b
}

// open is the Open of a browser.Receiver: at the end the page of our own client
// has been seen.
func (b *browser) open(ctx context.Context, u *url.URL) error {
	_, err := b.walk(ctx, u)
	return err
}

// walk goes to u and on until there are no more forms, and returns where it
// ended.
func (b *browser) walk(ctx context.Context, u *url.URL) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for range 25 {
		page, err := b.get(req)
		if err != nil {
			return nil, err
		}
		if page.to != "" {
			next, err := req.URL.Parse(page.to)
			if err != nil {
				return nil, err
			}
			if b.stay && next.Host != u.Host {
				return next, nil
			}
			if req, err = http.NewRequestWithContext(ctx, http.MethodGet, next.String(), nil); err != nil {
				return nil, err
			}
			continue
		}
		form := page.form()
		if form == nil {
			return req.URL, page.ended(req.URL, b.stay)
		}
		b.mu.Lock()
		b.pages = append(b.pages, req.URL.Path)
		b.mu.Unlock()
		if req, err = b.submit(ctx, req.URL, form); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the way through the browser does not end")
}

// A page is what a request brought: a redirect, or HTML.
type page struct {
	status int
	to     string
	root   *html.Node
}

func (b *browser) get(req *http.Request) (*page, error) {
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	root, err := html.Parse(io.LimitReader(resp.Body, 1<<20))
	return &page{resp.StatusCode, resp.Header.Get("Location"), root}, err
}

// ended says whether a page without a form is a good end.
func (p *page) ended(at *url.URL, stay bool) error {
	if !stay && p.status == http.StatusOK {
		return nil
	}
	var text strings.Builder
	for n := range p.root.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "style" {
			text.WriteString(strings.TrimSpace(n.Data) + " ")
		}
	}
	return &deadEnd{status: p.status, path: at.Path, text: strings.TrimSpace(text.String())}
}

// form is the first form of the page that is posted, or nil.
func (p *page) form() *html.Node {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" && strings.EqualFold(attribute(n, "method"), http.MethodPost) {
			return n
		}
	}
	return nil
}

// A deadEnd is a page of the authorization server that leads nowhere.
type deadEnd struct {
	status int
	path   string
	text   string
}

func (d *deadEnd) Error() string {
	return fmt.Sprintf("the browser ended at %s with status %d: %s", d.path, d.status, d.text)
}

// submit makes the request of a form, all fields as they stand, and those that
// the person knows filled in.
func (b *browser) submit(ctx context.Context, at *url.URL, form *html.Node) (*http.Request, error) {
	action, err := at.Parse(attribute(form, "action"))
	if err != nil {
		return nil, err
	}
	values := url.Values{}
	for n := range form.Descendants() {
		name := attribute(n, "name")
		if n.Type != html.ElementNode || name == "" {
			continue
		}
		known, filled := b.fill[name]
		switch {
		case n.Data == "button" && filled:
			values.Set(name, known)
		case n.Data == "input" && filled:
			values.Set(name, known)
		case n.Data == "input":
			values.Set(name, attribute(n, "value"))
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, action.String(), strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", action.Scheme+"://"+action.Host)
	return req, nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
