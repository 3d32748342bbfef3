package userauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// PasswordChanges are users who may change their passwords. It may be used by many goroutines at
// once.
type PasswordChanges interface {
	// PasswordOf returns the name of the user with a subject and the hash of the password, or
	// issuer.ErrNotFound if there is none who may sign in.
	PasswordOf(ctx context.Context, subject string) (name, hash string, err error)
	// ChangePassword replaces the hash of a password, which must still be old, or it is
	// issuer.ErrNotFound; it ends all that began with the old one, and returns the Person.Stamp of
	// a sign-in now.
	ChangePassword(ctx context.Context, subject, old, hash string) (stamp string, err error)
}

// Invitations are those of users who have no password yet, or may reset it. A link holds a secret of
// which the hash, as of issuer.Hash, is stored. It may be used by many goroutines at once.
type Invitations interface {
	// Invitation returns whose invitation it is, and when it expires, which may be over;
	// issuer.ErrNotFound if there is none any more.
	Invitation(ctx context.Context, hash string) (name string, expires time.Time, err error)
	// AcceptInvitation gives the user a password, of which the hash is given. Of any number of
	// callers one succeeds; issuer.ErrNotFound for the others and for what has expired.
	AcceptInvitation(ctx context.Context, hash, password string, now time.Time) (subject string, err error)
}

// The names of the account pages.
const (
	pagePassword   = "password"
	pageInvitation = "invitation"
)

// InvitationLink is where one who was invited with a secret chooses a password.
func InvitationLink(issuerURL, secret string) string {
	return strings.TrimSuffix(issuerURL, "/") + "/account/" + pageInvitation + "?" + url.Values{"code": {secret}}.Encode()
}

// AccountPages implements issuer.AccountLogin: the pages of what the options have.
func (p *Passwords) AccountPages() []issuer.AccountPage {
	var pages []issuer.AccountPage
	if p.changes != nil {
		pages = append(pages, issuer.AccountPage{
			Name: pagePassword, Link: "Change your password", Serve: p.servePassword,
			Done: "Your password is changed. All other browsers are signed out, and no application has access any more.",
		})
	}
	if p.invitations != nil {
		pages = append(pages, issuer.AccountPage{Name: pageInvitation, Open: true, Serve: p.serveInvitation})
	}
	return pages
}

// More texts for people.
const (
	textOldWrong = "This is not your password."
	textTwo      = "The two new passwords are not the same."
	textSame     = "The new password is the old one."
	textChanged  = "Your password was changed meanwhile. Try again with the new one."
)

var textRules = "A" + strings.TrimPrefix(passwordRules, "a") + "."

// newPassword returns the new password of a form, or what is wrong with it, and in which field.
func newPassword(form url.Values) (password, wrong, field string) {
	password = form.Get("new")
	switch {
	case checkPassword(password) != nil:
		return "", textRules, "new"
	case normalPassword(form.Get("again")) != normalPassword(password):
		return "", textTwo, "again"
	}
	return password, "", ""
}

