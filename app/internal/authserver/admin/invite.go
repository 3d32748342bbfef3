package admin

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// The lifetimes of an invitation.
const (
	defaultInvitation  = "72h"
	shortestInvitation = time.Minute
	longestInvitation  = 30 * 24 * time.Hour
)

type userInvitation struct {
	Name     string `json:"name" arg:"NAME"`
	Lifetime string `json:"lifetime" help:"\x60TIME\x60 that the link is good, from 1m to 720h (default 72h)"`
	Issuer   string `json:"issuer" help:"public \x60URL\x60 of the authorization server, for the link; with --admin the server knows it"`
	Reset    bool   `json:"reset" help:"let a user who is there choose another password; the old one is good until then"`
}

// An Invitation is a link at which a user chooses a password.
type Invitation struct {
	UserChange
	// Link holds a secret: who has it can become the user.
	Link    string    `json:"link"`
	Expires time.Time `json:"expires"`
}

// Text implements Result.
func (i *Invitation) Text() string {
	return i.UserChange.Text() + i.Link + "\nvalid once, until " + minute(i.Expires) + "; send it only to " + i.Name + "\n"
}

func inviteUser(ctx context.Context, a *Admin, in *userInvitation) (*Invitation, error) {
	if err := a.passwordsCount(); err != nil {
		return nil, err
	}
	base, err := a.issuerURL(in.Issuer)
	if err != nil {
		return nil, err
	}
	lasts, err := time.ParseDuration(cmp.Or(in.Lifetime, defaultInvitation))
	if err != nil || lasts < shortestInvitation || lasts > longestInvitation {
		return nil, errorf(Invalid, "lifetime %q: must be 1m to 720h, such as 24h", in.Lifetime)
	}
	now, secret := a.opts.Now(), oauth.NewSecret()
	u, err := a.db.Invite(ctx, in.Name, issuer.Hash(secret), in.Reset, now.Add(lasts), now)
	alike, isAlike := errors.AsType[*records.AlikeError](err)
	switch {
	case isAlike:
		return nil, alikeUser(alike, in.Name)
	case errors.Is(err, records.ErrExists):
		return nil, errorf(Conflict, "user %q already exists; use --reset to create a link for choosing another password", in.Name)
	case errors.Is(err, records.ErrDisabled):
		return nil, errorf(Conflict, "the user %q is disabled; run 'parley auth user enable' first", in.Name)
	case errors.Is(err, records.ErrName):
		return nil, errorf(Invalid, "%w", err)
	case err != nil:
		return nil, noUser(in.Name, err)
	}
	return &Invitation{UserChange{"invited", u.Name, u.Subject}, userauth.InvitationLink(base, secret), u.Invited}, nil
}

// issuerURL is the URL of the server: what it says itself, or else what is given.
func (a *Admin) issuerURL(given string) (string, error) {
	known := a.opts.Issuer()
	switch {
	case known == "" && given == "":
		return "", errorf(Invalid, "unknown URL of the authorization server; set it with --issuer, as for 'parley auth serve'")
	case known != "" && given != "" && given != known:
		return "", errorf(Invalid, "issuer %q: this server is %s", given, known)
	case known != "":
		return known, nil
	}
	if _, err := oauth.CheckIssuer(given); err != nil {
		return "", errorf(Invalid, "issuer %q: %w", given, err)
	}
	return given, nil
}
