package issuer

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	// max dynamic clients (max 0: no limit), those that expire first of them,
	// without a grant that is good, make room, as RemoveClient removes them; if
	// there are too few of those, ErrFull, and none is removed. The time is
	// c.Created. It returns the client that is stored.
	AddClient(ctx context.Context, c *Client, max int) (*Client, error)
	// Client returns a client, or ErrNotFound.
	Client(ctx context.Context, id string, now time.Time) (*Client, error)
	// UseClient notes that a client was used: expires becomes the new expiry,
	// if it is later than that which the client has. One that never expires, or
	// is not there, is left alone.
	UseClient(ctx context.Context, id string, expires time.Time) error
	// RemoveClient removes a client, revokes its grants and forgets the consents
	// to it, so that a later client of the same ID begins with nothing. One that
	// is not there is no error.
	RemoveClient(ctx context.Context, id string, now time.Time) error

	// AddGrant stores what a person, or a client for itself, was granted: the
	// family of all codes and tokens that come from it. It stores nothing and returns
	// ErrRevoked if the client has another Stamp than g.ClientStamp by now, or is not
	// there any more: a grant that is given at the moment a client is disabled or removed
	// is revoked with the others or never there. Without a ClientStamp no client is looked
	// for. A store that has the people too returns ErrRevoked if the person is disabled, or
	// another Stamp is theirs by now.
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
	// if that was less than grace ago, and to the same hash, and the token there was
	// not rotated itself, it succeeds once more and changes nothing; else the family is
	// revoked in the same operation, and ErrReused, however often that happens. ErrRevoked for a current
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

	// AddSession stores that a person is signed in at a browser. Session returns
	// that, or ErrNotFound. UseSession notes that it was used, which never goes
	// back; RemoveSession signs the browser out. One that is not there is no error.
	AddSession(ctx context.Context, s *Session) error
	Session(ctx context.Context, id string, now time.Time) (*Session, error)
	UseSession(ctx context.Context, id string, now time.Time) error
	RemoveSession(ctx context.Context, id string) error
	// RemoveSessions signs a person out of all browsers but that of the session whose ID is except
	// ("" is none), and returns how many.
	RemoveSessions(ctx context.Context, subject, except string, now time.Time) (int, error)

	// SessionsOf, ConsentsOf and ConnectionsOf list what a person has, in pages of at most limit
	// entries, which is at least 1, in an order that stays the same. A page begins after the one
	// whose next is after; "" begins. next is "" on the last page. An after that the store did not
	// make gives any page of the same person. ConnectionsOf has those clients that have a grant of
	// the person that is good.
	SessionsOf(ctx context.Context, subject, after string, limit int, now time.Time) (page []*Session, next string, err error)
	ConsentsOf(ctx context.Context, subject, after string, limit int, now time.Time) (page []*Consent, next string, err error)
	ConnectionsOf(ctx context.Context, subject, after string, limit int, now time.Time) (page []*Connection, next string, err error)

	// SetRecord stores something short-lived under a kind and a hash (a
	// request that waits for consent, a trip to another site). TakeRecord returns and
	// removes it: of any number of callers one gets it. ErrNotFound.
	SetRecord(ctx context.Context, kind, hash string, data []byte, expires time.Time) error
	Record(ctx context.Context, kind, hash string, now time.Time) ([]byte, error)
	TakeRecord(ctx context.Context, kind, hash string, now time.Time) ([]byte, error)

	// AddKey stores a key, unless there is one in its Slot already, revoked or
	// not; it returns the key that is in the slot. Keys returns those that have
	// not expired, oldest first, revoked ones too.
	AddKey(ctx context.Context, k *Key, now time.Time) (*Key, error)
	Keys(ctx context.Context, now time.Time) ([]*Key, error)
	// RetireKey has a key sign no more from a time on: if its Retires is later,
	// it becomes that time, and its Expires comes as much earlier. If the time
	// has come, the State is KeyRetired from now on. It returns the key as it is
	// then; with ErrRevoked if it was revoked. ErrNotFound if there is none with
	// this ID, or it is a secret.
	RetireKey(ctx context.Context, id string, from, now time.Time) (*Key, error)
	// RevokeKey sets the State of a key to KeyRevoked, removes its Private, and
	// has it sign no more, as RetireKey does but for Expires; in the same
	// operation all keys of SecretAlgorithm go. One that was revoked already is
	// left as it is, and the secrets too. It returns the key, or ErrNotFound as
	// RetireKey does.
	RevokeKey(ctx context.Context, id string, now time.Time) (*Key, error)

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
	ErrRevoked  = errors.New("grant or key was revoked")
)