// servePassword lets a user who is signed in change the password, who knows the old one: a
// session that somebody found open is not enough.
func (p *Passwords) servePassword(w http.ResponseWriter, r *http.Request, v *issuer.AccountVisit) {
	ctx := r.Context()
	name, old, err := p.changes.PasswordOf(ctx, v.Person.Subject)
	if err != nil {
		v.Fail(w, r, fmt.Errorf("look for the user: %w", err))
		return
	}
	show := func(status int, wrong, field string) {
		p.showForm(w, v, status, &accountForm{Title: "Change your password", Name: name, Old: true, Wrong: wrong, Field: field})
	}
	if r.Method != http.MethodPost {
		show(http.StatusOK, "", "old")
		return
	}
	given := r.PostForm.Get("old")
	password, wrong, field := newPassword(r.PostForm)
	if wrong == "" && normalPassword(given) == normalPassword(password) {
		wrong, field = textSame, "new"
	}
	if wrong != "" {
		show(http.StatusBadRequest, wrong, field)
		return
	}
	user := p.users.NormalName(name)
	attempt, known, wait := p.begin(r, v.LoginURL, name, user)
	if wait > 0 {
		v.Refused(r, v.Person.Subject, "too many attempts")
		retryAfter(w, wait)
		show(http.StatusTooManyRequests, textSlow, "old")
		return
	}
	stamp, hash, err := p.change(ctx, v.Person.Subject, old, given, password)
	if err != nil && !errors.Is(err, errWrong) {
		attempt.forget()
	}
	switch {
	case errors.Is(err, errWrong):
		v.Refused(r, v.Person.Subject, "the old password is wrong")
		show(http.StatusForbidden, textOldWrong, "old")
	case errors.Is(err, errBusy):
		show(http.StatusServiceUnavailable, textBusy, "old")
	case errors.Is(err, issuer.ErrNotFound):
		show(http.StatusConflict, textChanged, "old")
	case err != nil:
		v.Fail(w, r, err)
	default:
		attempt.succeed()
		v.Done(r, v.Person.Subject)
		p.remember(w, v.LoginURL, user, hash, known)
		p.changed(w, r, v, stamp)
	}
}

// changed keeps this browser signed in after a change that ended all sessions.
func (p *Passwords) changed(w http.ResponseWriter, r *http.Request, v *issuer.AccountVisit, stamp string) {
	person := *v.Person
	person.AuthTime, person.Stamp = p.now(), stamp
	if err := v.SignIn(w, r, person); err != nil {
		v.Fail(w, r, err)
		return
	}
	v.Back(w)
}

// change replaces a password whose hash is old, if given is that password.
func (p *Passwords) change(ctx context.Context, subject, old, given, password string) (stamp, hash string, err error) {
	if !possiblePassword(given) {
		return "", "", errWrong // nobody has such a password
	}
	ok, err := p.hashing.verify(ctx, old, given)
	if err == nil && !ok {
		err = errWrong
	}
	if err == nil {
		hash, err = p.hashing.hash(ctx, password)
	}
	if err == nil {
		stamp, err = p.changes.ChangePassword(ctx, subject, old, hash)
	}
	return stamp, hash, err
}

// serveInvitation lets one who has the link of an invitation choose a password. Opening the link
// changes nothing, since programs that look at mail do that too; the form does.
func (p *Passwords) serveInvitation(w http.ResponseWriter, r *http.Request, v *issuer.AccountVisit) {
	ctx, code := r.Context(), r.FormValue("code")
	name, expires, err := p.invitations.Invitation(ctx, issuer.Hash(code))
	switch {
	case errors.Is(err, issuer.ErrNotFound):
		p.noInvitation(w, r, v)
		return
	case err != nil:
		v.Fail(w, r, fmt.Errorf("look for an invitation: %w", err))
		return
	case !p.now().Before(expires):
		v.Refused(r, "", "the invitation has expired")
		p.say(w, v, http.StatusGone, &accountMessage{
			Title: "This link has expired", Text: "Ask the one who sent it to you for another one.",
		})
		return
	}
	show := func(status int, wrong, field string) {
		p.showForm(w, v, status, &accountForm{Title: "Choose a password", Name: name, Code: code, Wrong: wrong, Field: field})
	}
	if r.Method != http.MethodPost {
		show(http.StatusOK, "", "new")
		return
	}
	password, wrong, field := newPassword(r.PostForm)
	if wrong != "" {
		show(http.StatusBadRequest, wrong, field)
		return
	}
	hash, err := p.hashing.hash(ctx, password)
	if errors.Is(err, errBusy) {
		show(http.StatusServiceUnavailable, textBusy, "new")
		return
	}
	var subject string
	if err == nil {
		subject, err = p.invitations.AcceptInvitation(ctx, issuer.Hash(code), hash, p.now())
	}
	switch {
	case errors.Is(err, issuer.ErrNotFound):
		p.noInvitation(w, r, v)
	case err != nil:
		v.Fail(w, r, fmt.Errorf("accept an invitation: %w", err))
	default:
		v.Done(r, subject)
		p.say(w, v, http.StatusOK, &accountMessage{
			Title: "Your password is set", Text: "Sign in with the name " + name + " and your new password.",
			Link: v.Account, LinkText: "Sign in",
		})
	}
}

