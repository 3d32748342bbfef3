package streamable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Bounds of what is read of a response beyond its messages.
const (
	// maxReplyBatch is the most messages that one array may hold.
	maxReplyBatch = 100
	// maxServerSessionID is the size in bytes of the longest session id of a server.
	maxServerSessionID = 8 << 10
	// maxDrain is how much of a response that nobody needs is read, so that
	// its connection can be used again, and drainTime how long that may take.
	maxDrain  = 64 << 10
	drainTime = time.Second
	// sizeHint is the most that is set aside on a server's word.
	sizeHint = 1 << 20
)

// A clientCall is one POST and its answer.
type clientCall struct {
	l      *link
	id     jsonrpc.ID
	method string
	s      *clientSession // nil if the message belongs to none

	scope  scope
	own    context.Context //nolint:containedctx // of the POST: the scope, and until detach the caller's
	cancel context.CancelCauseFunc
	detach func() bool // lets the exchange go on after the end of the caller's context

	streamed bool  // the answer is a stream of events
	passed   error // why the first event that is no message is none
}

// A scope ends with the link and has the values of a caller's context.
type scope struct {
	context.Context //nolint:containedctx // it is one

	values context.Context //nolint:containedctx // the caller's
}

func (s *scope) Value(key any) any {
	if v := s.Context.Value(key); v != nil {
		return v
	}
	return s.values.Value(key)
}

// call begins the exchange of a message, which ends with the link and with ctx.
// It is work that Close waits for.
func (l *link) call(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*clientCall, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	x := &clientCall{l: l, id: m.ID, method: m.Method, s: l.belongs(m, r), scope: scope{l.life, ctx}}
	x.own, x.cancel = context.WithCancelCause(&x.scope)
	x.detach = context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	return x, nil
}

// end ends the exchange.
func (x *clientCall) end() {
	x.detach()
	x.cancel(nil)
}

// An outcome ends an exchange.
type outcome struct {
	in  *jsonrpc.Incoming
	err error
	// rest is what is left of the response, if it is worth draining.
	rest io.ReadCloser
}

// run sends a request and reads its answer.
func (x *clientCall) run(m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	resp, err := x.send(m, r)
	if err != nil {
		x.end()
		return nil, err
	}
	if !succeeded(resp) {
		defer x.end()
		defer func() { _ = resp.Body.Close() }() // it is of no more use
		return x.refused(resp)
	}
	if mediaType(resp) != eventstream.ContentType {
		defer x.end()
		defer func() { _ = resp.Body.Close() }() // it is of no more use
		return x.known(x.whole(resp))
	}
	o := x.await(func(answer chan<- outcome) {
		defer x.end()
		o := x.follow(x.own, new(clientCursor), resp)
		x.detach() // what comes now is no part of the answer
		answer <- o
		if o.rest != nil {
			drainBody(o.rest, x.end)
		}
	})
	return x.known(o.in, o.err)
}

// await has work done in the background and returns its outcome, or that the
// exchange has ended before: the inbox may keep what it is given waiting, but not
// Do once its context has ended.
func (x *clientCall) await(work func(answer chan<- outcome)) outcome {
	answer := make(chan outcome, 1)
	x.l.work.Go(func() { work(answer) })
	select {
	case o := <-answer:
		return o
	case <-x.own.Done():
	}
	select {
	case o := <-answer: // it came just before the end
		return o
	default:
		return outcome{err: fmt.Errorf("%w: %w", transport.ErrInterrupted, context.Cause(x.own))}
	}
}

