package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Bounds of an export.
const (
	attempts       = 5
	requestTimeout = 10 * time.Second
	firstPause     = time.Second
	longestPause   = 30 * time.Second
	maxAnswer      = 64 << 10
)

// ExporterOptions are what is not required of an exporter. A nil
// *ExporterOptions, and each zero field, means the default that is told.
type ExporterOptions struct {
	// Header is sent with each request, for collectors that want a key. Its
	// values are never logged. Default none.
	Header http.Header
	// Transport carries the requests. Default http.DefaultTransport.
	Transport http.RoundTripper
	// Logger is told when traces are not taken, and when they are again.
	// Default: none.
	Logger *slog.Logger
}

// An Exporter sends spans to a collector: OTLP/HTTP, encoded as JSON. Refusals
// that pass (429, 502, 503, 504, and no connection) are repeated a few times,
// after the time that the collector names or ever longer ones, within the
// context of the export. It may be used by many goroutines at once.
type Exporter struct {
	url    string
	shown  string // without what may be secret
	header http.Header
	http   *http.Client
	log    *slog.Logger

	mu     sync.Mutex
	closed bool
	lost   int // spans since the collector took some
}

var _ sdktrace.SpanExporter = (*Exporter)(nil)

// NewExporter makes an exporter to a collector. base is its URL, such as
// http://localhost:4318; spans go to /v1/traces below it. Keys belong into
// Options.Header, not into the URL.
func NewExporter(base string, o *ExporterOptions) (*Exporter, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("invalid collector URL; write it like http://localhost:4318")
	case u.User != nil:
		return nil, errors.New("the collector URL must not contain a user and password; send them as a header")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the collector URL must not have a query or fragment; /v1/traces is added to it")
	}
	var opts ExporterOptions
	if o != nil {
		opts = *o
	}
	u = u.JoinPath("v1", "traces")
	return &Exporter{
		url: u.String(), shown: u.Redacted(), header: opts.Header.Clone(),
		http: &http.Client{
			Transport: opts.Transport,
			Timeout:   requestTimeout,
			// A redirect would take the header elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
	}, nil
}

// errClosed says that spans came after Shutdown.
var errClosed = errors.New("the exporter has been shut down")

// ExportSpans sends spans, as often as it takes within bounds. The spans of a
// failed export are lost, which is logged once until the collector takes spans
// again; the error says the same and is for callers other than the SDK.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return errClosed
	}
	body, err := json.Marshal(encode(spans))
	if err == nil {
		err = e.send(ctx, body)
	}
	e.note(err, len(spans))
	if err != nil {
		return fmt.Errorf("sending %d spans to %s: %w", len(spans), e.shown, err)
	}
	return nil
}

// note logs the first failure, and the first success after failures.
func (e *Exporter) note(err error, spans int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		if e.lost += spans; e.lost == spans {
			e.log.Warn("traces are lost: the collector does not take them", "collector", e.shown, "err", err)
		}
	case e.lost > 0:
		e.log.Info("the collector takes traces again", "collector", e.shown, "lost", e.lost)
		e.lost = 0
	}
}

// Shutdown refuses further spans. The SDK calls it when what was queued has
// been sent.
func (e *Exporter) Shutdown(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.http.CloseIdleConnections()
	return nil
}

// A refusal is an answer that is no success.
type refusal struct {
	status int
	text   string
	wait   time.Duration // what the collector asks for, or 0
}

func (r *refusal) Error() string {
	return fmt.Sprintf("HTTP status %d%s", r.status, r.text)
}

// passes reports whether the same request may be taken later (OTLP/HTTP,
// retryable response codes).
func (r *refusal) passes() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// send posts a request until it is taken, refused for good, or given up.
func (e *Exporter) send(ctx context.Context, body []byte) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := e.post(ctx, body)
		var r *refusal
		switch answered := errors.As(err, &r); {
		case err == nil:
			return nil
		case n == attempts, ctx.Err() != nil, answered && (!r.passes() || r.wait > longestPause):
			return err
		case answered && r.wait > 0:
			pause = r.wait
		}
		if !sleep(ctx, jitter(pause)) {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// jitter keeps many senders from coming back at once; it never comes early.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/4+1) }

// sleep waits and reports true. It reports false when ctx ends before, and at
// once if the deadline of ctx says so.
func sleep(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// post sends one request.
func (e *Exporter) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range e.header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.http.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the URL is told already
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what cannot be read tells nothing more
	if resp.StatusCode != http.StatusOK {
		return &refusal{resp.StatusCode, told(answer), retryAfter(resp.Header.Get("Retry-After"))}
	}
	var partial struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"`
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &partial) == nil && partial.PartialSuccess.ErrorMessage != "" {
		rejected := strings.Trim(string(partial.PartialSuccess.RejectedSpans), `"`)
		e.log.Warn("the collector did not take all spans", "collector", e.shown,
			"rejected", rejected, "message", clip(partial.PartialSuccess.ErrorMessage))
	}
	return nil
}

// told is the message of a refusal's body, for a line of the log.
func told(answer []byte) string {
	var s struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &s) != nil || s.Message == "" {
		return ""
	}
	return ": " + clip(s.Message)
}

// clip makes the text of a collector fit for a log.
func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// retryAfter reads the header Retry-After: seconds, or a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return min(time.Duration(seconds), 1+longestPause/time.Second) * time.Second // longer is not waited for
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
