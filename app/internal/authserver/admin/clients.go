package admin

import (
	"context"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

var clientVerbs = []*Verb{
	verb("client add", "Add a client; a generated secret or key is shown only once", addClient),
	verb("client secret", "Generate a new secret for a client and show it once; the old one stops working immediately, and grants stay valid", changeSecret),
	reading(verb("client list", "List the clients of the database", listClients)),
	reading(verb("client show", "Show a client", showClient)),
	verb("client disable", "Disable a client and revoke its grants", disableClient),
	verb("client enable", "Enable a disabled client; revoked grants stay revoked", enableClient),
	verb("client remove", "Remove a client with its grants and consents", removeClient),
}

// A RegisteredClient is a client of the database, for operators. It holds no secret.
type RegisteredClient struct {
	ID   string `json:"id"`
	Name string `json:"name,omitzero"`
	// Registered says that the client registered itself.
	Registered   bool      `json:"registered"`
	Disabled     bool      `json:"disabled"`
	RedirectURIs []string  `json:"redirect_uris,omitzero"`
	GrantTypes   []string  `json:"grant_types,omitzero"`
	AuthMethod   string    `json:"token_endpoint_auth_method,omitzero"`
	Created      time.Time `json:"created"`
	// Expires is when a client that registered itself goes, unless it is used.
	Expires time.Time `json:"expires,omitzero"`
	// Resources and Scopes are all that it may have, unless they are empty.
	Resources []string `json:"resources,omitzero"`
	Scopes    []string `json:"scopes,omitzero"`
	Subject   string   `json:"subject,omitzero"`
	// AccessSeconds and RefreshSeconds are at most how long its tokens are good; 0: as long as others.
	AccessSeconds  int64 `json:"access_seconds,omitzero"`
	RefreshSeconds int64 `json:"refresh_seconds,omitzero"`
}

func clientOf(c *issuer.Client) RegisteredClient {
	m := &c.Metadata
	return RegisteredClient{
		ID: c.ID, Name: m.ClientName, Registered: c.Dynamic, Disabled: c.Disabled, RedirectURIs: m.RedirectURIs,
		GrantTypes: m.GrantTypes, AuthMethod: m.TokenEndpointAuthMethod, Created: c.Created, Expires: c.Expires,
		Resources: c.Resources, Scopes: c.Scopes, Subject: c.Subject,
		AccessSeconds: int64(c.AccessLifetime / time.Second), RefreshSeconds: int64(c.RefreshLifetime / time.Second),
	}
}

// A ClientList is a page of clients.
type ClientList struct {
	Clients []RegisteredClient `json:"clients"`
	Next    string             `json:"next,omitzero"`
}

// Text implements Result.
func (l *ClientList) Text() string {
	rows := make([][]string, 0, len(l.Clients))
	for _, c := range l.Clients {
		state := ""
		if c.Disabled {
			state = "disabled"
		}
		rows = append(rows, []string{c.ID, c.Name, "since " + day(c.Created), state})
	}
	return columns(rows) + more(l.Next)
}

func listClients(ctx context.Context, a *Admin, in *page) (*ClientList, error) {
	after, limit, err := in.bounds()
	if err != nil {
		return nil, err
	}
	all, err := a.db.Clients(ctx, after, limit+1, a.opts.Now())
	if err != nil {
		return nil, err
	}
	out := &ClientList{Clients: []RegisteredClient{}}
	all, out.Next = cut(all, limit, func(c *issuer.Client) string { return c.ID })
	for _, c := range all {
		out.Clients = append(out.Clients, clientOf(c))
	}
	return out, nil
}

// A ClientDetail is what is known of a client.
type ClientDetail struct {
	Client RegisteredClient `json:"client"`
}

// Text implements Result.
func (d *ClientDetail) Text() string {
	c := &d.Client
	rows := [][]string{
		{"id", c.ID},
		{"name", c.Name},
		{"registered itself", yesNo(c.Registered)},
		{"may get tokens", yesNo(!c.Disabled)},
		{"redirect URIs", strings.Join(c.RedirectURIs, " ")},
		{"grant types", strings.Join(c.GrantTypes, " ")},
		{"authentication", c.AuthMethod},
		{"since", day(c.Created)},
	}
	if !c.Expires.IsZero() {
		rows = append(rows, []string{"until", day(c.Expires)})
	}
	for _, row := range [][]string{
		{"resources", strings.Join(c.Resources, " ")},
		{"scopes", strings.Join(c.Scopes, " ")},
		{"subject", c.Subject},
		{"access tokens", atMost(c.AccessSeconds)},
		{"refresh tokens", atMost(c.RefreshSeconds)},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return columns(rows)
}

type clientID struct {
	ID string `json:"id" arg:"ID"`
}

func showClient(ctx context.Context, a *Admin, in *clientID) (*ClientDetail, error) {
	c, err := a.db.Client(ctx, in.ID, a.opts.Now())
	if err != nil {
		return nil, noClient(in.ID, err)
	}
	return &ClientDetail{clientOf(c)}, nil
}

// A ClientChange is what was done to a client.
type ClientChange struct {
	Did string `json:"did"`
	ID  string `json:"id"`
}

// Text implements Result.
func (c *ClientChange) Text() string { return columns([][]string{{c.Did + " " + c.ID}}) }

func disableClient(ctx context.Context, a *Admin, in *clientID) (*ClientChange, error) {
	return changedClient("disabled", in.ID, a.db.DisableClient(ctx, in.ID, a.opts.Now()))
}

func enableClient(ctx context.Context, a *Admin, in *clientID) (*ClientChange, error) {
	return changedClient("enabled", in.ID, a.db.EnableClient(ctx, in.ID, a.opts.Now()))
}

func removeClient(ctx context.Context, a *Admin, in *clientID) (*ClientChange, error) {
	return changedClient("removed", in.ID, a.db.DeleteClient(ctx, in.ID, a.opts.Now()))
}

func changedClient(did, id string, err error) (*ClientChange, error) {
	if err != nil {
		return nil, noClient(id, err)
	}
	return &ClientChange{did, id}, nil
}

func noClient(id string, err error) error {
	return absent(err, "client %q not found in the database; run 'parley auth client list' to list clients", id)
}

// atMost is a bound of a lifetime, for people; "" if there is none.
func atMost(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return "at most " + (time.Duration(seconds) * time.Second).String()
}
