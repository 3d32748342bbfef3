package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A PageLoader reads pages of servers (SEP-1865, MCP Apps). apps.Loader of package
// ext/apps is one. It may be called by many goroutines at once.
type PageLoader interface {
	// LoadPage reads the page at a URI with the client of its server and checks it. It
	// returns the document, the value of the header Content-Security-Policy that it must
	// be shown with, and what else the server says of it as JSON, or nil.
	LoadPage(ctx context.Context, c *client.Client, uri string) (html, csp string, meta mcp.RawValue, err error)
}

// A Page is a page of a server that may be shown. It is a stranger's program: a face shows
// it in a sandbox, with its policy, and marked as the server's.
type Page struct {
	// Server and URI name it; [Session.CallForPage] takes them.
	Server, URI string
	// HTML is the document.
	HTML string
	// CSP is the value of the header Content-Security-Policy that it must be shown with.
	CSP string
	// Meta is what else the server says of it, such as the permissions that it asks for:
	// `_meta.ui` as JSON, or nil.
	Meta mcp.RawValue
}

// A PageRecord says that a page of a server is shown.
type PageRecord struct {
	// Server is the name of the server in this host, and Owner that with a digest of the
	// key of its entry: no page calls another server of the name.
	Server string `json:"server"`
	Owner  string `json:"owner"`
	URI    string `json:"uri"`
	// Digest is the SHA-256 of the policy, what else the server says of the page, and the
	// document, with a zero byte in between, in hexadecimal digits. Size is the number of
	// bytes of the document.
	Digest string `json:"digest"`
	Size   int    `json:"size"`
	// CSP is the policy that it is shown with.
	CSP string `json:"csp"`
	// Why says why it may be shown.
	Why string `json:"why"`
}

// Kind returns "page".
func (*PageRecord) Kind() string { return "page" }

// Errors of pages, for errors.Is.
var (
	// ErrNoPages says that the host shows no pages: Options.Pages is not set.
	ErrNoPages = errors.New("this host shows no pages of servers")
	// ErrPageNotShown says that the page was not shown in the session, or was that of
	// another server of the name.
	ErrPageNotShown = errors.New("the page was not shown in this session")
	// ErrNotForPages says that a tool is not one that pages may call.
	ErrNotForPages = errors.New("the tool is not for pages")
)

const (
	pageScheme   = "ui://"
	maxPageURI   = 2048
	maxPageCSP   = 16 << 10
	maxPageWarns = 16
)

// Page gets a page of a server to show it, if a rule, a grant or the person allows that,
// and writes down that it is shown, with its policy. It may be called while a run is under
// way and while none is. The error is a [ConsentError], [ErrNoPages], [ErrClosed], that of
// ctx, of the server or of the loader.
//
// SEP-1865, Resource Discovery: "Host MUST use resources/read to fetch the referenced
// resource URI"; Host Behavior: "Host SHOULD log CSP configurations for security review".
func (s *Session) Page(ctx context.Context, server, uri string) (*Page, error) {
	ctx, end, err := s.beside(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	switch {
	case s.host.opts.Pages == nil:
		return nil, ErrNoPages
	case !strings.HasPrefix(uri, pageScheme) || len(uri) > maxPageURI || valid(uri) != uri:
		return nil, fmt.Errorf("server %q: %s is no URI of a page", server, quoteFlag(uri))
	}
	p := &proposal{question: &Question{Kind: QuestionApp, Server: server, Origin: s.host.origin(server), Name: uri}}
	args, err := wire.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return nil, fmt.Errorf("server %q: page: %w", server, err)
	}
	p.query = s.query(policy.KindApp, server, uri, args)
	if p.verdict = s.ruled(p.query); p.verdict.effect == policy.Deny { // nothing is fetched
		_, err := s.settle(ctx, p)
		return nil, err
	}
	c, spec, err := s.host.clientOf(ctx, server)
	if err != nil {
		return nil, err
	}
	html, csp, meta, err := s.host.loadPage(withSession(ctx, s, ""), c, uri)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", server, err)
	}
	page := &Page{server, uri, html, csp, meta}
	why, err := s.authorizePage(ctx, p, page, spec.Key)
	if err != nil {
		return nil, err
	}
	_, err = s.write(&PageRecord{
		Server: server, Owner: spec.pinServer(), URI: uri, Digest: page.digest(), Size: len(html), CSP: bounded(csp, maxPageCSP), Why: bounded(why, maxWhy),
	})
	return page, err
}

