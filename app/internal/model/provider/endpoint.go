package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/netguard"
)

// The defaults of an Endpoint.
const (
	DefaultMaxTries  = 3
	DefaultSilence   = 5 * time.Minute
	DefaultLongWait  = time.Minute
	firstWait        = 500 * time.Millisecond
	longestWait      = 8 * time.Second
	maxAnswer        = 16 << 20
	maxErrorBody     = 64 << 10
	userAgent        = "parley"
	jsonContent      = "application/json"
	eventContent     = "text/event-stream"
	headerRetryAfter = "Retry-After"
)

// An Endpoint is where a provider is reached. It may be used by many goroutines at once,
// and must not be changed then.
type Endpoint struct {
	// Provider is its name, for errors.
	Provider string
	// URL is what paths are appended to: see [BaseURL].
	URL string
	// Own is the provider's own address, or empty. Advice about keys names URL where it is of
	// another origin.
	Own string
	// Key is the secret, which stands in no error; KeyHeader and KeyPrefix say how it is
	// sent: "Authorization" and "Bearer ", for example. An empty key is not sent.
	Key, KeyHeader, KeyPrefix string
	// Header is sent with each request.
	Header http.Header
	// Client makes the requests. Redirects are not followed, whatever it says. Default: one
	// with http.DefaultTransport and without a timeout.
	Client *http.Client
	// MaxTries bounds how often a request is made that fails before its answer begins.
	// Default DefaultMaxTries.
	MaxTries int
	// Silence is how long nothing may come before a request is given up. Default
	// DefaultSilence.
	Silence time.Duration
	// LongWait is the longest wait that a provider may ask for before the next try; with a
	// longer one the error tells the person. Default DefaultLongWait.
	LongWait time.Duration
	// Waiting, if it is not nil, is told of each wait before the next try.
	Waiting func(reason error, wait time.Duration)
}

// New checks the key and the address of an endpoint, and returns it with both in order. The
// address is Own if none is given; path is appended to one without a path. Its errors begin
// with the name of the provider.
func New(e *Endpoint, path string) (*Endpoint, error) {
	at := *e
	var err error
	if at.Key, err = Key(e.Key); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Provider, err)
	}
	if at.URL, err = BaseURL(cmp.Or(strings.TrimSpace(e.URL), e.Own), at.Key != ""); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Provider, err)
	}
	if u, err := url.Parse(at.URL); err == nil && u.Path == "" {
		at.URL += path
	}
	return &at, nil
}

// BaseURL checks the address that requests go to, and returns it without a slash at its
// end. A key is sent in the clear to this machine only, by the name localhost or by its
// number: to others the address must be https.
func BaseURL(address string, withKey bool) (string, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	address = host.Redact(address) // for errors
	switch {
	case err != nil && strings.ContainsAny(address, "@?"): // which may hold a secret
		return "", errors.New("the base URL is none; it looks like http://127.0.0.1:11434/v1")
	case err == nil && u.User != nil:
		return "", errors.New("the base URL has a user name or password in it; take it out, and set the provider's key")
	case err == nil && (u.RawQuery != "" || u.ForceQuery || u.Fragment != ""): // which may hold a secret
		return "", errors.New("the base URL has a query or a fragment (what follows ? or #); take it out: paths are appended to it")
	case err != nil || u.Hostname() == "":
		return "", fmt.Errorf("the base URL %q is none; it looks like http://127.0.0.1:11434/v1", address)
	case withKey && u.Scheme == "http" && strings.HasSuffix(strings.ToLower(u.Hostname()), ".localhost"):
		// Resolvers ask the network for such names, and proxies are asked for them.
		return "", fmt.Errorf("the base URL %q is http, and its name may lead to another machine: the key would be sent in the clear; write localhost or 127.0.0.1", address)
	case u.Scheme == "https", u.Scheme == "http" && netguard.LoopbackHost(u.Hostname()):
	case u.Scheme != "http":
		return "", fmt.Errorf("the base URL %q begins with neither https:// nor http://", address)
	case withKey:
		return "", fmt.Errorf("the base URL %q is http, and not on this machine: the key would be sent in the clear; use https", address)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Key checks a key, and returns it without the blanks and line ends around it. Its error
// does not show it.
func Key(key string) (string, error) {
	key = strings.TrimSpace(key)
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", errors.New("the key has a blank, a line break or another character in it that no key has; was more than the key copied?")
		}
	}
	return key, nil
}

