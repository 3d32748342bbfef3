// Package oauth holds what the three roles of OAuth 2.1 share: metadata
// documents, challenges, PKCE, errors, the rules for URLs, and the guarded
// HTTP client that every fetch goes through. Beneath it are login (the client
// that signs in), guard (the resource server) and issuer (an authorization
// server). It is usable without MCP.
package oauth
