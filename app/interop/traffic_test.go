package interop_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
)

// An entry is one HTTP exchange, as far as the eras differ in it.
type entry struct {
	Method  string
	Version string // MCP-Protocol-Version of the request
	Session bool   // Mcp-Session-Id in the request
	Opened  bool   // Mcp-Session-Id in the response
	Resumed bool   // Last-Event-ID in the request
	Status  int
}

// traffic records the HTTP exchanges of a pair, at either end.
type traffic struct {
	// looseGET lets GETs come without the version, as mcp-go's client may send
	// one before it has heard of it.
	looseGET bool
	// resumed, if any, is closed at the first request that resumes a stream.
	resumed chan struct{}

	once sync.Once
	mu   sync.Mutex
	all  []*entry
}

func (l *traffic) begin(r *http.Request) *entry {
	e := &entry{
		Method:  r.Method,
		Version: r.Header.Get("Mcp-Protocol-Version"),
		Session: r.Header.Get("Mcp-Session-Id") != "",
		Resumed: r.Header.Get("Last-Event-ID") != "",
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
	if e.Resumed && l.resumed != nil {
		l.once.Do(func() { close(l.resumed) })
	}
	return e
}

func (l *traffic) answered(e *entry, status int, header http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Status, e.Opened = status, header.Get("Mcp-Session-Id") != ""
}

// server records what comes to h.
func (l *traffic) server(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&recorder{ResponseWriter: w, log: l, entry: l.begin(r)}, r)
	})
}

// recorder notes the status of a response.
type recorder struct {
	http.ResponseWriter
	log   *traffic
	entry *entry
	once  sync.Once
}

func (r *recorder) WriteHeader(status int) {
	r.once.Do(func() { r.log.answered(r.entry, status, r.Header()) })
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	r.once.Do(func() { r.log.answered(r.entry, http.StatusOK, r.Header()) })
	return r.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the response beneath.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// client returns an HTTP client that records what goes through it.
func (l *traffic) client(t *testing.T) *http.Client {
	t.Helper()
	underlying := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(underlying.CloseIdleConnections)
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		e := l.begin(r)
		resp, err := underlying.RoundTrip(r)
		if err == nil {
			l.answered(e, resp.StatusCode, resp.Header)
		}
		return resp, err
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// entries are the exchanges so far.
func (l *traffic) entries() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []entry
	for _, e := range l.all {
		list = append(list, *e)
	}
	return list
}

// checkModern checks that nothing of sessions was on the wire: POSTs alone,
// each with the version and without session. What came before the server was
// known to be modern does not exist: server/discover is the first message.
func (l *traffic) checkModern(t *testing.T) {
	t.Helper()
	for _, e := range l.entries() {
		if e.Method != http.MethodPost || e.Version != modern || e.Session || e.Opened {
			t.Errorf("in the stateless era: %+v", e)
		}
	}
}

// checkLegacy checks the life of a session: it is opened once, every later
// request carries its id and, from 2025-06-18 on, the version, and at the end
// it is deleted once, which the server grants.
func (l *traffic) checkLegacy(t *testing.T, version string) {
	t.Helper()
	all := l.entries()
	opened := slices.IndexFunc(all, func(e entry) bool { return e.Opened && !e.Session })
	if opened < 0 {
		t.Fatalf("no session was opened: %+v", all)
	}
	deleted := 0
	for _, e := range all[opened+1:] {
		if !e.Session {
			t.Errorf("a request without session: %+v", e)
		}
		if version >= "2025-06-18" && e.Version != version && (!l.looseGET || e.Method != http.MethodGet) {
			t.Errorf("a request without version: %+v", e)
		}
		if e.Method == http.MethodDelete {
			deleted++
			if e.Status < 200 || e.Status > 299 {
				t.Errorf("the session was not deleted: %+v", e)
			}
		}
	}
	if deleted != 1 {
		t.Errorf("the session was deleted %d times, want once: %+v", deleted, all)
	}
}

// checkDeleted checks that the session was deleted, which the server grants.
func (l *traffic) checkDeleted(t *testing.T) {
	t.Helper()
	for _, e := range l.entries() {
		if e.Method == http.MethodDelete && e.Session && e.Status >= 200 && e.Status <= 299 {
			return
		}
	}
	t.Errorf("the session was not deleted: %+v", l.entries())
}

// check checks the traffic of a pair that agreed on version.
func (l *traffic) check(t *testing.T, version string) {
	t.Helper()
	if version == modern {
		l.checkModern(t)
	} else {
		l.checkLegacy(t, version)
	}
}
