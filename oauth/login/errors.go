package login

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/parley-mcp/parley/internal/patience"
	"github.com/parley-mcp/parley/oauth"
)

// A SignInRequiredError says that a person would have to sign in, and that
// nobody may be asked.
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
	var s strings.Builder
	fmt.Fprintf(&s, "%s needs a person to sign in", e.Resource)
	if e.Issuer != "" {
		fmt.Fprintf(&s, " at %s", e.Issuer)
	}
	if e.Why == ReasonStepUp {
		s.WriteString(" for more scopes")
	}
	if len(e.Scopes) > 0 {
		fmt.Fprintf(&s, " (scopes: %s)", oauth.JoinScope(e.Scopes))
	}
	return s.String()
}

// Is lets errors.Is find transport.ErrDenied: trying again does not help.
func (*SignInRequiredError) Is(target error) bool { return target == patience.ErrDenied }

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

// A DiscoveryError says at which step the way to a token ended, and what can
// be done about it.
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
	var s strings.Builder
	s.WriteString(string(e.Step))
	if e.URL != "" {
		s.WriteString(" at " + e.URL)
	}
	if e.Err != nil {
		s.WriteString(": " + e.Err.Error())
	}
	if e.Rule != "" {
		s.WriteString(" (" + e.Rule + ")")
	}
	if e.Advice != "" {
		s.WriteString("; " + e.Advice)
	}
	return s.String()
}

// Unwrap returns the cause.
func (e *DiscoveryError) Unwrap() error { return e.Err }

// Is lets errors.Is find transport.ErrDenied, but where a server cannot be
// reached for the moment.
func (e *DiscoveryError) Is(target error) bool {
	return target == patience.ErrDenied && !isTransient(e.Err)
}

// An AuthorizationError says that an authorization response brought no code
// that may be used.
type AuthorizationError struct {
	// Issuer is the server that was asked.
	Issuer string
	// Code and Description are what the server said; both are empty if the
	// response cannot be trusted to be its own (RFC 9207).
	Code, Description string
	// Reason is our own account, if the response broke a rule.
	Reason string
}

// Error says what happened and, where it is known, what to do.
func (e *AuthorizationError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("authorization at %s: %s", e.Issuer, e.Reason)
	}
	said := fmt.Sprintf("authorization at %s: %s", e.Issuer, e.Code)
	if e.Code == oauth.AccessDenied {
		said = fmt.Sprintf("authorization at %s was denied", e.Issuer)
	}
	if e.Description != "" {
		said += ": " + e.Description
	}
	return said
}

// Is lets errors.Is compare with an *oauth.Error by code, and find
// transport.ErrDenied.
func (e *AuthorizationError) Is(target error) bool {
	o, ok := target.(*oauth.Error)
	return target == patience.ErrDenied || ok && e.Code != "" && o.Code == e.Code
}

// A deniedError is what ended the way to a token, as the error of a request:
// nothing that went wrong with the connection.
type deniedError struct{ err error }

func (e *deniedError) Error() string      { return "authorize a request: " + e.err.Error() }
func (e *deniedError) Unwrap() error      { return e.err }
func (*deniedError) Is(target error) bool { return target == patience.ErrDenied }

// A refusedError is what ended a sign-in that a person had been asked for.
type refusedError struct{ err error }

func (e *refusedError) Error() string      { return e.err.Error() }
func (e *refusedError) Unwrap() error      { return e.err }
func (*refusedError) Is(target error) bool { return target == patience.ErrDenied }

// isRefused reports whether a person was asked to sign in, and did not.
func isRefused(err error) bool {
	_, asked := errors.AsType[*refusedError](err)
	return asked
}

// A transientError is trouble of a network or a server, which may pass.
type transientError struct{ err error }

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

// unreachable is the error of a fetch that brought no answer.
func unreachable(err error) error {
	if _, blocked := errors.AsType[*oauth.BlockedError](err); blocked {
		return err
	}
	return &transientError{err}
}

// isTransient reports whether trying again may help, without a person.
func isTransient(err error) bool {
	_, passing := errors.AsType[*transientError](err)
	return passing && !isRefused(err)
}

// printable makes a stranger's text fit for a line of an error: bounded,
// without control characters or such that change how the rest is seen.
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

// bare is a URL without what may be secret or long: query, fragment, user.
func bare(raw string) string {
	raw, _, _ = strings.Cut(raw, "#")
	raw, _, _ = strings.Cut(raw, "?")
	if scheme, rest, ok := strings.Cut(raw, "://"); ok {
		host, path, slash := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		raw = scheme + "://" + host
		if slash {
			raw += "/" + path
		}
	}
	return printable(raw, 512)
}
