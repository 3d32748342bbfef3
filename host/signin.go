package host

import (
	"context"
	"errors"
	"slices"
)

// A SignIn is what the person is asked for before they are sent to an authorization server.
// All of it is a stranger's text.
type SignIn struct {
	// Resource is the address of what would be used with what the sign-in gives, and Issuer
	// the authorization server.
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	// Scopes are what is asked for; none leaves it to the authorization server.
	Scopes []string `json:"scopes,omitzero"`
	// More says that the person has signed in, and that this needs more scopes.
	More bool `json:"more,omitzero"`
	// Previous is the authorization server that was used before, if it was another one.
	Previous string `json:"previous,omitzero"`
}

// linkKey is the key of the link in the contexts of all requests to a server.
type linkKey struct{}

// errNoRequest says that a context is not that of a request to a server of a host.
var errNoRequest = errors.New("it is not known which server wants it")

// AskSignIn asks the person whether they want to sign in to a server of a host, in the session
// for which something is requested there, and reports whether they do. ctx is that of the HTTP
// request to the server, or has its values. The limits of time of the session's runs are paused
// meanwhile. The error says why nobody can be asked. It may be called by many goroutines at once.
func AskSignIn(ctx context.Context, in *SignIn) (bool, error) {
	l, ok := ctx.Value(linkKey{}).(*link)
	if !ok {
		return false, errNoRequest
	}
	c, err := l.whose(ctx)
	if err != nil {
		return false, err
	}
	if err := l.countQuestion(); err != nil {
		return false, err
	}
	asked := *in
	asked.Scopes = slices.Clone(in.Scopes)
	q := &Question{
		Kind: QuestionSignIn, Server: l.spec.Name, Origin: l.spec.Origin, Call: c.call, SignIn: &asked,
		Why: "the server lets in nobody whom it does not know",
	}
	if in.More {
		q.Why = "you have signed in, and this needs more scopes"
	}
	s := c.session
	a, err := s.ask(ctx, q, nil, nil)
	if err != nil {
		return false, err
	}
	event, why := "refused", "the person did not want to sign in"
	if a.Action == Approve {
		event, why = "approved", "the person agreed to sign in"
	}
	s.host.audit(ctx, &AuditEntry{Session: s.info.ID, Event: event, Server: l.spec.Name, Name: withoutQuery(in.Issuer), Why: why})
	return a.Action == Approve, nil
}

// DuringCall reports whether ctx is that of a request which a session makes for a call, or has
// its values.
func DuringCall(ctx context.Context) bool {
	c, ok := ctx.Value(sessionKey{}).(sessionCall)
	return ok && c.call != ""
}
