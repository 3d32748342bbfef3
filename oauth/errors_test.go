package oauth_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
)

func TestParseError(t *testing.T) {
	t.Parallel()
	none := func(status int, text string) *oauth.Error {
		return &oauth.Error{Status: status, Description: "answer is no OAuth error: " + text}
	}
	for _, c := range []struct {
		status int
		data   string
		want   *oauth.Error
	}{
		{400, `{"error":"invalid_grant"}`, &oauth.Error{Code: oauth.InvalidGrant, Status: 400}},
		{
			401, `{"error":"invalid_client","error_description":"no such client","error_uri":"https://a.example/","x":1}`,
			&oauth.Error{Code: oauth.InvalidClient, Description: "no such client", URI: "https://a.example/", Status: 401},
		},
		{
			400, `{"error":"x","error_description":" a\r\nb\u001b[31m\u202e\u200bc\u0000 ä","error_uri":7}`,
			&oauth.Error{Code: "x", Description: "a  b[31mc ä", Status: 400},
		},
		{
			400, `{"error":"x","error_description":"` + strings.Repeat("ä", 600) + `"}`,
			&oauth.Error{Code: "x", Description: strings.Repeat("ä", 510) + "…", Status: 400},
		},
		{502, `<html>`, none(502, "status 502 Bad Gateway")},
		{500, ``, none(500, "status 500 Internal Server Error")},
		{799, `{}`, none(799, "status 799")},
		{400, `{"error":{"message":"x"}}`, none(400, "status 400 Bad Request: x")},
		{400, `{"error":""}`, none(400, "status 400 Bad Request")},
		{400, `{"error":"a\nb","error_description":"x"}`, none(400, "status 400 Bad Request: x")},
		{400, `{"error":"` + strings.Repeat("x", 129) + `"}`, none(400, "status 400 Bad Request: "+strings.Repeat("x", 129))},
		{400, `{"error":"a","error":"b"}`, none(400, "status 400 Bad Request")},
	} {
		if diff := cmp.Diff(c.want, oauth.ParseError(c.status, []byte(c.data))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.data, diff)
		}
	}
}

// Errors of servers that write them in another way keep their words. Proves: C21, ruling 37.
func TestParseErrorShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		report     string
		status     int
		data       string
		code, text string
	}{
		{"supabase/auth#2829", 400, `{"code":400,"error_code":"refresh_token_not_found","msg":"Invalid Refresh Token: Refresh Token Not Found"}`, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found"},
		{"better-auth/better-auth#9250", 400, `{"message":"[body.grant_type] Invalid option","code":"VALIDATION_ERROR"}`, "VALIDATION_ERROR", "[body.grant_type] Invalid option"},
		{"fedify-dev/hollo#49", 400, `{"error":"Invalid request","zod_error":{"issues":[]}}`, "", "Invalid request"},
		{"anthropics/claude-code#83679", 401, `[{"logref":"59ae","message":"Error : 'Fetch token call failed Bad credentials'"}]`, "", "Fetch token call failed Bad credentials"},
		{"anthropics/claude-code#72673", 403, "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>", "", "Just a moment..."},
		{"upstash/context7#682", 404, "Not found", "", "404 Not Found: Not found"},
		{"redhat-data-and-ai/template-agent#265", 200, `{"ok":false,"error":"invalid_code"}`, "invalid_code", ""},
		{"patvice/ruby_llm-mcp#118", 200, `{"error":"incorrect_client_credentials","error_description":"The client_id passed is incorrect."}`, "incorrect_client_credentials", "The client_id passed is incorrect."},
		{"an object with a code", 404, `{"error":{"code":"not_found","message":"no such route"}}`, "not_found", "no such route"},
		{"FastAPI", 422, `{"detail":[{"loc":["body","code"],"msg":"field required","type":"missing"}]}`, "", "field required"},
		{"doobidoo/mcp-memory-service#358", 405, `{"detail":"Method Not Allowed"}`, "", "Method Not Allowed"},
		{"JSON-RPC", 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}`, "", "Internal error"},
		{"Okta", 400, `{"errorCode":"E0000001","errorSummary":"Api validation failed: redirect_uris","errorCauses":[]}`, "E0000001", "Api validation failed: redirect_uris"},
		{"RFC 9457", 400, `{"type":"about:blank","title":"Bad Request","detail":"the code was used before","status":400}`, "", "the code was used before"},
		{"a list of texts", 400, `{"errors":["first","second"]}`, "", "first"},
		{"a list of objects", 400, `{"errors":[{"extensions":{}},{"title":"second"}]}`, "", "second"},
		{"deep", 400, strings.Repeat(`{"error":`, 12) + `"x"` + strings.Repeat(`}`, 12), "x", ""},
		{"a page without a title", 502, "<html><body>secret stack</body></html>", "", "502 Bad Gateway"},
		{"control characters", 500, "a\u001b[31mb\nc", "", "a[31mb c"},
		{"long", 500, strings.Repeat("long ", 1000), "", "…"},
		{"a token where there should be an error", 200, `{"message":"secret","code":"secret"}`, "", "200 OK"},
		{"a form with a token", 200, `access_token=secret&token_type=bearer`, "", "200 OK"},
	} {
		got := oauth.ParseError(c.status, []byte(c.data))
		if got.Code != c.code || !strings.Contains(got.Description, c.text) || got.Status != c.status {
			t.Errorf("%s: got %+v, want code %q and %q", c.report, got, c.code, c.text)
		}
		if text := got.Error(); strings.Contains(text, "secret") || len(text) > 1200 || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%s: the error is %q", c.report, text)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("refresh: %w", &oauth.Error{Code: oauth.InvalidGrant, Description: "expired", Status: 400})
	if !errors.Is(err, &oauth.Error{Code: oauth.InvalidGrant}) || errors.Is(err, &oauth.Error{Code: oauth.InvalidClient}) {
		t.Error("errors are not compared by code")
	}
	for want, e := range map[string]*oauth.Error{
		"a: b": {Code: "a", Description: "b"}, "a": {Code: "a"}, "b": {Description: "b"}, "unknown OAuth error": {},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
