package flows_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// Proves: FLOW-INIT-P
func TestFLOW_INIT_P(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Instructions, o.Title = "be kind", "Flows"
		s := with(server.Text("x:a", "a", "A"))(t, o)
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if c.Version() != era.Version || c.Modern() != (era.Version == newest) {
			t.Errorf("version %s, modern %v", c.Version(), c.Modern())
		}
		if s := c.Server(); s == nil || s.Name != "flows" || s.Version != "1.2.3" || since(era.Version, june) != (s.Title == "Flows") {
			t.Errorf("server %+v", s)
		}
		if c.Instructions() != "be kind" {
			t.Errorf("instructions %q", c.Instructions())
		}
		caps := c.Capabilities()
		if caps.Resources == nil || !caps.Resources.Subscribe || !caps.Resources.ListChanged || caps.Tools != nil || caps.Prompts != nil {
			t.Errorf("capabilities %+v", caps)
		}
		if got := collect(t, c.Resources(t.Context())); len(got) != 1 || got[0].URI != "x:a" {
			t.Errorf("resources %v", got)
		}
	})
}

// Proves: FLOW-INIT-P, SEC-INIT-1. Rulings 3 and 4: whatever the two sides allow, the
// newest in common is taken, and nothing below it.
func TestFLOW_INIT_P_Choice(t *testing.T) {
	for name, test := range map[string]struct{ server, client, want []string }{
		"newest":                     {nil, nil, []string{newest}},
		"server is old":              {[]string{march, y2024}, nil, []string{march}},
		"client is old":              {nil, []string{y2024}, []string{y2024}},
		"server stops at the border": {[]string{autumn, june}, nil, []string{autumn}},
		"gap":                        {[]string{newest, y2024}, []string{autumn, march, y2024}, []string{y2024}},
		"operator refuses old ones":  {[]string{newest}, []string{autumn, june}, nil},
		"client refuses old ones":    {[]string{march}, []string{newest, autumn}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := quiet()
				o.Versions = test.server
				s := server.New("flows", "1", o)
				c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{Versions: test.client})
				if err == nil {
					defer c.Close()
				}
				switch {
				case test.want == nil:
					if !errors.Is(err, client.ErrUnsupportedVersion) {
						t.Errorf("error %v, want ErrUnsupportedVersion", err)
					}
				case err != nil:
					t.Error(err)
				case c.Version() != test.want[0]:
					t.Errorf("version %s, want %s", c.Version(), test.want[0])
				}
			})
		})
	}
}

// Proves: FLOW-INIT-P. Ruling 1: what names a modern version is modern, whatever its
// method and whatever was on the connection before. Ruling 2: what it must
// say, and what is answered otherwise.
func TestFLOW_INIT_P_Modern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := with(server.Text("x:a", "a", "A"))(t, quiet())
		l := dial(t, s, nil)
		modern := func() {
			t.Helper()
			l.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{%s,"protocolVersion":%q}}`, meta("{}"), autumn).fails(-32601, "1")
			l.ask(`{"jsonrpc":"2.0","id":2,"method":"ping","params":{%s}}`, meta("{}")).fails(-32601, "2")
			l.ask(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{%s,"uri":"x:a"}}`, meta("{}")).fails(-32601, "3")
			l.ask(`{"jsonrpc":"2.0","id":4,"method":"resources/list","params":{%s}}`, meta("{}")).want(`"complete"`, "result", "resultType")
			m := l.ask(`{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{%s}}`, meta("{}"))
			m.want(`["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`, "result", "supportedVersions") // Ruling 4
			m.want(`"flows"`, "result", "_meta", mcp.MetaServerInfo, "name")
		}
		modern()
		m := l.ask(`{"jsonrpc":"2.0","id":6,"method":"resources/list","params":{"_meta":{%q:%q,%q:{}}}}`, mcp.MetaProtocolVersion, unknown, mcp.MetaClientCapabilities)
		m.fails(-32022, "6")
		m.want(`"`+unknown+`"`, "error", "data", "requested")
		m.want(`["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`, "error", "data", "supported")
		l.ask(`{"jsonrpc":"2.0","id":7,"method":"resources/list","params":{"_meta":{%q:%q}}}`, mcp.MetaProtocolVersion, newest).fails(-32602, "7")
		l.ask(`{"jsonrpc":"2.0","id":8,"method":"resources/list","params":{"_meta":{%q:7,%q:{}}}}`, mcp.MetaProtocolVersion, mcp.MetaClientCapabilities).fails(-32602, "8")
		l.ask(`{"jsonrpc":"2.0","id":9,"method":"resources/list","params":{"_meta":{%q:%q,%q:{}}}}`, mcp.MetaProtocolVersion, autumn, mcp.MetaClientCapabilities).fails(-32022, "9")
		l.ask(`{"jsonrpc":"2.0","id":10,"method":"server/discover"}`).fails(-32602, "10")
		l.shake(june, "{}").want(`"`+june+`"`, "result", "protocolVersion")
		modern()
		l.ask(`{"jsonrpc":"2.0","id":11,"method":"resources/list"}`).want("", "result", "resultType")
		l.ask(`{"jsonrpc":"2.0","id":12,"method":"server/discover"}`).fails(-32601, "12")
	})
}