// Stream posts body as JSON, and returns the events of the answer. The first error ends
// them; it is an *Error if the provider said it. An answer that is no event stream is an
// error. Nothing is left when the loop has ended.
func (e *Endpoint) Stream(ctx context.Context, path string, body any) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		quiet := e.watch(cancel)
		defer quiet.Stop()
		resp, err := e.send(ctx, http.MethodPost, path, body, eventContent, quiet)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != eventContent {
			yield(Event{}, e.notStream(resp, kind))
			return
		}
		r := NewReader(&watched{resp.Body, quiet, e.silence()})
		for {
			event, err := r.Next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Event{}, e.broken(ctx, err))
				return
			case !yield(event, nil):
				return
			}
		}
	}
}

// JSON makes a request with a JSON body, or none if body is nil, and decodes the answer.
func (e *Endpoint) JSON(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := e.watch(cancel)
	defer quiet.Stop()
	resp, err := e.send(ctx, method, path, body, jsonContent, quiet)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(&watched{resp.Body, quiet, e.silence()}, maxAnswer+1))
	switch {
	case err != nil:
		return e.broken(ctx, err)
	case len(data) > maxAnswer:
		return e.errorf("answers with more than %d MiB", maxAnswer>>20)
	case json.Unmarshal(data, answer) != nil:
		return e.notJSON(resp, data)
	}
	return nil
}

func (e *Endpoint) silence() time.Duration { return cmp.Or(e.Silence, DefaultSilence) }

// errSilent ends a request to which nothing comes.
var errSilent = errors.New("silent")

// watch ends a request when nothing has come for a time.
func (e *Endpoint) watch(cancel context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(e.silence(), func() { cancel(errSilent) })
}

// watched puts the end of a request off with each part of the answer.
type watched struct {
	io.Reader

	quiet   *time.Timer
	silence time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.quiet.Reset(w.silence)
	}
	return n, err
}

// send makes a request, again if it fails in a way that may pass, and returns an answer
// with status 200.
func (e *Endpoint) send(ctx context.Context, method, path string, body any, accept string, quiet *time.Timer) (*http.Response, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = marshal(body); err != nil {
			return nil, fmt.Errorf("a request to %s: %w", e.Provider, err)
		}
	}
	for try := 1; ; try++ {
		resp, err := e.once(ctx, method, path, data, accept)
		if err == nil {
			quiet.Reset(e.silence())
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, e.broken(ctx, err)
		}
		wait, again := e.again(err, try)
		if !again {
			return nil, err
		}
		if e.Waiting != nil {
			e.Waiting(err, wait)
		}
		quiet.Stop()
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, e.broken(ctx, ctx.Err())
		}
		quiet.Reset(e.silence())
	}
}

// marshal encodes JSON without escaping what HTML would need.
func marshal(body any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(body)
	return b.Bytes(), err
}

// once makes a request once.
func (e *Endpoint) once(ctx context.Context, method, path string, data []byte, accept string) (*http.Response, error) {
	var body io.Reader
	if data != nil {
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, e.URL+path, body)
	if err != nil {
		return nil, e.errorf("cannot be asked: %v", err)
	}
	for name, values := range e.Header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", accept)
	if data != nil {
		req.Header.Set("Content-Type", jsonContent)
	}
	if e.Key != "" {
		req.Header.Set(e.KeyHeader, e.KeyPrefix+e.Key)
	}
	client := http.Client{}
	if e.Client != nil {
		client = *e.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, e.unreachable(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, e.refused(resp)
}

// again tells whether a request is tried once more, and after what time.
func (e *Endpoint) again(err error, try int) (time.Duration, bool) {
	fault := new(Error)
	if !errors.As(err, &fault) || !fault.temporary || try >= cmp.Or(e.MaxTries, DefaultMaxTries) {
		return 0, false
	}
	if fault.RetryAfter > 0 {
		return fault.RetryAfter, fault.RetryAfter <= cmp.Or(e.LongWait, DefaultLongWait)
	}
	wait := min(firstWait<<(try-1), longestWait)
	return wait - rand.N(wait/4), true
}
