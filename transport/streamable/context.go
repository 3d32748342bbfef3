package streamable

import (
	"context"
	"net/http"
)

// Header returns the first value of a header of the HTTP request that carried
// the message which ctx belongs to, or "". ctx is the context of a handler or
// middleware, or one derived from it. In a session the request with the message
// counts, not the one that opened the session. It may be called after the HTTP
// request has ended, and by many goroutines at once.
//
// Any header can be asked for, Authorization too, unless authentication in
// front has taken it away, as package guard does. A token that was made out to
// this server must not be passed on to another one (spec 2026-07-28,
// basic/authorization, Access Token Privilege Restriction).
func Header(ctx context.Context, name string) string {
	r, ok := ctx.Value(requestKey{}).(*http.Request)
	if !ok {
		return ""
	}
	return r.Header.Get(name)
}

// RequestFrom returns a copy of the HTTP request that carried the message which
// ctx belongs to, for its URL, path values, host, TLS state and headers; nil
// outside of one. What [Header] says of ctx holds here too. The copy has no
// body, and none of the headers with which a client proves who it is or what it
// may use (Authorization, Proxy-Authorization, Cookie, DPoP, Mcp-Session-Id):
// ask Header for those by name. Call.SessionID of package server names the
// session, and transport.SessionRef gives a name of it for logs. The copy
// belongs to the caller, and each call makes a new one.
func RequestFrom(ctx context.Context) *http.Request {
	r, ok := ctx.Value(requestKey{}).(*http.Request)
	if !ok {
		return nil
	}
	c := r.Clone(ctx)
	c.Body, c.ContentLength, c.TransferEncoding = http.NoBody, 0, nil
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie", "Dpop", headerSession} {
		delete(c.Header, name)
	}
	return c
}

// requestKey is the key of the *http.Request in the context of a message.
type requestKey struct{}
