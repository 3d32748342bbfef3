package userauth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// knownAge is how long a browser stays known after its user signed in.
const knownAge = 365 * 24 * time.Hour

// knownCookie is the name of the cookie of a known browser: one where a user
// has signed in before. The cookie is no login; all that it does is that
// guesses from elsewhere do not slow the browser's attempts down. It is an id and a
// MAC of it under the hash of the user's password, so that it needs no record,
// is good in every process, and ends with the password. The name depends on
// issuer and user: cookies know no ports, and a browser may have several users.
func knownCookie(loginURL, user string) (name string, secure bool) {
	name = "parley-known-" + issuer.Hash(loginURL + "\x00" + user)[:16]
	if secure = strings.HasPrefix(loginURL, "https:"); secure {
		name = "__Host-" + name
	}
	return name, secure
}

// knownBrowser returns the id of a browser that is known for the user of a name, or "".
func (p *Passwords) knownBrowser(ctx context.Context, r *http.Request, loginURL, name, user string) string {
	cookie, _ := knownCookie(loginURL, user)
	found := r.CookiesNamed(cookie)
	if len(found) != 1 {
		return ""
	}
	id, mac, ok := strings.Cut(found[0].Value, ".")
	if !ok || len(id) != len(mac) || len(id) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return ""
	}
	hash, _, _, err := p.users.User(ctx, name)
	if err != nil || !hmac.Equal([]byte(mac), []byte(knownMAC(hash, user, id))) {
		return "" // the check of the password fails for a user that cannot be read
	}
	return id
}

// remember makes the browser known for a user, under the id that it has or a new one.
func (p *Passwords) remember(w http.ResponseWriter, loginURL, user, hash, id string) {
	if id == "" {
		id = oauth.NewSecret()
	}
	name, secure := knownCookie(loginURL, user)
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: id + "." + knownMAC(hash, user, id), Path: "/", MaxAge: int(knownAge / time.Second),
		Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func knownMAC(hash, user, id string) string {
	mac := hmac.New(sha256.New, []byte(issuer.Hash(hash)))
	mac.Write([]byte("known browser\x00" + id + "\x00" + user))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
