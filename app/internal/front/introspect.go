package front

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/oauth/guard"
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

// ReadIntrospectionClient reads the file of a flag. Errors do not show what is in it.
func ReadIntrospectionClient(flag, name string) (*introspectionClient, error) {
	text, err := readSmall(name)
	if err != nil {
		return nil, kit.Usagef("%s: %w", flag, err)
	}
	c := new(introspectionClient)
	o, err := strictjson.ParseObject(text)
	if err != nil || strictjson.Unmarshal(text, c) != nil {
		return nil, kit.Usagef("%s: %s must hold a JSON object such as {\"client_id\": \"guard\", \"client_secret\": \"…\"}", flag, name)
	}
	for member := range o.All() {
		if !slices.Contains([]string{"issuer", "client_id", "client_secret", "private_key_file", "key_id", "jwks"}, member) {
			return nil, kit.Usagef("%s: %s has an unknown field %.40q", flag, name, member)
		}
	}
	if c.ClientID == "" {
		return nil, kit.Usagef("%s: %s has no client_id", flag, name)
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
func (s *Flags) introspecting() (map[string]*guard.IntrospectionOptions, error) {
	clients := make(map[string]*guard.IntrospectionOptions, len(s.introspect))
	for _, name := range s.introspect {
		c, err := ReadIntrospectionClient("--introspect", name)
		if err != nil {
			return nil, err
		}
		if c.Issuer == "" && len(s.Auth) == 1 {
			c.Issuer = s.Auth[0]
		}
		switch {
		case c.Issuer == "":
			return nil, kit.Usagef("--introspect: %s must name with \"issuer\" the --auth server that its client is for", name)
		case !slices.Contains(s.Auth, c.Issuer):
			return nil, kit.Usagef("--introspect: %s is for %q, which is not an --auth server", name, c.Issuer)
		case clients[c.Issuer] != nil:
			return nil, kit.Usagef("--introspect: %s is a second client for %q", name, c.Issuer)
		}
		if clients[c.Issuer], err = c.options(name); err != nil {
			return nil, err
		}
	}
	if s.requireFresh > 0 {
		for _, issuer := range s.Auth {
			if clients[issuer] == nil {
				return nil, kit.Usagef("--require-fresh requires --introspect for %q: a signature does not show that a token was revoked", issuer)
			}
		}
	}
	if len(s.tokenTypes) > 0 && len(clients) == len(s.Auth) {
		return nil, kit.Usagef("--token-type cannot be used with --introspect, which does not read a token's type")
	}
	if s.keysMaxAge > 0 && len(clients) == len(s.Auth) {
		return nil, kit.Usagef("--keys-max-age cannot be used with --introspect, which checks no signatures; use --require-fresh to limit how old its answers can be")
	}
	return clients, nil
}

// options are the library's options for the client of a file.
func (c *introspectionClient) options(name string) (*guard.IntrospectionOptions, error) {
	switch {
	case len(c.JWKS) > 0:
		return nil, kit.Usagef("--introspect: %s has public keys (jwks), which belong to the authorization server; use private_key_file", name)
	case (c.ClientSecret == "") == (c.PrivateKeyFile == ""):
		return nil, kit.Usagef("--introspect: %s must have either a client_secret or a private_key_file", name)
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
		return nil, kit.Usagef("--introspect: private key: %w", err)
	}
	if o.Signer, err = login.ParsePrivateKey(text); err != nil {
		return nil, kit.Usagef("--introspect: %s: %w", file, err)
	}
	return o, nil
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
			return kit.Usagef("--auth-allow-private %q: must be a network such as 10.20.0.0/16, or one address as 10.20.0.5/32", text)
		}
		if network != network.Masked() {
			return kit.Usagef("--auth-allow-private %q: the network is %v; for one address write %v", text, network.Masked(),
				netip.PrefixFrom(network.Addr(), network.Addr().BitLen()))
		}
		if !slices.ContainsFunc(privateNetworks, func(p netip.Prefix) bool {
			return p.Bits() <= network.Bits() && p.Contains(network.Addr())
		}) {
			return kit.Usagef("--auth-allow-private %q: not a private network; use one within 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 or fc00::/7", text)
		}
	}
	return nil
}
