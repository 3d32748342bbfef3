package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

var givenVerbs = []*Verb{
	reading(verb("session list", "List the browsers in which users are signed in", listSessions)),
	verb("session revoke", "Sign out a browser, or a user from all browsers; grants stay valid", revokeSessions),
	reading(verb("grant list", "List the grants of clients, and their users", listGrants)),
	verb("grant revoke", "Revoke grants with their codes and tokens", revokeGrants),
	reading(verb("consent list", "List the consents that users gave", listConsents)),
	verb("consent revoke", "Remove consents, so that users are asked again; grants stay valid", revokeConsents),
}

// A chosen are the parameters that say whose grants or consents are meant.
type chosen struct {
	User     string `json:"user" help:"those of the user \x60NAME\x60, or of a person with this subject"`
	Client   string `json:"client" help:"those of the client \x60ID\x60"`
	Resource string `json:"resource" help:"those for the resource \x60URI\x60"`
}

// filter finds the subject of a name.
func (c *chosen) filter(ctx context.Context, a *Admin) (records.Filter, error) {
	f := records.Filter{Client: c.Client}
	var err error
	if f.Subject, err = a.subject(ctx, c.User); err != nil {
		return f, err
	}
	if c.Resource != "" {
		if f.Resource, err = oauth.CanonicalResource(c.Resource); err != nil {
			return f, errorf(Invalid, "resource %q: %w", c.Resource, err)
		}
	}
	return f, storable(c.User, c.Client, c.Resource)
}

// storable refuses what no database can look for.
func storable(texts ...string) error {
	for _, text := range texts {
		if strings.ContainsRune(text, 0) {
			return errorf(Invalid, "it contains a character that cannot be stored")
		}
	}
	return nil
}

// subject returns the subject of a user, or the text itself: people of another provider, and
// users who were removed, have no name here.
func (a *Admin) subject(ctx context.Context, user string) (string, error) {
	if user == "" {
		return "", nil
	}
	u, err := a.db.FindUser(ctx, user)
	switch {
	case errors.Is(err, issuer.ErrNotFound):
		return user, nil
	case err != nil:
		return "", err
	}
	return u.Subject, nil
}

// A Revoked is how many were revoked.
type Revoked struct {
	Revoked int `json:"revoked"`
}

// Text implements Result.
func (r *Revoked) Text() string { return fmt.Sprintf("revoked: %d\n", r.Revoked) }

// A Session is a browser at which a user is signed in, for operators.
type Session struct {
	ID      string    `json:"id"`
	User    string    `json:"user,omitzero"`
	Subject string    `json:"subject"`
	Remote  string    `json:"remote,omitzero"`
	Agent   string    `json:"agent,omitzero"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used"`
	Expires time.Time `json:"expires"`
}

// A SessionList is a page of sessions.
type SessionList struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"next,omitzero"`
}

// Text implements Result.
func (l *SessionList) Text() string {
	rows := make([][]string, 0, len(l.Sessions))
	for _, s := range l.Sessions {
		rows = append(rows, []string{s.ID, cmp.Or(s.User, s.Subject), "used " + minute(s.Used), "from " + s.Remote, s.Agent})
	}
	return columns(rows) + more(l.Next)
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

type sessionPage struct {
	User string `json:"user" help:"those of the user \x60NAME\x60, or of a person with this subject"`
	page
}

func listSessions(ctx context.Context, a *Admin, in *sessionPage) (*SessionList, error) {
	after, limit, err := in.bounds()
	if err != nil {
		return nil, err
	}
	f, err := (&chosen{User: in.User}).filter(ctx, a)
	if err != nil {
		return nil, err
	}
	all, err := a.db.Sessions(ctx, f.Subject, after, limit+1, a.opts.Now())
	if err != nil {
		return nil, err
	}
	out := &SessionList{Sessions: []Session{}}
	all, out.Next = cut(all, limit, func(s *records.NamedSession) string { return s.ID })
	for _, s := range all {
		out.Sessions = append(out.Sessions, Session{s.ID, s.Name, s.Person.Subject, s.Remote, s.Agent, s.Created, s.Used, s.Expires})
	}
	return out, nil
}

type sessionChoice struct {
	ID   string `json:"id" help:"the session \x60ID\x60"`
	User string `json:"user" help:"all of the user \x60NAME\x60, or of a person with this subject"`
}

func revokeSessions(ctx context.Context, a *Admin, in *sessionChoice) (*Revoked, error) {
	if (in.ID == "") == (in.User == "") {
		return nil, errorf(Invalid, "missing id or user: the sessions to revoke")
	}
	if err := storable(in.ID, in.User); err != nil {
		return nil, err
	}
	now := a.opts.Now()
	if in.ID != "" {
		if _, err := a.db.Session(ctx, in.ID, now); err != nil {
			return nil, absent(err, "session %q not found", in.ID)
		}
		return &Revoked{Revoked: 1}, a.db.RemoveSession(ctx, in.ID)
	}
	subject, err := a.subject(ctx, in.User)
	if err != nil {
		return nil, err
	}
	n, err := a.db.RemoveSessions(ctx, subject, "", now)
	return a.revoked(ctx, in.User, n, err)
}

// revoked is the result of a verb that revoked n of a user, if user is not empty. A name that nobody
// has, and of which there was nothing, is a mistake: somebody goes on who was meant to be stopped.
func (a *Admin) revoked(ctx context.Context, user string, n int, err error) (*Revoked, error) {
	if err == nil && n == 0 && user != "" {
		if _, err = a.db.FindUser(ctx, user); err != nil {
			return nil, absent(err, "user %q not found, and no records of a subject with this name; run 'parley auth user list' to list users", user)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Revoked{Revoked: n}, nil
}

// A Grant is what a client may do, for operators.
type Grant struct {
	ID       string    `json:"id"`
	User     string    `json:"user,omitzero"`
	Subject  string    `json:"subject,omitzero"`
	Client   string    `json:"client"`
	Resource string    `json:"resource"`
	Scopes   []string  `json:"scopes"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
}