func (p *Passwords) noInvitation(w http.ResponseWriter, r *http.Request, v *issuer.AccountVisit) {
	v.Refused(r, "", "no such invitation")
	p.say(w, v, http.StatusNotFound, &accountMessage{
		Title: "This link is not good any more",
		Text: "It was used before, taken back, or replaced by another one, or is not complete. " +
			"If you did not use it, tell the one who sent it to you, and ask for another one.",
		Link: v.Account, LinkText: "Sign in, if you have a password",
	})
}

// An accountForm asks for a new password.
type accountForm struct {
	Title, Action, CSRF, Name, Code string
	// Old asks for the old password too.
	Old bool
	// Wrong is what was wrong, with the field Field. The first field has the focus: all are empty.
	Wrong, Field string
	Rules, Back  string
	Longest      int
}

func (p *Passwords) showForm(w http.ResponseWriter, v *issuer.AccountVisit, status int, f *accountForm) {
	f.Action, f.CSRF, f.Rules, f.Longest = v.Path, v.CSRF(), textRules, maxPassword
	if f.Old {
		f.Back = v.Account
	}
	writeAccountPage(w, v, status, f.Title, "form", f)
}

// An accountMessage says one thing.
type accountMessage struct{ Title, Text, Link, LinkText string }

func (p *Passwords) say(w http.ResponseWriter, v *issuer.AccountVisit, status int, m *accountMessage) {
	writeAccountPage(w, v, status, m.Title, "message", m)
}

func writeAccountPage(w http.ResponseWriter, v *issuer.AccountVisit, status int, title, name string, data any) {
	var body bytes.Buffer
	if err := accountPages().ExecuteTemplate(&body, name, data); err != nil {
		http.Error(w, "something went wrong", http.StatusInternalServerError)
		return
	}
	v.Page(w, status, title, template.HTML(body.String()))
}

var accountPages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("account").Parse(`{{define "message"}}<p role="alert">{{.Text}}</p>
{{if .Link}}<p><a href="{{.Link}}">{{.LinkText}}</a></p>
{{end}}{{end}}

{{define "field"}} type="password" maxlength="{{.Longest}}" required{{end}}

{{define "state"}}{{if .Wrong}} aria-invalid="true" aria-describedby="wrong rules"{{else}} aria-describedby="rules"{{end}}{{end}}

{{define "form"}}{{if .Wrong}}<p class="warn" role="alert" id="wrong">{{.Wrong}}</p>
{{end}}<form method="post" action="{{.Action}}">
<input type="hidden" name="csrf" value="{{.CSRF}}">
{{if .Code}}<input type="hidden" name="code" value="{{.Code}}">
{{end}}<p>Your name here is <strong>{{.Name}}</strong>.</p>
<input name="username" value="{{.Name}}" autocomplete="username" readonly hidden>
{{if .Old}}<label for="old">Old password</label>
<input id="old" name="old" autocomplete="current-password"{{template "field" .}}{{if and .Wrong (eq .Field "old")}} aria-invalid="true" aria-describedby="wrong"{{end}} autofocus>
{{end}}<label for="new">New password</label>
<input id="new" name="new" autocomplete="new-password"{{template "field" .}}{{if eq .Field "new"}}{{template "state" .}}{{else}} aria-describedby="rules"{{end}}{{if not .Old}} autofocus{{end}}>
<p class="soft" id="rules">{{.Rules}}</p>
<label for="again">The new password again</label>
<input id="again" name="again" autocomplete="new-password"{{template "field" .}}{{if eq .Field "again"}}{{template "state" .}}{{end}}>
{{if .Old}}<p class="soft">All other browsers are signed out, and applications lose their access until you allow it again.</p>
{{end}}<div class="row"><button class="key">Set password</button></div>
</form>
{{if .Back}}<p><a href="{{.Back}}">Back to your account</a></p>
{{end}}{{end}}`))
})
