package authserver

import (
	"slices"

	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// minIntrospectorSecret is how long a secret of ours is at least.
const minIntrospectorSecret = 16

// readIntrospector reads a file of auth serve --introspector: a client that may ask about tokens, and
// gets none.
func readIntrospector(name string) (*issuer.StaticClient, error) {
	const flag = "--introspector"
	c, err := front.ReadIntrospectionClient(flag, name)
	if err != nil {
		return nil, err
	}
	switch {
	case c.PrivateKeyFile != "":
		return nil, kit.Usagef("%s: %s names a private key, which only the asking server must have; use its public key as jwks", flag, name)
	case (c.ClientSecret == "") == (len(c.JWKS) == 0):
		return nil, kit.Usagef("%s: %s must have either a client_secret or jwks", flag, name)
	case c.ClientSecret != "" && len(c.ClientSecret) < minIntrospectorSecret:
		return nil, kit.Usagef("%s: the client_secret in %s must have at least %d bytes; run 'openssl rand -hex 32' to generate one", flag, name, minIntrospectorSecret)
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
			return kit.Usagef("--introspector: client %q already exists; use a unique id", c.ID)
		}
		o.Clients = append(o.Clients, *c)
		f.introspectorIDs = append(f.introspectorIDs, c.ID)
		for i := range o.Resources {
			o.Resources[i].Introspectors = append(o.Resources[i].Introspectors, c.ID)
		}
	}
	return nil
}
