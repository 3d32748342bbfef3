package admin

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

type newClient struct {
	ID              string   `json:"id" arg:"ID"`
	Name            string   `json:"name" help:"\x60NAME\x60 that people are shown (default: the id)"`
	RedirectURIs    []string `json:"redirect_uri" help:"\x60URI\x60 where a browser brings the answer, such as http://127.0.0.1/callback"`
	GrantTypes      []string `json:"grant" help:"\x60TYPE\x60 of grant: authorization_code, refresh_token, client_credentials, device_code or token_exchange (default: the first two with a --redirect-uri, else client_credentials)"`
	Confidential    bool     `json:"confidential" help:"make a secret, with which the client authenticates"`
	Secret          string   `json:"secret" kind:"secret-file" help:"the secret with which the client authenticates"`
	SecretInForm    bool     `json:"secret_in_form" help:"the client sends the secret in the form (client_secret_post), and not in a header (client_secret_basic)"`
	MakeKey         bool     `json:"make_key" help:"make a key, with which the client authenticates (private_key_jwt)"`
	JWKS            string   `json:"jwks" kind:"file" help:"the public keys of the client, as a JWK set (private_key_jwt)"`
	JWKSURI         string   `json:"jwks_uri" help:"\x60URL\x60 of the public keys of the client (private_key_jwt)"`
	Resources       []string `json:"resource" help:"\x60URI\x60 of a server that it may have tokens for (default: all)"`
	Scopes          []string `json:"scope" help:"\x60SCOPE\x60 that it may have (default: all)"`
	Subject         string   `json:"subject" help:"\x60SUBJECT\x60 of its tokens when it acts for itself (default: the id)"`
	AccessLifetime  string   `json:"access_lifetime" help:"\x60TIME\x60 that its access tokens are good at most, such as 5m"`
	RefreshLifetime string   `json:"refresh_lifetime" help:"\x60TIME\x60 after which people sign in to it again, such as 24h"`
}

// A ClientAdded is a client that was added. What is secret in it is not shown again.
type ClientAdded struct {
	Client RegisteredClient `json:"client"`
	Secret string           `json:"client_secret,omitzero"`
	// Key is a private key, as PEM.
	Key string `json:"private_key,omitzero"`
}

// Text implements Result.
func (c *ClientAdded) Text() string {
	text := columns([][]string{{"added " + c.Client.ID}})
	switch {
	case c.Secret != "":
		text += "its secret, which is not shown again: " + c.Secret + "\n"
	case c.Key != "":
		text += "its private key, which is not shown again:\n" + c.Key
	}
	return text
}

// A ClientSecret is another secret of a client, which is not shown again.
type ClientSecret struct {
	ID     string `json:"id"`
	Secret string `json:"client_secret"`
}

// Text implements Result.
func (c *ClientSecret) Text() string {
	return columns([][]string{{"another secret for " + c.ID + ", which is not shown again: " + c.Secret}})
}

func changeSecret(ctx context.Context, a *Admin, in *clientID) (*ClientSecret, error) {
	secret := oauth.NewSecret()
	err := a.db.SetClientSecret(ctx, in.ID, issuer.Hash(secret), a.opts.Now())
	if errors.Is(err, records.ErrNoSecret) {
		return nil, errorf(Conflict, "the client %q does not authenticate with a secret; run 'parley auth client show' to see its method", in.ID)
	}
	if err != nil {
		return nil, noClient(in.ID, err)
	}
	return &ClientSecret{in.ID, secret}, nil
}

func addClient(ctx context.Context, a *Admin, in *newClient) (*ClientAdded, error) {
	out := &ClientAdded{}
	config, err := in.config(out)
	if err != nil {
		return nil, errorf(Invalid, "%w", err)
	}
	c, err := issuer.NewClient(*config, nil)
	if err != nil {
		return nil, errorf(Invalid, "%w", err)
	}
	c.Created = a.opts.Now()
	switch err := a.db.CreateClient(ctx, c); {
	case errors.Is(err, records.ErrExists):
		return nil, errorf(Conflict, "client %q already exists; run 'parley auth client show' to see it", in.ID)
	case err != nil:
		return nil, err
	}
	out.Client = clientOf(c)
	return out, nil
}

