package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport/stdio"
)

// learnCommand learns the secrets that a server is started with.
func learnCommand(m *mask.Masker, d *stdio.CommandDialer) {
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

// masked is a text without the secrets of this run.
func (p *program) masked(text string) string { return p.Streams.Masker().Known(text) }

// maskedProblems are the problems of a server without the secrets of this run.
func (p *program) maskedProblems(list []client.Problem) []client.Problem {
	masked := slices.Clone(list)
	for i := range masked {
		for _, text := range []*string{&masked[i].Subject, &masked[i].Place, &masked[i].Why} {
			*text = p.masked(*text)
		}
	}
	return masked
}

// maskedRecord is a record without the secrets of this run in a notice, and in why a call or run failed.
func (p *program) maskedRecord(r host.Record) host.Record {
	switch b := r.Body.(type) {
	case *host.NoticeRecord:
		if text := p.masked(b.Text); text != b.Text {
			made := *b
			made.Text, r.Body = text, &made
		}
	case *host.ResultRecord:
		if why := p.masked(b.Why); why != b.Why {
			made := *b
			made.Why, r.Body = why, &made
		}
	case *host.RunEndRecord:
		if why := p.masked(b.Why); why != b.Why {
			made := *b
			made.Why, r.Body = why, &made
		}
	}
	return r
}

// maskedRecords are records, each of them a maskedRecord.
func (p *program) maskedRecords(records []host.Record) []host.Record {
	masked := records
	for i, r := range records {
		if made := p.maskedRecord(r); made.Body != r.Body {
			if &masked[0] == &records[0] {
				masked = slices.Clone(records)
			}
			masked[i] = made
		}
	}
	return masked
}

// maskedJSON is JSON without the secrets of this run.
func (p *program) maskedJSON(raw []byte) []byte {
	if masked, ok := p.Streams.Masker().KnownJSON(raw); ok {
		return masked
	}
	return []byte(p.masked(string(raw))) // nested too deep to be copied value by value
}

// maskedCopy is a copy of a value, made from its JSON, without the secrets of this run.
func maskedCopy[T any](p *program, v *T) (*T, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("masking secrets: %w", err)
	}
	made := new(T)
	d := json.NewDecoder(bytes.NewReader(p.maskedJSON(raw)))
	d.UseNumber()
	// A number that is a secret stays 0.
	if err := d.Decode(made); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil, fmt.Errorf("masking secrets: %w", err)
	}
	return made, nil
}

// printMaskedJSON is PrintJSON without the secrets of this run.
func (p *program) printMaskedJSON(v any) error {
	raw, err := jsonrpc.JSON(v).AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return p.PrintIndented(p.maskedJSON(raw))
}