// Proves: FLOW-INIT-P. Ruling 3: the handshake by hand.
func TestFLOW_INIT_P_Handshake(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, asked := range append([]string{unknown, "2040-01-01"}, versions...) {
		t.Run(asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := dial(t, with(server.Text("x:a", "a", "A"))(t, quiet()), nil)
				l.ask(`{"jsonrpc":"2.0","id":0,"method":"resources/list"}`).fails(-32600, "0")
				l.ask(`{"jsonrpc":"2.0","id":0,"method":"ping"}`).want("{}", "result")
				want := asked
				if asked == newest || !slices.Contains(versions, asked) {
					want = autumn
				}
				l.ask(hello, asked).want(`"`+want+`"`, "result", "protocolVersion")
				// Served without waiting for notifications/initialized.
				l.ask(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x:a"}}`).want(`[{"uri":"x:a","mimeType":"text/plain","text":"A"}]`, "result", "contents")
				l.ask(hello, y2024).fails(-32600, "1")
				l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				l.ask(`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`).want(`3`, "id")
				l.Silent()
			})
		})
	}
	t.Run("none left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.Versions = []string{newest}
			m := dial(t, server.New("s", "1", o), nil).ask(hello, june)
			m.fails(-32602, "1")
			m.want(`{"supported":["2026-07-28"],"requested":"2025-06-18"}`, "error", "data")
		})
	})
	t.Run("operator refuses the one asked for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.Versions = []string{newest, autumn, june}
			dial(t, server.New("s", "1", o), nil).ask(hello, y2024).want(`"`+autumn+`"`, "result", "protocolVersion")
		})
	})
}

// Proves: SEC-INIT-1: a server says no more of itself than it was told to, and
// a client no more than it must.
func TestSEC_INIT_1(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.HideInfo = true
		return with(server.Tool("who", "Says what it knows of the client.", whoAsks))(t, o)
	}
	hidden := &client.Options{Info: mcp.Implementation{Name: "me", Version: "7"}, HideInfo: true}
	mcptest.EachEra(t, build, hidden, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if era.Version == newest && c.Server() != nil {
			t.Errorf("the server says it is %+v", c.Server())
		}
		got, err := client.Call[string](t.Context(), c, "who", nil)
		want := "client 0" // the handshake wants a name
		if era.Version == newest {
			want = "nobody"
		}
		if err != nil || got != want {
			t.Errorf("the client is %q, %v; want %q", got, err, want)
		}
	})
	told := &client.Options{Info: mcp.Implementation{Name: "me", Version: "7"}}
	mcptest.EachEra(t, build, told, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if got, err := client.Call[string](t.Context(), c, "who", nil); err != nil || got != "me 7" {
			t.Errorf("the client is %q, %v", got, err)
		}
	})
}
