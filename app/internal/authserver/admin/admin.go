// Package admin implements the administration of an authorization server: one table of
// verbs, from which the program's commands and an HTTP API are generated.
package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Options adjust an Admin. The zero value, and nil, are good for tests.
type Options struct {
	// Audit is told of each act, and of each request to the API that was refused. It must
	// not block. Default: nobody is told.
	Audit func(ctx context.Context, act Act)
	// Ready reports whether Audit can be told: while it is false, what would change something is
	// Unavailable. Default: it always can.
	Ready func() bool
	// Issuer returns the URL of the authorization server, for links; "" if it is not known (yet).
	// Default: it is not known.
	Issuer func() string
	// AuditFile is the file that Audit writes to, for the verbs that read it, and AuditKey the key
	// that authenticates its lines, if it has one. Default: there is no file.
	AuditFile string
	AuditKey  []byte
	// NoPasswords says why the server looks at no passwords, and what to do instead. Verbs that give
	// a user one are refused with it. Default: it looks at them.
	NoPasswords string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// An Act is what an operator did or tried. It holds no secret.
type Act struct {
	// Verb is the path of the verb.
	Verb string
	// Actor is the operator: "uid 1000" or "key".
	Actor string
	// Parameters are those of the verb.
	Parameters map[string]any
	// Subject is that of the user who was changed, if it was one.
	Subject string
	// Outcome is "ok" or the code of the error.
	Outcome string
}

// An Admin does the verbs on the records of an authorization server. It may be used by many
// goroutines at once.
type Admin struct {
	db      *records.DB
	opts    Options
	readers chan struct{} // one element for each request that reads the audit
}

// New returns an Admin. Options may be nil.
func New(db *records.DB, o *Options) *Admin {
	a := &Admin{db: db, readers: make(chan struct{}, maxReaders)}
	if o != nil {
		a.opts = *o
	}
	if a.opts.Now == nil {
		a.opts.Now = time.Now
	}
	if a.opts.Issuer == nil {
		a.opts.Issuer = func() string { return "" }
	}
	if a.opts.Audit == nil {
		a.opts.Audit = func(context.Context, Act) {}
	}
	if a.opts.Ready == nil {
		a.opts.Ready = func() bool { return true }
	}
	return a
}

// Run does a verb for an actor. Its parameters are a JSON object. An error that the actor can
// do something about is an *Error. Verbs that stream are for Stream.
func (a *Admin) Run(ctx context.Context, actor string, v *Verb, parameters []byte) (Result, error) {
	return a.Stream(ctx, actor, v, parameters, func([]byte) error { return errors.New("the verb returns lines") })
}

// Stream does a verb as Run does. What the verb answers with before the result goes to write, line by
// line; a line is valid until write returns.
func (a *Admin) Stream(
	ctx context.Context, actor string, v *Verb, parameters []byte, write func(line []byte) error,
) (Result, error) {
	if !v.Reads && !a.opts.Ready() {
		return nil, errorf(Unavailable, "the server cannot write its audit and makes no changes without it; see the server's log")
	}
	act := Act{Verb: v.Path, Actor: actor, Outcome: "ok"}
	input, err := v.decode(parameters)
	var result Result
	if err == nil {
		act.Parameters = v.visible(input)
		result, err = v.do(ctx, a, input, write)
	}
	if err != nil {
		act.Outcome = string(codeOf(err))
	}
	if changed, ok := result.(*UserChange); ok && err == nil {
		act.Subject = changed.Subject
	}
	if err != nil || !v.Reads {
		a.opts.Audit(ctx, act)
	}
	return result, err
}

// A Code says what kind of error it is, to programs.
type Code string

// The codes of errors.
const (
	Invalid      Code = "invalid"      // the parameters are wrong
	NotFound     Code = "not_found"    // what they name is not there
	Conflict     Code = "conflict"     // it is there already, or was changed meanwhile
	Unauthorized Code = "unauthorized" // the API does not know the caller
	Forbidden    Code = "forbidden"    // the API does not take such requests
	Internal     Code = "internal"     // the server cannot do its work
	Unavailable  Code = "unavailable"  // nor for now
)

// statuses are those of HTTP for codes.
var statuses = map[Code]int{
	Invalid: http.StatusBadRequest, NotFound: http.StatusNotFound, Conflict: http.StatusConflict,
	Unauthorized: http.StatusUnauthorized, Forbidden: http.StatusForbidden, Internal: http.StatusInternalServerError,
	Unavailable: http.StatusServiceUnavailable,
}

// An Error is one that the operator can do something about.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	err     error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.err }

func errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), err: errors.Unwrap(err)}
}

func codeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// absent makes an error that names what is not there of issuer.ErrNotFound.
func absent(err error, format string, args ...any) error {
	if errors.Is(err, issuer.ErrNotFound) {
		return errorf(NotFound, format, args...)
	}
	return err
}
