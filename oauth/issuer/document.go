package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// documents finds clients whose id is the URL of a client ID metadata document
// (spec 2026-07-28, basic/authorization/client-registration: SHOULD). What was
// found is remembered, as are failures for a while; of one document there is one
// fetch at a time. It may be used by many goroutines at once.
type documents struct {
	policy    DocumentPolicy
	redirects *redirects
	fetch     *oauth.Fetcher
	loopback  bool
	now       func() time.Time

	mu    sync.Mutex
	cache map[string]*document
}

// A document is what is known of one URL. Its fields are written before done
// is closed.
type document struct {
	done   chan struct{}
	client *Client
	err    error
	// fetched is when the client was read; zero if it must not be kept.
	fetched time.Time
	expires time.Time // guarded by documents.mu; zero while the fetch runs
	last    *document // the one before; only while the fetch runs
}

// errNotReached says that no server answered for a document, or that its server
// has failed: it may be what it was.
var errNotReached = errors.New("document cannot be reached")

// Bounds of fetching. documentMinAge is how long a document is remembered in
// any case, so that one sign-in, which needs it several times, is one fetch.
const (
	documentErrorAge = time.Minute
	documentMinAge   = 30 * time.Second
	documentTimeout  = 10 * time.Second
)

func newDocuments(policy DocumentPolicy, rules *redirects, loopback bool, now func() time.Time) *documents {
	d := &documents{
		policy: policy, redirects: rules, fetch: policy.Fetch, loopback: loopback, now: now, cache: map[string]*document{},
	}
	if d.fetch == nil {
		d.fetch = oauth.NewFetcher(&oauth.FetchOptions{
			MaxRedirects: -1, MaxBody: int64(policy.MaxSize), Timeout: documentTimeout,
		})
		if loopback {
			d.fetch = d.fetch.Loopback()
		}
	}
	return d
}

// isDocument says whether a client_id is a URL, which no other client_id is.
func isDocument(id string) bool {
	return strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://")
}

// client returns the client that the document at id describes. The error is for
// the log.
func (d *documents) client(ctx context.Context, id string) (*Client, error) {
	if err := d.check(id); err != nil {
		return nil, err
	}
	doc, first := d.enter(id)
	if doc == nil {
		return nil, errors.New("too many documents are being fetched")
	}
	if first {
		d.fill(ctx, id, doc)
	}
	select {
	case <-doc.done:
		return doc.client, doc.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// check says whether the URL may be fetched at all.
func (d *documents) check(id string) error {
	if d.policy.Off {
		return errors.New("documents are not taken")
	}
	if len(id) > maxClientID {
		return errors.New("URL is too long")
	}
	u, err := oauth.CheckEndpoint(id)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && !d.loopback {
		return errors.New("URL is not https")
	}
	// draft-ietf-oauth-client-id-metadata-document, section 3: a path, and
	// no dot segments, which would make two names for one document.
	segments := strings.Split(u.EscapedPath(), "/")
	if len(u.Path) < 2 || slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return errors.New("URL is not in a form that a client_id may have")
	}
	if d.policy.Allow != nil && !d.policy.Allow(id) {
		return errors.New("policy does not take this document")
	}
	return nil
}

// enter returns the entry of a document, and whether the caller must fill it.
// It returns nil if the table is full of fetches.
func (d *documents) enter(id string) (*document, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if doc := d.cache[id]; doc != nil && (doc.expires.IsZero() || now.Before(doc.expires)) {
		return doc, false
	}
	last := d.cache[id]
	delete(d.cache, id)
	if len(d.cache) >= d.policy.MaxCached && !d.makeRoom(now) {
		return nil, false
	}
	doc := &document{done: make(chan struct{}), last: last}
	d.cache[id] = doc
	return doc, true
}

// makeRoom removes what has expired, or else the entry that would be next.
func (d *documents) makeRoom(now time.Time) bool {
	next := ""
	for id, doc := range d.cache {
		switch {
		case doc.expires.IsZero():
		case !now.Before(doc.expires):
			delete(d.cache, id)
		case next == "" || doc.expires.Before(d.cache[next].expires):
			next = id
		}
	}
	if len(d.cache) >= d.policy.MaxCached && next != "" {
		delete(d.cache, next)
	}
	return len(d.cache) < d.policy.MaxCached
}

// known returns the client of a document if it was fetched and is remembered, else nil. It fetches
// nothing.
func (d *documents) known(id string) *Client {
	d.mu.Lock()
	doc := d.cache[id]
	d.mu.Unlock()
	if doc == nil {
		return nil
	}
	select {
	case <-doc.done:
		return doc.client
	default:
		return nil
	}
}

// fill fetches a document and lets those go who wait for it. While it cannot be
// reached the one before goes on (RFC 5861, section 4), within MaxAge: or all
// people of a client would be signed out whenever its site is down.
func (d *documents) fill(ctx context.Context, id string, doc *document) {
	c, age, err := d.get(ctx, id)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if err == nil && age > documentMinAge {
		doc.fetched = now
	}
	if last := doc.last; last != nil && last.client != nil && errors.Is(err, errNotReached) && now.Before(last.fetched.Add(d.policy.MaxAge)) {
		c, err, doc.fetched = last.client, nil, last.fetched
	}
	doc.client, doc.err, doc.expires, doc.last = c, err, now.Add(age), nil
	close(doc.done)
}

// get fetches a document. The fetch goes on when the browser that asked first
// is gone, since others may wait for it too; it is bounded by its own time.
func (d *documents) get(ctx context.Context, id string) (*Client, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), documentTimeout)
	defer cancel()
	resp, err := d.fetch.Get(ctx, id, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, documentErrorAge, fmt.Errorf("%w: %w", errNotReached, err)
	}
	c, err := d.read(id, resp)
	if err != nil {
		return nil, documentErrorAge, err
	}
	return c, d.age(resp.Header), nil
}

