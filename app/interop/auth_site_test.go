package interop_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A visit is one exchange with a site, as far as authorization goes.
type visit struct {
	Method, Path string
	// Form are the parameters of the query, or of the form in the body.
	Form url.Values
	// Body is the body of the request, of up to 64 KiB.
	Body []byte
	// Scheme is that of the Authorization header.
	Scheme string
	Status int
	Header http.Header
	// Answer is how the body of the response begins.
	Answer []byte
}

// A site is an HTTP server whose address is known before what it serves is
// made, and that remembers all visits.
type site struct {
	url     string
	handler atomic.Pointer[http.Handler]
	once    atomic.Pointer[http.Handler]
	mu      sync.Mutex
	all     []*visit
}

// newSite starts a site, which ends with the test. It answers 503 until serve.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	s.url = srv.URL
	return s
}

// serve lets h answer from now on.
func (s *site) serve(h http.Handler) { s.handler.Store(&h) }

// next lets h answer the next request, in place of what is served.
func (s *site) next(h http.Handler) { s.once.Store(&h) }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := s.once.Swap(nil)
	if h == nil {
		h = s.handler.Load()
	}
	if h == nil {
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		return
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	v := &visit{Method: r.Method, Path: r.URL.Path, Form: r.URL.Query(), Body: body}
	v.Scheme, _, _ = strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		v.Form, _ = url.ParseQuery(string(body))
	}
	s.mu.Lock()
	s.all = append(s.all, v)
	s.mu.Unlock()
	(*h).ServeHTTP(&noting{ResponseWriter: w, site: s, visit: v}, r)
}

// visits are those so far that have been answered.
func (s *site) visits() []*visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*visit
	for _, v := range s.all {
		if v.Status != 0 {
			c := *v
			out = append(out, &c)
		}
	}
	return out
}

// forget forgets the visits so far.
func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}

// noting notes a response before anybody can have read it.
type noting struct {
	http.ResponseWriter
	site  *site
	visit *visit
}

func (n *noting) note(status int, data []byte) {
	n.site.mu.Lock()
	defer n.site.mu.Unlock()
	if n.visit.Status == 0 {
		n.visit.Status, n.visit.Header = status, n.Header().Clone()
	}
	n.visit.Answer = append(n.visit.Answer, data[:min(len(data), 16<<10-min(len(n.visit.Answer), 16<<10))]...)
}

func (n *noting) WriteHeader(status int) {
	n.note(status, nil)
	n.ResponseWriter.WriteHeader(status)
}

func (n *noting) Write(data []byte) (int, error) {
	n.note(http.StatusOK, data)
	return n.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the response beneath.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Flush is for handlers that do not know of http.ResponseController.
func (n *noting) Flush() { _ = http.NewResponseController(n.ResponseWriter).Flush() }

// steps are the steps of the way to a token that an authorization server sees:
// pages for the person left out, and either where metadata was looked for, each
// place once since the guard looks as well, or all but that.
func steps(visits []*visit, metadata bool) []string {
	var out []string
	for _, v := range visits {
		step := v.step()
		if step == "" || strings.HasPrefix(step, "metadata ") != metadata || metadata && slices.Contains(out, step) {
			continue
		}
		out = append(out, step)
	}
	return out
}

func (v *visit) step() string {
	status := " " + http.StatusText(v.Status)
	switch {
	case strings.Contains(v.Path, "/.well-known/"):
		return "metadata " + v.Path + status
	case v.Form.Get("grant_type") != "":
		return "token " + v.Form.Get("grant_type") + status
	case v.Form.Get("response_type") != "":
		return "authorize"
	case v.Method == http.MethodPost && bytes.Contains(v.Body, []byte(`"redirect_uris"`)):
		return "register" + status
	}
	return ""
}

// find returns the visits of one step.
func find(visits []*visit, step string) []*visit {
	var out []*visit
	for _, v := range visits {
		if s := v.step(); s == step || strings.HasPrefix(s, step+" ") {
			out = append(out, v)
		}
	}
	return out
}

// member is a member of a JSON object that was answered, or nil.
func (v *visit) member(name string) any {
	var all map[string]any
	if json.Unmarshal(v.Answer, &all) != nil {
		return nil
	}
	return all[name]
}
