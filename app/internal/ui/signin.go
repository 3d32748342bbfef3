package ui

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// signIn words what the person would sign in for.
func (p *Wording) signIn(q *host.Question) {
	p.Title = fmt.Sprintf("Server %s wants you to sign in.", name(q.Server))
	in := q.SignIn
	if in == nil {
		return
	}
	if in.More {
		p.Title = fmt.Sprintf("Server %s wants more scopes for this than you have given.", name(q.Server))
	}
	if at, err := url.Parse(in.Issuer); err == nil && at.Host != "" {
		p.fact("you would sign in at", host.EscapeLine(at.Host))
	}
	p.fact("address", host.EscapeLine(in.Resource))
	p.fact("authorization server", host.EscapeLine(in.Issuer))
	p.fact("scopes", cmp.Or(host.EscapeLine(strings.Join(in.Scopes, " ")), "left to the authorization server"))
	if in.Previous != "" {
		p.warn("the authorization server was another one before: " + claim(in.Previous))
	}
}