// send posts a message and looks at the head of the response.
func (x *clientCall) send(m *jsonrpc.Outgoing, r transport.Route) (*http.Response, error) {
	req, p, err := x.l.postRequest(x.own, m, r, x.s)
	if err != nil {
		return nil, err
	}
	x.l.show(transport.TapSent, req, p.content, nil)
	x.s.begin()
	resp, err := x.l.roundTrip(req, p)
	x.s.end()
	if err != nil {
		return nil, err
	}
	if x.method == revision.Initialize && succeeded(resp) {
		id := resp.Header.Get(headerSession)
		if !validSession(id, maxServerSessionID) {
			_ = resp.Body.Close() // it is of no use
			return nil, fmt.Errorf("the server's session id is not %d bytes of visible ASCII or less", maxServerSessionID)
		}
		x.l.offered.Store(&id)
	}
	return resp, nil
}

// post sends a notification or a response, which only its status answers.
func (x *clientCall) post(m *jsonrpc.Outgoing, r transport.Route) error {
	resp, err := x.send(m, r)
	if err != nil {
		x.end()
		return err
	}
	if succeeded(resp) {
		x.detach()
		if resp.Body == http.NoBody {
			x.end()
			return nil
		}
		x.l.work.Go(func() { drainBody(resp.Body, x.end) })
		return nil
	}
	defer x.end()
	defer func() { _ = resp.Body.Close() }() // it is of no more use
	in, err := x.refused(resp)
	if err != nil {
		return err
	}
	return fmt.Errorf("the server refused the message with status %d: %w", resp.StatusCode, in.Error)
}

// whole reads the answer to a request that succeeded and that is no stream by its type. JSON is read whatever
// its type is, and so are events.
func (x *clientCall) whole(resp *http.Response) (*jsonrpc.Incoming, error) {
	data, err := x.readBody(resp)
	x.l.showAnswer(resp, data, err)
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: reading the answer: %w", transport.ErrInterrupted, err)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, interrupted("the server answered the request with status %d and nothing else", resp.StatusCode)
	case encoding != "" && encoding != "identity":
		return nil, interrupted("the answer has the content encoding %.40q, which was not asked for", encoding)
	}
	in, err := jsonrpc.Parse(data, x.l.limits)
	if err == nil && x.answeredBy(in) {
		in.ID = x.id
		return in, nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	switch opening := bytes.TrimLeft(data, "\uFEFF \t\r\n"); {
	case eventField.Match(opening):
		o := x.await(func(answer chan<- outcome) { answer <- x.follow(x.own, new(clientCursor), resp) })
		return o.in, o.err
	case mediaType(resp) != jsonType && !jsonrpc.IsBatch(opening) && !bytes.HasPrefix(opening, []byte("{")):
		return nil, x.unreadable(resp)
	}
	o := x.await(func(answer chan<- outcome) { // it holds more than the response, or something else
		in, err := x.take(x.own, resp, data, false)
		switch {
		case err != nil:
			err = fmt.Errorf("%w: %w", transport.ErrInterrupted, err)
		case in == nil:
			err = interrupted("the server's answer holds no response to the request")
		}
		answer <- outcome{in: in, err: err}
	})
	return o.in, o.err
}

// eventField matches the beginning of a stream of events.
var eventField = regexp.MustCompile(`^(event|data|id|retry|):`)

// unreadable says why an answer is neither JSON nor events, and shows its text.
func (x *clientCall) unreadable(resp *http.Response) error {
	kind := mediaType(resp)
	if kind == "text/html" && x.s == nil && (x.method == revision.Initialize || x.method == "server/discover") {
		cause := transport.ErrNotUnderstood
		if x.method == revision.Initialize {
			cause = transport.ErrOtherTransport
		}
		return fmt.Errorf("%w: no MCP endpoint is there, but a page for people (text/html): check the URL", cause)
	}
	said := ""
	if text := web.NewStatusError(resp).Text; text != "" {
		said = " (it says: " + text + ")"
	}
	return interrupted("the answer has content type %q, and is neither JSON nor an event stream%s", kind, said)
}

// interrupted says why there is no answer to a request that may have run.
func interrupted(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{transport.ErrInterrupted}, args...)...)
}

