package admin

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/store/records"
)

var userVerbs = []*Verb{
	verb("user add", "Add a user", addUser),
	verb("user invite", "Create a link where a new user, or with --reset an existing one, chooses a password", inviteUser),
	reading(verb("user list", "List the users", listUsers)),
	reading(verb("user show", "Show a user", showUser)),
	verb("user disable", "Disable a user: sign the user out everywhere, revoke the user's grants, and reject sign-ins", disableUser),
	verb("user enable", "Let a disabled user sign in again; revoked grants stay revoked", enableUser),
	verb("user remove", "Remove a user, sign the user out everywhere, and revoke the user's grants", removeUser),
	verb("user password", "Set another password for a user, sign the user out everywhere, and revoke the user's grants", setPassword),
	verb("user signout", "Sign a user out everywhere, and revoke the user's grants", signOut),
}

// A User is a user for operators.
type User struct {
	Name     string    `json:"name"`
	Subject  string    `json:"subject"`
	Created  time.Time `json:"created"`
	Disabled bool      `json:"disabled"`
	// Pending users were invited and have no password yet.
	Pending bool `json:"pending"`
	// Invited is until when the link of an invitation is good that was not used.
	Invited time.Time `json:"invited,omitzero"`
}

func userOf(u *records.User) User {
	return User{Name: u.Name, Subject: u.Subject, Created: u.Created, Disabled: u.Disabled, Pending: u.Pending, Invited: u.Invited}
}

// state says in words what keeps a user out, and what invitation is open; empty for most.
func (u *User) state(now time.Time) string {
	var words []string
	if u.Disabled {
		words = append(words, "disabled")
	}
	switch {
	case u.Invited.After(now) && u.Pending:
		words = append(words, "invited until "+minute(u.Invited))
	case u.Invited.After(now):
		words = append(words, "may reset the password until "+minute(u.Invited))
	case u.Pending:
		words = append(words, "has no password and no valid invitation")
	}
	return strings.Join(words, ", ")
}

// A UserChange is what was done to a user.
type UserChange struct {
	Did     string `json:"did"`
	Name    string `json:"name"`
	Subject string `json:"subject"`
}

// Text implements Result.
func (c *UserChange) Text() string { return c.Did + " " + c.Name + "\n" }

type userName struct {
	Name string `json:"name" arg:"NAME"`
}

type userPassword struct {
	Name     string `json:"name" arg:"NAME"`
	Password string `json:"password" kind:"secret" help:"the password"`
}

func addUser(ctx context.Context, a *Admin, in *userPassword) (*UserChange, error) {
	if err := a.passwordsCount(); err != nil {
		return nil, err
	}
	hash, err := userauth.HashPassword(in.Password)
	if err != nil {
		return nil, errorf(Invalid, "%w", err)
	}
	subject, err := a.db.AddUser(ctx, in.Name, hash, a.opts.Now())
	alike, ok := errors.AsType[*records.AlikeError](err)
	switch {
	case ok:
		return nil, alikeUser(alike, in.Name)
	case errors.Is(err, records.ErrExists):
		return nil, errorf(Conflict, "user %q already exists; run 'parley auth user password' to set another password", in.Name)
	case errors.Is(err, records.ErrName):
		return nil, errorf(Invalid, "%w", err)
	case err != nil:
		return nil, err
	}
	return &UserChange{"added", a.db.NormalName(in.Name), subject}, nil
}

func alikeUser(alike *records.AlikeError, name string) error {
	return errorf(Conflict, "user %q already exists, and %q looks like it; use a different name", alike.User, name)
}

// passwordsCount refuses to give a user a password that the server would never ask for.
func (a *Admin) passwordsCount() error {
	if a.opts.NoPasswords == "" {
		return nil
	}
	return errorf(Conflict, "%s", a.opts.NoPasswords)
}

