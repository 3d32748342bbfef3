// Package otlptest is a collector for tests: it takes traces over OTLP/HTTP as
// JSON, and refuses what is not exactly as the protocol says.
package otlptest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Collector keeps the spans that were sent to it. It may be used by many
// goroutines at once.
type Collector struct {
	// URL is where it is, without /v1/traces.
	URL string

	mu       sync.Mutex
	spans    []Span
	requests []*http.Request
	answers  []http.HandlerFunc
}

// A Span is one span with what was said about all of its scope and resource.
type Span struct {
	Name, TraceID, SpanID, ParentID string
	TraceState                      string
	Kind, Status                    int
	StatusMessage                   string
	Remote                          bool // the parent was elsewhere
	Start, End                      uint64
	Attributes, Resource            map[string]any
	Scope                           string
	Events                          []string
	Links                           []string // "trace span"
}

// New starts a collector that ends with the test. What is sent to it and is not
// OTLP fails the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.serve(t, w, r)
	}))
	t.Cleanup(srv.Close)
	c.URL = srv.URL
	return c
}

// Answer has the next requests answered by these handlers, one each, instead of
// being taken.
func (c *Collector) Answer(handlers ...http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, handlers...)
}

// Spans are those that were taken, in the order of their coming.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Requests are all that came.
func (c *Collector) Requests() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*http.Request(nil), c.requests...)
}

