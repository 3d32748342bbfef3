// Package browsertest is a browser for tests of pages: it has cookies, follows redirects and sends
// the forms that it is shown.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// A Browser is a browser of one person.
type Browser struct {
	Client *http.Client // has the cookies

	// Follows says whether a redirect is followed; nil follows all.
	Follows func(to *url.URL) bool
}

// A Page is what a browser shows, or where it is sent to.
type Page struct {
	Status int
	Header http.Header
	Body   string
	URL    *url.URL // of the page
	Away   *url.URL // the redirect that was not followed, or nil
}

// New returns a browser without cookies.
func New() *Browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // it has no reason to
	}
	return &Browser{Client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Open follows a link.
func (b *Browser) Open(ctx context.Context, target string) (*Page, error) {
	return b.do(ctx, http.MethodGet, target, nil)
}

func (b *Browser) do(ctx context.Context, method, target string, form url.Values) (*Page, error) {
	for range 10 {
		r, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(form.Encode()))
		if err != nil {
			return nil, err
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
		}
		p, err := b.read(r)
		if err != nil || p.Away == nil || b.Follows != nil && !b.Follows(p.Away) {
			return p, err
		}
		method, target, form = http.MethodGet, p.Away.String(), nil
	}
	return nil, errors.New("redirects without end")
}

func (b *Browser) read(r *http.Request) (*Page, error) {
	resp, err := b.Client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	p := &Page{Status: resp.StatusCode, Header: resp.Header, Body: string(body), URL: r.URL}
	if resp.Header.Get("Location") != "" {
		p.Away, err = resp.Location()
	}
	return p, err
}

var (
	formAction = regexp.MustCompile(`<form[^>]*action="([^"]*)"`)
	formHidden = regexp.MustCompile(`<input type="hidden"[^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

// HasForm says whether the page has a form.
func (p *Page) HasForm() bool { return p.Away == nil && formAction.MatchString(p.Body) }

// Submit sends the form of a page with these fields and those that are hidden in it.
func (b *Browser) Submit(ctx context.Context, p *Page, fields url.Values) (*Page, error) {
	action := formAction.FindStringSubmatch(p.Body)
	if action == nil {
		return nil, fmt.Errorf("no form: %d %v %s", p.Status, p.Away, p.Body)
	}
	target, err := p.URL.Parse(html.UnescapeString(action[1]))
	if err != nil {
		return nil, err
	}
	form := url.Values{}
	for name, values := range fields {
		form[name] = values
	}
	for _, hidden := range formHidden.FindAllStringSubmatch(p.Body, -1) {
		form.Set(html.UnescapeString(hidden[1]), html.UnescapeString(hidden[2]))
	}
	return b.do(ctx, http.MethodPost, target.String(), form)
}

// FillIn opens a page and sends every form that it meets, some at the most, with the same fields.
// Without fields it sends none.
func (b *Browser) FillIn(ctx context.Context, target string, fields url.Values) (*Page, error) {
	p, err := b.Open(ctx, target)
	for forms := 0; err == nil && fields != nil && p.HasForm() && p.Status < http.StatusBadRequest; forms++ {
		if forms == 5 {
			return nil, errors.New("forms without end")
		}
		p, err = b.Submit(ctx, p, fields)
	}
	return p, err
}
