package connect

import (
	"context"
	"net/http"
	"net/url"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// entryDialer makes the connection that an expanded entry says.
func (c *Connector) entryDialer(ctx context.Context, entry *config.Server) (transport.Dialer, error) {
	if entry.Transport == config.TransportStdio {
		d := c.command(entry.Command, entry.Args...)
		d.Dir = entry.Dir
		for name, value := range entry.Env {
			d.ExtraEnv = append(d.ExtraEnv, name+"="+value)
		}
		LearnCommand(c.Streams.Masker(), d)
		return d, nil
	}
	learnEntry(c.Streams.Masker(), entry)
	u, err := url.Parse(entry.URL)
	if err != nil {
		return nil, NoURL(entry.URL, err)
	}
	fields := make(http.Header)
	for _, h := range entry.Headers {
		fields.Add(h.Name, h.Value)
	}
	header := func(context.Context) (http.Header, error) { return fields.Clone(), nil }
	httpClient := c.SignIns.plain()
	if !entry.NoOAuth {
		if httpClient, err = c.SignIns.entryClient(ctx, entry); err != nil {
			return nil, err
		}
	}
	plain := func(scheme string) error {
		if u.Scheme == scheme && len(entry.Headers) > 0 && !oauth.LoopbackHost(u.Hostname()) {
			return kit.Usagef("the headers would be sent unencrypted over %s; use %ss in the URL", scheme, scheme)
		}
		return nil
	}
	if entry.Transport == config.TransportWebSocket {
		if err := plain("ws"); err != nil {
			return nil, err
		}
		d := websocket.URL(entry.URL)
		d.Logger, d.Header, d.Client, d.Tap = c.Logger(), header, httpClient, c.Tap
		return d, nil
	}
	if err := plain("http"); err != nil {
		return nil, err
	}
	d, old := streamable.URL(entry.URL), sse.URL(entry.URL)
	d.Logger, old.Logger = c.Logger(), c.Logger()
	d.Header, old.Header = header, header
	d.Client, old.Client = httpClient, httpClient
	d.Tap, old.Tap = c.Tap, c.Tap
	if entry.Transport == config.TransportSSE {
		return old, nil
	}
	return transport.First(d, old), nil
}
