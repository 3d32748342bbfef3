package interop_test

import (
	"log/slog"
	"testing"

	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

// proxied leads to a proxy of ours in front of the server that d leads to, which
// is spoken to in one of versions, or any.
func proxied(t *testing.T, d transport.Dialer, versions ...string) transport.Dialer {
	t.Helper()
	p, err := proxy.Connect(bounded(t), d, &proxy.Options{Client: client.Options{Versions: versions, DiscoverProbe: patience, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the proxy: %v", err)
		}
	})
	return mem.New(p.Server(), nil)
}

// Servers of others behind a proxy of ours go through the whole script with
// callers of both eras: what an older revision, or the other era, does in its own
// way is the proxy's to translate.
func TestProxied(t *testing.T) {
	upstreams := map[string]struct {
		dial       func(t *testing.T) transport.Dialer
		versions   []string
		deviations []func(*script.Report)
	}{
		"typescript v2 http " + modern: {
			func(t *testing.T) transport.Dialer {
				d, _ := dialer(t, startServer(t, nil, "v2-server.mjs", "http"))
				return d
			}, []string{modern}, nil, // also if the machine is so busy that its first answers are lost
		},
		"typescript v1 stdio": {
			func(t *testing.T) transport.Dialer { return peer(t, "v1-server.mjs", "stdio") },
			nil,
			[]func(*script.Report){goSDKMissing},
		},
		// In the newest revision its server keeps one subscription per pipe.
		"go-sdk stdio " + legacy: {
			func(*testing.T) transport.Dialer { return stdio.Command(program, "go-sdk") },
			[]string{legacy},
			nil,
		},
		"ours stdio": {
			func(*testing.T) transport.Dialer { return stdio.Command(program, "ours") }, nil, nil,
		},
	}
	for name, up := range upstreams {
		for _, version := range []string{modern, legacy} {
			t.Run(name+" for a caller of "+version, func(t *testing.T) {
				t.Parallel()
				check(t, ours.Run(bounded(t), proxied(t, up.dial(t), up.versions...), version), want(version, up.deviations...))
			})
		}
	}
}

// The reference server that everybody tries first, behind a proxy of ours.
func TestProxiedEverything(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			goThrough(t, proxied(t, peer(t, everythingJS, "stdio")), version)
		})
	}
}
