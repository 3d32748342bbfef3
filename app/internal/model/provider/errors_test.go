package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/model/provider"
)

// Each status is told in plain words, with what the provider said.
func TestStatus(t *testing.T) {
	const said = `{"error":{"message":"Because.","type":"a_type","code":"x"}}`
	for status, want := range map[int]string{
		204: "acme refuses the request (status 204): Because.",
		302: "acme answers with a redirect (status 302), which is not followed: Because; is the base URL right?",
		400: "acme refuses the request (status 400): Because.",
		401: "acme refuses the key: Because; 'parley model key set acme' sets another one",
		402: "acme wants to be paid first: Because; look at your account there",
		403: "acme refuses the key: Because; 'parley model key set acme' sets another one",
		404: "acme does not know the model or the address https://models.example/v1: Because; 'parley model list acme' lists what there is",
		413: "acme finds the conversation too long: Because; /compact makes it shorter",
		422: "acme refuses the request (status 422): Because.",
		429: "acme has had too many requests: Because; try again later",
		500: "acme failed (status 500): Because; try again later",
		501: "acme failed (status 501): Because; try again later",
		503: "acme is overloaded: Because; try again later",
		529: "acme is overloaded: Because; try again later",
	} {
		e, at := endpoint(reply{status: status, kind: json, body: said})
		e.MaxTries = 1
		_, err := read(t.Context(), e)
		mustFail(t, err, want)
		fault := new(provider.Error)
		if !errors.As(err, &fault) || fault.Status != status || fault.Type != "a_type" {
			t.Errorf("status %d: %+v", status, fault)
		}
		if at.closed != 1 {
			t.Errorf("status %d: the body was closed %d times", status, at.closed)
		}
	}
}

func TestRetryAfterIsTold(t *testing.T) {
	for after, want := range map[string]string{
		"3600":   "acme has had too many requests; try again in 1h0m0s",
		"1e300":  "acme has had too many requests; try again in 24h0m0s",
		"99999s": "acme has had too many requests; try again later",
		"-5":     "acme has had too many requests; try again later",
	} {
		e, _ := endpoint(reply{status: 429, header: map[string]string{"Retry-After": after}})
		e.MaxTries = 1
		_, err := read(t.Context(), e)
		mustFail(t, err, want)
	}
}

func TestFault(t *testing.T) {
	long := strings.Repeat("ž", 400)
	for _, test := range []struct{ in, text, kind string }{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, "Overloaded", "overloaded_error"},
		{`{"error":{"message":"No.","type":null,"param":null,"code":"model_not_found"}}`, "No.", "model_not_found"},
		{`[{"error":{"code":400,"message":"Bad key.","status":"INVALID_ARGUMENT","details":[{"@type":"t"}]}}]`, "Bad key.", "INVALID_ARGUMENT"},
		{`{"error":"model not found"}`, "model not found", ""},
		{`{"error":{"reason":"x"}}`, `{"reason":"x"}`, ""},
		{`{"error":{"message":"No.","details":"none","code":7}}`, "No.", "7"},
		{`{"message":"Not here."}`, "Not here.", ""},
		{`{"detail":"Not Found"}`, "Not Found", ""},
		{`{"error":null}`, "", ""},
		{`{}`, "", ""},
		{``, "", ""},
		{`[]`, "[]", ""},
		{`upstream  timed out` + "\n", "upstream  timed out", ""},
		{`<!doctype html><script>alert(1)</script>`, "", ""},
		{`<?xml version="1.0"?><a/>`, "", ""},
		{`{"error":{"message":"a\u001b[2Jb\nc\u202ed"}}`, `a\u{1b}[2Jb\u{a}c\u{202e}d`, ""},
		{`{"error":{"message":"Incorrect API key provided: ` + testKey + `.","type":"` + testKey + `"}}`, "Incorrect API key provided: [key].", "[key]"},
		{`not json with ` + testKey, "not json with [key]", ""},
		{long, long[:500] + "…", ""},
	} {
		e, _ := endpoint(reply{})
		fault := e.Fault([]byte(test.in))
		if fault.Text != test.text || fault.Type != test.kind {
			t.Errorf("%.80s:\ntext %q, type %q\nwant %q, type %q", test.in, fault.Text, fault.Type, test.text, test.kind)
		}
	}
	e, _ := endpoint(reply{})
	if after := e.Fault([]byte(`{"error":{"details":[{"retryDelay":"3.5s"}]}}`)).RetryAfter; after != 3500*time.Millisecond {
		t.Errorf("retryDelay is %v", after)
	}
}

func TestNotAStream(t *testing.T) {
	for _, test := range []struct {
		reply reply
		want  string
	}{
		{reply{kind: "text/html; charset=utf-8", body: "<html>"}, "acme answers with text/html where a stream of events was asked for; is the base URL right?"},
		{reply{body: "x"}, "acme answers with something without a type where a stream of events was asked for; is the base URL right?"},
		{reply{kind: json, body: `{"error":{"message":"Out of memory"}}`}, "acme answers with an error: Out of memory"},
		{reply{kind: json, body: `{"ok":true}`}, "acme answers with application/json where a stream of events was asked for; is the base URL right?"},
		{reply{kind: "a\x1b[2Jb", body: ""}, "acme answers with something without a type where a stream of events was asked for; is the base URL right?"},
	} {
		e, at := endpoint(test.reply)
		_, err := read(t.Context(), e)
		mustFail(t, err, test.want)
		if at.closed != 1 {
			t.Errorf("the body was closed %d times", at.closed)
		}
	}
}

func TestUnreachable(t *testing.T) {
	refused := errors.New("dial tcp 127.0.0.1:1: connection refused")
	e, _ := endpoint(reply{err: fmt.Errorf("with %s: %w", testKey, refused)})
	e.MaxTries = 1
	_, err := read(t.Context(), e)
	mustFail(t, err, "acme cannot be reached at https://models.example/v1: with [key]: dial tcp 127.0.0.1:1: connection refused; is it running, and is the base URL right?")
	if !errors.Is(err, refused) {
		t.Error("the cause is lost")
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		if of := new(url.Error); errors.As(cause, &of) {
			t.Error("the address of the request is in a cause")
		}
	}
	e.URL = "https://models.example:port"
	mustFail(t, e.JSON(t.Context(), http.MethodGet, "", nil, nil), `acme cannot be asked: parse "https://models.example:port": invalid port ":port" after host`)
}
