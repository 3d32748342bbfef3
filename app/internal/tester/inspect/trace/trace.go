// Package trace shows what a connection to a server carries, from what a transport.Tap is shown:
// every message both ways with the time, HTTP heads, the steps of a connection, standard error,
// and what was refused. Secrets are masked. The text is for people, JSON lines are for programs,
// and a HAR file is for the tools that show those.
package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/transport"
)

// Bounds of what is kept until it can be shown.
const (
	// maxLine is the longest line of standard error that is shown in one piece.
	maxLine = 64 << 10
	// maxBody is how many bytes of a body are kept that holds no message.
	maxBody = 64 << 10
	// maxOpen is how many requests, and how many bodies, are kept that have not ended.
	maxOpen = 10_000
)

// An Event is one thing that happened, in the JSON of a trace. Its texts have no secrets.
type Event struct {
	// Ms is when: milliseconds since the trace began.
	Ms float64 `json:"ms"`
	// Kind is that of the transport.TapEvent: step, request, response, body, sent, received,
	// refused, stderr or closed.
	Kind string `json:"kind"`
	// Link numbers connections, Exchange those HTTP requests that belong together.
	Link     uint64 `json:"link,omitzero"`
	Exchange uint64 `json:"exchange,omitzero"`
	// Bytes is how long the message or body was before it was masked.
	Bytes int `json:"bytes,omitzero"`
	// Type says what a message is: request, notification, result, error, batch or invalid; ID
	// and Method are its own, or those of the request that it answers.
	Type   string          `json:"type,omitzero"`
	ID     json.RawMessage `json:"id,omitzero"`
	Method string          `json:"method,omitzero"`
	// TookMs is how long a step took, or how long after its request an answer came.
	TookMs float64 `json:"tookMs,omitzero"`
	// EventID is the id of the event of a stream that the message came in.
	EventID string `json:"eventId,omitzero"`
	// Message is a message that is JSON; Text is one that is not, or a body, or a line of
	// standard error.
	Message json.RawMessage `json:"message,omitzero"`
	Text    string          `json:"text,omitzero"`
	// Step and Detail tell of a step of a connection.
	Step   string `json:"step,omitzero"`
	Detail string `json:"detail,omitzero"`
	HTTP   *Head  `json:"http,omitzero"`
	// Error is why something failed, was refused or ended.
	Error string `json:"error,omitzero"`
}

// A Head is the head of an HTTP request or response.
type Head struct {
	Method string      `json:"method,omitzero"`
	URL    string      `json:"url,omitzero"`
	Status int         `json:"status,omitzero"`
	Proto  string      `json:"proto,omitzero"`
	Header http.Header `json:"header,omitzero"`
}

// A Writer takes the events of a trace, one at a time.
type Writer func(e *Event) error

// JSON returns a Writer of one line of JSON for each event.
func JSON(w io.Writer) Writer {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return func(e *Event) error { return enc.Encode(e) }
}

// A Tracer makes events of what a tap is shown.
type Tracer struct {
	mask  *mask.Masker
	write Writer
	start time.Time

	mu     sync.Mutex
	err    error // of the first write that failed
	open   map[request]begun
	lines  map[uint64][]byte // standard error without its end, by links
	bodies map[uint64]*body  // by exchanges
	counts Counts
}

// Counts say how much a trace has shown.
type Counts struct{ Sent, Received, Refused, Links int }

// A request is one that has no answer yet.
type request struct {
	link uint64
	sent bool // by this side
	id   string
}

type begun struct {
	method string
	at     time.Time
}

// A body is that of a response whose end has not come.
type body struct {
	status  int
	media   string
	message bool // a message was found in it
	total   int
	data    []byte
}

// New returns a Tracer whose time begins now.
func New(m *mask.Masker, w Writer) *Tracer {
	return &Tracer{
		mask: m, write: w, start: time.Now(),
		open: make(map[request]begun), lines: make(map[uint64][]byte), bodies: make(map[uint64]*body),
	}
}

// Tap takes an event; it is a transport.Tap.
func (t *Tracer) Tap(e transport.TapEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case transport.TapStep:
		out := t.event(&e)
		out.Step, out.Detail, out.TookMs = e.Name, t.mask.Text(e.Detail), ms(e.Took)
		t.put(out)
	case transport.TapRequest:
		out := t.event(&e)
		out.Bytes = len(e.Data)
		out.HTTP = &Head{Method: e.Method, URL: t.mask.URL(e.URL), Header: t.mask.RequestHeader(e.Header)}
		if e.Link == 0 && len(e.Data) > 0 { // no message: a request of authorization
			out.Text = t.mask.Body(e.Header.Get("Content-Type"), e.Data)
		}
		t.put(out)
	case transport.TapResponse:
		out := t.event(&e)
		if e.Status != 0 {
			out.HTTP = &Head{Status: e.Status, Proto: e.Proto, Header: t.mask.Header(e.Header)}
			t.openBody(&e)
		}
		t.put(out)
	case transport.TapBody:
		t.body(&e)
	case transport.TapSent, transport.TapReceived, transport.TapRefused:
		t.message(&e)
	case transport.TapStderr:
		t.stderr(&e)
	case transport.TapClosed:
		t.endLine(e.Link, e.Time)
		t.counts.Links++
		t.put(t.event(&e))
	}
}

