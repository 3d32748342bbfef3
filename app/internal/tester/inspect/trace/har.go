package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/transport"
)

// Bounds of what a HAR file holds.
const (
	maxEntries  = 10_000
	maxHARBytes = 64 << 20 // of bodies and messages
)

// A HAR collects what goes over HTTP for a file in the format HTTP Archive 1.2, which browsers and
// other tools show. Messages of connections that are no HTTP, such as a child process, are in an
// entry of their own, as the frames of WebSockets are.
type HAR struct {
	mask *mask.Masker

	mu      sync.Mutex
	entries []*exchange
	last    map[uint64]*exchange // by exchanges
	pipes   map[uint64]*exchange // by links without exchanges
	size    int
	lost    bool // something was too much
}

// An exchange is an HTTP request and its response, or a pipe.
type exchange struct {
	start             time.Time
	link              uint64
	request, response transport.TapEvent // without Data, Header copied
	sent, received    []byte
	total             int // of the body, also what was not kept
	answered, ended   time.Time
	steps             map[string]time.Duration
	address           string
	err               error
	frames            []frame
	pipe              bool
}

type frame struct {
	sent bool
	at   time.Time
	data []byte
}

// NewHAR returns an empty HAR.
func NewHAR(m *mask.Masker) *HAR {
	return &HAR{mask: m, last: make(map[uint64]*exchange), pipes: make(map[uint64]*exchange)}
}

// Tap takes an event; it is a transport.Tap.
func (h *HAR) Tap(e transport.TapEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.last[e.Exchange]
	switch e.Kind {
	case transport.TapRequest:
		h.request(&e)
	case transport.TapResponse:
		if x != nil {
			x.answered, x.ended, x.err = e.Time, e.Time, e.Err
			x.response = e
			x.response.Data, x.response.Header = nil, e.Header.Clone()
		}
	case transport.TapBody:
		if x != nil {
			x.ended = e.Time
			x.total += len(e.Data)
			x.received = append(x.received, h.kept(e.Data)...)
			if e.Err != nil && !errors.Is(e.Err, io.EOF) {
				x.err = e.Err
			}
		}
	case transport.TapStep:
		if x != nil && e.Exchange != 0 {
			x.steps[e.Name] += e.Took
			if e.Name == transport.StepTCP && e.Err == nil || e.Name == transport.StepReused {
				x.address = e.Detail
			}
		}
	case transport.TapSent, transport.TapReceived, transport.TapRefused:
		if e.Exchange == 0 && len(e.Data) > 0 {
			h.frame(&e)
		}
	default:
	}
}

// kept is a copy of as much as there is room for.
func (h *HAR) kept(data []byte) []byte {
	n := min(len(data), maxHARBytes-h.size)
	h.lost = h.lost || n < len(data)
	h.size += n
	return slices.Clone(data[:n])
}

// add adds an entry, if there is room for one.
func (h *HAR) add(x *exchange) bool {
	if len(h.entries) == maxEntries {
		h.lost = true
		return false
	}
	h.entries = append(h.entries, x)
	return true
}

func (h *HAR) request(e *transport.TapEvent) {
	x := &exchange{start: e.Time, ended: e.Time, link: e.Link, request: *e, steps: make(map[string]time.Duration)}
	if !h.add(x) {
		delete(h.last, e.Exchange)
		return
	}
	x.request.Data, x.request.Header = nil, e.Header.Clone()
	x.sent = h.kept(e.Data)
	h.last[e.Exchange] = x
}

// frame adds a message of a connection that has no exchanges.
func (h *HAR) frame(e *transport.TapEvent) {
	x := h.pipes[e.Link]
	if x == nil {
		for _, other := range h.entries { // the request that became a WebSocket
			if other.link == e.Link && other.response.Status == http.StatusSwitchingProtocols {
				x = other
			}
		}
		if x == nil {
			x = &exchange{start: e.Time, link: e.Link, pipe: true}
			if !h.add(x) {
				return
			}
		}
		h.pipes[e.Link] = x
	}
	x.ended = e.Time
	x.frames = append(x.frames, frame{e.Kind == transport.TapSent, e.Time, h.kept(e.Data)})
}

