package web_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport/web"
)

// Proves: Ruling 9, Ruling 26.
func TestRefuse(t *testing.T) {
	limited := jsonrpc.NewError(-31001, "too many requests").With(map[string]int{"retryAfterMs": 1001})
	tests := []struct {
		name   string
		e      *jsonrpc.Error
		nullID bool
		body   string
		retry  []string
	}{
		{
			name: "without id", e: jsonrpc.NewError(-32600, `no "x"`),
			body: `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no \"x\""}}`,
		},
		{
			name: "null id", e: jsonrpc.NewError(-32700, "x"), nullID: true,
			body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
		},
		{
			name: "retry", e: limited, retry: []string{"2"},
			body: `{"jsonrpc":"2.0","error":{"code":-31001,"message":"too many requests","data":{"retryAfterMs":1001}}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			web.Refuse(w, http.StatusTooManyRequests, test.e, test.nullID)
			if w.Code != http.StatusTooManyRequests {
				t.Errorf("status %d, want 429", w.Code)
			}
			if diff := cmp.Diff(test.body, w.Body.String()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			want := http.Header{
				"Content-Type":   {"application/json"},
				"Content-Length": {strconv.Itoa(len(test.body))},
				"Cache-Control":  {"no-store"},
			}
			if test.retry != nil {
				want["Retry-After"] = test.retry
			}
			if diff := cmp.Diff(want, w.Header()); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves: Ruling 26.
func TestRetryAfter(t *testing.T) {
	tests := []struct {
		data    string
		seconds int
		ok      bool
	}{
		{data: ``},
		{data: `{}`},
		{data: `[]`},
		{data: `7`},
		{data: `{"retryAfterMs":"7"}`},
		{data: `{"retryAfterMs":1.5}`},
		{data: `{"retryAfterMs":-1}`},
		{data: `{"retryAfterMs":1}{`},
		{data: `{"retryAfterMs":0}`, seconds: 0, ok: true},
		{data: `{"retryAfterMs":1}`, seconds: 1, ok: true},
		{data: `{"retryAfterMs":1000}`, seconds: 1, ok: true},
		{data: `{"more":{},"retryAfterMs":1001}`, seconds: 2, ok: true},
		{data: `{"retryAfterMs":9223372036854775807}`, seconds: 1<<31 - 1, ok: true},
		{data: `{"retryAfterMs":9223372036854775808}`},
	}
	for _, test := range tests {
		seconds, ok := web.RetryAfter(&jsonrpc.Error{Data: jsonrpc.RawValue(test.data)})
		if seconds != test.seconds || ok != test.ok {
			t.Errorf("%s: %d, %v, want %d, %v", test.data, seconds, ok, test.seconds, test.ok)
		}
	}
}
