package cassette

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// Headers and paths of the transports over HTTP.
const (
	headerSession = "Mcp-Session-Id"
	typeEvents    = "text/event-stream"
)

// maxSessions is how many sessions of one recording are told apart. The messages of further ones
// are taken for those of one connection.
const maxSessions = 10_000

// An HTTPRecorder records what goes through a handler: the messages in the bodies of requests, and
// in the bodies and events of responses. It changes nothing in them. Its methods may be called by
// many goroutines at once.
type HTTPRecorder struct {
	r    *Recorder
	next http.Handler

	mu    sync.Mutex
	links map[string]uint64         // by the ids of sessions, and by the addresses that begin with endpoint
	last  uint64                    // that was given
	busy  map[uint64]map[string]int // ids of requests under way where there is no session, by links
}

// HTTP returns a handler that records what goes through another one. A body of a request that is
// longer than [MaxFrame] is refused.
func (r *Recorder) HTTP(next http.Handler) *HTTPRecorder {
	return &HTTPRecorder{r: r, next: next, links: make(map[string]uint64), busy: make(map[uint64]map[string]int)}
}

// endpoint begins the keys of sessions that the address of their messages names.
const endpoint = "endpoint "

// An httpExchange is a request and its response.
type httpExchange struct {
	http.ResponseWriter

	h        *HTTPRecorder
	url      *url.URL // of the request
	link     uint64
	opens    bool     // the response may begin a session
	ids      []string // of the requests in it, where there is no session
	began    bool
	media    string
	buffered bytes.Buffer // of a response in one part
	events   eventReader
}

// ServeHTTP records a request and its response. What is secret in the headers of both and in the query is
// masked in the bodies too.
func (h *HTTPRecorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = h.r.mask.Header(r.Header), h.r.mask.URL(r.URL.RequestURI()) // the masker remembers what it masks
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxFrame+1))
	switch {
	case err != nil:
		http.Error(w, "reading the body of the request: "+err.Error(), http.StatusBadRequest)
		return
	case len(body) > MaxFrame:
		http.Error(w, fmt.Sprintf("the body of the request is longer than %d bytes", MaxFrame), http.StatusRequestEntityTooLarge)
		return
	}
	x := &httpExchange{ResponseWriter: w, h: h, url: r.URL}
	messages := readMessages(body)
	x.join(r, messages)
	if len(body) > 0 {
		h.r.Add(Client, time.Now(), x.link, body)
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	defer x.end()
	h.next.ServeHTTP(x, r)
}

// join finds out to which connection of the recording a request belongs.
func (x *httpExchange) join(r *http.Request, messages []*message) {
	h := x.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range []string{r.Header.Get(headerSession), endpoint + r.URL.RequestURI()} {
		if link, ok := h.links[key]; ok && key != "" {
			x.link = link
			return
		}
	}
	for _, m := range messages {
		x.opens = x.opens || m.Method == mcp.MethodInitialize
		if m.isRequest() {
			x.ids = append(x.ids, string(m.ID))
		}
	}
	x.opens = x.opens || r.Method == http.MethodGet // the first transport begins with a stream
	x.link = h.linkFor(x.ids, x.opens)
	if used := h.busy[x.link]; used != nil {
		for _, id := range x.ids {
			used[id]++
		}
	}
}

// linkFor is a connection for requests that belong to no session: one on which none of their ids is
// in use, or a new one. mu is held.
func (h *HTTPRecorder) linkFor(ids []string, opens bool) uint64 {
	for link := uint64(1); !opens && link <= h.last; link++ {
		if used, shared := h.busy[link]; shared && free(used, ids) {
			return link
		}
	}
	h.last++
	if !opens {
		h.busy[h.last] = make(map[string]int)
	}
	return h.last
}

// free reports whether no id is in use.
func free(used map[string]int, ids []string) bool {
	for _, id := range ids {
		if used[id] > 0 {
			return false
		}
	}
	return true
}

// bind gives the connection of an exchange to a session.
func (x *httpExchange) bind(key string) {
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	if _, known := x.h.links[key]; !known && len(x.h.links) < maxSessions {
		x.h.links[key] = x.link
	}
}

// Unwrap is for http.ResponseController.
func (x *httpExchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Flush sends what was written.
func (x *httpExchange) Flush() { _ = http.NewResponseController(x.ResponseWriter).Flush() } // it can, or what is written is sent later

// WriteHeader begins the response.
func (x *httpExchange) WriteHeader(status int) {
	if status >= http.StatusOK {
		x.begin()
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *httpExchange) begin() {
	if x.began {
		return
	}
	x.began = true
	_ = x.h.r.mask.Header(x.Header())
	x.media, _, _ = mime.ParseMediaType(x.Header().Get("Content-Type")) // "" is none
	if id := x.Header().Get(headerSession); id != "" && x.opens {
		x.bind(id)
	}
}

// Write passes a part of the response on, and notes it.
func (x *httpExchange) Write(p []byte) (int, error) {
	x.begin()
	if x.media == typeEvents {
		x.events.read(p, x.event)
	} else {
		keep(&x.buffered, p)
	}
	return x.ResponseWriter.Write(p)
}

// keep adds to a frame, of which no more than a byte too many is kept.
func keep(to *bytes.Buffer, p []byte) {
	to.Write(p[:min(len(p), max(MaxFrame+1-to.Len(), 0))])
}

// event takes one event of the server.
func (x *httpExchange) event(name string, data []byte) {
	if name != "endpoint" {
		x.h.r.Add(Server, time.Now(), x.link, data)
		return
	}
	if u, err := x.url.Parse(string(data)); err == nil && x.opens {
		x.bind(endpoint + u.RequestURI())
	}
}

// end records what has no end of its own.
func (x *httpExchange) end() {
	if x.media != typeEvents && x.buffered.Len() > 0 {
		x.h.r.Add(Server, time.Now(), x.link, x.buffered.Bytes())
	}
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	used := x.h.busy[x.link]
	if used == nil { // it is a session's
		return
	}
	for _, id := range x.ids {
		if used[id]--; used[id] <= 0 {
			delete(used, id)
		}
	}
}

// An eventReader reads a stream of events as it goes by.
type eventReader struct {
	begun  bool // a line has ended
	line   bytes.Buffer
	name   string
	data   bytes.Buffer
	filled bool // there is data
	cr     bool // the last byte ended a line, to which a line feed may belong
}

// read takes a part of the stream, and gives each event that ends in it.
func (e *eventReader) read(p []byte, event func(name string, data []byte)) {
	for len(p) > 0 {
		if e.cr && p[0] == '\n' {
			p = p[1:]
		}
		e.cr = false
		at := bytes.IndexAny(p, "\r\n")
		if at < 0 {
			keep(&e.line, p)
			return
		}
		keep(&e.line, p[:at])
		e.cr = p[at] == '\r'
		p = p[at+1:]
		e.ended(event)
	}
}

// ended takes a line that has ended.
func (e *eventReader) ended(event func(name string, data []byte)) {
	defer e.line.Reset()
	line := e.line.Bytes()
	if !e.begun {
		e.begun = true
		line = bytes.TrimPrefix(line, []byte("\ufeff")) // may be at the beginning of the stream
	}
	if len(line) == 0 {
		if e.filled {
			event(e.name, e.data.Bytes())
		}
		e.name, e.filled = "", false
		e.data.Reset()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value)
	case "data":
		if e.filled {
			keep(&e.data, []byte("\n"))
		}
		keep(&e.data, value)
		e.filled = true
	}
}