// read makes a client of a document.
func (d *documents) read(id string, resp *oauth.Response) (*Client, error) {
	switch {
	case resp.Status >= http.StatusInternalServerError:
		return nil, fmt.Errorf("%w: status is %d", errNotReached, resp.Status)
	case resp.Status != http.StatusOK:
		return nil, fmt.Errorf("status is %d", resp.Status)
	case resp.URL != id:
		return nil, errors.New("document is elsewhere")
	case !resp.JSON():
		return nil, errors.New("document is not JSON")
	case len(resp.Body) > d.policy.MaxSize:
		return nil, errors.New("document is too large")
	}
	m, err := oauth.ParseClientDocument(resp.Body, id, d.loopback)
	if err != nil {
		return nil, err
	}
	if err := checkPages(m); err != nil {
		return nil, err
	}
	if m.TokenEndpointAuthMethod == "" {
		m.TokenEndpointAuthMethod = oauth.AuthNone // there is no secret that the usual default could use
	}
	if err := checkAuthentication(m); err != nil {
		return nil, err
	}
	if m.ApplicationType == "" {
		m.ApplicationType = inferDocumentType(m.RedirectURIs)
	}
	// The document was not written for this server: what it cannot use is left out.
	native := m.ApplicationType == applicationNative
	m.RedirectURIs = slices.DeleteFunc(m.RedirectURIs, func(uri string) bool { return d.redirects.check(uri, native) != nil })
	if n := len(m.RedirectURIs); n == 0 || n > maxRedirects {
		return nil, errors.New("document has no redirect URI that can be used, or too many")
	}
	m.LogoURI = "" // never loaded: it would tell the client about visitors of the page
	return &Client{ID: id, Metadata: *m}, nil
}

// inferDocumentType says native if any redirect URI stays on the device: one
// document describes the web and the desktop of a product, and loopback ports
// are free for the latter.
func inferDocumentType(uris []string) string {
	for _, uri := range uris {
		if inferType([]string{uri}) == applicationNative {
			return applicationNative
		}
	}
	return applicationWeb
}

// age is how long a document may be remembered (RFC 9111), within the policy.
func (d *documents) age(h http.Header) time.Duration {
	age := 5 * time.Minute // where the server says nothing
	for directive := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return documentMinAge
		case "max-age":
			seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 32)
			if err != nil {
				return documentMinAge
			}
			age = time.Duration(seconds) * time.Second
		}
	}
	return max(documentMinAge, min(age, d.policy.MaxAge))
}

// documentHost is the host that vouches for a client, or empty.
func documentHost(id string) string {
	if !isDocument(id) {
		return ""
	}
	u, err := url.Parse(id)
	if err != nil {
		return ""
	}
	return u.Host
}
