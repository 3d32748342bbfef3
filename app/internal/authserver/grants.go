package authserver

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// grantFlags say how long what people grant lasts, and how devices without a browser get it.
type grantFlags struct {
	access, refresh, idle, grace time.Duration
	device                       bool
}

// defaultGrace is long enough for a client to try again whose answer was lost with its server,
// and for the server to start again; it is 0 in the library, where nobody has chosen it.
const defaultGrace = 30 * time.Second

// longestGrace bounds the time in which a stolen refresh token may be used beside its client unseen.
const longestGrace = 10 * time.Minute

func (g *grantFlags) add(f *pflag.FlagSet) {
	f.DurationVar(&g.access, "access-lifetime", 0, "lifetime of access tokens as `TIME`, such as 5m (default 10m)")
	f.DurationVar(&g.refresh, "refresh-lifetime", 30*24*time.Hour, "`TIME` after which users must sign in again to each client, such as 720h")
	f.DurationVar(&g.idle, "refresh-idle", 14*24*time.Hour, "`TIME` after which an unused refresh token expires, such as 336h")
	f.DurationVar(&g.grace, "refresh-grace", defaultGrace, "`TIME` in which a client that lost the response can refresh again with the same token; 0 for none")
	f.BoolVar(&g.device, "allow-device", false, "let clients sign users in with a code on another device: --client clients (ID= without a redirect URI), and clients that register for it")
}

// check refuses values that could not work.
func (g *grantFlags) check() error {
	for _, flag := range []struct {
		name  string
		value time.Duration
	}{{"access-lifetime", g.access}, {"refresh-lifetime", g.refresh}, {"refresh-idle", g.idle}} {
		unset := flag.value == 0 && flag.name == "access-lifetime"
		if !unset && flag.value < time.Second {
			return kit.Usagef("--%s %v: must be at least one second", flag.name, flag.value)
		}
	}
	if g.grace < 0 || g.grace > longestGrace || g.grace%time.Second != 0 {
		return kit.Usagef("--refresh-grace %v: must be whole seconds, from 0s to %v", g.grace, longestGrace)
	}
	return nil
}

// set makes the library's options of the flags.
func (g *grantFlags) set(o *issuer.Options) {
	o.AccessLifetime, o.RefreshLifetime, o.RefreshIdle, o.RefreshGrace = g.access, g.refresh, g.idle, g.grace
	o.Device.On = g.device
	if !g.device {
		return
	}
	for i := range o.Clients {
		m := &o.Clients[i].Metadata
		m.GrantTypes = append(m.GrantTypes, oauth.GrantDeviceCode)
	}
}
