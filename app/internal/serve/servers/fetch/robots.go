package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch/robots"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/netguard"
)

// maxRobotsShown is how much of a robots.txt a model is shown, in characters.
const maxRobotsShown = 10_000

// siteRobots is the robots.txt of a site.
type siteRobots struct {
	rules *robots.Rules
	text  string // its beginning, for the model
}

// checkRobots returns an error for the model if the site's robots.txt forbids a URL to
// programs, or cannot be read. As in the official server, and as RFC 9309 leaves it open,
// one that itself is forbidden (401, 403) forbids everything.
func (f *fetcher) checkRobots(ctx context.Context, u *url.URL, agent string) error {
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	site, ok := f.robots.get(at.String())
	if !ok {
		var err error
		if site, err = f.readRobots(ctx, at, agent); err != nil {
			return err
		}
		f.robots.put(at.String(), site, site.rules.Size()+len(site.text))
	}
	if site.rules.Allow(u) {
		return nil
	}
	return mcp.Errorf(`The sites robots.txt (%s), specifies that autonomous fetching of this page is not allowed, <useragent>%s</useragent>
<url>%s</url><robots>
%s
</robots>
The assistant must let the user know that it failed to view the page. The assistant may provide further guidance based on the above information.
The assistant can tell the user that they can try manually fetching the page by using the fetch prompt within their UI.`,
		at, agent, u, site.text)
}

// readRobots gets a robots.txt. One that does not exist has no rules; while a site cannot
// say what it has, nothing is allowed (section 2.3.1).
func (f *fetcher) readRobots(ctx context.Context, at *url.URL, agent string) (*siteRobots, error) {
	resp, err := f.open(ctx, at, agent, acceptAny)
	if err != nil {
		return nil, robotsFailure(ctx, at, reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // what was wanted of it was read
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return nil, mcp.Errorf("When fetching robots.txt (%s), received status %d so assuming that autonomous fetching is not allowed, "+
			"the user can try manually fetching by using the fetch prompt", at, status)
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return &siteRobots{rules: &robots.Rules{}}, nil
	case status >= http.StatusMultipleChoices:
		return nil, robotsFailure(ctx, at, fmt.Sprintf("it was answered with status %d, and without it nothing is allowed", status))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, robots.MaxSize+1))
	_, tooLarge := errors.AsType[*netguard.TooLargeError](err) // larger than a page may be
	if err != nil && !tooLarge {
		return nil, robotsFailure(ctx, at, reason(err))
	}
	if tooLarge || len(body) > robots.MaxSize { // a line that was cut is none
		body = body[:bytes.LastIndexAny(body[:min(len(body), robots.MaxSize)], "\r\n")+1]
	}
	text := strings.ToValidUTF8(string(body), "\ufffd")
	shown, _ := cut(text, 0, maxRobotsShown)
	shown = strings.ReplaceAll(shown, "</", "<\\/") // it does not end what the model is shown of it
	return &siteRobots{rules: robots.Parse(text, agent), text: shown}, nil
}

func robotsFailure(ctx context.Context, at *url.URL, reason string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return mcp.Errorf("Failed to fetch robots.txt %s due to a connection issue: %s", at, reason)
}
