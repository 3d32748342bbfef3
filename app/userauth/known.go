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
// MAC of it under the stamp of the user's password, so that it needs no record,
// is good in every process, and ends with the password. The name depends on
// issuer and user: cookies know no ports, and a browser may have several users.
func knownCookie(v *issuer.Visit, user string) (name string, secure bool) {
	name = "parley-known-" + issuer.Hash(v.URL + "\x00" + user)[:16]
	if secure = strings.HasPrefix(v.URL, "https:"); secure {
		name = "__Host-" + name
	}
	return name, secure
}

// knownBrowser returns the id of a browser that is known for a user, or "".
func (p *Passwords) knownBrowser(ctx context.Context, r *http.Request, v *issuer.Visit, user string) string {
	name, _ := knownCookie(v, user)
	found := r.CookiesNamed(name)
	if len(found) != 1 {
		return ""
	}
	id, mac, ok := strings.Cut(found[0].Value, ".")
	if !ok || len(id) != len(mac) || len(id) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return ""
	}
	hash, _, err := p.users.User(ctx, user)
	if err != nil || !hmac.Equal([]byte(mac), []byte(knownMAC(issuer.Hash(hash), user, id))) {
		return "" // the check of the password fails for a user that cannot be read
	}
	return id
}

// remember makes the browser known for a user, under the id that it has or a new one.
func (p *Passwords) remember(w http.ResponseWriter, v *issuer.Visit, user, stamp, id string) {
	if id == "" {
		id = oauth.NewSecret()
	}
	name, secure := knownCookie(v, user)
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: id + "." + knownMAC(stamp, user, id), Path: "/", MaxAge: int(knownAge / time.Second),
		Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func knownMAC(stamp, user, id string) string {
	mac := hmac.New(sha256.New, []byte(stamp))
	mac.Write([]byte("known browser\x00" + id + "\x00" + user))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
