// Package issuer is an OAuth 2.1 authorization server of the profile that MCP
// needs: authorization code with PKCE S256, refresh with rotation, client
// credentials, JWT bearer assertions, token exchange, revocation,
// introspection, client ID metadata documents, dynamic registration, DPoP.
//
// A [Server] is an http.Handler for all paths of its issuer identifier
// ([Server.Paths]). What it must remember is in a [Store]; the person at the
// browser is found out by a [Login]; between the two it shows a page on which
// the person agrees to what the client asks for. [Server.Run] does what is due
// from time to time.
package issuer
