package odd

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Paths of the endpoints.
const (
	httpPath = "/mcp"
	ssePath  = "/sse"
	postPath = "/messages"
)

// ServeStdio speaks over a stream of lines until it ends.
func (p *Peer) ServeStdio(rw io.ReadWriter) {
	out := bufio.NewWriter(rw)
	line := func(text string) { _, _ = out.WriteString(text + "\n") }
	for _, text := range p.c.Stdout {
		line(text)
	}
	in, first := bufio.NewReader(rw), true
	for {
		if out.Flush() != nil {
			return
		}
		message, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		r := p.read(message, "")
		if r == nil {
			continue
		}
		for _, text := range r.a.Before {
			line(r.text(text))
		}
		if r.message != "" {
			p.frame(out, r.message, first)
			first = false
		}
		for _, text := range r.a.After {
			line(r.text(text))
		}
		if r.a.Exit != nil {
			_ = out.Flush()
			return
		}
	}
}

// frame writes a message with the text around it.
func (p *Peer) frame(out *bufio.Writer, message string, first bool) {
	frame := Lines{}
	if p.c.Lines != nil {
		frame = *p.c.Lines
	}
	after := "\n"
	if frame.After != nil {
		after = *frame.After
	}
	if first {
		_, _ = out.WriteString(frame.First)
	}
	length := strings.NewReplacer("$LENGTH", strconv.Itoa(len(message)))
	_, _ = out.WriteString(length.Replace(frame.Before) + message + length.Replace(after))
}

