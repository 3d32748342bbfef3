package login

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/principal"
)

// An Error is what ended the way to a token. Requests through [Client.Transport], [Client.SignIn]
// and [Source.Token] return it, unless their own context has ended; it may wrap a
// *[SignInRequiredError], *[DiscoveryError] or *[AuthorizationError].
type Error struct {
	// Resource is the URL that a token was needed for, without query.
	Resource string
	// Retry says that the same may succeed later, without a person: a network or a server was in
	// trouble. Otherwise access is denied, and errors.Is finds transport.ErrDenied.
	Retry bool
	// Err is the reason.
	Err error

	doing string // what was being done; may be empty
}

// Error says what was being done, and why it ended.
func (e *Error) Error() string {
	return optional("", e.doing, ": ") + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Is lets errors.Is find transport.ErrDenied.
func (e *Error) Is(target error) bool { return target == principal.ErrDenied && !e.Retry }

// NotRun tells transports that the request was not carried out: it was not sent, or refused.
func (e *Error) NotRun() bool { return true }

// newError is the error of what a caller did in ctx.
func newError(ctx context.Context, resource, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &Error{Resource: redactURL(resource), Retry: isTransient(err), Err: err, doing: doing}
}

// unreachable is the error of a fetch that brought no answer.
func unreachable(err error) error {
	if _, blocked := errors.AsType[*oauth.BlockedError](err); blocked {
		return err
	}
	return &Error{Retry: true, Err: err}
}

// isTransient reports whether trying again may help, without a person.
func isTransient(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Retry
}

// A SignInRequiredError says that a person would have to sign in, and that nobody may be asked.
type SignInRequiredError struct {
	// Resource is what needs it; Issuer the authorization server, if known.
	Resource, Issuer string
	// Scopes are what would be asked for.
	Scopes []string
	// Why says what led to it.
	Why Reason
}

// Error says what is missing.
func (e *SignInRequiredError) Error() string {
	more := ""
	if e.Why == ReasonStepUp {
		more = " for more scopes"
	}
	return e.Resource + " needs a person to sign in" + optional(" at ", e.Issuer, "") + more + optional(" (scopes: ", oauth.JoinScope(e.Scopes), ")")
}

// isSignInRequired reports whether err says that nobody may be asked.
func isSignInRequired(err error) bool {
	return errors.As(err, new(*SignInRequiredError))
}

// optional is a part of a text that may be missing.
func optional(before, s, after string) string {
	if s == "" {
		return ""
	}
	return before + s + after
}

// A Step is a step of the way to a token.
type Step string

// Steps, in the order in which they are taken.
const (
	StepResource  Step = "request"           // asking the resource itself
	StepMetadata  Step = "resource metadata" // RFC 9728
	StepChoice    Step = "choice of authorization server"
	StepServer    Step = "authorization server metadata" // RFC 8414
	StepPKCE      Step = "PKCE"
	StepRegister  Step = "registration"
	StepAuthorize Step = "authorization"
	StepToken     Step = "token"
)

// A DiscoveryError says at which step the way to a token ended, and what can be done about it.
type DiscoveryError struct {
	Step Step
	// URL is what was fetched or looked at, without query.
	URL string
	// Rule is the rule that the other side broke, with its source; it may be empty.
	Rule string
	// Advice says how to get past it.
	Advice string
	Err    error
}

// Error says step, place, cause, rule and advice.
func (e *DiscoveryError) Error() string {
	cause := ""
	if e.Err != nil {
		cause = e.Err.Error()
	}
	return string(e.Step) + optional(" at ", e.URL, "") + optional(": ", cause, "") + optional(" (", e.Rule, ")") + optional("; ", e.Advice, "")
}

// Unwrap returns the cause.
func (e *DiscoveryError) Unwrap() error { return e.Err }

// newDiscoveryError is a DiscoveryError about a URL.
func newDiscoveryError(step Step, place string, err error, rule, advice string) *DiscoveryError {
	return &DiscoveryError{Step: step, URL: redactURL(place), Err: err, Rule: rule, Advice: advice}
}

// What is said in several places.
const (
	adviceTellServer     = "tell the server's operator"
	adviceTellResource   = "tell the resource's operator"
	adviceKey            = "if it takes a key, set the Authorization header yourself"
	ruleResourceMetadata = "spec basic/authorization: MCP servers MUST implement protected resource metadata"
	ruleServerMetadata   = "spec basic/authorization: it MUST provide RFC 8414 metadata or OpenID Connect discovery"
)

// An AuthorizationError says that an authorization response brought no code that may be used.
type AuthorizationError struct {
	// Issuer is the server that was asked.
	Issuer string
	// Code and Description are what the server said, if the response is its own (RFC 9207).
	Code, Description string
	// Reason is our own account, if the response broke a rule.
	Reason string
}

// Error says what happened and, where it is known, what to do.
func (e *AuthorizationError) Error() string {
	text := "authorization at " + e.Issuer
	switch {
	case e.Reason != "":
		return text + ": " + e.Reason
	case e.Code == oauth.AccessDenied:
		text += " was denied"
	default:
		text += ": " + e.Code
	}
	return text + optional(": ", e.Description, "")
}

// Is lets errors.Is compare with an *oauth.Error by code.
func (e *AuthorizationError) Is(target error) bool {
	o, ok := target.(*oauth.Error)
	return ok && e.Code != "" && o.Code == e.Code
}

// printable makes a foreign text fit for a line of an error: bounded, without control characters.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r != unicode.ReplacementChar && unicode.IsPrint(r):
			return r
		}
		return '?'
	}, s[:min(len(s), limit)])
	return strings.TrimSpace(s)
}

// redactURL is a URL without what may be secret or long: query, fragment, user.
func redactURL(raw string) string {
	raw, _, _ = strings.Cut(raw, "#")
	raw, _, _ = strings.Cut(raw, "?")
	return printable(userOfURL.ReplaceAllString(raw, "$1"), 512)
}

var userOfURL = regexp.MustCompile(`^(.*?://)[^/]*@`)
