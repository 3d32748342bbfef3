package connect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// entryClient makes the HTTP client for an entry: one that puts its tokens on requests.
func (in *SignIns) entryClient(ctx context.Context, entry *config.Server) (*http.Client, error) {
	s, err := in.Entry(ctx, entry)
	if err != nil {
		return nil, err
	}
	made := s.HTTPClient(in.plain())
	made.Transport = &entryTransport{wrapper: wrapper{made.Transport}, entry: entry.Name, address: entry.Address()}
	return made, nil
}

// An entryTransport adds the name of the entry to why there is no token.
type entryTransport struct {
	wrapper
	entry, address string
}

// RoundTrip implements http.RoundTripper.
func (t *entryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if errors.As(err, new(*login.Error)) {
		err = &accessError{t.address, t.entry, err}
	}
	return resp, err
}

// A wrapper is the part of a transport that wraps another one.
type wrapper struct{ next http.RoundTripper }

// CloseIdleConnections closes the idle connections of the wrapped transport.
func (w wrapper) CloseIdleConnections() {
	(&http.Client{Transport: w.next}).CloseIdleConnections()
}

// Entry returns the tokens for an entry: with what it says about signing in, and with a part
// of the store of its own if it names a client, so that the tokens of two clients for one
// server are not mixed.
func (in *SignIns) Entry(ctx context.Context, entry *config.Server) (*Tokens, error) {
	o := entry.OAuth
	base := in.Base(ctx)
	if o == nil {
		return base, nil
	}
	if s := in.entries[entry.Name]; s != nil {
		return s, nil
	}
	issuer, err := checkOAuth(o)
	if err != nil {
		return nil, err
	}
	s := &Tokens{Kind: base.Kind, Err: base.Err, Store: base.Store, options: base.options}
	if o.ClientID != "" || issuer != "" {
		s.Store = scopedStore{base.Store, storeScope(o.ClientID, issuer)}
	}
	in.adjust(ctx, s, entry, issuer)
	if in.entries == nil {
		in.entries = make(map[string]*Tokens)
	}
	in.entries[entry.Name] = s
	return s, nil
}

// adjust makes the login client of an entry. The issuer is that of its metadata URL, or "".
func (in *SignIns) adjust(ctx context.Context, s *Tokens, entry *config.Server, issuer string) {
	o := entry.OAuth
	flags := LoginOptions{}
	if in.Login != nil {
		flags = *in.Login
	}
	flags.Port = cmp.Or(flags.Port, o.CallbackPort)
	if o.CallbackPort != 0 && entry.Source.Client == config.ClientClaudeCode {
		flags.Host = "localhost" // so its users register it
	}
	s.options.Store = s.Store
	s.options.Scopes = oauth.UnionScopes(s.options.Scopes, o.Scopes)
	s.options.Authorizer = in.authorizer(&flags)
	if issuer != "" && flags.Issuer == "" {
		s.options.ChooseServer = chooseOf(issuer)
	}
	// The client is for one issuer: the one that it was used at, or that the person is shown
	// before anything is sent there.
	var used atomic.Pointer[string]
	if issuer != "" {
		used.Store(&issuer)
	}
	if o.ClientID != "" {
		s.options.Credentials, s.options.NoRegistration = nil, true
		s.options.CredentialsFor = func(at string) *login.Credentials {
			if only := used.Load(); only != nil && !sameIssuer(*only, at) {
				return nil
			}
			return entryCredentials(o, &flags)
		}
	}
	s.options.Confirm = func(ctx context.Context, q login.Prompt) error {
		if only := used.Load(); only != nil && !sameIssuer(*only, q.Issuer) {
			return fmt.Errorf("the entry %s uses the authorization server %s, but the server names %s; correct the entry, or run 'parley logout %s' first",
				entry.Source, host.EscapeLine(*only), host.EscapeLine(q.Issuer), kit.SafeWord(entry.Name))
		}
		if err := in.confirm(ctx, q); err != nil {
			return err
		}
		used.CompareAndSwap(nil, &q.Issuer)
		return nil
	}
	s.Client = login.New(&s.options)
	if u, err := ServerURL(entry.URL); err == nil && s.Err == nil && o.ClientID != "" {
		if at, err := s.At(ctx, u); err == nil && at != nil {
			used.CompareAndSwap(nil, &at.Issuer)
		}
	}
}

// entryCredentials are those of the client that an entry names.
func entryCredentials(o *config.OAuth, flags *LoginOptions) *login.Credentials {
	c := &login.Credentials{ClientID: o.ClientID, Secret: o.ClientSecret}
	if flags.Port != 0 {
		c.RedirectURIs = []string{fmt.Sprintf("http://%s:%d/callback", cmp.Or(flags.Host, "127.0.0.1"), flags.Port)}
	}
	return c
}

// sameIssuer compares issuers as the person may write them: without the last slash.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// chooseOf takes the authorization server that an entry names.
func chooseOf(issuer string) func(context.Context, []string) (string, error) {
	return func(_ context.Context, offered []string) (string, error) {
		i := slices.IndexFunc(offered, func(o string) bool { return sameIssuer(o, issuer) })
		if i < 0 {
			return "", fmt.Errorf("the server does not use %s, the issuer of the entry's metadataUrl; it names %s", issuer, host.EscapeLine(strings.Join(offered, " and ")))
		}
		return offered[i], nil
	}
}

