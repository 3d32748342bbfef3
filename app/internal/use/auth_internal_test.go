package use

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/login"
)

func TestStatusText(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	got := statusText([]login.Status{
		{Resource: "https://a.example/mcp", Issuer: "https://as.example", ClientID: "c\x1b[1m", Scopes: []string{"r", "w"}, Expires: now.Add(10 * time.Minute), Refreshable: true, Current: true},
		{Resource: "https://b.example", Issuer: "https://old.example", ClientID: "d", Expires: now.Add(-time.Second), Bound: true},
		{Resource: "https://c.example", Issuer: "https://as.example", ClientID: "e", Current: true},
	}, "the drawer", now)
	want := `https://a.example/mcp
  authorization server: https://as.example
  client:               c\u{1b}[1m
  scopes:               r w
  token:                expires in 10 minutes, and is renewed by itself
https://b.example
  authorization server: https://old.example (not used any more)
  client:               d
  scopes:               none
  token:                has expired, and cannot be renewed: sign in again then; bound to a key
https://c.example
  authorization server: https://as.example
  client:               e
  scopes:               none
  token:                nobody knows how long it lasts
Tokens are kept in the drawer.
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
