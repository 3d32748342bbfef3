package flows_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// Ruling 6: what is deprecated is declared only if there is a handler for it.
func TestDeprecatedOnDemand(t *testing.T) {
	build := with(server.Tool("caps", "Tells what its client declared.", func(ctx context.Context, _ mcp.None) (string, error) {
		return string(mustText(server.CallFrom(ctx).ClientCapabilities())), nil
	}))
	sample := func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return nil, client.ErrRefused
	}
	roots := func(context.Context) ([]mcp.Root, error) { return nil, nil }
	for name, test := range map[string]struct {
		o          client.Options
		has, lacks []string
	}{
		"nothing":  {client.Options{}, nil, []string{"sampling", "roots", "elicitation"}},
		"sampling": {client.Options{OnSample: sample}, []string{"sampling"}, []string{"roots", "elicitation", "tools"}},
		"tools":    {client.Options{OnSample: sample, SampleTools: true}, []string{"sampling"}, []string{"roots", "context"}},
		"roots":    {client.Options{OnRoots: roots}, []string{"roots"}, []string{"sampling", "elicitation"}},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.EachEra(t, build, &test.o, func(t *testing.T, era mcptest.Era, c *client.Client) {
				got, err := client.Call[string](t.Context(), c, "caps", nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, member := range test.has {
					if !strings.Contains(got, `"`+member+`"`) {
						t.Errorf("%s lacks %s", got, member)
					}
				}
				for _, member := range test.lacks {
					if strings.Contains(got, `"`+member+`"`) {
						t.Errorf("%s has %s", got, member)
					}
				}
				if name == "tools" && strings.Contains(got, `"tools"`) != since(era.Version, autumn) {
					t.Errorf("sub-capability: %s", got)
				}
			})
		})
	}
}

func mustText(v any) raw {
	text, err := wire.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// Ruling 7: an id in flight is not used twice; each direction has its own.
// Proves: MSG-3
func TestDuplicateIDs(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				l := dial(t, with(server.Tool("wait", "Waits.", func(context.Context, mcp.None) (string, error) {
					<-release
					return "done", nil
				}), server.Tool("roots", "Tells the roots.", tellRoots))(t, quiet()), nil)
				params := ""
				if version == newest {
					params = "," + meta(`{}`)
				} else {
					l.shake(version, `{"roots":{}}`)
				}
				call := func(id, tool string) {
					l.send(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q%s}}`, id, tool, params)
				}
				call("1", "wait")
				call(`"1"`, "wait") // another id
				synctest.Wait()
				call("1", "wait")
				l.next().fails(-32600, "1")
				if version != newest {
					call("2", "roots")
					ask := l.next()
					ask.want(`"roots/list"`, "method")
					// Its id may be one of ours in flight: the directions are apart.
					l.ask(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, ask.at("id")).want("2", "id")
				}
				close(release)
				got := []string{l.next().at("id"), l.next().at("id")}
				slices.Sort(got)
				if !slices.Equal(got, []string{`"1"`, "1"}) {
					t.Errorf("answers to %q", got)
				}
				l.Silent()
				// Answers to nothing are dropped.
				l.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
				l.send(`{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"x"}}`)
				l.Silent()
			})
		})
	}
}

// Ruling 8, ruling 9: what is no message, and what is one but wrong.
// Proves: MSG-1, MSG-2, MSG-5
func TestEnvelope(t *testing.T) {
	for _, version := range []string{"", autumn, june} {
		t.Run("after "+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := dial(t, with(server.Tool("sum", "Adds.", sum))(t, quiet()), nil)
				absent := "null"
				if version != "" {
					l.shake(version, "{}")
				}
				if version == autumn {
					absent = ""
				}
				for line, code := range map[string]int{
					`{`: -32700, `nonsense`: -32700, `{"a":"` + "\xff" + `"}`: -32700, `{"a":1,}`: -32700, `{'a':1}`: -32700,
					`7`: -32600, `"ping"`: -32600, `{}`: -32600, `null`: -32600,
					`{"jsonrpc":"2.0","id":null,"method":"ping"}`: -32600, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`: -32600, `{"jsonrpc":"2.0","id":[1],"method":"ping"}`: -32600,
				} {
					l.ask("%s", line).fails(code, absent)
				}
				for line, code := range map[string]int{
					`{"jsonrpc":"2.0","id":1,"method":"ping"} x`: -32700,
					`{"id":1,"method":"ping"}`:                   -32600, `{"jsonrpc":"1.0","id":1,"method":"ping"}`: -32600, `{"jsonrpc":2.0,"id":1,"method":"ping"}`: -32600,
					`{"jsonrpc":"2.0","id":1,"method":7}`: -32600, `{"jsonrpc":"2.0","id":1,"method":"ping","params":7}`: -32600,
					`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`: -32602,
					`{"jsonrpc":"2.0","id":1,"method":"rpc.x"}`:            -32601,
				} {
					m := l.ask("%s", line)
					if version == "" && code == -32601 {
						code = -32600 // before the handshake
					}
					m.fails(code, "1")
				}
				l.ask(`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`).want("{}", "result") // ruling 33
				l.ask(`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping","more":[1]}`).want("9007199254740993", "id")
				l.Silent()
			})
		})
	}
}