// ServeHTTP is the endpoint of Streamable HTTP, at /mcp or where a case redirects to.
func (p *Peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if to := p.c.Redirect; to != nil && r.URL.Path == httpPath {
		w.Header().Set("Location", to.To)
		w.WriteHeader(to.Status)
		return
	} else if r.URL.Path != httpPath && (to == nil || r.URL.Path != to.To) {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		p.c.other(r.Method).write(w, r, "")
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := p.read(raw, r.Header.Get("Mcp-Session-Id"))
	all := p.c.HTTP[http.MethodPost]
	switch {
	case req == nil && all != nil && all.Body != nil && !strings.Contains(*all.Body, "$MESSAGE"):
		all.write(w, r, "")
	case req == nil:
		w.WriteHeader(http.StatusAccepted)
	case all != nil && (all.Body != nil || !req.named):
		req.write(w, r, *all)
	case req.a.SSE != nil || req.a.Stream != nil || len(req.a.Before) > 0 || len(req.a.After) > 0:
		h := req.a.HTTP
		kind, body := "text/event-stream", req.stream()
		if h.Type == nil {
			h.Type = &kind
		}
		h.Body = &body
		h.write(w, r, "")
	case req.a.None && req.a.Body == nil && req.a.Base64 == nil && req.a.Status == 0:
		<-r.Context().Done()
	case req.id == "" && req.message == "" && req.a.Status == 0: // a notification that the case names
		h := req.a.HTTP
		h.Status = http.StatusAccepted
		h.write(w, r, "")
	default:
		req.write(w, r, req.a.HTTP)
	}
}

// other is the answer to requests of another method than POST, and to a POST at the wrong place.
func (c *Case) other(method string) *HTTP {
	if h := c.HTTP[method]; h != nil {
		return h
	}
	return &HTTP{Status: http.StatusMethodNotAllowed}
}

// write answers with the message, or with the body of h, in which the placeholders are replaced.
func (r *request) write(w http.ResponseWriter, of *http.Request, h HTTP) {
	if h.Body != nil {
		body := r.text(*h.Body)
		h.Body = &body
	}
	h.write(w, of, r.message)
}

// stream is the text of the events of an answer.
func (r *request) stream() string {
	var text strings.Builder
	for _, before := range r.a.Before {
		text.WriteString(event(r.text(before)))
	}
	switch {
	case r.a.Stream != nil:
		text.WriteString(r.text(*r.a.Stream))
	case r.a.SSE != nil:
		for _, e := range r.a.SSE {
			text.WriteString(r.text(e) + "\n\n")
		}
	case r.message != "":
		text.WriteString(event(r.message))
	}
	for _, after := range r.a.After {
		text.WriteString(event(r.text(after)))
	}
	return text.String()
}

// event is a message as an event.
func event(message string) string {
	return "event: message\ndata: " + strings.ReplaceAll(message, "\n", "\ndata: ") + "\n\n"
}

// write answers a request with a message, or with the body that the case has.
func (h *HTTP) write(w http.ResponseWriter, r *http.Request, message string) {
	body, header := []byte(message), w.Header()
	switch {
	case h.Body != nil:
		body = []byte(*h.Body)
	case h.Base64 != nil:
		body = h.Base64
	}
	switch {
	case h.Type != nil && *h.Type != "":
		header["Content-Type"] = []string{*h.Type}
	case h.Type != nil || len(body) == 0:
		header["Content-Type"] = nil // and none is guessed
	default:
		header["Content-Type"] = []string{"application/json"}
	}
	if h.Encode != "" {
		header.Set("Content-Encoding", h.Encode)
		body = compressed(h.Encode, body)
	}
	for name, value := range h.Headers {
		header[name] = []string{value}
	}
	w.WriteHeader(cmp.Or(h.Status, http.StatusOK))
	_, _ = w.Write(body)
	if h.Open {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func compressed(how string, body []byte) []byte {
	var b bytes.Buffer
	var to io.WriteCloser = gzip.NewWriter(&b)
	if how == "deflate" {
		to = zlib.NewWriter(&b)
	}
	_, _ = to.Write(body)
	_ = to.Close()
	return b.Bytes()
}

// SSE returns the endpoint of the transport HTTP+SSE, which has one client.
func (p *Peer) SSE() http.Handler {
	opening := Opening{}
	if p.c.Opening != nil {
		opening = *p.c.Opening
	}
	opening.Stream, opening.Path = cmp.Or(opening.Stream, ssePath), cmp.Or(opening.Path, postPath)
	return &stream{p: p, Opening: opening, texts: make(chan string, 1000)}
}

// SSEPath is the path that a client of HTTP+SSE is given.
func (c *Case) SSEPath() string {
	if c.Opening == nil {
		return ssePath
	}
	return cmp.Or(c.Opening.Stream, ssePath)
}

// A stream is the server half of HTTP+SSE.
type stream struct {
	Opening

	p     *Peer
	texts chan string
	mu    sync.Mutex
}

// ServeHTTP opens the stream, or accepts a message.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(s.Path, "?")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == path:
		s.post(w, r)
	case r.URL.Path != s.Stream:
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		s.p.c.other(http.MethodPost).write(w, r, "")
	case s.p.c.HTTP[http.MethodGet] != nil:
		s.p.c.HTTP[http.MethodGet].write(w, r, "")
	default:
		s.open(w, r)
	}
}

func (s *stream) open(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	names := strings.NewReplacer("$PATH", s.Path, "$BASE", "http://"+r.Host)
	switch {
	case s.Text != nil:
		_, _ = io.WriteString(w, names.Replace(*s.Text))
	case s.Events != nil:
		for _, e := range s.Events {
			_, _ = io.WriteString(w, names.Replace(e)+"\n\n")
		}
	default:
		_, _ = io.WriteString(w, "event: endpoint\ndata: "+s.Path+"\n\n")
	}
	flush := http.NewResponseController(w)
	for !s.Closed && flush.Flush() == nil {
		select {
		case <-r.Context().Done():
			return
		case text := <-s.texts:
			_, _ = io.WriteString(w, text)
		}
	}
}

func (s *stream) post(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, req := s.p.c.Taken, s.p.read(raw, "")
	switch {
	case taken != nil && taken.Status >= http.StatusBadRequest:
		taken.write(w, r, "")
		return
	case req != nil && req.a.Status >= http.StatusBadRequest:
		req.a.write(w, r, "")
		return
	case taken != nil:
		taken.write(w, r, "")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
	if req != nil {
		s.texts <- req.stream() // "" for no answer
	}
}
