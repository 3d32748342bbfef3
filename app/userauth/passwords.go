// Package userauth authenticates the person at the browser of an authorization
// server: by a password, or at another provider with OpenID Connect.
package userauth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/principal"
)

// Users are the people of an authorization server. It may be used by many
// goroutines at once.
type Users interface {
	// User returns the hash of a user's password, as of [HashPassword], and
	// the subject; issuer.ErrNotFound if there is no such user.
	User(ctx context.Context, name string) (hash, subject string, err error)
}

// PasswordOptions adjust Passwords. The zero value, and nil, are good.
type PasswordOptions struct {
	// Remote tells the address that a request comes from: behind a proxy, out
	// of the header that the proxy sets. Default: the host of RemoteAddr.
	Remote func(*http.Request) string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Passwords is an issuer.Login that asks for name and password. Attempts are
// slowed down by user and by address, each process for itself, but for browsers
// where the user has signed in before with this password: a cookie, which is no
// login, gives each of them a count of its own, so that guesses from elsewhere
// do not shut a user out there. It takes as long for unknown users as for known
// ones. Its Person.Stamp is issuer.Hash of the password's hash, for
// Options.Subjects of the issuer.
type Passwords struct {
	users  Users
	remote func(*http.Request) string
	now    func() time.Time

	hashing  *hashing
	throttle *throttle
	known    *throttle // for known browsers, so that others do not push their counts out
	// dummyHash is computed for unknown users.
	dummyHash string
}

var _ issuer.Login = (*Passwords)(nil)

// NewPasswords returns a Login. Options may be nil.
func NewPasswords(users Users, o *PasswordOptions) *Passwords {
	var options PasswordOptions
	if o != nil {
		options = *o
	}
	if options.Remote == nil {
		options.Remote = remoteHost
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Passwords{
		users: users, remote: options.Remote, now: options.Now,
		hashing: newHashing(), throttle: newThrottle(options.Now), known: newThrottle(options.Now), dummyHash: dummyHash,
	}
}

func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// External implements issuer.Login: the browser stays here.
func (p *Passwords) External() bool { return false }

// maxUserName is the size in bytes of the longest name that is looked for.
const maxUserName = 255

// What people are told. Names and passwords are wrong in one text, so that
// the existence of a name is not revealed.
const (
	textWrong = "Name or password is wrong."
	textSlow  = "Too many attempts. Wait a little and try again."
	textBusy  = "Too many people sign in right now. Try again in a moment."
)

// ServeLogin implements issuer.Login.
func (p *Passwords) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	if r.Method != http.MethodPost {
		p.show(w, v, http.StatusOK, v.Hint, "")
		return
	}
	if r.PostForm.Get("answer") == "cancel" {
		v.Cancel(w, r)
		return
	}
	name, password := r.PostForm.Get("name"), r.PostForm.Get("password")
	if name == "" || len(name) > maxUserName || checkPassword(password) != nil {
		// No user has such a name or password: no time to hide.
		p.show(w, v, http.StatusForbidden, name, textWrong)
		return
	}
	attempt, known, wait := p.begin(r, v, name)
	if wait > 0 {
		v.Refused(r, "too many attempts")
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		p.show(w, v, http.StatusTooManyRequests, name, textSlow)
		return
	}
	subject, stamp, err := p.check(r.Context(), name, password)
	switch {
	case errors.Is(err, errWrong):
		v.Refused(r, errWrong.Error())
		p.show(w, v, http.StatusForbidden, name, textWrong)
	case errors.Is(err, errBusy):
		attempt.forget()
		p.show(w, v, http.StatusServiceUnavailable, name, textBusy)
	case err != nil:
		attempt.forget()
		v.Fail(w, r, err)
	default:
		attempt.succeed()
		p.remember(w, v, name, stamp, known)
		v.Done(w, r, issuer.Person{Subject: subject, Name: name, AuthTime: p.now(), Stamp: stamp})
	}
}

// begin begins an attempt, or says how long it must wait. known is the id of a
// known browser.
func (p *Passwords) begin(r *http.Request, v *issuer.Visit, name string) (a *attempt, known string, wait time.Duration) {
	if known = p.knownBrowser(r.Context(), r, v, name); known != "" {
		a, wait = p.known.begin(knownBuckets(name, known))
		return a, known, wait
	}
	address := (&principal.Principal{Remote: p.remote(r)}).LimitKey()
	a, wait = p.throttle.begin(unknownBuckets(name, address))
	return a, "", wait
}

var errWrong = errors.New("name or password is wrong")

// check returns the subject of a user whose password this is, and the stamp
// that goes with it, or errWrong after the same work.
func (p *Passwords) check(ctx context.Context, name, password string) (subject, stamp string, err error) {
	hash, subject, err := p.users.User(ctx, name)
	known := err == nil
	switch {
	case errors.Is(err, issuer.ErrNotFound):
		hash = p.dummyHash
	case err != nil:
		return "", "", fmt.Errorf("look for user: %w", err)
	}
	ok, err := p.hashing.verify(ctx, hash, password)
	if err != nil {
		return "", "", err
	}
	if !ok || !known {
		return "", "", errWrong
	}
	return subject, issuer.Hash(hash), nil
}

type passwordForm struct {
	Action, CSRF, Name, Wrong, Client string
	Verified                          bool
}

// show answers with the form. html/template escapes what is in it.
func (p *Passwords) show(w http.ResponseWriter, v *issuer.Visit, status int, name, wrong string) {
	if len(name) > maxUserName {
		name = ""
	}
	var body bytes.Buffer
	err := passwordPage.Execute(&body, &passwordForm{
		Action: v.Action(""), CSRF: v.CSRF(), Name: name, Wrong: wrong, Client: cmp.Or(v.Client, v.Host), Verified: v.Verified,
	})
	if err != nil {
		http.Error(w, "something went wrong", http.StatusInternalServerError)
		return
	}
	v.Page(w, status, "Sign in", template.HTML(body.String()))
}

var passwordPage = template.Must(template.New("password").Parse(`<p>to continue to <strong>{{.Client}}</strong>
{{- if not .Verified}} <span class="mark">unverified</span>{{end}}</p>
{{if .Wrong}}<p class="warn" role="alert">{{.Wrong}}</p>
{{end}}<form method="post" action="{{.Action}}">
<input type="hidden" name="csrf" value="{{.CSRF}}">
<label for="name">Name</label>
<input id="name" name="name" value="{{.Name}}" maxlength="255" autocomplete="username" autocapitalize="none" spellcheck="false" required{{if not .Name}} autofocus{{end}}>
<label for="password">Password</label>
<input id="password" name="password" type="password" maxlength="1024" autocomplete="current-password" required{{if .Name}} autofocus{{end}}>
<div class="row">
<button class="key" name="answer" value="sign-in">Sign in</button>
<button name="answer" value="cancel" formnovalidate>Cancel</button>
</div>
</form>`))
