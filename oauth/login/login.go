// Package login signs a client in to protected resources: it follows the challenges of a resource
// server to its authorization server, registers, takes the person through the browser, keeps and
// refreshes tokens, and puts them on requests.
//
//	signIn := login.New(&login.Options{ClientName: "My app"})
//	d := streamable.URL("https://api.example/mcp")
//	d.Client = signIn.HTTPClient(nil)
//	c, err := client.Connect(ctx, d, nil)
//
// [Client.Source] gives tokens for other uses, [Options].Grant is for programs without a person,
// and [Client.Diagnose] says why signing in does not work. spec 2026-07-28, basic/authorization.
package login

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login/browser"
)

// A Client signs in to protected resources, keeps the tokens, and puts them on requests. One Client
// serves any number of resources; tokens, registrations and authorization servers are kept apart by
// resource and issuer. It may be used by many goroutines at once.
type Client struct {
	o     Options
	log   *slog.Logger
	local *oauth.Fetcher // o.Fetch that may dial loopback addresses

	resources table
}

// Options adjust a Client. The zero value, and nil, are useful.
type Options struct {
	// Store keeps tokens and registrations. Default NewMemory(): they last as long as the process.
	Store Store
	// Authorizer takes the person through the browser. Default browser.NewReceiver(nil).
	Authorizer Authorizer
	// Device shows a person a code to sign in with in a browser on another device (RFC 8628), in the
	// place of the Authorizer: for machines that no browser can reach. Default nil: the Authorizer.
	Device func(ctx context.Context, p DevicePrompt) error
	// Fetch makes all requests but those to resources. Default oauth.NewFetcher(nil).
	Fetch *oauth.Fetcher

	// ClientName and ClientURI are shown to people by the authorization server, if it registers
	// clients dynamically. Default "Parley" and none.
	ClientName, ClientURI string
	// SoftwareID and SoftwareVersion name this program across registrations. Default none.
	SoftwareID, SoftwareVersion string
	// DocumentURL is the address of this client's metadata document, and its client id at servers
	// that support these; DocumentRedirects are the redirect URIs in it. Default none.
	DocumentURL       string
	DocumentRedirects []string
	// DocumentSigner is the key of a client whose metadata document says private_key_jwt, with the
	// public half there under its RFC 7638 thumbprint. Default nil: the document says none.
	DocumentSigner crypto.Signer
	// Credentials are those of clients registered beforehand, one for an issuer. Default none.
	Credentials []Credentials
	// CredentialsFor returns those for an issuer that Credentials has none for, or nil: for a client
	// whose issuer is known only once a resource names it. It may be called by many goroutines, at
	// any time. What it returns is used at that issuer alone; with a Grant no person has seen the
	// issuer before. Default none.
	CredentialsFor func(issuer string) *Credentials
	// NoRegistration never registers dynamically. Default false.
	NoRegistration bool

	// Grant obtains tokens without a person. Default nil: codes, through the Authorizer.
	Grant Grant
	// Scopes are asked for besides those the resource wants. Default none.
	Scopes []string
	// ChooseServer picks one of several authorization servers that a resource names. Default: the
	// one used before, else the first that there are Credentials for, else the first.
	ChooseServer func(ctx context.Context, issuers []string) (string, error)
	// Confirm may refuse to send a person to a browser, by an error. After one that wraps a
	// *SignInRequiredError, which says that nobody could be asked, the next request asks again;
	// after another one requests do not ask for a minute. Default nil: never.
	Confirm func(ctx context.Context, p Prompt) error
	// NonInteractive returns a *SignInRequiredError instead of asking a person. Default false.
	NonInteractive bool

	// DPoP binds tokens to a fresh key (RFC 9449) where the authorization server supports it.
	// Resources that demand it get it in any case. Default false.
	DPoP bool
	// StepUps is how often one operation of one resource may lead to asking for more scopes, until
	// one of these helps; -1 is never. Default 3.
	StepUps int
	// Margin is the life in a token at which it is refreshed. Default 30 s.
	Margin time.Duration
	// SignInTimeout bounds one sign-in, from discovery to the token. Default 5 min, with Device 15 min.
	SignInTimeout time.Duration

	// Loopback lets resources elsewhere name authorization servers on this machine. Default false.
	Loopback bool
	// MetadataOrigins are further origins, such as https://meta.example, where a challenge may point
	// to for the metadata of a resource. Default none: the origin of the resource alone.
	MetadataOrigins []string
	// NoLegacy refuses resources without metadata, for which the oldest revision with authorization
	// makes the resource's own origin the authorization server. Default false.
	NoLegacy bool
	// ProtocolVersion is the value of MCP-Protocol-Version in discovery for such resources. Default:
	// that of the request that was refused, if any.
	ProtocolVersion string

	// Logger gets what happens, never secrets. Default: none.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// An Authorizer takes the person through the browser. It may be used by many goroutines at once.
type Authorizer interface {
	// Begin makes ready to receive one authorization response. registered are redirect URIs that the
	// server knows already, so that one of them is used if it can be; it may be empty.
	Begin(ctx context.Context, registered []string) (Visit, error)
}

// A Visit is one authorization request in the person's browser.
type Visit = browser.Visit

// A Prompt says what a person is about to be asked for.
type Prompt struct {
	// Resource is what will be accessed.
	Resource string
	// Issuer is the authorization server that the browser is sent to.
	Issuer string
	// Scopes are what is asked for; empty leaves it to the server.
	Scopes []string
	// Why says what led to it.
	Why Reason
	// PreviousIssuer is the server used before, if Why is ReasonServerChanged.
	PreviousIssuer string
}

// A Reason says why a sign-in is needed.
type Reason string

// Reasons of sign-ins.
const (
	// ReasonSignIn is that there are no tokens, or none that work any more.
	ReasonSignIn Reason = "sign-in"
	// ReasonStepUp is that an operation needs more scopes.
	ReasonStepUp Reason = "step-up"
	// ReasonServerChanged is that the resource names another authorization server than before.
	// Nothing of the old one is sent to the new one.
	ReasonServerChanged Reason = "server-changed"
)

// ErrClosed is the error of a Client that was closed.
var ErrClosed = errors.New("login client is closed")

// New makes a Client. Nothing is sent before it is needed.
func New(o *Options) *Client {
	c := &Client{}
	if o != nil {
		c.o = *o
	}
	c.o.Store = fallbackStore{cmp.Or[Store](c.o.Store, NewMemory()), NewMemory(), NewMemory()}
	c.o.Authorizer = cmp.Or[Authorizer](c.o.Authorizer, browser.NewReceiver(nil))
	c.o.Fetch = cmp.Or(c.o.Fetch, oauth.NewFetcher(nil))
	if c.o.Now == nil {
		c.o.Now = time.Now
	}
	c.o.ClientName = cmp.Or(c.o.ClientName, "Parley")
	c.o.StepUps = cmp.Or(c.o.StepUps, 3)
	c.o.Margin = cmp.Or(c.o.Margin, 30*time.Second)
	if c.o.Device != nil { // servers commonly give a person 10 to 30 minutes
		c.o.SignInTimeout = cmp.Or(c.o.SignInTimeout, 15*time.Minute)
	}
	c.o.SignInTimeout = cmp.Or(c.o.SignInTimeout, 5*time.Minute)
	c.log = cmp.Or(c.o.Logger, slog.New(slog.DiscardHandler))
	c.local = c.o.Fetch.Loopback()
	return c
}

// Close ends what is under way, waits for it, and closes idle connections. Requests that come later
// and have no token that lasts fail with ErrClosed.
func (c *Client) Close() error {
	c.resources.close()
	c.local.Close()
	c.o.Fetch.Close()
	return nil
}

// Format writes what it is for each verb: it has secrets.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "login client") }

// fetcher is the one for a resource, which may be on this machine. Attack: SSRF in discovery.
func (c *Client) fetcher(resource string) *oauth.Fetcher {
	if c.o.Loopback || onLoopback(resource) {
		return c.local
	}
	return c.o.Fetch
}

func onLoopback(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && oauth.LoopbackHost(u.Hostname())
}