// Ruling 11 (its half without HTTP): a notification gets no message back,
// whatever is wrong with it. Proves: MSG-4
func TestNotificationsUnanswered(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := dial(t, with(server.Tool("sum", "Adds.", sum))(t, quiet()), nil)
				if version != newest {
					l.shake(version, "{}")
				}
				for _, n := range []string{
					`"method":"tools/call","params":{"name":"sum"}`, `"method":"nonsense"`, `"method":"notifications/progress","params":{"progressToken":1}`,
					`"method":"notifications/initialized","params":[1]`, `"method":"notifications/roots/list_changed"`, `"method":"initialize"`,
					`"method":"notifications/x","params":{` + meta("7") + `}`, `"method":"notifications/x","params":7`,
				} {
					l.send(`{"jsonrpc":"2.0",%s}`, n)
				}
				l.Silent()
				l.ask(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}`, meta("{}")).want("1", "id")
			})
		})
	}
}

// Ruling 26: our own codes lie outside of what JSON-RPC and the protocol
// reserve, and say when to try again.
func TestOwnCodes(t *testing.T) {
	for _, code := range []int64{mcp.CodeRateLimited, mcp.CodeTooManyInFlight, mcp.CodeTimeout, mcp.CodeShuttingDown, mcp.CodeTooLarge, mcp.CodeInsufficientScope} {
		if code >= -32768 && code <= -32000 || mcp.CodeName(code) == "" {
			t.Errorf("code %d, %q", code, mcp.CodeName(code))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Limits.PingRate = 0.2
		l := dial(t, server.New("s", "1", o), &stdio.Options{Principal: ada})
		l.shake(june, "{}")
		for range 2 {
			l.ask(ping, 1).want("{}", "result")
		}
		m := l.ask(ping, 2)
		m.fails(mcp.CodeRateLimited, "2")
		m.want("5000", "error", "data", "retryAfterMs")
		time.Sleep(5 * time.Second)
		l.ask(ping, 3).want("{}", "result")
	})
}

// Ruling 27: trace context goes from client to handler, and only if it is
// well formed; reserved keys of _meta are the protocol's.
func TestTraceContext(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	build := with(server.Tool("trace", "Tells its trace.", func(ctx context.Context, _ mcp.None) (string, error) {
		tr := server.TraceFrom(ctx)
		return fmt.Sprintf("%s|%s|%s|%s", tr.Parent, tr.State, tr.Baggage, server.CallFrom(ctx).Meta().Extra["com.example/k"]), nil
	}))
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		o := &client.CallOptions{Meta: map[string]mcp.RawValue{"com.example/k": raw(`{"A":1,"a":2}`)}}
		got, err := client.Call[string](client.WithTrace(t.Context(), parent, "v=1", "user=7"), c, "trace", nil, o)
		if err != nil || got != parent+`|v=1|user=7|{"A":1,"a":2}` {
			t.Errorf("%q, %v", got, err)
		}
		got, err = client.Call[string](client.WithTrace(t.Context(), "00-zero", "v=1", ""), c, "trace", nil)
		if err != nil || got != "|||" {
			t.Errorf("malformed: %q, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, build(t, quiet()), nil)
		l.shake(june, "{}")
		for _, bad := range []string{`"00-00000000000000000000000000000000-b7ad6b7169203331-01"`, `"ff-x"`, `"` + strings.Repeat("0", 5000) + `"`} {
			l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"trace","_meta":{"traceparent":%s,"tracestate":"v=1"}}}`, bad).
				want(`[{"type":"text","text":"|||"}]`, "result", "content")
		}
	})
	for _, key := range []string{"progressToken", "io.modelcontextprotocol/x", "dev.mcp/x", "no good"} {
		t.Run(key, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the key was accepted")
				}
			}()
			with(server.Tool("t", "T.", sum).With(server.ToolOptions{Meta: mcp.Meta{key: raw("1")}}))(t, quiet())
		})
	}
}

// Ruling 28 (the server's half): who registers an icon that clients must
// refuse is told. Fetching them is the host's affair. Proves: SEC-ICON-1
func TestIconWarnings(t *testing.T) {
	for src, warned := range map[string]bool{
		"https://example.com/i.png": false, "data:image/png;base64,AA==": false,
		"http://example.com/i.png": true, "javascript:alert(1)": true, "file:///etc/passwd": true, "": true,
	} {
		var log strings.Builder
		o := &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		with(server.Tool("t", "T.", sum).With(server.ToolOptions{Icons: []mcp.Icon{{Src: src}}}))(t, o)
		if got := strings.Contains(log.String(), "icon"); got != warned {
			t.Errorf("%q: the log says %q", src, log.String())
		}
	}
}

// Ruling 30: rate limits are on unless somebody switches them off, and never
// for the owner of a pipe. Over the burst of 500 each call waits for its turn.
func TestRatesByDefault(t *testing.T) {
	for name, test := range map[string]struct {
		limits server.Limits
		who    *principal.Principal
		took   time.Duration
	}{
		"default":   {server.Limits{}, ada, 2 * time.Second},
		"unlimited": {server.Limits{ToolRate: server.Unlimited}, ada, 0},
		"local":     {server.Limits{}, principal.Local, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := quiet()
				o.Limits = test.limits
				l := dial(t, with(server.Tool("sum", "Adds.", sum))(t, o), &stdio.Options{Principal: test.who})
				l.shake(june, "{}")
				begun := time.Now()
				for range 600 {
					l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","arguments":{"a":1,"b":2}}}`).want("", "error")
				}
				if took := time.Since(begun); took != test.took {
					t.Errorf("600 calls took %v, want %v", took, test.took)
				}
			})
		})
	}
}