func (c *Collector) serve(t testing.TB, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("collector: reading: %v", err)
	}
	c.mu.Lock()
	c.requests = append(c.requests, r)
	var answer http.HandlerFunc
	if len(c.answers) > 0 {
		answer, c.answers = c.answers[0], c.answers[1:]
	}
	c.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("collector: %s %s with Content-Type %q, want POST /v1/traces and application/json", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	spans, err := Decode(body)
	if err != nil {
		t.Errorf("collector: %v in %s", err, body)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.spans = append(c.spans, spans...)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"partialSuccess":{}}`)
}

type (
	request struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes attributes `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Scope struct {
					Name       string     `json:"name"`
					Version    string     `json:"version"`
					Attributes attributes `json:"attributes"`
				} `json:"scope"`
				Spans     []span `json:"spans"`
				SchemaURL string `json:"schemaUrl"`
			} `json:"scopeSpans"`
			SchemaURL string `json:"schemaUrl"`
		} `json:"resourceSpans"`
	}
	span struct {
		TraceID           id         `json:"traceId"`
		SpanID            id         `json:"spanId"`
		TraceState        string     `json:"traceState"`
		ParentSpanID      id         `json:"parentSpanId"`
		Flags             uint32     `json:"flags"`
		Name              string     `json:"name"`
		Kind              int        `json:"kind"`
		Start             unix       `json:"startTimeUnixNano"`
		End               unix       `json:"endTimeUnixNano"`
		Attributes        attributes `json:"attributes"`
		DroppedAttributes uint32     `json:"droppedAttributesCount"`
		Events            []struct {
			Time              unix       `json:"timeUnixNano"`
			Name              string     `json:"name"`
			Attributes        attributes `json:"attributes"`
			DroppedAttributes uint32     `json:"droppedAttributesCount"`
		} `json:"events"`
		DroppedEvents uint32 `json:"droppedEventsCount"`
		Links         []struct {
			TraceID           id         `json:"traceId"`
			SpanID            id         `json:"spanId"`
			TraceState        string     `json:"traceState"`
			Flags             uint32     `json:"flags"`
			Attributes        attributes `json:"attributes"`
			DroppedAttributes uint32     `json:"droppedAttributesCount"`
		} `json:"links"`
		DroppedLinks uint32 `json:"droppedLinksCount"`
		Status       struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"status"`
	}
)

// Decode reads an ExportTraceServiceRequest strictly: no member that the
// protocol does not have, ids in hexadecimal, enums as numbers, 64-bit integers
// as strings, one member in each value.
func Decode(body []byte) ([]Span, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var r request
	if err := d.Decode(&r); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("data behind the request")
	}
	var all []Span
	for _, rs := range r.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				if err := s.check(); err != nil {
					return nil, fmt.Errorf("span %q: %w", s.Name, err)
				}
				out := Span{
					Name: s.Name, TraceID: string(s.TraceID), SpanID: string(s.SpanID), ParentID: string(s.ParentSpanID),
					TraceState: s.TraceState, Kind: s.Kind, Status: s.Status.Code, StatusMessage: s.Status.Message,
					Remote: s.Flags&0x200 != 0, Start: uint64(s.Start), End: uint64(s.End),
					Attributes: s.Attributes, Resource: rs.Resource.Attributes, Scope: ss.Scope.Name,
				}
				for _, e := range s.Events {
					out.Events = append(out.Events, e.Name)
				}
				for _, l := range s.Links {
					out.Links = append(out.Links, string(l.TraceID)+" "+string(l.SpanID))
				}
				all = append(all, out)
			}
		}
	}
	return all, nil
}

func (s *span) check() error {
	switch {
	case len(s.TraceID) != 32 || len(s.SpanID) != 16 || s.ParentSpanID != "" && len(s.ParentSpanID) != 16:
		return fmt.Errorf("ids %q %q %q", s.TraceID, s.SpanID, s.ParentSpanID)
	case s.Name == "":
		return fmt.Errorf("no name")
	case s.Kind < 1 || s.Kind > 5:
		return fmt.Errorf("kind %d", s.Kind)
	case s.Start == 0 || s.End < s.Start:
		return fmt.Errorf("from %d to %d", s.Start, s.End)
	case s.Status.Code < 0 || s.Status.Code > 2:
		return fmt.Errorf("status %d", s.Status.Code)
	case s.Flags&0x100 == 0:
		return fmt.Errorf("flags %x do not say where the parent was", s.Flags)
	}
	for _, l := range s.Links {
		if len(l.TraceID) != 32 || len(l.SpanID) != 16 {
			return fmt.Errorf("link to %q %q", l.TraceID, l.SpanID)
		}
	}
	return nil
}

// An id is hexadecimal in lower case, and not all zero.
type id string

// UnmarshalJSON reads an id.
func (i *id) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if _, err := hex.DecodeString(s); err != nil || strings.ToLower(s) != s || s != "" && strings.Trim(s, "0") == "" {
		return fmt.Errorf("id %q", s)
	}
	*i = id(s)
	return nil
}

// A unix time is a string of nanoseconds.
type unix uint64

// UnmarshalJSON reads a time.
func (u *unix) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	n, err := strconv.ParseUint(s, 10, 64)
	*u = unix(n)
	return err
}

type attributes map[string]any

// UnmarshalJSON reads a list of pairs, whose keys are unique.
func (a *attributes) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var list []struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	if err := d.Decode(&list); err != nil {
		return err
	}
	*a = make(attributes, len(list))
	for _, kv := range list {
		if _, twice := (*a)[kv.Key]; twice || kv.Key == "" {
			return fmt.Errorf("attribute %q twice, or without a key", kv.Key)
		}
		v, err := value(kv.Value)
		if err != nil {
			return fmt.Errorf("attribute %q: %w", kv.Key, err)
		}
		(*a)[kv.Key] = v
	}
	return nil
}

// value reads an AnyValue: an object with at most one member.
func value(data json.RawMessage) (any, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, fmt.Errorf("value %s is no object", data)
	}
	if len(members) > 1 {
		return nil, fmt.Errorf("value %s has more than one member", data)
	}
	for name, raw := range members {
		switch name {
		case "stringValue":
			return read[string](raw)
		case "boolValue":
			return read[bool](raw)
		case "bytesValue":
			return read[[]byte](raw)
		case "doubleValue":
			if s, err := read[string](raw); err == nil {
				return s, nil
			}
			return read[float64](raw)
		case "intValue":
			s, err := read[string](raw)
			if err != nil {
				return nil, err
			}
			return strconv.ParseInt(s.(string), 10, 64)
		case "arrayValue":
			return array(raw)
		case "kvlistValue":
			var list struct {
				Values attributes `json:"values"`
			}
			err := json.Unmarshal(raw, &list)
			return map[string]any(list.Values), err
		default:
			return nil, fmt.Errorf("value %s is of no kind", data)
		}
	}
	return nil, nil
}

func read[T any](raw json.RawMessage) (any, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}

func array(raw json.RawMessage) (any, error) {
	var list struct {
		Values []json.RawMessage `json:"values"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	out := make([]any, 0, len(list.Values))
	for _, item := range list.Values {
		v, err := value(item)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