// Close shows what has not been shown yet. The error is that of the first write that failed,
// after which there were no more.
func (t *Tracer) Close() (Counts, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	links := make([]uint64, 0, len(t.lines))
	for link := range t.lines {
		links = append(links, link)
	}
	slices.Sort(links)
	for _, link := range links {
		t.endLine(link, time.Now())
	}
	return t.counts, t.err
}

func (t *Tracer) put(e *Event) {
	if t.err == nil {
		t.err = t.write(e)
	}
}

// event is what all events have.
func (t *Tracer) event(e *transport.TapEvent) *Event {
	out := &Event{Ms: ms(e.Time.Sub(t.start)), Kind: e.Kind.String(), Link: e.Link, Exchange: e.Exchange, EventID: t.mask.Text(e.EventID)}
	if e.Err != nil && !errors.Is(e.Err, io.EOF) {
		out.Error = t.mask.Text(e.Err.Error())
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// openBody begins to keep the body of a response.
func (t *Tracer) openBody(e *transport.TapEvent) {
	if len(t.bodies) < maxOpen {
		t.bodies[e.Exchange] = &body{status: e.Status, media: e.Header.Get("Content-Type"), message: e.Link != 0 && e.Status/100 == 2}
	}
}

// body takes a part of a body. At its end it is shown, unless messages are its content.
func (t *Tracer) body(e *transport.TapEvent) {
	b := t.bodies[e.Exchange]
	if b == nil {
		return
	}
	b.total += len(e.Data)
	b.data = append(b.data, e.Data[:min(len(e.Data), maxBody-len(b.data))]...)
	if e.Err == nil {
		return
	}
	delete(t.bodies, e.Exchange)
	if b.message && errors.Is(e.Err, io.EOF) || b.total == 0 {
		return
	}
	out := t.event(e)
	out.Bytes = b.total
	if !b.message {
		out.Text = t.mask.Body(b.media, b.data)
	}
	t.put(out)
}

// message shows a message, or what was refused as one.
func (t *Tracer) message(e *transport.TapEvent) {
	out := t.event(e)
	out.Bytes = len(e.Data)
	sent := e.Kind == transport.TapSent
	switch e.Kind {
	case transport.TapSent:
		t.counts.Sent++
	case transport.TapReceived:
		t.counts.Received++
		if b := t.bodies[e.Exchange]; b != nil && b.status/100 != 2 {
			b.message = true
		}
	default:
		t.counts.Refused++
	}
	masked, isJSON := t.mask.Message(e.Data)
	if isJSON {
		out.Message = masked
	} else {
		out.Text = string(masked)
	}
	if len(e.Data) > 0 && e.Kind != transport.TapRefused {
		t.describe(out, e, sent)
	}
	t.put(out)
}

// An envelope is what a trace reads of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// describe says what a message is, and which request it answers.
func (t *Tracer) describe(out *Event, e *transport.TapEvent, sent bool) {
	data := bytes.TrimSpace(e.Data)
	var m envelope
	switch {
	case len(data) > 0 && data[0] == '[':
		out.Type = "batch"
		return
	case json.Unmarshal(data, &m) != nil:
		out.Type = "invalid"
		return
	}
	if m.Method != "" {
		out.Method = t.mask.Text(m.Method)
		out.Type = "notification"
	}
	if len(m.ID) > 0 {
		out.ID, _ = t.mask.JSON(m.ID)
	}
	key := request{e.Link, sent, string(m.ID)}
	switch {
	case m.Method != "" && len(m.ID) > 0:
		out.Type = "request"
		if len(t.open) < maxOpen {
			t.open[key] = begun{out.Method, e.Time}
		}
		return
	case m.Method != "":
		return
	case len(m.Result) > 0:
		out.Type = "result"
	case len(m.Error) > 0:
		out.Type = "error"
	default:
		out.Type = "invalid"
		return
	}
	key.sent = !sent
	if r, ok := t.open[key]; ok {
		delete(t.open, key)
		out.Method, out.TookMs = r.method, ms(e.Time.Sub(r.at))
	}
}

// stderr shows the lines of standard error that are complete.
func (t *Tracer) stderr(e *transport.TapEvent) {
	held := append(t.lines[e.Link], e.Data...)
	for {
		end := bytes.IndexByte(held, '\n')
		if end < 0 && len(held) <= maxLine {
			break
		}
		next := end + 1
		if end < 0 || end > maxLine {
			end, next = maxLine, maxLine
		}
		t.line(e.Link, e.Time, held[:end])
		held = held[next:]
	}
	t.lines[e.Link] = bytes.Clone(held)
}

// endLine shows the last line, if it has no end.
func (t *Tracer) endLine(link uint64, at time.Time) {
	if len(t.lines[link]) > 0 {
		t.line(link, at, t.lines[link])
	}
	delete(t.lines, link)
}

func (t *Tracer) line(link uint64, at time.Time, line []byte) {
	out := t.event(&transport.TapEvent{Kind: transport.TapStderr, Link: link, Time: at})
	out.Bytes = len(line)
	out.Text = t.mask.Text(string(bytes.TrimSuffix(line, []byte{'\r'})))
	t.put(out)
}

// String says how much a trace has shown.
func (c Counts) String() string {
	return fmt.Sprintf("%d messages sent, %d received, %d refused; connections: %d", c.Sent, c.Received, c.Refused, c.Links)
}
