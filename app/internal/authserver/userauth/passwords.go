// Package userauth authenticates the user in the browser for an authorization
// server: with a password, or at another provider with OpenID Connect.
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
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/principal"
)

// Users are the people of an authorization server. It may be used by many
// goroutines at once.
type Users interface {
	// User returns the hash of a user's password, as of [HashPassword], the
	// subject, and the Person.Stamp of a sign-in now; issuer.ErrNotFound if there
	// is no such user, or, with the subject, one that may not sign in.
	User(ctx context.Context, name string) (hash, subject, stamp string, err error)
	// NormalName returns what all names that User takes for one have in common,
	// so that attempts under any of them count together.
	NormalName(name string) string
}

// PasswordOptions adjust Passwords. The zero value, and nil, are good.
type PasswordOptions struct {
	// Remote tells the address that a request comes from: behind a proxy, out
	// of the header that the proxy sets. Default: the host of RemoteAddr.
	Remote func(*http.Request) string
	// Changes lets people change their passwords. Default: they cannot.
	Changes PasswordChanges
	// Invitations lets those who were invited choose a password. Default: nobody was.
	Invitations Invitations
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Passwords is an issuer.Login that asks for name and password. Attempts are
// slowed down by user and by address, each process for itself, but for browsers
// where the user has signed in before with this password: a cookie, which is no
// login, gives each of them a count of its own, so that guesses from elsewhere
// do not shut a user out there. It takes as long for unknown users as for known
// ones.
type Passwords struct {
	users  Users
	remote func(*http.Request) string
	now    func() time.Time

	changes     PasswordChanges
	invitations Invitations

	hashing  *hashing
	throttle *throttle
	known    *throttle // for known browsers, so that others do not push their counts out
	// dummyHash is computed for unknown users.
	dummyHash string
}

var _ issuer.AccountLogin = (*Passwords)(nil)

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
		users: users, remote: options.Remote, now: options.Now, changes: options.Changes, invitations: options.Invitations,
		hashing: newHashing(), throttle: newThrottle(options.Now), known: newThrottle(options.Now), dummyHash: dummyHash(),
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
	if name == "" || len(name) > maxUserName || !possiblePassword(password) {
		// No user has such a name or password: no time to hide.
		v.Refused(r, "", errWrong.Error())
		p.show(w, v, http.StatusForbidden, name, textWrong)
		return
	}
	user := p.users.NormalName(name)
	attempt, known, wait := p.begin(r, v.URL, name, user)
	if wait > 0 {
		v.Refused(r, "", "too many attempts")
		retryAfter(w, wait)
		p.show(w, v, http.StatusTooManyRequests, name, textSlow)
		return
	}
	found, err := p.check(r.Context(), name, password)
	switch {
	case errors.Is(err, errWrong), errors.Is(err, errDisabled):
		v.Refused(r, found.subject, err.Error())
		p.show(w, v, http.StatusForbidden, name, textWrong)
	case errors.Is(err, errBusy):
		v.Refused(r, "", "too many sign in at once")
		attempt.forget()
		p.show(w, v, http.StatusServiceUnavailable, name, textBusy)
	case err != nil:
		attempt.forget()
		v.Fail(w, r, err)
	default:
		attempt.succeed()
		p.remember(w, v.URL, user, found.hash, known)
		v.Done(w, r, issuer.Person{Subject: found.subject, Name: user, AuthTime: p.now(), Stamp: found.stamp})
	}
}

func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
}

// begin begins an attempt under a name, whose normal form is user, or says how long it must wait.
// known is the id of a known browser.
func (p *Passwords) begin(r *http.Request, loginURL, name, user string) (a *attempt, known string, wait time.Duration) {
	if known = p.knownBrowser(r.Context(), r, loginURL, name, user); known != "" {
		a, wait = p.known.begin(knownBuckets(user, known))
		return a, known, wait
	}
	address := (&principal.Principal{Remote: p.remote(r)}).LimitKey()
	a, wait = p.throttle.begin(unknownBuckets(user, address))
	return a, "", wait
}

// Why a sign-in was refused. The user is told the same of both.
var (
	errWrong    = errors.New("name or password is wrong")
	errDisabled = errors.New("the user is disabled")
)

// A foundUser is what Users returns.
type foundUser struct{ hash, subject, stamp string }

// check returns the user whose password this is, or errWrong or errDisabled after the same work, with
// the subject if there is such a user.
func (p *Passwords) check(ctx context.Context, name, password string) (u foundUser, err error) {
	u.hash, u.subject, u.stamp, err = p.users.User(ctx, name)
	known := err == nil
	switch {
	case errors.Is(err, issuer.ErrNotFound):
		u.hash = p.dummyHash
	case err != nil:
		return foundUser{}, fmt.Errorf("look for user: %w", err)
	}
	ok, err := p.hashing.verify(ctx, u.hash, password)
	if err != nil {
		return foundUser{}, err
	}
	switch {
	case !known && u.subject != "":
		return foundUser{subject: u.subject}, errDisabled
	case !ok || !known:
		return foundUser{subject: u.subject}, errWrong
	}
	return u, nil
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
	err := passwordPage().Execute(&body, &passwordForm{
		Action: v.Action(""), CSRF: v.CSRF(), Name: name, Wrong: wrong, Client: cmp.Or(v.Client, v.Host), Verified: v.Verified,
	})
	if err != nil {
		http.Error(w, "something went wrong", http.StatusInternalServerError)
		return
	}
	v.Page(w, status, "Sign in", template.HTML(body.String()))
}

var passwordPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("password").Parse(`{{if .Client}}<p>to continue to <strong>{{.Client}}</strong>
{{- if not .Verified}} <span class="mark">unverified</span>{{end}}</p>
{{end}}{{if .Wrong}}<p class="warn" role="alert">{{.Wrong}}</p>
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
})
