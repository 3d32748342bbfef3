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
		{400, `{"error":{"message":"x"}}`, none(400, "status 400 Bad Request")},
		{400, `{"error":""}`, none(400, "status 400 Bad Request")},
		{400, `{"error":"a\nb","error_description":"x"}`, none(400, "status 400 Bad Request")},
		{400, `{"error":"` + strings.Repeat("x", 129) + `"}`, none(400, "status 400 Bad Request")},
		{400, `{"error":"a","error":"b"}`, none(400, "status 400 Bad Request")},
	} {
		if diff := cmp.Diff(c.want, oauth.ParseError(c.status, []byte(c.data))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.data, diff)
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
