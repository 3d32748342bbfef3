package issuer

import (
	"context"
	"errors"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A Store keeps what an authorization server must remember. Every operation is
// atomic by itself, also among several processes on one store; there is no
// operation that reads something which another then writes back. Secrets
// (codes, tokens, handles) come in as hashes alone ([Hash]). Times are whole
// seconds UTC. Records past their expiry are as good as absent, whether swept
// or not. A Store may be used by many goroutines at once; package storetest
// holds an implementation to all of this. A store is of one issuer: codes, tokens
// and keys in it do not say whose they are.
//
// What an operation returned must survive the end of the process, and of the
// machine: a code that was consumed stays consumed.
type Store interface {
	// AddClient stores a client. One that is not dynamic replaces that of the
	// same ID. A dynamic one with the Digest of another dynamic one that has
	// not expired is not stored: the other is returned. If there are already
	// max dynamic clients, ErrFull (max 0: no limit). The time is c.Created. It
	// returns the client that is stored.
	AddClient(ctx context.Context, c *Client, max int) (*Client, error)
	// Client returns a client, or ErrNotFound.
	Client(ctx context.Context, id string, now time.Time) (*Client, error)
	// UseClient notes that a client was used: expires becomes the new expiry,
	// if it is later than that which the client has. One that never expires, or
	// is not there, is left alone.
	UseClient(ctx context.Context, id string, expires time.Time) error
	// RemoveClient removes a client and revokes its grants. One that is not
	// there is no error.
	RemoveClient(ctx context.Context, id string, now time.Time) error

	// AddGrant stores what a person, or a client for itself, was granted: the
	// family of all codes and tokens that come from it.
	AddGrant(ctx context.Context, g *Grant) error
	// Grant returns a grant, or ErrNotFound; ErrRevoked with the grant if it
	// was revoked.
	Grant(ctx context.Context, id string, now time.Time) (*Grant, error)
	// RevokeGrant revokes a grant and with it all refresh tokens, codes and
	// access tokens of the family. Repeating it, or an unknown one, is no error.
	RevokeGrant(ctx context.Context, id string, now time.Time) error
	// RevokeGrants revokes the grants of a person, of a client, or, with both
	// given, of the person to the client. It returns how many. Both empty is
	// an error.
	RevokeGrants(ctx context.Context, subject, client string, now time.Time) (int, error)

	// AddCode stores an authorization code under its hash.
	AddCode(ctx context.Context, hash string, c *Code) error
	// ConsumeCode takes a code: of any number of callers, ever, one gets it
	// without an error. Later ones get ErrConsumed with the code, until it
	// expires; and the grant of the code is revoked in the same operation, since
	// it was stolen (RFC 6749, section 4.1.2). Otherwise, also if the
	// grant was revoked before the code was used, ErrNotFound.
	ConsumeCode(ctx context.Context, hash string, now time.Time) (*Code, error)

	// AddRefresh stores the first refresh token of a family under its hash,
	// also if the family was revoked meanwhile.
	AddRefresh(ctx context.Context, hash string, r *Refresh) error
	// Refresh returns a refresh token, current or rotated, or ErrNotFound: a
	// current one until it expires, a rotated one as long as its grant. Revoked
	// or not makes no difference. Its fields but Rotated never change, so they
	// may be checked before RotateRefresh.
	Refresh(ctx context.Context, hash string, now time.Time) (*Refresh, error)
	// RotateRefresh replaces the token at old by next, stored at hash: of any
	// number of callers one succeeds. For a token that was rotated before:
	// if that was less than grace ago, and to the same hash, it succeeds once more
	// and changes nothing; else the family is revoked in the same operation,
	// and ErrReused, however often that happens. ErrRevoked for a current
	// token, or one within its grace, of a family that was revoked. ErrNotFound
	// for what Refresh does not return either.
	RotateRefresh(ctx context.Context, old, hash string, next *Refresh, grace time.Duration, now time.Time) error

	// RevokeToken notes that the access token with this jti is revoked, until
	// it expires. TokenRevoked says whether it, or its family, is; an
	// empty grant is none, an unknown one counts as revoked.
	RevokeToken(ctx context.Context, id string, expires time.Time) error
	TokenRevoked(ctx context.Context, id, grant string, now time.Time) (bool, error)

	// UseID notes that an identifier (a jti) of an issuer was used, and
	// reports true for the first use alone, until expires.
	UseID(ctx context.Context, issuer, id string, expires, now time.Time) (bool, error)

	// SetConsent remembers what a person agreed to, in place of what was there
	// for the same person, client and resource. Consent returns it, or ErrNotFound.
	// RemoveConsents forgets those of a person to a client ("" is all clients).
	SetConsent(ctx context.Context, c *Consent) error
	Consent(ctx context.Context, subject, client, resource string, now time.Time) (*Consent, error)
	RemoveConsents(ctx context.Context, subject, client string) error

	// SetRecord stores something short-lived under a kind and a hash (a
	// request that waits for consent, a browser's login). TakeRecord returns and
	// removes it: of any number of callers one gets it. ErrNotFound.
	SetRecord(ctx context.Context, kind, hash string, data []byte, expires time.Time) error
	Record(ctx context.Context, kind, hash string, now time.Time) ([]byte, error)
	TakeRecord(ctx context.Context, kind, hash string, now time.Time) ([]byte, error)

	// AddKey stores a signing key, unless there is one in its Slot already; it
	// returns the key that is in the slot. Keys returns those that have not
	// expired, oldest first.
	AddKey(ctx context.Context, k *Key, now time.Time) (*Key, error)
	Keys(ctx context.Context, now time.Time) ([]*Key, error)

	// Sweep removes what has expired, in portions, and returns how many
	// records went. A rotated refresh token stays as long as its family, so
	// that its reuse is seen.
	Sweep(ctx context.Context, now time.Time) (int, error)
}

// What a Store answers, to be found with errors.Is. Any other error is a
// failure of the store.
var (
	ErrNotFound = errors.New("not found")
	ErrFull     = errors.New("too many dynamic clients")
	ErrConsumed = errors.New("code was already used")
	ErrReused   = errors.New("refresh token was already used")
	ErrRevoked  = errors.New("grant was revoked")
)

// A Client is registered: by configuration, or dynamically.
type Client struct {
	ID string
	// SecretHash is the hash of the secret of a confidential client that has one.
	SecretHash string
	Metadata   oauth.ClientMetadata
	// Dynamic clients registered themselves; nothing that they say is verified.
	Dynamic bool
	// Digest is a hash of the metadata of a dynamic client: the same
	// registration twice is one client.
	Digest  string
	Created time.Time
	// Expires is when a dynamic client that was never used goes; zero is never.
	Expires time.Time
}

// A Grant is what a client may do for a person, or for itself.
type Grant struct {
	ID       string
	ClientID string
	// Subject is the person; empty for a client that acts for itself.
	Subject  string
	Scopes   []string
	Resource string
	// Key is the thumbprint of the DPoP key that tokens are bound to; empty
	// for bearer tokens.
	Key      string
	AuthTime time.Time
	// Stamp is the Person.Stamp of the login; empty without one.
	Stamp   string
	Created time.Time
	Expires time.Time
	// Claims are further claims for access tokens, as a JSON object; may be nil.
	Claims []byte
}

// A Code is an authorization code.
type Code struct {
	// Grant is the family.
	Grant       string
	ClientID    string
	RedirectURI string
	// Challenge is the PKCE challenge, by S256.
	Challenge string
	Resource  string
	// Key is the thumbprint that dpop_jkt announced; may be empty.
	Key     string
	Nonce   string
	Expires time.Time
}

// A Refresh is a refresh token.
type Refresh struct {
	Grant    string
	ClientID string
	Key      string // thumbprint of the DPoP key it is bound to; may be empty
	Created  time.Time
	Expires  time.Time
	// Rotated is when it was replaced; zero for a current one.
	Rotated time.Time
}

// A Consent is what a person agreed to.
type Consent struct {
	Subject, ClientID, Resource string
	Scopes                      []string
	// Redirect is the redirect URI it was given for.
	Redirect string
	Created  time.Time
	Expires  time.Time
}

// A Key is a signing key.
type Key struct {
	ID string
	// Slot names the period and algorithm that the key is for, so that
	// several processes agree on one.
	Slot      string
	Algorithm string
	// Private is a private JWK.
	Private []byte
	Created time.Time
	// Retires is when it signs no more, Expires when it verifies no more.
	Retires, Expires time.Time
}
