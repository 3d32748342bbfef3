package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
)

// An Error is what a provider said in the place of an answer, or why none came. Its text
// is one line without control characters and without the key, and says what to do.
type Error struct {
	// Provider is the name of the provider.
	Provider string
	// Status is that of the HTTP answer; 0 if there was none, or if it is of a stream.
	Status int
	// Type is the provider's own word for it, such as "overloaded_error"; it may be empty.
	Type string
	// Text is what went wrong.
	Text string
	// Advice is what to do, or empty.
	Advice string
	// RetryAfter is how long the provider wants not to be asked again; 0: it did not say.
	RetryAfter time.Duration

	temporary bool
	cause     error
}

func (e *Error) Error() string {
	text := e.Provider + " " + e.Text
	if e.Advice != "" {
		text = strings.TrimSuffix(text, ".") + "; " + e.Advice
	}
	return text
}

// Unwrap is the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// maxText bounds what is shown of a text of a provider, in bytes.
const maxText = 500

// plain is a text of a provider, or about one, as it can be shown: without the key.
func (e *Endpoint) plain(text string) string {
	if e.Key != "" {
		text = strings.ReplaceAll(text, e.Key, "[key]")
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return host.EscapeLine(strings.TrimSpace(host.Redact(text)))
}

// errorf is an error that another try does not mend.
func (e *Endpoint) errorf(format string, args ...any) *Error {
	return &Error{Provider: e.Provider, Text: e.plain(fmt.Sprintf(format, args...))}
}

// Errorf is an error about what the provider sent.
func (e *Endpoint) Errorf(format string, args ...any) error { return e.errorf(format, args...) }

// unreachable is the error of a request without an answer.
func (e *Endpoint) unreachable(err error) *Error {
	if of := new(url.Error); errors.As(err, &of) {
		err = of.Err
	}
	fault := e.errorf("cannot be reached at %s: %v", e.URL, err)
	fault.temporary, fault.cause = true, err
	fault.Advice = "is it running, and is the base URL right?"
	return fault
}

// broken is the error of a request that ended before its answer did.
func (e *Endpoint) broken(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent):
		fault := e.errorf("has sent nothing for %v", e.silence())
		fault.Advice = "try again, or another model"
		return fault
	case cause != nil:
		return cause
	case errors.Is(err, ErrTooLong):
		fault := e.errorf("sends too much at once: %v", err)
		fault.Advice, fault.cause = "try again, or another model", err
		return fault
	case errors.Is(err, io.ErrUnexpectedEOF):
		fault := e.errorf("ended its answer in the middle")
		fault.Advice, fault.cause = "what came before is kept; try again", err
		return fault
	}
	fault := e.errorf("ended its answer in the middle: %v", err)
	fault.Advice, fault.cause = "what came before is kept; try again", err
	return fault
}

// Cut is the error of a stream that ended without saying so.
func (e *Endpoint) Cut() error { return e.broken(context.Background(), io.ErrUnexpectedEOF) }

// refused is the error of an answer with another status than 200.
func (e *Endpoint) refused(resp *http.Response) *Error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is
	fault := e.Fault(data)
	fault.Status = resp.StatusCode
	fault.temporary = temporary(resp)
	if wait := retryAfter(resp.Header); wait > 0 {
		fault.RetryAfter = wait
	}
	said := fault.Text
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized && e.Key == "":
		fault.Text, fault.Advice = "wants a key", fmt.Sprintf("set it with '%s'; with noKey in parley.jsonc, or --no-key, none is sent", e.keyCommand())
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		fault.Text, fault.Advice = "refuses the key", e.OtherKey()
	case status == http.StatusPaymentRequired:
		fault.Text, fault.Advice = "wants to be paid first", "look at your account there"
	case status == http.StatusNotFound:
		fault.Text, fault.Advice = "does not know the model or the address "+e.plain(e.URL), fmt.Sprintf("'%s' lists what there is", e.listCommand())
	case status == http.StatusRequestEntityTooLarge:
		fault.Text, fault.Advice = "finds the conversation too long", "/compact makes it shorter"
	case status == http.StatusTooManyRequests:
		fault.Text, fault.Advice = "has had too many requests", later(fault.RetryAfter)
	case status == http.StatusServiceUnavailable, status == statusOverloaded:
		fault.Text, fault.Advice = "is overloaded", later(fault.RetryAfter)
	case status >= 500:
		fault.Text, fault.Advice = fmt.Sprintf("failed (status %d)", status), later(fault.RetryAfter)
	case status >= 300 && status < 400:
		fault.Text, fault.Advice = fmt.Sprintf("answers with a redirect (status %d), which is not followed", status), "is the base URL right?"
	default:
		fault.Text = fmt.Sprintf("refuses the request (status %d)", status)
	}
	if said != "" {
		fault.Text += ": " + said
	}
	return fault
}

