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
  token:                expires in 10 minutes, renewed automatically
https://b.example
  authorization server: https://old.example (no longer used)
  client:               d
  scopes:               none
  token:                has expired, not renewable: sign in again after that; bound to a key
https://c.example
  authorization server: https://as.example
  client:               e
  scopes:               none
  token:                expiry unknown
Tokens are stored in the drawer.
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