// digest is that of the document, its policy, and what else the server says of it, such as
// permissions.
func (p *Page) digest() string {
	sum := sha256.Sum256([]byte(p.CSP + "\x00" + string(p.Meta) + "\x00" + p.HTML))
	return hex.EncodeToString(sum[:])
}

// origins are the origins that the policy of a page lets it reach.
func (p *Page) origins() []string {
	var list []string
	for _, word := range strings.FieldsFunc(p.CSP, func(r rune) bool { return r == ' ' || r == ';' }) {
		if strings.Contains(word, "://") && !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}

// permissions are the names of what a page asks of the browser.
func (p *Page) permissions() []string {
	var meta struct {
		Permissions mcp.RawValue `json:"permissions"`
	}
	if wire.Decode(slices.Clone(p.Meta), &meta) != nil {
		return nil
	}
	var names []string
	list, _ := members(meta.Permissions) // what is no object has none
	for _, m := range list {
		names = append(names, m.name)
	}
	return names
}

// warnings say in words what a page asks for and what it reaches.
func (p *Page) warnings() []string {
	var list []string
	for _, name := range p.permissions() {
		list = append(list, "the page asks the browser for "+quoteFlag(name))
	}
	origins := p.origins()
	for i, origin := range origins {
		if i == maxPageWarns {
			list = append(list, fmt.Sprintf("the page can load from, or send to, %d more origins", len(origins)-i))
			break
		}
		list = append(list, "the page can load from, or send to, "+quoteFlag(origin))
	}
	return list
}

// authorizePage gets consent for showing a page, and returns why it may be shown. A page
// that reaches other origins can send data out. entry is the key of its server.
func (s *Session) authorizePage(ctx context.Context, p *proposal, page *Page, entry string) (string, error) {
	labels := s.host.labels(page.Server, "")
	if len(page.origins()) > 0 {
		labels = slices.Concat(labels, []policy.Label{policy.LabelSends})
	}
	p.question.Warnings = page.warnings()
	digest := "page " + page.digest()
	var err error
	if p.verdict, err = s.judge(ctx, p.query, labels, digest); err != nil {
		return "", err
	}
	if !p.verdict.once {
		rule := policy.Rule{Effect: policy.Allow, Kind: policy.KindApp, Server: policy.Quote(page.Server), Name: policy.Quote(page.URI)}
		p.question.Offers = []Offer{{Scope: ScopeArguments, Text: "this page, as long as it does not change", Rule: rule}}
		p.grant = func(a *Answer) *Grant { return s.newGrant(entry, rule, digest, a) }
	}
	if _, err = s.settle(ctx, p); err != nil || p.verdict.effect == policy.Allow {
		return p.verdict.why, err
	}
	return "the person agreed", nil
}

// beside begins work that belongs to no run: Close waits for its end, and ends its
// context.
func (s *Session) beside(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, ErrClosed
	case s.broken != nil:
		return nil, nil, s.broken
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.asking.Add(1)
	s.works++
	id := s.works
	s.working[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		delete(s.working, id)
		s.mu.Unlock()
		cancel(nil)
		s.asking.Done()
	}, nil
}

// A shownPage is a page that was shown; owner is as in PageRecord.
type shownPage struct{ server, owner, uri string }

// checkShown says that a page was not shown, or that it is another server's. s.mu is held.
func (s *Session) checkShown(spec *Server, uri string) error {
	if !s.state.pages[shownPage{spec.Name, spec.pinServer(), uri}] {
		return fmt.Errorf("server %q, page %s: %w", spec.Name, quoteFlag(uri), ErrPageNotShown)
	}
	return nil
}

// uses is what a tool says about pages: which callers may use it, and whether its results
// are shown in a page.
type uses struct{ model, app, page bool }

// usesOf reads what a tool says about pages. What cannot be read lets in no caller.
//
// SEP-1865, Visibility: "Host MUST NOT include tools in the agent's tool list when their
// visibility does not include "model"".
func usesOf(def *mcp.Tool) uses {
	raw, nested := def.Meta["ui"]
	_, flat := def.Meta["ui/resourceUri"]
	if !nested || kindOf(raw) == 'n' {
		return uses{true, true, flat}
	}
	var ui struct {
		ResourceURI *string   `json:"resourceUri"`
		Visibility  *[]string `json:"visibility"`
	}
	if kindOf(raw) != '{' || wire.Decode(raw, &ui) != nil {
		return uses{}
	}
	page := flat || ui.ResourceURI != nil
	if ui.Visibility == nil {
		return uses{true, true, page}
	}
	return uses{slices.Contains(*ui.Visibility, "model"), slices.Contains(*ui.Visibility, "app"), page}
}
