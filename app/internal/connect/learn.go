package connect

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport/stdio"
)

// LearnCommand learns the secrets that a server is started with.
func LearnCommand(m *mask.Masker, d *stdio.CommandDialer) {
	for _, line := range slices.Concat(d.Env, d.ExtraEnv) {
		if name, value, _ := strings.Cut(line, "="); !kit.IsFile(value) {
			m.LearnNamed(name, value)
		}
	}
	for i, arg := range d.Args {
		name, value, given := strings.Cut(arg, "=")
		plain := strings.TrimLeft(name, "-")
		switch next := i + 1; {
		case given && kit.IsFile(value), kit.IsFile(arg):
		case given: // --token=VALUE, or env TOKEN=VALUE
			m.LearnNamed(plain, value)
		case plain != name && next < len(d.Args) && host.SecretName(plain): // --token VALUE
			if !kit.IsFile(d.Args[next]) {
				m.Learn(d.Args[next])
			}
		default: // a URL, or 'Authorization: Bearer TOKEN'
			m.LearnNamed("", arg)
		}
	}
}

// learnEntry learns the secrets that go to the server of an entry over HTTP.
func learnEntry(m *mask.Masker, entry *config.Server) {
	_ = m.URL(entry.URL) // learns what it masks
	for _, h := range entry.Headers {
		m.LearnHeader(h.Name, h.Value)
	}
	if entry.OAuth != nil {
		m.Learn(entry.OAuth.ClientSecret)
	}
}

// A credentialTransport learns the credentials of requests: Authorization headers, and the client
// secrets, codes and refresh tokens in forms to token endpoints.
type credentialTransport struct {
	wrapper
	streams *kit.Streams
}

// RoundTrip implements http.RoundTripper.
func (t *credentialTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	const name = "Authorization"
	for _, value := range r.Header[name] {
		t.streams.Masker().LearnHeader(name, value)
	}
	if kind := r.Header.Get("Content-Type"); r.GetBody != nil && strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil {
			return nil, err
		}
		_ = t.streams.Masker().Body(kind, raw) // learns what it masks
	}
	return t.next.RoundTrip(r)
}
