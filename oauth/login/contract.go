package login

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A Store keeps secrets by name: credentials and tokens. Names are plain text
// of up to 512 bytes; values up to 64 KiB. It may be used by many goroutines,
// and those of several processes, at once.
type Store interface {
	// Get returns a value, or ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)
	Set(ctx context.Context, name string, value []byte) error
	// Delete removes a value; one that is not there is no error.
	Delete(ctx context.Context, name string) error
	// Names lists what there is.
	Names(ctx context.Context) ([]string, error)
	// Lock waits until nobody else, in any process, holds the lock of this
	// name, and takes it until unlock is called or the process ends.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

// ErrNotFound says that a Store has no such value.
var ErrNotFound = errors.New("not found")

// Credentials are how the client is known at one authorization server. No text
// form of them, JSON included, shows the secret.
type Credentials struct {
	// Issuer is the server that they are for; they are never sent to another.
	Issuer   string
	ClientID string
	// Secret of a confidential client.
	Secret string
	// Method of authentication at the token endpoint. Default: the best that
	// the server supports with what there is.
	Method string
	// Signer signs assertions for private_key_jwt, with Algorithm (default:
	// the usual one of the key) and KeyID (default: the thumbprint).
	Signer           crypto.Signer
	Algorithm, KeyID string
	// RedirectURIs are those that were registered.
	RedirectURIs []string
	// Expires is when a dynamic registration ends; zero is never.
	Expires time.Time
	// Dynamic says that they come from a dynamic registration; Document that
	// ClientID is the URL of a client ID metadata document.
	Dynamic, Document bool
}

// String says which client they are of, and where, without secrets.
func (c Credentials) String() string {
	return fmt.Sprintf("credentials of client %q at %q", c.ClientID, c.Issuer)
}

// Format is String for each verb, so that %+v and %#v show no secret either.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalText is String, for logs and JSON.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// An Authorizer takes the person through the browser.
type Authorizer interface {
	// Begin makes ready to receive one authorization response. registered are
	// redirect URIs that the server knows already, so that one of them is used
	// if it can be; it may be empty.
	Begin(ctx context.Context, registered []string) (Visit, error)
}

// A Visit is one trip of the person to the authorization server.
type Visit interface {
	// RedirectURI is where the response will come in.
	RedirectURI() string
	// Wait opens the authorization URL and waits for the response, whose
	// parameters it returns unchecked, or for the end of ctx. accept, which
	// may be called for several responses, says whether one is ours (its
	// state); others are refused and waiting goes on.
	Wait(ctx context.Context, authorizationURL *url.URL, accept func(url.Values) bool) (url.Values, error)
	// Close ends it. The visit's server is gone when it returns.
	Close() error
}

// A Grant obtains tokens without a person.
type Grant interface {
	// obtain makes one token request (and what must come before it).
	obtain(ctx context.Context, q *grantRequest) (*oauth.TokenResponse, error)
	// name is how the grant is called.
	name() string
}

// grantRequest is what a Grant works with.
type grantRequest struct {
	fetch    *oauth.Fetcher
	meta     *oauth.ServerMetadata
	creds    *Credentials
	resource string
	scopes   []string
	prover   *prover // nil without DPoP
	now      func() time.Time
}
