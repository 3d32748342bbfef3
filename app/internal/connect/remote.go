package connect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// remote makes a server of a URL: Streamable HTTP, with the transport that came
// before it for servers that know no other, or WebSocket.
func (c *Connector) remote(ctx context.Context, name, address string) (host.Server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return host.Server{}, NoURL(address, err)
	}
	_ = c.Streams.Masker().URL(address) // learns what it masks
	if u.Host == "" {
		return host.Server{}, fmt.Errorf("missing host in the URL; write it like https://example.com/mcp")
	}
	if u.User != nil {
		return host.Server{}, fmt.Errorf("the URL must not contain a user or password; use --header instead")
	}
	if name == "" {
		name = hostName(u)
	}
	header, err := c.Header(u)
	if err != nil {
		return host.Server{}, err
	}
	s := host.Server{Name: name, Key: "address " + digest(address), Origin: Origin(u)}
	httpClient := c.SignIns.Client(ctx, u)
	switch u.Scheme {
	case "http", "https":
		d, old := streamable.URL(address), sse.URL(address)
		d.Logger, old.Logger = c.Logger(), c.Logger()
		d.Header, old.Header = header, header
		d.Client, old.Client = httpClient, httpClient
		d.Tap, old.Tap = c.Tap, c.Tap
		switch c.Transport {
		case "http":
			s.Dialer = d
		case "sse":
			s.Dialer = old
		default:
			s.Dialer = transport.First(d, old)
		}
	case "ws", "wss":
		d := websocket.URL(address)
		d.Logger, d.Header, d.Client, d.Tap = c.Logger(), header, httpClient, c.Tap
		s.Dialer = d
	default:
		return host.Server{}, fmt.Errorf("unsupported scheme %q; must be http://, https://, ws:// or wss://", u.Scheme)
	}
	return s, nil
}

// Header gives the headers of the command line, which are for one server alone.
func (c *Connector) Header(u *url.URL) (func(ctx context.Context) (http.Header, error), error) {
	if len(c.Headers) == 0 {
		return nil, nil
	}
	if (u.Scheme == "http" || u.Scheme == "ws") && !oauth.LoopbackHost(u.Hostname()) {
		return nil, fmt.Errorf("--header would be sent unencrypted over %s; use %ss", u.Scheme, u.Scheme)
	}
	h := make(http.Header)
	for _, line := range c.Headers {
		key, value, found := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !found || !headerName.MatchString(key) || strings.ContainsFunc(value, isControl):
			return nil, fmt.Errorf("--header: must have the form 'Name: value', in one line") // the text may be a secret
		case strings.EqualFold(key, "Host"):
			return nil, fmt.Errorf("--header: cannot set Host, which comes from the URL")
		}
		h.Add(key, value)
		c.Streams.Masker().LearnHeader(key, value)
	}
	return func(context.Context) (http.Header, error) { return h.Clone(), nil }, nil
}

// oneURL checks that headers of the command line have one server to go to.
func (c *Connector) oneURL() error {
	if len(c.Headers) == 0 {
		return nil
	}
	urls := 0
	for _, flag := range c.Named {
		if _, address := SplitFlag(flag); kit.IsURL(address) {
			urls++
		}
	}
	if urls != 1 {
		return kit.Usagef("--header requires exactly one server, at a URL, so that it is not sent to another server")
	}
	return nil
}

// headerName is what the name of a header may look like (RFC 9110, 5.6.2).
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// isControl reports whether a header's value must not hold r.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// NoURL says why an address cannot be read, without what may be secret in it.
func NoURL(address string, err error) error {
	var parse *url.Error
	if strings.Contains(address, "@") || !errors.As(err, &parse) {
		return errors.New("not a URL; write it like https://example.com/mcp")
	}
	return fmt.Errorf("invalid URL: %w", parse.Err)
}

// Shown returns a --server flag as errors repeat it: a URL without user and query,
// where secrets may be.
func Shown(flag string) string {
	name, address := SplitFlag(flag)
	if !kit.IsURL(address) {
		return flag
	}
	scheme, rest, _ := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end] + "?…"
	}
	place, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(place, "@"); at >= 0 {
		rest = "…" + place[at:] + "/" + path
	}
	if name != "" {
		name += "="
	}
	return name + scheme + "://" + rest
}

// digest stands for a text that may hold secrets.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// Origin returns how a URL is shown to the person: without what may be secret.
func Origin(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}

// hostName makes a server's name of its URL.
func hostName(u *url.URL) string {
	name := strings.TrimPrefix(u.Hostname(), "www.")
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '.':
			return r
		}
		return '-'
	}, name)
	clean = strings.Trim(clean[:min(len(clean), 32)], "-.")
	if clean == "" {
		return "server"
	}
	return clean
}
