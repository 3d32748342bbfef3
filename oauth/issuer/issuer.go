package issuer

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// Options adjust a Server. The zero value, and nil, are safe: no client can
// register, no resource is served, nothing is trusted. A time or number that
// is zero is its default.
type Options struct {
	// Resources are the protected resources that tokens are issued for. A
	// request for another is refused with invalid_target; one without a
	// resource is for the only one, if there is one alone. Default none.
	Resources []Resource
	// MoreResources tells resources beside these, of a database say, which may change
	// while the server runs: it is asked once a second at most. Those that cannot be, or
	// have the URI of another, are left out; an error fails the requests that need a
	// resource. Their AccessLifetime is at most AccessLifetime, or that of the longest of
	// Resources. Default: none.
	MoreResources func(ctx context.Context) ([]Resource, error)
	// Clients are registered by configuration. Default none.
	Clients []StaticClient
	// Documents says which client ID metadata documents are taken. Default:
	// any, under the rules of the specification.
	Documents DocumentPolicy
	// Registration says which clients may register dynamically (deprecated in the
	// newest revision). Default: none.
	Registration RegistrationPolicy
	// Assertions are the issuers whose JWTs are taken as grants: of
	// enterprises (ID-JAG) and of workloads. Default none.
	Assertions []AssertionIssuer
	// SigningAlgorithm is ES256, EdDSA or RS256. Default ES256.
	SigningAlgorithm string
	// KeyLifetime is how long a key signs. Its successor is published
	// beforehand, and itself until the last token has expired. Default 30 days.
	KeyLifetime time.Duration
	// CodeLifetime: default 60 s. AccessLifetime: default 10 min, unless the
	// resource says. RefreshLifetime is that of the whole family: default 30
	// days. RefreshIdle is how long a refresh token may lie unused: default 14 days.
	CodeLifetime, AccessLifetime, RefreshLifetime, RefreshIdle time.Duration
	// RefreshGrace is how long after its rotation a refresh token yields the same
	// successor once more, as long as nobody has used that: for clients that lost the
	// answer, or of several processes that race. Default 0: its reuse revokes the
	// family (RFC 9700, section 4.14.2), also if the client lost the answer.
	RefreshGrace time.Duration
	// ConsentLifetime is how long a consent is remembered, so that the same
	// request of the same client is not asked again. Default 30 days; -1: never
	// remembered. Dynamic clients on loopback are always asked.
	ConsentLifetime time.Duration
	// LoginLifetime is how long a browser stays signed in. Default 8 h.
	LoginLifetime time.Duration
	// Subjects is asked whether the person is still there, before a browser
	// counts as signed in, a code is issued or redeemed, a refresh token
	// used, and a token that came from these introspected or exchanged; so a
	// person who was removed gets nothing more, in no process. Access tokens that
	// are out stay good to their end for those who verify them without
	// introspection. Default: all persons stay.
	Subjects Subjects
	// Groups tells the groups that a person is in now, for scopes that are for some; login are
	// the Person.Groups of the login. It is asked whenever such a scope is granted, refreshed or
	// introspected, so that who leaves a group has no more of it. Default: login.
	Groups func(ctx context.Context, subject string, login []string) ([]string, error)
	// Device says whether devices without a browser may ask for tokens (RFC
	// 8628). Default: they may not.
	Device DevicePolicy
	// DPoPNonce asks for nonces in DPoP proofs. Default false.
	DPoPNonce bool
	// TokenEndpointAudience takes client assertions whose audience is the token
	// endpoint instead of the issuer, as older clients send. Default false.
	TokenEndpointAudience bool
	// RateLimit is how many requests one client, and one address of those
	// that name no valid one, may make to an endpoint in a minute. Default 120; -1 none.
	RateLimit int
	// Audit is told what happened, without secrets. Default: Logger, at level
	// Info. It must not block. Of events that anybody can cause, such as
	// refused sign-ins, 100 of a kind are told one by one, and ten a minute;
	// those beyond that are counted, and told as one Event once a minute.
	Audit func(ctx context.Context, e Event)
	// Observe is told what happened too, of every event and at once, for metrics. It must not
	// block. Default: none.
	Observe func(ctx context.Context, e Event)
	// Fetch gets documents and keys. Default: oauth.NewFetcher(nil).
	Fetch *oauth.Fetcher
	// Loopback lets issuer and documents be http on loopback. Default: whether
	// the issuer is on loopback.
	Loopback bool
	// Upstream is what the consent page says about the site that an external
	// Login leaves for. Default: nothing but that the person will sign in there.
	Upstream Upstream
	// Remote tells the address that a request comes from, for rate limits and
	// the audit log: behind a proxy, out of the header that the proxy sets.
	// Default: the host of RemoteAddr.
	Remote func(*http.Request) string
	// Logger is told details that clients are not. Default: none.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// A Resource is a protected resource: an MCP server.
type Resource struct {
	// URI is its identifier, in canonical form ([oauth.CanonicalResource]).
	URI string
	// Name is for people. Default: the host of URI.
	Name string
	// Scopes are what may be granted.
	Scopes []Scope
	// Default are the scopes of a request that names none. Default: none.
	Default []string
	// AccessLifetime and RefreshLifetime override those of Options.
	AccessLifetime, RefreshLifetime time.Duration
	// NoRefresh issues no refresh tokens.
	NoRefresh bool
	// DPoP refuses bearer tokens.
	DPoP bool
	// Introspectors are the ids of confidential clients that may introspect
	// tokens for this resource. Default none.
	Introspectors []string
	// Since voids grants and consents from before: the resource was removed meanwhile.
	// Default: it was not.
	Since time.Time
	// ExchangeTo are the URIs of other resources, tokens for which the
	// Introspectors may get in exchange for one for this resource that a client
	// sent them (RFC 8693). They may have the Default scopes there, those of the
	// same name that the first token has, or, if there are any, the
	// StaticClient.Scopes of the introspector. Default none.
	ExchangeTo []string
}

// A Scope is something a client may be granted.
type Scope struct {
	Name string
	// Description tells the person what it allows. Default: the name.
	Description string
	// Implies are narrower scopes that it includes.
	Implies []string
	// Groups are those whose people alone may grant it, or a scope that implies it. A client
	// that acts for itself has it only if its own Scopes name it. Default: everybody may.
	Groups []string
	// Since voids the scope in grants and consents from before: it was removed meanwhile.
	// Default: it was not.
	Since time.Time
}

// A StaticClient is a client that the operator registers.
type StaticClient struct {
	ID string
	// Secret of a confidential client; empty for public ones and those with keys.
	Secret string
	// Metadata is what clients that register would send. Other than there (RFC
	// 7591, section 2: authorization_code alone), no GrantTypes are
	// authorization_code and refresh_token for a client with RedirectURIs, so
	// that people need not sign in whenever a token ends.
	Metadata oauth.ClientMetadata
	// Resources and Scopes bound what it may have. Default: all.
	Resources, Scopes []string
	// Subject is the subject of the client when it acts for itself. Default: its ID.
	Subject string
	// AccessLifetime and RefreshLifetime shorten those of the resource. Default: they do not.
	AccessLifetime, RefreshLifetime time.Duration
}

// A DocumentPolicy says which client ID metadata documents are taken.
type DocumentPolicy struct {
	// Off takes none.
	Off bool
	// Allow is asked for each document's URL, before it is fetched. Default: all.
	Allow func(url string) bool
	// MaxSize of a document in bytes. Default 16 KiB.
	MaxSize int
	// MaxCached is how many documents are remembered. Default 1,000. MaxAge
	// bounds what Cache-Control says: default 24 h.
	MaxCached int
	MaxAge    time.Duration
	// Fetch gets the documents. Default: a Fetcher that follows no redirects
	// and reads MaxSize. Documents that came by way of a redirect are refused
	// whatever Fetch does.
	Fetch *oauth.Fetcher
}

// An Upstream is the site that an external Login leaves for, as the consent
// page names it (spec, security best practices, "Confused Deputy Problem").
type Upstream struct {
	// Name is what people know the site by.
	Name string
	// Scopes are those that the site is asked for.
	Scopes []string
}

// A RegistrationPolicy says which clients may register dynamically.
type RegistrationPolicy struct {
	// On lets any client register.
	On bool
	// MaxClients is how many there may be. Beyond that those without a good grant
	// that expire first make room. Default 10,000.
	MaxClients int
	// Unused is how long a client stays that was never used. Default 24 h;
	// Used how long after its last use: default 90 days.
	Unused, Used time.Duration
	// MaxSize of a request in bytes. Default 16 KiB.
	MaxSize int
	// Schemes without a dot that redirect URIs of native clients may have, such
	// as "cursor", of all clients: those that register, of documents, and of the
	// configuration. Any app on a device can claim such a scheme, so RFC 8252,
	// section 7.1, wants a domain name in reverse, which is always taken. Default none.
	Schemes []string
}

// A DevicePolicy says how devices without a browser get tokens (RFC 8628).
type DevicePolicy struct {
	// On serves the device authorization endpoint, the page at which people enter
	// the code of their device, and the grant type, for clients that are registered
	// for [oauth.GrantDeviceCode]. Clients may then register for it themselves,
	// where they may register at all.
	On bool
	// Lifetime is how long a person has to enter the code. Default 10 min.
	Lifetime time.Duration
	// Interval is how long a device waits between two requests. Default 5 s.
	Interval time.Duration
}

// An AssertionIssuer signs JWTs that are taken as grants (RFC 7523).
type AssertionIssuer struct {
	// Issuer is the iss of the JWTs.
	Issuer string
	// JWKSURI is where its keys are. Default: as its metadata says.
	JWKSURI string
	// JWKS are its keys, instead of JWKSURI.
	JWKS []byte
	// Algorithms it may sign with. Default: all asymmetric ones.
	Algorithms []string
	// IDJAG says that it is an enterprise's identity provider, whose JWTs are
	// ID-JAGs for authenticated clients; otherwise it is a platform whose
	// workloads present their own JWTs. An ID-JAG without a scope gives at most
	// Resource.Default.
	IDJAG bool
	// Workload maps the subject of a workload's JWT to what it may do, or
	// refuses it with an error, which is logged. Required for workloads. For an
	// enterprise it may map the people: then ClientID is ignored, and Scopes, if
	// there are any, replace those of the assertion. Without it, their subject is
	// Issuer, "|" and the subject there, so that no enterprise speaks of the
	// people of another.
	Workload func(ctx context.Context, subject string, claims []byte) (*WorkloadGrant, error)
}

// A WorkloadGrant is what a workload may do.
type WorkloadGrant struct {
	ClientID, Subject string
	Scopes            []string
}

// An Event is a line of the audit log. It holds no secret.
type Event struct {
	// Name is what happened, such as "token.issued" or "refresh.reused".
	Name string
	// Outcome is "ok" or the OAuth error code.
	Outcome                          string
	Client, Subject, Grant, Resource string
	// SubjectName and ClientName are what the person and the client are called, where that is known
	// here; what a client that registered itself, or another site, says of them is not verified.
	SubjectName, ClientName string
	Scopes                  []string
	GrantType               string
	Remote                  string
	// Reason is what the log may know and the caller may not.
	Reason string
	// Count is how many events of this Name, Outcome and Reason this one stands for, which were not
	// told one by one; 0 is itself alone.
	Count int
}
