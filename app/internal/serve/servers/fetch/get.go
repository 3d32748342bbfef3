package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/netguard"
	"github.com/parley-mcp/parley/server"
)

// A page is what was at a URL, ready for a model.
type page struct {
	text   string
	prefix string            // notes on the text, each on a line
	image  *mcp.ImageContent // the page itself, if it is an image that is shown
	facts  Facts
}

// size is how many bytes a page takes in the cache.
func (p *page) size() int {
	if p.image != nil {
		return len(p.text) + len(p.image.Data)
	}
	return len(p.text)
}

// get gets a page, with raw as it is. autonomous says that a model asked for it, which
// robots.txt may forbid. Errors are for the model.
func (f *fetcher) get(ctx context.Context, u *url.URL, raw, autonomous bool) (*page, error) {
	select {
	case f.fetches <- struct{}{}:
		defer func() { <-f.fetches }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer f.client.CloseIdleConnections() // robots.txt and the page shared one; nothing outlives the call
	if err := f.guard.Check(u); err != nil {
		return nil, failure(ctx, u, err)
	}
	agent := agentManual
	if autonomous {
		agent = agentAutonomous
	}
	if f.opts.UserAgent != "" {
		agent = f.opts.UserAgent
	}
	if autonomous && !f.opts.IgnoreRobots {
		if err := f.checkRobots(ctx, u, agent); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, f.opts.Timeout) // for both requests
	defer cancel()
	resp, err := f.open(limited, u, agent, acceptPage)
	if err == nil && resp.StatusCode == http.StatusNotAcceptable { // some sites refuse a type that they do not know
		_ = resp.Body.Close() // it is of no use
		resp, err = f.open(limited, u, agent, acceptAny)
	}
	if err != nil {
		return nil, failure(ctx, u, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is of no use
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, mcp.Errorf("Failed to fetch %s - status code %d", u, resp.StatusCode)
	}
	body, err := f.readAll(ctx, resp)
	if err != nil {
		return nil, failure(ctx, u, err)
	}
	return f.present(ctx, u, resp, body, raw)
}

// The types that sites are asked for. A page is wanted as markdown. HTML is not named: APIs that have JSON as
// well would answer with a page for people.
const (
	acceptPage = "text/markdown, */*;q=0.9"
	acceptAny  = "*/*"
)

// open sends a GET request that accepts these types. Cookies live as long as its redirects: some sites send a
// request in circles until it brings the one that they gave it.
func (f *fetcher) open(ctx context.Context, u *url.URL, agent, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", accept)
	client := *f.client
	if client.Jar, err = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}); err != nil {
		return nil, err
	}
	return client.Do(req)
}

// readAll reads a body and tells its progress in bytes.
func (f *fetcher) readAll(ctx context.Context, resp *http.Response) ([]byte, error) {
	var body bytes.Buffer
	total, told := float64(max(0, resp.ContentLength)), time.Now()
	chunk := make([]byte, 64<<10)
	for steps := servers.NewSteps(ctx); ; {
		if err := steps.Add(len(chunk)); err != nil {
			return nil, err
		}
		n, err := resp.Body.Read(chunk)
		body.Write(chunk[:n])
		if errors.Is(err, io.EOF) {
			return body.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		if n > 0 && time.Since(told) >= f.opts.ProgressEvery {
			told = time.Now()
			if err := server.Progress(ctx, float64(body.Len()), total, fmt.Sprintf("read %d bytes", body.Len())); err != nil {
				return nil, err
			}
		}
	}
}

// failure is the error for the model that a URL could not be fetched.
func failure(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return mcp.Errorf("Failed to fetch %s: %s", shown(u.String()), reason(err))
}

// maxReason is how many characters of an error a model is shown; some quote what the site
// sent.
const maxReason = 300

// reason says in words for the model why a request failed, without the URLs of
// redirects, which may have secrets in them.
func reason(err error) string {
	if blocked, ok := errors.AsType[*netguard.BlockedError](err); ok {
		text, private := strings.CutSuffix(blocked.Reason, "; AllowHosts can allow it")
		if private {
			text += "; the operator of this server can allow it with --allow-private"
		}
		return "blocked: " + text
	}
	if large, ok := errors.AsType[*netguard.TooLargeError](err); ok {
		return fmt.Sprintf("it is larger than %d bytes, which is the most that this server reads", large.Limit)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "the site did not answer in time"
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") { // net/http quotes it
		return "it redirects to what is no URL"
	}
	return abbreviate(err.Error(), maxReason)
}

// abbreviate returns a text of at most so many characters.
func abbreviate(text string, length int) string {
	part, next := cut(strings.ToValidUTF8(text, "\ufffd"), 0, length)
	if next > 0 {
		part += "…"
	}
	return part
}

// parseURL reads a URL as a browser would: without the white space around it, with its
// host in ASCII and lower case, and without "." and ".." in its path.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		of, ok := errors.AsType[*url.Error](err)
		if !ok || strings.Contains(text, "@") { // the error may quote a password
			return nil, mcp.Errorf("it is no URL")
		}
		return nil, mcp.Errorf("it is no URL: %s", of.Err) // the URL is told already
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, mcp.Errorf("only URLs that begin with http:// or https:// can be fetched")
	}
	if u.Opaque != "" || u.Hostname() == "" {
		return nil, mcp.Errorf("the URL has no host")
	}
	host := strings.ToLower(u.Hostname())
	if !strings.Contains(host, ":") { // an IPv6 address has no other form
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			host = strings.ToLower(u.Hostname()) // it stays as it is, such as a name with "_", which resolvers take
		}
	}
	port := u.Port()
	if port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		port = ""
	}
	switch {
	case port != "":
		u.Host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		u.Host = "[" + host + "]"
	default:
		u.Host = host
	}
	u = new(url.URL).ResolveReference(u)
	if u.Path == "" {
		u.Path = "/"
	}
	u.RawQuery = escapeQuery(u.RawQuery)
	return u, nil
}

// escapeQuery escapes what must not stand in a query as it is.
func escapeQuery(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>'`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// userInfo matches what stands before the host of a text that should be a URL.
var userInfo = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*:)?(//)?.*@`)

// shown is a URL as errors show it: without user and password, also if it is malformed,
// and not longer than a few lines.
func shown(text string) string {
	switch u, err := url.Parse(text); {
	case err != nil, u.Opaque != "":
		text = userInfo.ReplaceAllString(text, "$1$2")
	case u.User != nil:
		u.User = nil
		text = u.String()
	}
	return abbreviate(text, 500)
}