// The types of the format, http://www.softwareishard.com/blog/har-12-spec/.
type (
	harFile struct {
		Log harLog `json:"log"`
	}
	harLog struct {
		Version string     `json:"version"`
		Creator harName    `json:"creator"`
		Entries []harEntry `json:"entries"`
		Comment string     `json:"comment,omitzero"`
	}
	harName struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	harEntry struct {
		StartedDateTime string       `json:"startedDateTime"`
		Time            float64      `json:"time"`
		Request         harRequest   `json:"request"`
		Response        harResponse  `json:"response"`
		Cache           struct{}     `json:"cache"`
		Timings         harTimings   `json:"timings"`
		ServerIPAddress string       `json:"serverIPAddress,omitzero"`
		Connection      string       `json:"connection,omitzero"`
		Comment         string       `json:"comment,omitzero"`
		ResourceType    string       `json:"_resourceType,omitzero"`
		Messages        []harMessage `json:"_webSocketMessages,omitzero"`
	}
	harRequest struct {
		Method      string    `json:"method"`
		URL         string    `json:"url"`
		HTTPVersion string    `json:"httpVersion"`
		Cookies     []harPair `json:"cookies"`
		Headers     []harPair `json:"headers"`
		QueryString []harPair `json:"queryString"`
		PostData    *harPost  `json:"postData,omitzero"`
		HeadersSize int       `json:"headersSize"`
		BodySize    int       `json:"bodySize"`
	}
	harResponse struct {
		Status      int        `json:"status"`
		StatusText  string     `json:"statusText"`
		HTTPVersion string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Content     harContent `json:"content"`
		RedirectURL string     `json:"redirectURL"`
		HeadersSize int        `json:"headersSize"`
		BodySize    int        `json:"bodySize"`
	}
	harPair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	harPost struct {
		MimeType string    `json:"mimeType"`
		Params   []harPair `json:"params"`
		Text     string    `json:"text"`
	}
	harContent struct {
		Size     int    `json:"size"`
		MimeType string `json:"mimeType"`
		Text     string `json:"text,omitzero"`
		Comment  string `json:"comment,omitzero"`
	}
	harTimings struct {
		DNS     float64 `json:"dns"`
		Connect float64 `json:"connect"`
		SSL     float64 `json:"ssl"`
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
	harMessage struct {
		Type   string  `json:"type"` // send or receive
		Time   float64 `json:"time"` // seconds since 1970
		Opcode int     `json:"opcode"`
		Data   string  `json:"data"`
	}
)

// Write writes the file. The version is that of this program.
func (h *HAR) Write(w io.Writer, version string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	file := harFile{harLog{Version: "1.2", Creator: harName{"parley", version}, Entries: make([]harEntry, 0, len(h.entries))}}
	if h.lost {
		file.Log.Comment = fmt.Sprintf("not all of it is here: a file holds %d entries and %d bytes of bodies", maxEntries, maxHARBytes)
	}
	for _, x := range h.entries {
		file.Log.Entries = append(file.Log.Entries, h.entry(x))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(file); err != nil {
		return fmt.Errorf("writing the HAR file: %w", err)
	}
	return nil
}

func (h *HAR) entry(x *exchange) harEntry {
	out := harEntry{
		StartedDateTime: x.start.UTC().Format("2006-01-02T15:04:05.000Z07:00"), Time: ms(x.ended.Sub(x.start)),
		Request: h.sent(x), Response: h.received(x), Timings: timings(x), Connection: strconv.FormatUint(x.link, 10),
	}
	host, _, found := strings.Cut(x.address, "]:")
	if !found {
		host, _, _ = strings.Cut(x.address, ":")
	}
	out.ServerIPAddress = strings.TrimPrefix(host, "[")
	if x.err != nil {
		out.Comment = h.mask.Text(x.err.Error())
	}
	for _, f := range x.frames {
		kind := "receive"
		if f.sent {
			kind = "send"
		}
		data, _ := h.mask.Message(f.data)
		out.ResourceType = "websocket"
		out.Messages = append(out.Messages, harMessage{kind, float64(f.at.UnixMicro()) / 1e6, 1, string(data)})
	}
	if x.pipe {
		out.Comment = "a connection that is no HTTP: its messages are in _webSocketMessages"
	}
	return out
}

func (h *HAR) sent(x *exchange) harRequest {
	if x.pipe {
		return harRequest{
			Method: http.MethodGet, URL: "pipe://connection/" + strconv.FormatUint(x.link, 10), HTTPVersion: "none",
			Cookies: []harPair{}, Headers: []harPair{}, QueryString: []harPair{}, HeadersSize: -1, BodySize: 0,
		}
	}
	address := h.mask.URL(x.request.URL)
	out := harRequest{
		Method: x.request.Method, URL: address, HTTPVersion: proto(x), Cookies: []harPair{}, QueryString: []harPair{},
		Headers: pairs(h.mask.RequestHeader(x.request.Header)), HeadersSize: -1, BodySize: len(x.sent),
	}
	if u, err := url.Parse(address); err == nil {
		query := u.Query()
		for _, name := range slices.Sorted(maps.Keys(query)) {
			for _, v := range query[name] {
				out.QueryString = append(out.QueryString, harPair{name, v})
			}
		}
	}
	if len(x.sent) > 0 {
		media := x.request.Header.Get("Content-Type")
		out.PostData = &harPost{MimeType: media, Params: []harPair{}, Text: h.mask.Body(media, x.sent)}
	}
	return out
}

func (h *HAR) received(x *exchange) harResponse {
	media := x.response.Header.Get("Content-Type")
	out := harResponse{
		Status: x.response.Status, StatusText: http.StatusText(x.response.Status), HTTPVersion: proto(x), Cookies: []harPair{},
		Headers: pairs(h.mask.Header(x.response.Header)), Content: harContent{Size: x.total, MimeType: media},
		RedirectURL: h.mask.URL(x.response.Header.Get("Location")), HeadersSize: -1, BodySize: x.total,
	}
	if media == "" {
		out.Content.MimeType = "x-unknown"
	}
	if len(x.received) < x.total {
		out.Content.Comment = "the rest was not kept"
	}
	switch {
	case x.answered.IsZero() || x.response.Status == 0:
		out.BodySize = -1
	case !utf8.Valid(x.received):
		out.Content.Comment = "no text"
	default:
		out.Content.Text = h.mask.Body(media, x.received)
	}
	return out
}

// proto is the protocol of an exchange, as far as it is known.
func proto(x *exchange) string {
	switch {
	case x.pipe:
		return "none"
	case x.response.Proto != "":
		return x.response.Proto
	}
	return "unknown"
}

// pairs are the fields of a header in the order of their names.
func pairs(header http.Header) []harPair {
	list := []harPair{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, v := range header[name] {
			list = append(list, harPair{name, v})
		}
	}
	return list
}

// timings split the time of an exchange; -1 says that a part does not apply.
func timings(x *exchange) harTimings {
	t := harTimings{DNS: -1, Connect: -1, SSL: -1}
	used := time.Duration(0)
	if d, ok := x.steps[transport.StepDNS]; ok {
		t.DNS, used = ms(d), used+d
	}
	if d, ok := x.steps[transport.StepTCP]; ok {
		d += x.steps[transport.StepTLS] // as the format wants it
		t.Connect, used = ms(d), used+d
	}
	if d, ok := x.steps[transport.StepTLS]; ok {
		t.SSL = ms(d)
	}
	answered := x.answered
	if answered.IsZero() {
		answered = x.ended
	}
	t.Wait = ms(max(answered.Sub(x.start)-used, 0))
	t.Receive = ms(max(x.ended.Sub(answered), 0))
	return t
}