// A GrantList is a page of grants.
type GrantList struct {
	Grants []Grant `json:"grants"`
	Next   string  `json:"next,omitzero"`
}

// Text implements Result.
func (l *GrantList) Text() string {
	rows := make([][]string, 0, len(l.Grants))
	for _, g := range l.Grants {
		rows = append(rows, []string{
			g.ID, cmp.Or(g.User, g.Subject, "itself"), g.Client, g.Resource, oauth.JoinScope(g.Scopes), "until " + day(g.Expires),
		})
	}
	return columns(rows) + more(l.Next)
}

type chosenPage struct {
	chosen
	page
}

// entries returns which entries a page is of, what it begins after, and its size.
func (c *chosenPage) entries(ctx context.Context, a *Admin) (f records.Filter, after string, limit int, err error) {
	if after, limit, err = c.bounds(); err == nil {
		f, err = c.filter(ctx, a)
	}
	return f, after, limit, err
}

func listGrants(ctx context.Context, a *Admin, in *chosenPage) (*GrantList, error) {
	f, after, limit, err := in.entries(ctx, a)
	if err != nil {
		return nil, err
	}
	all, err := a.db.Grants(ctx, f, after, limit+1, a.opts.Now())
	if err != nil {
		return nil, err
	}
	out := &GrantList{Grants: []Grant{}}
	all, out.Next = cut(all, limit, func(g *records.NamedGrant) string { return g.ID })
	for _, g := range all {
		out.Grants = append(out.Grants, Grant{g.ID, g.Name, g.Subject, g.ClientID, g.Resource, g.Scopes, g.Created, g.Expires})
	}
	return out, nil
}

type grantChoice struct {
	ID string `json:"id" help:"the grant \x60ID\x60"`
	chosen
}

func revokeGrants(ctx context.Context, a *Admin, in *grantChoice) (*Revoked, error) {
	which := in.chosen
	now := a.opts.Now()
	switch {
	case in.ID != "" && which != (chosen{}), in.ID == "" && which == (chosen{}):
		return nil, errorf(Invalid, "missing id, or one or more of user, client and resource: the grants to revoke")
	case in.ID != "":
		if err := storable(in.ID); err != nil {
			return nil, err
		}
		_, err := a.db.Grant(ctx, in.ID, now)
		if errors.Is(err, issuer.ErrRevoked) {
			return &Revoked{}, nil
		}
		if err != nil {
			return nil, absent(err, "grant %q not found", in.ID)
		}
		return &Revoked{Revoked: 1}, a.db.RevokeGrant(ctx, in.ID, now)
	}
	f, err := which.filter(ctx, a)
	if err != nil {
		return nil, err
	}
	n, err := a.db.RevokeMatching(ctx, f, now)
	return a.revoked(ctx, which.User, n, err)
}

// A Consent is what a user agreed to, for operators.
type Consent struct {
	User     string    `json:"user,omitzero"`
	Subject  string    `json:"subject"`
	Client   string    `json:"client"`
	Resource string    `json:"resource"`
	Scopes   []string  `json:"scopes"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
}

// A ConsentList is a page of consents.
type ConsentList struct {
	Consents []Consent `json:"consents"`
	Next     string    `json:"next,omitzero"`
}

// Text implements Result.
func (l *ConsentList) Text() string {
	rows := make([][]string, 0, len(l.Consents))
	for _, c := range l.Consents {
		rows = append(rows, []string{
			cmp.Or(c.User, c.Subject), c.Client, c.Resource, oauth.JoinScope(c.Scopes), "until " + day(c.Expires),
		})
	}
	return columns(rows) + more(l.Next)
}

func listConsents(ctx context.Context, a *Admin, in *chosenPage) (*ConsentList, error) {
	f, after, limit, err := in.entries(ctx, a)
	if err != nil {
		return nil, err
	}
	all, err := a.db.Consents(ctx, f, after, limit+1, a.opts.Now())
	if err != nil {
		return nil, err
	}
	out := &ConsentList{Consents: []Consent{}}
	all, out.Next = cut(all, limit, func(c *records.NamedConsent) string { return c.Key })
	for _, c := range all {
		out.Consents = append(out.Consents, Consent{c.Name, c.Subject, c.ClientID, c.Resource, c.Scopes, c.Created, c.Expires})
	}
	return out, nil
}

func revokeConsents(ctx context.Context, a *Admin, in *chosen) (*Revoked, error) {
	if *in == (chosen{}) {
		return nil, errorf(Invalid, "missing one or more of user, client and resource: the consents to revoke")
	}
	f, err := in.filter(ctx, a)
	if err != nil {
		return nil, err
	}
	n, err := a.db.RemoveMatching(ctx, f, a.opts.Now())
	return a.revoked(ctx, in.User, n, err)
}
