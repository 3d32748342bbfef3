// Package guard is the resource server of OAuth 2.1: it stands in front of an
// HTTP endpoint, lets requests with a valid access token pass, and tells the
// others where a token is to be had (RFC 6750, 9068, 9449, 9728; spec
// 2026-07-28, basic/authorization).
//
// A token counts only if it was issued for this very resource. What is behind
// the guard sees the caller, as principal.FromContext says, and never the token:
// a token that a handler cannot reach is a token that it cannot pass on.
package guard