func setPassword(ctx context.Context, a *Admin, in *userPassword) (*UserChange, error) {
	if err := a.passwordsCount(); err != nil {
		return nil, err
	}
	hash, err := userauth.HashPassword(in.Password)
	if err != nil {
		return nil, errorf(Invalid, "%w", err)
	}
	u, err := a.db.SetPassword(ctx, in.Name, hash)
	return changedUser("another password for", in.Name, u, err)
}

func disableUser(ctx context.Context, a *Admin, in *userName) (*UserChange, error) {
	u, err := a.db.DisableUser(ctx, in.Name)
	return changedUser("disabled", in.Name, u, err)
}

func enableUser(ctx context.Context, a *Admin, in *userName) (*UserChange, error) {
	u, err := a.db.EnableUser(ctx, in.Name)
	return changedUser("enabled", in.Name, u, err)
}

func removeUser(ctx context.Context, a *Admin, in *userName) (*UserChange, error) {
	u, err := a.db.RemoveUser(ctx, in.Name)
	return changedUser("removed", in.Name, u, err)
}

func signOut(ctx context.Context, a *Admin, in *userName) (*UserChange, error) {
	u, err := a.db.SignOut(ctx, in.Name)
	return changedUser("signed out", in.Name, u, err)
}

func changedUser(did, name string, u *records.User, err error) (*UserChange, error) {
	if err != nil {
		return nil, noUser(name, err)
	}
	return &UserChange{did, u.Name, u.Subject}, nil
}

func noUser(name string, err error) error {
	return absent(err, "user %q not found; run 'parley auth user list' to list users", name)
}

// A UserDetail is what is known of a user.
type UserDetail struct {
	User   User     `json:"user"`
	Groups []string `json:"groups,omitzero"`
}

// Text implements Result.
func (d *UserDetail) Text() string {
	return columns([][]string{
		{"name", d.User.Name},
		{"subject", d.User.Subject},
		{"since", day(d.User.Created)},
		{"may sign in", yesNo(!d.User.Disabled && !d.User.Pending)},
		{"state", cmp.Or(d.User.state(time.Now()), "active")},
		{"groups", strings.Join(d.Groups, ", ")},
	})
}

func showUser(ctx context.Context, a *Admin, in *userName) (*UserDetail, error) {
	u, err := a.db.FindUser(ctx, in.Name)
	if err != nil {
		return nil, noUser(in.Name, err)
	}
	groups, err := a.db.GroupsOf(ctx, u.Subject)
	if err != nil {
		return nil, err
	}
	return &UserDetail{userOf(u), groups}, nil
}

// A UserList is a page of users.
type UserList struct {
	Users []User `json:"users"`
	Next  string `json:"next,omitzero"`
	// Alike are the names that could be taken for one another, of all users; the first page
	// has them.
	Alike [][]string `json:"alike,omitzero"`
}

// Text implements Result.
func (l *UserList) Text() string {
	rows := make([][]string, 0, len(l.Users))
	for _, u := range l.Users {
		rows = append(rows, []string{u.Name, "since " + day(u.Created), u.state(time.Now())})
	}
	text := columns(rows) + more(l.Next)
	for _, names := range l.Alike {
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = strconv.QuoteToASCII(name) // which shows how they differ
		}
		text += "the names " + strings.Join(quoted, ", ") + " look alike; " +
			"remove all but one of these users, and add others under other names\n"
	}
	return text
}

func listUsers(ctx context.Context, a *Admin, in *page) (*UserList, error) {
	after, limit, err := in.bounds()
	if err != nil {
		return nil, err
	}
	users, err := a.db.Users(ctx, after, limit+1)
	if err != nil {
		return nil, err
	}
	out := &UserList{Users: []User{}}
	users, out.Next = cut(users, limit, func(u *records.User) string { return u.Name })
	for _, u := range users {
		out.Users = append(out.Users, userOf(u))
	}
	if after == "" {
		out.Alike, err = a.db.AlikeNames(ctx)
	}
	return out, err
}
