package streamable

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/transport"
)

// Ruling 14.
func TestAccepts(t *testing.T) {
	for _, test := range []struct {
		accept []string
		want   bool
	}{
		{nil, true},
		{[]string{""}, true},
		{[]string{"application/json, text/event-stream"}, true},
		{[]string{"text/event-stream;q=0.5,application/json"}, true},
		{[]string{"application/json", "text/event-stream"}, true},
		{[]string{"APPLICATION/JSON,Text/Event-Stream"}, true},
		{[]string{"*/*"}, true},
		{[]string{"application/*, text/*"}, true},
		{[]string{"text/html, */*;q=0.1"}, true},
		{[]string{"application/json"}, false},
		{[]string{"text/event-stream"}, false},
		{[]string{"text/html"}, false},
		{[]string{"*/json, text/event-stream"}, false},
		{[]string{"application/json;q=0, text/event-stream"}, false},
		{[]string{"application/json, text/event-stream; q=0.000"}, false},
		{[]string{"*/*, text/event-stream;q=0"}, false},
		{[]string{"text/event-stream;q=0, */*"}, false},
		{[]string{"*/*;q=0, application/json, text/event-stream"}, true},
		{[]string{"application/json;charset=utf-8;q=1, text/event-stream ; q=1.0"}, true},
	} {
		if json, events := acceptedForms(test.accept); (json && events) != test.want {
			t.Errorf("acceptedForms(%q) is %v, %v", test.accept, json, events)
		}
	}
}

func TestContentHeaders(t *testing.T) {
	for value, want := range map[string]bool{
		"application/json": true, "application/json;charset=utf-8": true, `application/json; charset="UTF-8"; x=y`: true, "Application/JSON": true,
		"": false, "application/json; charset=utf-16": false, "text/json": false, "application/json;": true, "application/json, text/plain": false,
	} {
		if got := isJSON([]string{value}); got != want {
			t.Errorf("isJSON(%q) is %v", value, got)
		}
	}
	if isJSON([]string{"application/json", "application/json"}) {
		t.Error("two content types are taken")
	}
	for value, want := range map[string]bool{"": true, "identity": true, "Identity, identity": true, "gzip": false, "identity, br": false} {
		if got := isIdentity([]string{value}); got != want {
			t.Errorf("isIdentity(%q) is %v", value, got)
		}
	}
}

// Proves: SEC-HTTP-1: what the headers say reaches the core, decoded; what
// cannot be read is named.
func TestRouteOf(t *testing.T) {
	for _, test := range []struct {
		name    string
		header  http.Header
		want    transport.Route
		invalid string // part of Invalid
	}{
		{"none", http.Header{}, transport.Route{}, ""},
		{
			"plain",
			http.Header{"Mcp-Protocol-Version": {"v"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"add"}},
			transport.Route{Version: "v", Method: "tools/call", Name: "add"},
			"",
		},
		{
			"encoded",
			http.Header{"Mcp-Method": {"=?base64?eA==?="}, "Mcp-Name": {"=?base64?5LiW?="}},
			transport.Route{Method: "=?base64?eA==?=", Name: "世"},
			"",
		},
		{
			"fields",
			http.Header{"Mcp-Param-Region": {"us"}, "Mcp-Param-Two-Words": {"=?base64?IHg=?="}, "Mcp-Param-": {"none"}, "mcp-param-low": {""}},
			transport.Route{Fields: map[string][]string{"region": {"us"}, "two-words": {" x"}, "low": {""}}},
			"",
		},
		{"doubled", http.Header{"Mcp-Method": {"a", "a"}}, transport.Route{}, "Mcp-Method"},
		{"bad base64", http.Header{"Mcp-Name": {"=?base64?x?="}}, transport.Route{}, "Mcp-Name"},
		{"bad character", http.Header{"Mcp-Protocol-Version": {"ä"}}, transport.Route{}, "Mcp-Protocol-Version"},
		{"bad field", http.Header{"Mcp-Param-A": {"=?base64?x?="}}, transport.Route{Fields: map[string][]string{"a": {""}}}, "Mcp-Param-A"},
		{"doubled field", http.Header{"Mcp-Param-A": {"1", "2"}}, transport.Route{Fields: map[string][]string{"a": {""}}}, "Mcp-Param-A"},
	} {
		var got transport.Route
		readRoute(&got, test.header)
		if !got.Carried || (test.invalid == "") != (got.Invalid == "") || !strings.Contains(got.Invalid, test.invalid) {
			t.Errorf("%s: carried %v, invalid %q", test.name, got.Carried, got.Invalid)
		}
		got.Carried, got.Invalid = false, ""
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// readRoute is what a header says of a message.
func readRoute(route *transport.Route, header http.Header) {
	var hd head
	hd.read(header)
	hd.route(route, header)
}

func eventID(number, seq uint64) string {
	return string((&eventLog{number: number}).appendID(nil, seq))
}

func TestEventID(t *testing.T) {
	if number, seq, ok := parseEventID(eventID(12, 345)); !ok || number != 12 || seq != 345 {
		t.Errorf("%s became %d, %d, %v", eventID(12, 345), number, seq, ok)
	}
	for _, bad := range []string{"", "-", "1", "1-", "-1", "0-1", "01-1", "1-01", "+1-1", "1--1", "1-1-1", "1-x", " 1-1", "18446744073709551616-1"} {
		if _, _, ok := parseEventID(bad); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzEventID(f *testing.F) {
	for _, seed := range []string{"1-0", "12-345", "0-0", "18446744073709551615-18446744073709551615", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		number, seq, ok := parseEventID(s)
		if ok && eventID(number, seq) != s {
			t.Errorf("%q has the same meaning as %q", s, eventID(number, seq))
		}
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("application/json, text/event-stream", "a", "=?base64?eA==?=", "Region")
	f.Add("*/*;q=0.1;;,", "", "\x80", "")
	f.Fuzz(func(t *testing.T, accept, method, name, param string) {
		acceptedForms([]string{accept})
		isJSON([]string{accept})
		isIdentity([]string{accept})
		var route transport.Route
		readRoute(&route, http.Header{"Mcp-Method": {method}, "Mcp-Name": {name}, "Mcp-Param-" + param: {name}})
		if route.Invalid == "" && !plain(route.Method) {
			t.Errorf("method %q is taken", route.Method)
		}
		for field := range route.Fields {
			if field != strings.ToLower(param) {
				t.Errorf("field %q of parameter %q", field, param)
			}
		}
	})
}
