// Package web holds what all transports over HTTP share. Servers: who may come
// ([Access] and its [CachedAccess]: Host, Origin, CORS, the caller), how a refusal is worded
// ([Refuse]), and an HTTP server with safe timeouts ([Serve]). Clients: which
// redirects are followed ([Client]) and what a status means ([StatusError]).
package web