// refused reads a response that says no. A JSON-RPC error in it is the answer
// (spec 2026-07-28, basic/transports/streamable-http: statuses 400 and 404
// carry errors of the protocol), whatever its id: servers that could not read
// ours write null, or something of their own. Three things are told by the
// status: a caller that is not let in needs its headers, so does one that may
// try again later, and 404 in a session means that the server has lost it,
// whatever the body says (ruling 40).
func (x *clientCall) refused(resp *http.Response) (*jsonrpc.Incoming, error) {
	var data []byte
	switch {
	case mediaType(resp) != eventstream.ContentType:
		data, _ = x.readBody(resp) // the status says enough if it breaks
	case resp.ContentLength >= 0: // the stream has an end
		if e, err := eventstream.NewReader(resp.Body, x.l.limits.Bytes).Next(); err == nil {
			data = e.Data
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	in, err := jsonrpc.Parse(data, x.l.limits)
	if len(data) > 0 {
		x.l.showAnswer(resp, data, err)
	}
	told := err == nil && in.Error != nil
	status := web.NewStatusError(resp)
	words := status.Text
	if told {
		words = in.Error.Message
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		switch {
		case refusesSession(status) && x.forgotten(words):
			lost := sessionLost(status)
			x.l.lose(x.own, x.s, lost)
			return nil, lost
		case told:
			return nil, status.Because(in.Error)
		}
		return nil, status
	case http.StatusNotFound:
		if told && x.s.tracked() {
			return nil, x.judge(status.Because(in.Error))
		}
	case http.StatusBadRequest:
		if x.forgotten(words) {
			return nil, x.lost(status)
		}
	}
	switch {
	case !told:
		return nil, x.judge(status)
	case status.Temporary() && resp.StatusCode != http.StatusInternalServerError:
		return nil, status.Because(in.Error) // the status and its headers say when to try again
	}
	if x.elsewhere(resp.StatusCode) && in.ID != x.id {
		// An endpoint for another purpose may word its refusals alike, but does
		// not answer our request.
		return nil, fmt.Errorf("%w: %w", transport.ErrOtherTransport, in.Error)
	}
	in.ID = x.id
	return in, nil
}

// elsewhere reports whether a status, unless the body says more, means that
// the server may speak another transport (spec 2026-07-28, basic/transports/
// streamable-http, HTTP+SSE Transport).
func (x *clientCall) elsewhere(status int) bool {
	return x.method == revision.Initialize && baffled(status)
}

// baffled reports whether a status may be how a server refuses what it was not
// made for.
func baffled(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// judge says what a status means for the request.
func (x *clientCall) judge(status *web.StatusError) error {
	switch code := status.Status; {
	case code == http.StatusNotFound && x.s.tracked():
		// Spec 2025-11-25, basic/transports: 404 means that the session is
		// over; the client MUST start a new one. The request was refused.
		lost := sessionLost(status)
		x.l.lose(x.own, x.s, lost)
		return lost
	case x.elsewhere(code):
		return fmt.Errorf("%w: %w", transport.ErrOtherTransport, status)
	case x.s == nil && baffled(code):
		return fmt.Errorf("%w: %w", transport.ErrNotUnderstood, status)
	case code == http.StatusServiceUnavailable && status.Header.Get("Retry-After") != "":
		return status // it was not begun
	case code >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %w", transport.ErrInterrupted, status)
	}
	return status
}

// take sorts the messages of one body or event: it returns the response that
// the exchange waits for, if it is among them, and gives the rest to the
// inbox, unless that has it already. A response that cannot be read is an
// error; other unreadable messages are left out.
func (x *clientCall) take(ctx context.Context, resp *http.Response, data []byte, known bool) (answer *jsonrpc.Incoming, err error) {
	var items []jsonrpc.BatchItem
	if jsonrpc.IsBatch(data) {
		items, err = jsonrpc.ParseBatch(data, x.l.limits, maxReplyBatch)
	} else {
		in, failure := jsonrpc.Parse(data, x.l.limits)
		items = []jsonrpc.BatchItem{{In: in}}
		errors.As(failure, &items[0].Err)
	}
	if err != nil {
		x.l.show(transport.TapRefused, resp.Request, data, err)
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	for _, item := range items {
		if item.Err != nil {
			x.l.show(transport.TapRefused, resp.Request, data, item.Err)
		}
		switch in := item.In; {
		case item.Err != nil && x.concerns(item.Err):
			said := saidOutside(data)
			switch {
			case x.forgotten(said):
				return nil, x.lost(errors.New(said))
			case x.streamed && item.Err.ID.IsZero() && !item.Err.Response:
				x.passed = cmp.Or(x.passed, error(item.Err))
				continue
			case said != "":
				return nil, fmt.Errorf("%w: %w (it says: %s)", errMalformed, item.Err, said)
			}
			return nil, fmt.Errorf("%w: %w", errMalformed, item.Err)
		case item.Err != nil:
			x.l.log.Warn("message from the server dropped", "error", item.Err)
		case x.answeredBy(in):
			if answer == nil || !in.ID.IsZero() {
				answer = in
			}
		case known:
			x.l.log.Debug("an event came twice", "method", in.Method)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			in.During = x.id
			x.l.in.Receive(in)
		}
	}
	if answer != nil {
		answer.ID = x.id
		if x.passed != nil {
			answer.AddFlaw(fmt.Sprintf("an event that is not a message was ignored: %v", x.passed))
		}
	}
	return answer, nil
}

// answeredBy reports whether in is the response. One without id is an error
// about a request that could not be read, and so about ours.
func (x *clientCall) answeredBy(in *jsonrpc.Incoming) bool {
	return in.Kind == jsonrpc.Response && !x.id.IsZero() && (in.ID == x.id || in.ID.IsZero())
}

// concerns reports whether what cannot be read may have been the response.
func (x *clientCall) concerns(e *jsonrpc.ParseError) bool {
	return !x.id.IsZero() && !e.Notification && (e.ID.IsZero() || e.Response && e.ID == x.id)
}

// PartArrived tells the caller's time limits that a part of the answer has arrived.
func (x *clientCall) PartArrived() { transport.Progress(x.own) }

// readBody reads a body within the limit.
func (x *clientCall) readBody(resp *http.Response) ([]byte, error) {
	limit := x.l.limits.Bytes
	if resp.ContentLength > int64(limit) {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d (MaxResponse)", resp.ContentLength, limit)
	}
	size := int64(usualSize)
	if resp.ContentLength >= 0 {
		size = min(resp.ContentLength+1, sizeHint) // one more, for the end to be seen
	}
	data := make([]byte, 0, size)
	for {
		n, err := resp.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case len(data) > limit:
			return nil, fmt.Errorf("it exceeds the limit of %d bytes (MaxResponse)", limit)
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return data, err
		case len(data) == cap(data):
			data = slices.Grow(data, min(len(data), max(limit-len(data), 0)+1))
		}
		if n > 0 && int64(len(data)) != resp.ContentLength {
			x.PartArrived()
		}
	}
}

// drainBody reads what is left of a response, so that its connection can be used
// again if the server ends it soon, and closes it.
func drainBody(body io.ReadCloser, cancel func()) {
	late := time.AfterFunc(drainTime, cancel)
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, body, maxDrain) // if it fails, the connection is of no more use
	_ = body.Close()
	cancel()
}

func succeeded(resp *http.Response) bool { return resp.StatusCode/100 == 2 }

// mediaType returns the type of a body without parameters, or "".
func mediaType(resp *http.Response) string {
	kind := resp.Header.Get("Content-Type")
	if kind == jsonType || kind == eventstream.ContentType {
		return kind // the usual ones cost nothing
	}
	kind, _, err := mime.ParseMediaType(kind)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return kind
}

// validSession checks a session id; none is fine. Spec 2025-11-25,
// basic/transports: it MUST only contain visible ASCII characters.
func validSession(id string, most int) bool {
	return len(id) <= most && !strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e })
}