// config is the client that is asked for; a secret or key that is made for it goes into out.
func (in *newClient) config(out *ClientAdded) (*issuer.StaticClient, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	c := &issuer.StaticClient{
		ID: in.ID, Secret: in.Secret, Resources: in.Resources, Scopes: in.Scopes, Subject: in.Subject,
		Metadata: oauth.ClientMetadata{
			ClientName: cmp.Or(in.Name, in.ID), RedirectURIs: in.RedirectURIs, JWKSURI: in.JWKSURI,
		},
	}
	if in.JWKS != "" {
		c.Metadata.JWKS = []byte(in.JWKS)
	}
	var err error
	if c.Metadata.GrantTypes, err = in.grants(); err != nil {
		return nil, err
	}
	if c.AccessLifetime, c.RefreshLifetime, err = lifetimes(in.AccessLifetime, in.RefreshLifetime); err != nil {
		return nil, err
	}
	if in.SecretInForm {
		c.Metadata.TokenEndpointAuthMethod = oauth.AuthSecretPost
	}
	switch {
	case in.Confidential:
		c.Secret = oauth.NewSecret()
		out.Secret = c.Secret
	case in.MakeKey:
		if out.Key, c.Metadata.JWKS, err = makeKey(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Bounds of what an operator says of a client.
const (
	maxClientID     = 255
	maxClientName   = 60 // characters, as the pages show them
	maxSubject      = 60
	minClientSecret = 16
	maxRedirects    = 20
	maxLifetime     = 10 * 365 * 24 * time.Hour
)

func (in *newClient) check() error {
	if len(in.ID) > maxClientID || strings.ContainsFunc(in.ID, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("a client id must have 1 to %d ASCII characters, without spaces", maxClientID)
	}
	if lower := strings.ToLower(in.ID); strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") {
		return errors.New("a client id that is a URL belongs to a client with a metadata document, which cannot be added")
	}
	if err := checkText("the name of a client", in.Name, maxClientName); err != nil {
		return err
	}
	if len(in.RedirectURIs) > maxRedirects {
		return fmt.Errorf("a client can have at most %d redirect URIs", maxRedirects)
	}
	ways := 0
	for _, given := range []bool{in.Confidential, in.Secret != "", in.MakeKey, in.JWKS != "", in.JWKSURI != ""} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return errors.New("use only one of confidential, secret, make_key, jwks and jwks_uri")
	}
	if in.SecretInForm && !in.Confidential && in.Secret == "" {
		return errors.New("secret_in_form requires confidential or secret")
	}
	if in.Secret != "" && len(in.Secret) < minClientSecret {
		return fmt.Errorf("a client secret must have at least %d bytes; use confidential to generate one", minClientSecret)
	}
	for _, scope := range in.Scopes {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 {
			return fmt.Errorf("invalid scope %q", scope)
		}
	}
	return checkText("a subject", in.Subject, maxSubject)
}

func (in *newClient) public() bool {
	return !in.Confidential && in.Secret == "" && !in.MakeKey && in.JWKS == "" && in.JWKSURI == ""
}

// grantNames are those of the grant types.
var grantNames = map[string]string{
	"authorization_code": oauth.GrantAuthorizationCode,
	"refresh_token":      oauth.GrantRefreshToken,
	"client_credentials": oauth.GrantClientCredentials,
	"device_code":        oauth.GrantDeviceCode,
	"token_exchange":     oauth.GrantTokenExchange,
}

// grants are the grant types of the client.
func (in *newClient) grants() ([]string, error) {
	var grants []string
	for _, name := range in.GrantTypes {
		grant, ok := grantNames[name]
		if !ok { // as the protocol writes them
			grant = name
		}
		if !ok && !slices.Contains([]string{oauth.GrantDeviceCode, oauth.GrantTokenExchange}, name) {
			return nil, fmt.Errorf("unknown grant %q; use authorization_code, refresh_token, client_credentials, device_code or token_exchange", name)
		}
		if !slices.Contains(grants, grant) {
			grants = append(grants, grant)
		}
	}
	if len(grants) == 0 {
		grants = []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken}
		if len(in.RedirectURIs) == 0 {
			grants = []string{oauth.GrantClientCredentials}
		}
	}
	has := func(grant string) bool { return slices.Contains(grants, grant) }
	switch {
	case has(oauth.GrantAuthorizationCode) && len(in.RedirectURIs) == 0:
		return nil, errors.New("the grant authorization_code requires a redirect_uri")
	case !has(oauth.GrantAuthorizationCode) && len(in.RedirectURIs) > 0:
		return nil, errors.New("redirect_uri requires the grant authorization_code")
	case in.public() && len(in.GrantTypes) == 0 && len(in.RedirectURIs) == 0:
		return nil, errors.New("missing redirect_uri, for clients that sign users in, or confidential, for a program that acts for itself")
	case in.public() && (has(oauth.GrantClientCredentials) || has(oauth.GrantTokenExchange)):
		return nil, errors.New("a client that acts for itself must authenticate: use confidential, secret, make_key, jwks or jwks_uri")
	case has(oauth.GrantRefreshToken) && !has(oauth.GrantAuthorizationCode) && !has(oauth.GrantDeviceCode):
		return nil, errors.New("the grant refresh_token requires authorization_code or device_code")
	}
	return grants, nil
}

// lifetimes reads those of access and refresh tokens; an empty text is zero.
func lifetimes(access, refresh string) (a, r time.Duration, err error) {
	if a, err = lifetime("access_lifetime", access); err == nil {
		r, err = lifetime("refresh_lifetime", refresh)
	}
	return a, r, err
}

func lifetime(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > maxLifetime || d%time.Second != 0 {
		return 0, fmt.Errorf("%s %q: must be whole seconds, minutes or hours, such as 90s, 5m or 24h", name, text)
	}
	return d, nil
}

// makeKey makes a key for signatures with ES256: the private part as PEM, and the public one as a JWK set.
func makeKey() (private string, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", nil, fmt.Errorf("making a key: %w", err)
	}
	point, err := key.PublicKey.Bytes() // 4, x, y (SEC 1, section 2.3.3)
	if err != nil {
		return "", nil, fmt.Errorf("making a key: %w", err)
	}
	const size = 32
	coordinate := func(from int) string { return base64.RawURLEncoding.EncodeToString(point[from : from+size]) }
	set := map[string]any{"keys": []any{map[string]string{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": coordinate(1), "y": coordinate(1 + size),
	}}}
	if public, err = json.Marshal(set); err != nil {
		return "", nil, fmt.Errorf("making a key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), public, nil
}