// checkOAuth says what is wrong with the settings of an entry, and returns the issuer that
// they name, or "".
func checkOAuth(o *config.OAuth) (issuer string, err error) {
	if o.ClientSecret != "" && o.ClientID == "" {
		return "", errors.New("oauth: clientSecret requires clientId; add it, or remove the secret")
	}
	for _, scope := range o.Scopes {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 || list[0] != scope {
			return "", fmt.Errorf("oauth: invalid scope %q; write each scope as a separate string, without spaces or quotes", scope)
		}
	}
	if o.MetadataURL == "" {
		return "", nil
	}
	return issuerOf(o.MetadataURL)
}

// checkSignIns notes at entries that their settings for signing in cannot be used.
func checkSignIns(cfg *config.Config) {
	for _, s := range cfg.Servers {
		if s.OAuth == nil || s.NoOAuth || s.Transport == config.TransportStdio {
			continue
		}
		if e, err := s.Expand(nil); err == nil {
			_, s.Err = checkOAuth(e.OAuth)
		}
	}
}

// Paths of the metadata of authorization servers (RFC 8414, section 3; OpenID Connect
// Discovery, section 4).
const (
	oauthMetadata  = "/.well-known/oauth-authorization-server"
	openIDMetadata = "/.well-known/openid-configuration"
)

// issuerOf is the issuer whose metadata is at a URL.
func issuerOf(metadata string) (string, error) {
	u, err := oauth.CheckEndpoint(metadata)
	if err != nil {
		return "", fmt.Errorf("oauth: metadataUrl: %w", err)
	}
	base := &url.URL{Scheme: u.Scheme, Host: u.Host}
	for _, known := range []string{oauthMetadata, openIDMetadata} {
		before, after, found := strings.Cut(u.Path, known)
		if found && u.RawQuery == "" && (before == "" || after == "") && (after == "" || after[0] == '/') {
			base.Path = before + after
			return base.String(), nil
		}
	}
	return "", fmt.Errorf("oauth: metadataUrl %s: must be the URL of an authorization server's metadata (%s, %s); correct it, or remove it, since the MCP server names its authorization server",
		Shown(metadata), oauthMetadata, openIDMetadata)
}

// scopePrefix begins the names of what a part of the store holds.
const scopePrefix = "entry."

// storeScope names the part of the store for a client.
func storeScope(clientID, issuer string) string {
	const digits = 32
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(clientID), clientID, issuer))
	return scopePrefix + hex.EncodeToString(sum[:])[:digits] + "."
}

// A scopedStore is a part of a store: what has a prefix.
type scopedStore struct {
	login.Store
	prefix string
}

func (s scopedStore) Get(ctx context.Context, name string) ([]byte, error) {
	return s.Store.Get(ctx, s.prefix+name)
}

func (s scopedStore) Set(ctx context.Context, name string, value []byte) error {
	return s.Store.Set(ctx, s.prefix+name, value)
}

func (s scopedStore) Delete(ctx context.Context, name string) error {
	return s.Store.Delete(ctx, s.prefix+name)
}

func (s scopedStore) Names(ctx context.Context) ([]string, error) {
	all, err := s.Store.Names(ctx)
	var own []string
	for _, name := range all {
		if rest, ok := strings.CutPrefix(name, s.prefix); ok {
			own = append(own, rest)
		}
	}
	return own, err
}

func (s scopedStore) Lock(ctx context.Context, name string) (func(), error) {
	return s.Store.Lock(ctx, s.prefix+name)
}

// All returns the tokens of all parts of the store. Those of entries can only be read and given up; clients
// returns the entries that name the clients that they were issued to.
func (in *SignIns) All(ctx context.Context, clients func(context.Context) []*config.Server) ([]*Tokens, error) {
	base := in.Base(ctx)
	list := []*Tokens{base}
	names, err := base.Store.Names(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the token store: %w", err)
	}
	var scopes []string
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, scopePrefix); ok {
			if digits, _, ok := strings.Cut(rest, "."); ok && !slices.Contains(scopes, scopePrefix+digits+".") {
				scopes = append(scopes, scopePrefix+digits+".")
			}
		}
	}
	slices.Sort(scopes)
	var entries []*config.Server
	if len(scopes) > 0 {
		entries = clients(ctx)
	}
	for _, scope := range scopes {
		s, err := in.part(ctx, base, scope, entries)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// part returns the tokens of one part of the store. Its clients are known by their ids, and by
// the secrets in entries: each goes to the authorization server alone at which the client of
// that entry signed in.
func (in *SignIns) part(ctx context.Context, base *Tokens, scope string, entries []*config.Server) (*Tokens, error) {
	if s := in.entries[scope]; s != nil {
		return s, nil
	}
	s := &Tokens{Kind: base.Kind, Store: scopedStore{base.Store, scope}, options: base.options}
	s.options.Store, s.options.Credentials, s.options.NonInteractive = s.Store, nil, true
	clients := make(map[string]*login.Credentials) // by issuer
	s.options.CredentialsFor = func(issuer string) *login.Credentials { return clients[issuer] }
	s.Client = login.New(&s.options)
	stored, err := s.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the token store: %w", err)
	}
	for _, r := range stored { // before anything else uses s
		clients[r.Issuer] = &login.Credentials{ClientID: r.ClientID}
	}
	for _, e := range entries {
		issuer, err := checkOAuth(e.OAuth)
		if err != nil || storeScope(e.OAuth.ClientID, issuer) != scope {
			continue
		}
		u, err := ServerURL(e.URL)
		if err != nil {
			continue
		}
		if at, err := s.At(ctx, u); err == nil && at != nil && at.ClientID == e.OAuth.ClientID {
			clients[at.Issuer].Secret = e.OAuth.ClientSecret
		}
	}
	if in.entries == nil {
		in.entries = make(map[string]*Tokens)
	}
	in.entries[scope] = s // to be closed
	return s, nil
}