// A Client is registered: by configuration, or dynamically.
type Client struct {
	ID string
	// SecretHash is the hash of the secret of a confidential client that has one.
	SecretHash string
	Metadata   oauth.ClientMetadata
	// Dynamic clients registered themselves; nothing that they say is verified.
	Dynamic bool
	// Disabled clients are refused like unknown ones, and their tokens are not
	// active, until they are enabled.
	Disabled bool
	// Stamp is the store's, whatever AddClient is given: a client that is added has one that no client
	// had before, and another once it is disabled. One that is replaced keeps it, unless by one that is
	// disabled. Empty for clients that are in no store.
	Stamp string
	// Digest is a hash of the metadata of a dynamic client: the same
	// registration twice is one client.
	Digest  string
	Created time.Time
	// Expires is when a dynamic client that was never used goes; zero is never.
	Expires time.Time
	// Resources, in canonical form, and Scopes bound what it may have; empty: all.
	Resources, Scopes []string
	// Subject is the subject of the client when it acts for itself; empty: its ID.
	Subject string
	// AccessLifetime and RefreshLifetime are at most how long its access tokens, and each
	// family of its refresh tokens, are good; zero: as long as others.
	AccessLifetime, RefreshLifetime time.Duration
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
	Stamp string
	// Asserted says that another issuer asserted the Subject (AssertionIssuer): nobody signed in here,
	// and Options.Subjects is not asked.
	Asserted bool
	// ClientStamp is the Client.Stamp of the client that was given the grant.
	ClientStamp string
	// Groups are the Person.Groups of the login.
	Groups  []string
	Created time.Time
	Expires time.Time
	// Claims are further claims for access tokens, as a JSON object; may be nil.
	Claims []byte
}

// A Code is an authorization code.
type Code struct {
	// Grant is the family.
	Grant    string
	ClientID string
	// RedirectURI is where the code was sent; empty if that is not known.
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

// A Connection is what a client may do for a person, by all grants that are good.
type Connection struct {
	ClientID string
	// Access has an entry for each resource, sorted by URI.
	Access []Access
}

// An Access is what a client may do at a resource.
type Access struct {
	Resource string
	// Scopes are those of all grants, sorted.
	Scopes []string
	// Since is when the first grant of those that are good was made.
	Since time.Time
	// Grants is how many there are.
	Grants int
}

// Add counts a grant in, for stores that make Connections of grants.
func (c *Connection) Add(resource string, scopes []string, created time.Time) {
	i, found := slices.BinarySearchFunc(c.Access, resource, func(a Access, uri string) int { return strings.Compare(a.Resource, uri) })
	if !found {
		c.Access = slices.Insert(c.Access, i, Access{Resource: resource, Since: created})
	}
	a := &c.Access[i]
	a.Grants++
	if created.Before(a.Since) {
		a.Since = created
	}
	for _, scope := range scopes {
		if at, found := slices.BinarySearch(a.Scopes, scope); !found {
			a.Scopes = slices.Insert(a.Scopes, at, scope)
		}
	}
}

// A Session is a browser at which a person is signed in.
type Session struct {
	// ID is the hash of what the browser's cookie holds.
	ID     string
	Issuer string
	Person Person
	// Remote is the address that the person signed in from, Agent what the browser
	// said of itself, at most 255 bytes of it.
	Remote, Agent string
	Created       time.Time
	// Used is when it was used last, to a minute.
	Used    time.Time
	Expires time.Time
}

// A Key is a signing key, or a secret of the issuer.
type Key struct {
	ID string
	// Slot names the period and algorithm that the key is for, so that
	// several processes agree on one.
	Slot string
	// Algorithm is that of JOSE, or SecretAlgorithm.
	Algorithm string
	// Private is a private JWK, or a secret. A key that was revoked has none.
	Private []byte
	State   KeyState
	Created time.Time
	// Retires is when it signs no more, Expires when it verifies no more.
	Retires, Expires time.Time
}

// SecretAlgorithm is the Algorithm of what is no signing key, but a secret that all processes on
// a store share.
const SecretAlgorithm = "secret"

// A KeyState says what was done to a key. There is no way back:
//
//	KeyActive ──> KeyRetired ──> KeyRevoked
//	    └───────────────────────────^
type KeyState string

// The states of a key.
const (
	KeyActive  KeyState = ""        // signs and verifies in its time
	KeyRetired KeyState = "retired" // signs no more, whatever the clock says
	KeyRevoked KeyState = "revoked" // neither signs nor verifies
)
