package bridge

import (
	"cmp"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/web"
)

// Times of calls that go through a bridge: without progress, and in all. The server behind may
// take long, and the callers have limits of their own.
const (
	bridgedCallTime = 10 * time.Minute
	bridgedCallMax  = time.Hour
)

// Endpoints are the bounds of a bridge that is served over HTTP.
type Endpoints struct {
	Connections int           // sessions, and callers, at once
	Idle        time.Duration // after which a session ends
	SingleUser  bool          // all callers are the user of this machine
}

// ProxyOptions returns the options of each connection of a bridge to a server. keys are its state keys, or nil.
func ProxyOptions(console *kit.Console, s *host.Server, keys [][]byte) proxy.Options {
	return proxy.Options{
		Client: client.Options{
			Info:           mcp.Implementation{Name: "parley", Version: kit.Version()},
			Versions:       s.Versions,
			ConnectTimeout: s.ConnectTimeout,
			Logger:         console.ServerLogger(),
		},
		Server: server.Options{
			StateKeys: keys,
			Limits:    server.Limits{CallTimeout: cmp.Or(s.CallTimeout, bridgedCallTime), MaxCallTime: bridgedCallMax},
		},
		Logger: console.ServerLogger(),
	}
}

// Mount serves a bridge by all transports over HTTP. If the server behind it has no sessions, the endpoints
// have their own, as many as by default.
func Mount(console *kit.Console, b *Bridge, access web.Access, e *Endpoints, sessionless bool) front.Endpoints {
	n := e.Connections
	half, quarter := max(n/2, 1), max(n/4, 1) // those of one person, at /mcp, and at each of the others
	if e.SingleUser {
		access.Principal = func(*http.Request) *principal.Principal { return principal.Local }
		half, quarter = n, n
	}
	o := front.NewEndpointOptions(access)
	o.HTTP.Sessionless, o.HTTP.SessionIdle = sessionless, e.Idle
	if !b.Modern() {
		o.HTTP.MaxSessions, o.HTTP.MaxSessionsPerAddress, o.HTTP.MaxSessionsPerPrincipal = n, n, half
		o.SSE.MaxSessions, o.SSE.MaxSessionsPerAddress, o.SSE.MaxSessionsPerPrincipal = n, n, quarter
		o.WebSocket.MaxConns, o.WebSocket.MaxConnsPerAddress, o.WebSocket.MaxConnsPerPrincipal = n, n, quarter
	} else if e.SingleUser {
		o.HTTP.MaxSessionsPerPrincipal = n
	}
	return front.Mount(console, b, o)
}