// statusOverloaded is what Anthropic answers with when it is overloaded.
const statusOverloaded = 529

// later says when to try again.
func later(after time.Duration) string {
	if after <= 0 {
		return "try again later"
	}
	return fmt.Sprintf("try again in %v", max(after.Round(time.Second), time.Second))
}

// temporary tells whether another try may have an answer.
func temporary(resp *http.Response) bool {
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented
}

// maxRetryAfter bounds what is believed of a wait.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long not to ask again: milliseconds, seconds, or a date (RFC 9110,
// section 10.2.3). 0 is not told.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms / 1000)
	}
	value := h.Get(headerRetryAfter)
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return duration(s)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter)
	}
	return 0
}

// duration is a number of seconds as one that is neither negative nor too long.
func duration(seconds float64) time.Duration {
	if !(seconds > 0) { // also if it is no number
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// Fault reads an error of a provider: an object with the member "error", which is a text
// or an object with "message", "type", "status" or "code" and "details"; Google's may be
// alone in an array. What is none of that is shown as it is, but for HTML.
func (e *Endpoint) Fault(data []byte) *Error {
	fault := &Error{Provider: e.Provider}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(data, &body) != nil {
		if !html(data) {
			fault.Text = e.plain(string(data))
		}
		return fault
	}
	var said struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Status  string          `json:"status"`
		Code    json.RawMessage `json:"code"`
		Details []struct {
			RetryDelay string `json:"retryDelay"`
		} `json:"details"`
	}
	var text string
	if json.Unmarshal(body.Error, &text) != nil {
		_ = json.Unmarshal(body.Error, &said) // what there is
		text = said.Message
	}
	fault.Text = e.plain(cmp.Or(text, body.Message, raw(body.Error), raw(body.Detail)))
	fault.Type = e.plain(cmp.Or(said.Type, said.Status, strings.Trim(string(said.Code), `"`)))
	for _, d := range said.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			fault.RetryAfter = min(wait, maxRetryAfter)
		}
	}
	return fault
}

// raw is JSON as it can be shown: a text without its quotes, and nothing for null.
func raw(data json.RawMessage) string {
	var text *string
	if json.Unmarshal(data, &text) != nil {
		return string(data)
	}
	if text == nil {
		return ""
	}
	return *text
}

// html tells whether data looks like a page.
func html(data []byte) bool {
	begin := strings.ToLower(strings.TrimSpace(string(data[:min(len(data), 200)])))
	return strings.HasPrefix(begin, "<!doctype") || strings.HasPrefix(begin, "<html") || strings.HasPrefix(begin, "<?xml") || strings.HasPrefix(begin, "<head")
}

// notStream is the error of an answer that is no event stream.
func (e *Endpoint) notStream(resp *http.Response, kind string) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if kind == jsonContent && err == nil {
		if fault := e.Fault(data); fault.Text != "" {
			fault.Text = "answers with an error: " + fault.Text
			return fault
		}
	}
	fault := e.errorf("answers with %s where a stream of events was asked for", cmp.Or(kind, "something without a type"))
	fault.Advice = "is the base URL right?"
	return fault
}

// notJSON is the error of an answer that does not read as what was asked for.
func (e *Endpoint) notJSON(resp *http.Response, data []byte) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	what := "something that is no JSON of the kind that was asked for"
	if html(data) || kind == "text/html" {
		what = "a page (HTML)"
	}
	fault := e.errorf("answers with %s", what)
	fault.Advice = "is the base URL right?"
	return fault
}
