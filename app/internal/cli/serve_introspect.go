package cli

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/strictjson"
)

// An introspectionClient is a client that asks an authorization server about tokens, as a file says
// it. The names are those of RFC 7591, section 2, but for the private key.
type introspectionClient struct {
	// Issuer is the authorization server. It is needed if there are several.
	Issuer       string `json:"issuer"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	// PrivateKeyFile has a private key in PEM, beside this file if it is no absolute path; KeyID is
	// its name at the authorization server.
	PrivateKeyFile string `json:"private_key_file"`
	KeyID          string `json:"key_id"`
	// JWKS are the public keys of the client, for the authorization server.
	JWKS strictjson.RawValue `json:"jwks"`
}

// maxClientFile is the size in bytes of the largest file of a client, or of a key.
const maxClientFile = 64 << 10

// readIntrospectionClient reads the file of a flag. Errors do not show what is in it.
func readIntrospectionClient(flag, name string) (*introspectionClient, error) {
	text, err := readSmall(name)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	c := new(introspectionClient)
	o, err := strictjson.ParseObject(text)
	if err != nil || strictjson.Unmarshal(text, c) != nil {
		return nil, usagef("%s: %s must hold a JSON object such as {\"client_id\": \"guard\", \"client_secret\": \"…\"}", flag, name)
	}
	for member := range o.All() {
		if !slices.Contains([]string{"issuer", "client_id", "client_secret", "private_key_file", "key_id", "jwks"}, member) {
			return nil, usagef("%s: %s has a member %.40q, which is not known", flag, name, member)
		}
	}
	if c.ClientID == "" {
		return nil, usagef("%s: %s has no client_id", flag, name)
	}
	return c, nil
}

// readSmall reads a file that must not be large.
func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxClientFile+1))
	if err == nil && len(text) > maxClientFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxClientFile)
	}
	return text, err
}

// introspecting are the clients of the --introspect flags by issuer. It refuses what could not work.
func (s *httpFlags) introspecting() (map[string]*guard.IntrospectionOptions, error) {
	clients := make(map[string]*guard.IntrospectionOptions, len(s.introspect))
	for _, name := range s.introspect {
		c, err := readIntrospectionClient("--introspect", name)
		if err != nil {
			return nil, err
		}
		if c.Issuer == "" && len(s.auth) == 1 {
			c.Issuer = s.auth[0]
		}
		switch {
		case c.Issuer == "":
			return nil, usagef("--introspect: %s must say with \"issuer\" which server of --auth its client is for", name)
		case !slices.Contains(s.auth, c.Issuer):
			return nil, usagef("--introspect: %s is for %q, which is none of --auth", name, c.Issuer)
		case clients[c.Issuer] != nil:
			return nil, usagef("--introspect: %s is a second client for %q", name, c.Issuer)
		}
		if clients[c.Issuer], err = c.options(name); err != nil {
			return nil, err
		}
	}
	if s.requireFresh > 0 {
		for _, issuer := range s.auth {
			if clients[issuer] == nil {
				return nil, usagef("--require-fresh needs --introspect for %q: a signature does not show that a token was revoked", issuer)
			}
		}
	}
	if len(s.tokenTypes) > 0 && len(clients) == len(s.auth) {
		return nil, usagef("--token-type is of no use with --introspect: the type in a token is not looked at")
	}
	if s.keysMaxAge > 0 && len(clients) == len(s.auth) {
		return nil, usagef("--keys-max-age is of no use with --introspect: no signature is checked here; --require-fresh bounds what the server is asked")
	}
	return clients, nil
}

// options are the library's options for the client of a file.
func (c *introspectionClient) options(name string) (*guard.IntrospectionOptions, error) {
	switch {
	case len(c.JWKS) > 0:
		return nil, usagef("--introspect: %s has public keys (jwks), which are for the authorization server; name a private_key_file", name)
	case (c.ClientSecret == "") == (c.PrivateKeyFile == ""):
		return nil, usagef("--introspect: %s must have either a client_secret or a private_key_file", name)
	}
	o := &guard.IntrospectionOptions{ClientID: c.ClientID, ClientSecret: c.ClientSecret, KeyID: c.KeyID}
	if c.PrivateKeyFile == "" {
		return o, nil
	}
	file := c.PrivateKeyFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(name), file)
	}
	text, err := readSmall(file)
	if err != nil {
		return nil, usagef("--introspect: private key: %w", err)
	}
	if o.Signer, err = login.ParsePrivateKey(text); err != nil {
		return nil, usagef("--introspect: %s: %w", file, err)
	}
	return o, nil
}

// minIntrospectorSecret is how long a secret of ours is at least.
const minIntrospectorSecret = 16

// readIntrospector reads a file of auth serve --introspector: a client that may ask about tokens, and
// gets none.
func readIntrospector(name string) (*issuer.StaticClient, error) {
	const flag = "--introspector"
	c, err := readIntrospectionClient(flag, name)
	if err != nil {
		return nil, err
	}
	switch {
	case c.PrivateKeyFile != "":
		return nil, usagef("%s: %s names a private key, which is for the server that asks alone; give its public key as jwks", flag, name)
	case (c.ClientSecret == "") == (len(c.JWKS) == 0):
		return nil, usagef("%s: %s must have either a client_secret or jwks", flag, name)
	case c.ClientSecret != "" && len(c.ClientSecret) < minIntrospectorSecret:
		return nil, usagef("%s: the client_secret in %s is shorter than %d bytes; \"openssl rand -hex 32\" makes one", flag, name, minIntrospectorSecret)
	}
	made := &issuer.StaticClient{ID: c.ClientID, Secret: c.ClientSecret, Metadata: oauth.ClientMetadata{
		ClientName: c.ClientID, TokenEndpointAuthMethod: oauth.AuthSecretBasic,
	}}
	if len(c.JWKS) > 0 {
		made.Metadata.TokenEndpointAuthMethod, made.Metadata.JWKS = oauth.AuthPrivateKeyJWT, []byte(c.JWKS)
	}
	return made, nil
}

// addIntrospectors lets the clients of the --introspector flags ask about tokens for all resources.
func (f *issuerFlags) addIntrospectors(o *issuer.Options) error {
	for _, name := range f.introspectors {
		c, err := readIntrospector(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(o.Clients, func(other issuer.StaticClient) bool { return other.ID == c.ID }) {
			return usagef("--introspector: there is a client %q already; its id must be one of its own", c.ID)
		}
		o.Clients = append(o.Clients, *c)
		f.introspectorIDs = append(f.introspectorIDs, c.ID)
		for i := range o.Resources {
			o.Resources[i].Introspectors = append(o.Resources[i].Introspectors, c.ID)
		}
	}
	return nil
}

// privateNetworks are the networks that --auth-allow-private may open, or parts of them.
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fc00::/7"),
	netip.MustParsePrefix("::1/128"),
}

// checkPrivate checks the --auth-allow-private flags.
func checkPrivate(networks []string) error {
	for _, text := range networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return usagef("--auth-allow-private %q: write a network such as 10.20.0.0/16, or one address as 10.20.0.5/32", text)
		}
		if network != network.Masked() {
			return usagef("--auth-allow-private %q: the network is %v; for one address write %v", text, network.Masked(),
				netip.PrefixFrom(network.Addr(), network.Addr().BitLen()))
		}
		if !slices.ContainsFunc(privateNetworks, func(p netip.Prefix) bool {
			return p.Bits() <= network.Bits() && p.Contains(network.Addr())
		}) {
			return usagef("--auth-allow-private %q is no private network: write one within 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 or fc00::/7", text)
		}
	}
	return nil
}
