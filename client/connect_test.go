package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Proves: FLOW-INIT. Rulings 1 to 4: era and version, for each kind of server.
func TestNegotiation(t *testing.T) {
	refuse := func(code int64, data any) func(*req) (any, error) {
		return func(*req) (any, error) {
			e := jsonrpc.NewError(code, "no")
			if data != nil {
				e = e.With(data)
			}
			return nil, e
		}
	}
	// Another server behind the same address may know what one has refused.
	refuseOnce := func() func(*req) (any, error) {
		refused := false
		return func(*req) (any, error) {
			if refused {
				return raw(`{"resultType":"complete","supportedVersions":["` + modern + `"],"capabilities":` + allCaps + `,"instructions":"be kind",` +
					`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"script","version":"1"}}}`), nil
			}
			refused = true
			return nil, jsonrpc.NewError(mcp.CodeUnsupportedVersion, "no").With(mcp.UnsupportedVersionData{Supported: []string{modern}})
		}
	}
	for name, test := range map[string]struct {
		script  *script
		allowed []string
		want    string
		heard   string
	}{
		"modern":                    {want: modern, heard: "server/discover"},
		"both":                      {script: &script{versions: []string{modern, newest}}, want: modern, heard: "server/discover"},
		"legacy refuses the probe":  {script: &script{versions: []string{newest}}, want: newest, heard: "server/discover initialize notifications/initialized"},
		"legacy is odd":             {script: &script{versions: []string{newest}, on: map[string]func(*req) (any, error){mcp.MethodDiscover: func(*req) (any, error) { return raw(`{}`), nil }}}, want: newest, heard: "server/discover initialize notifications/initialized"},
		"legacy chooses older":      {script: &script{versions: []string{"2025-03-26"}}, want: "2025-03-26", heard: "server/discover initialize notifications/initialized"},
		"pinned legacy: no probe":   {script: &script{versions: []string{modern, newest, "2025-06-18"}}, allowed: []string{"2025-06-18"}, want: "2025-06-18", heard: "initialize notifications/initialized"},
		"oldest":                    {script: &script{versions: []string{"2024-11-05"}}, want: "2024-11-05", heard: "server/discover initialize notifications/initialized"},
		"refused version, legacy":   {script: &script{versions: []string{"2025-06-18"}, on: map[string]func(*req) (any, error){mcp.MethodDiscover: refuse(mcp.CodeUnsupportedVersion, mcp.UnsupportedVersionData{Supported: []string{"2030-01-01", "2025-06-18"}})}}, want: "2025-06-18", heard: "server/discover initialize notifications/initialized"},
		"refused once, then served": {script: &script{on: map[string]func(*req) (any, error){mcp.MethodDiscover: refuseOnce()}}, want: modern, heard: "server/discover server/discover"},
		"initialize names versions": {script: &script{versions: []string{"2025-03-26"}, on: map[string]func(*req) (any, error){mcp.MethodInitialize: func() func(r *req) (any, error) {
			n := 0
			return func(r *req) (any, error) {
				if n++; n == 1 {
					return nil, jsonrpc.NewError(-32602, "no").With(mcp.UnsupportedVersionData{Supported: []string{"2025-03-26"}})
				}
				return raw(`{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`), nil
			}
		}()}}, want: "2025-03-26", heard: "server/discover initialize initialize notifications/initialized"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := test.script
				if s == nil {
					s = &script{}
				}
				c := connect(t, s, &client.Options{Versions: test.allowed})
				synctest.Wait()
				if c.Version() != test.want || c.Modern() != (test.want == modern) {
					t.Errorf("version %s (modern %v), want %s", c.Version(), c.Modern(), test.want)
				}
				if got := strings.Join(s.methods(), " "); got != test.heard {
					t.Errorf("heard %s, want %s", got, test.heard)
				}
				if c.Server() == nil || c.Server().Version != "1" {
					t.Errorf("server %+v", c.Server())
				}
				if name != "initialize names versions" && (c.Instructions() != "be kind" || c.Capabilities().Tools == nil) {
					t.Errorf("instructions %q, capabilities %+v", c.Instructions(), c.Capabilities())
				}
			})
		})
	}
}

// Proves: FLOW-INIT, SEC-INIT-1. What cannot work fails with a typed error and
// closes the connection.
func TestNegotiationFails(t *testing.T) {
	for name, test := range map[string]struct {
		script  *script
		allowed []string
		want    error
		says    string
	}{
		"pinned modern at an old server": {script: &script{versions: []string{newest}}, allowed: []string{modern}, want: client.ErrUnsupportedVersion, says: "update the server, or allow another version"},
		"nothing in common":              {script: &script{versions: []string{modern}}, allowed: []string{newest}, want: client.ErrUnsupportedVersion, says: modern},
		"below what is allowed":          {script: &script{versions: []string{"2024-11-05"}}, allowed: []string{newest, modern}, want: client.ErrUnsupportedVersion, says: "2024-11-05"},
		"a modern error":                 {script: &script{on: map[string]func(*req) (any, error){mcp.MethodDiscover: func(*req) (any, error) { return nil, jsonrpc.NewError(mcp.CodeMissingClientCapability, "sampling") }}}, says: "sampling"},
		"neither era":                    {script: &script{versions: []string{newest}, on: map[string]func(*req) (any, error){mcp.MethodInitialize: func(*req) (any, error) { return nil, jsonrpc.NewError(-32000, "go away") }}}, says: "go away (code -32000) (after server/discover: no method server/discover"},
		"unknown pin":                    {allowed: []string{"1999-01-01"}, says: "unknown protocol version"},
		"the same version again": {script: &script{on: map[string]func(*req) (any, error){mcp.MethodDiscover: func(*req) (any, error) {
			return nil, jsonrpc.NewError(mcp.CodeUnsupportedVersion, "no").With(mcp.UnsupportedVersionData{Supported: []string{modern}})
		}}}, want: client.ErrUnsupportedVersion, says: modern},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := test.script
				if s == nil {
					s = &script{}
				}
				c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{Versions: test.allowed})
				if err == nil {
					_ = c.Close()
					t.Fatalf("connected with %s", c.Version())
				}
				if test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				if !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %q does not say %q", err, test.says)
				}
				for _, p := range s.conns {
					if _, err := p.ask(t.Context(), mcp.MethodPing, `{}`); err == nil {
						t.Error("the connection is still open")
					}
				}
			})
		})
	}
}

// Ruling 4: a server that is silent to the probe is of the handshake era.
func TestSilentProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{newest}, on: map[string]func(*req) (any, error){
			mcp.MethodDiscover: func(*req) (any, error) { return nil, errSilent },
		}}
		start := time.Now()
		c := connect(t, s, nil)
		if c.Modern() || time.Since(start) != 5*time.Second {
			t.Errorf("version %s after %v", c.Version(), time.Since(start))
		}
		if len(s.got(mcp.NotifyCancelled)) > 0 {
			t.Error("a server that knows no such request was told to cancel it")
		}
	})
}

// A server that never says anything is asked for the versions and for a
// handshake, once each; the error tells of both.
func TestSilentServer(t *testing.T) {
	for name, test := range map[string]struct {
		opts  client.Options
		known string // what the memory has
		want  time.Duration
		says  []string
	}{
		"defaults":      {client.Options{}, "", 65 * time.Second, []string{"initialize: no answer in time: nothing heard for 1m0s", "after server/discover: no answer in time: nothing heard for 5s"}},
		"short":         {client.Options{CallTimeout: 3 * time.Second}, "", 6 * time.Second, []string{"initialize: no answer in time: nothing heard for 3s", "after server/discover: no answer in time: nothing heard for 3s"}},
		"modern alone":  {client.Options{Versions: []string{modern}}, "", time.Minute, []string{"server/discover: no answer in time: nothing heard for 1m0s"}},
		"old alone":     {client.Options{Versions: []string{newest}}, "", time.Minute, []string{"initialize: no answer in time: nothing heard for 1m0s"}},
		"known as old":  {client.Options{}, newest, time.Minute, []string{"initialize: no answer in time: nothing heard for 1m0s"}},
		"known as new":  {client.Options{}, modern, 65 * time.Second, []string{"initialize: no answer in time"}},
		"long patience": {client.Options{DiscoverProbe: 2 * time.Minute}, "", 2 * time.Minute, []string{"after server/discover: no answer in time: nothing heard for 1m0s"}},
	} {
		pipe := func(t *testing.T) (transport.Dialer, func() int) {
			s := &script{on: map[string]func(*req) (any, error){
				mcp.MethodDiscover:   func(*req) (any, error) { return nil, errSilent },
				mcp.MethodInitialize: func(*req) (any, error) { return nil, errSilent },
			}}
			return lingering{mem.New(s, nil)}, func() int { return len(s.methods()) }
		}
		url := func(t *testing.T) (transport.Dialer, func() int) {
			s := &hushed{}
			d := &streamable.Dialer{URL: "http://silent.example/mcp", Client: &http.Client{Transport: s}}
			return lingering{d}, func() int { return int(s.asked.Load()) }
		}
		for transportName, dialer := range map[string]func(*testing.T) (transport.Dialer, func() int){"pipe": pipe, "url": url} {
			t.Run(name+" "+transportName, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, asked := dialer(t)
					start := time.Now()
					opts := test.opts
					opts.Eras = client.NewEraMemory()
					opts.Eras.Remember("silent", test.known)
					_, err := client.Connect(t.Context(), d, &opts)
					if !errors.Is(err, client.ErrTimeout) || time.Since(start) != test.want {
						t.Errorf("%v after %v, want ErrTimeout after %v", err, time.Since(start), test.want)
					}
					for _, part := range test.says {
						if err != nil && !strings.Contains(err.Error(), part) {
							t.Errorf("%q does not say %q", err, part)
						}
					}
					if n := asked(); n > 2 {
						t.Errorf("asked %d times", n)
					}
				})
			})
		}
	}
}

// Who gives up on a server that never spoke does not wait for it to end.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodDiscover: func(*req) (any, error) { return nil, errSilent }}}
		start := time.Now()
		if _, err := client.Connect(ctx, lingering{mem.New(s, nil)}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A lingering dialer makes links to the server "silent" that take as long to
// close as they are given.
type lingering struct{ transport.Dialer }

func (l lingering) Key() string { return "silent" }

func (l lingering) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	link, err := l.Dialer.Dial(ctx, in)
	return lingeringLink{link}, err
}

type lingeringLink struct{ transport.Link }

func (l lingeringLink) Close(ctx context.Context) error {
	<-ctx.Done()
	return l.Link.Close(ctx)
}

// A hushed site never answers.
type hushed struct{ asked atomic.Int64 }

func (h *hushed) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// Ruling 4: a server that was only slow to start is not taken for an old one: whether it
// knows a handshake or not, in whatever order it answers, and neither in the memory.
func TestSlowStart(t *testing.T) {
	for name, test := range map[string]struct {
		versions              []string
		probe, shaken, pinged time.Duration // when they are answered
		want                  string
	}{
		"no handshake":    {[]string{modern}, 7 * time.Second, 7 * time.Second, 0, modern},
		"probe first":     {[]string{modern, newest}, 7 * time.Second, 7*time.Second + 1, 0, modern},
		"handshake first": {[]string{modern, newest}, 7*time.Second + 1, 7 * time.Second, 7*time.Second + 2, modern},
		"ping first":      {[]string{modern, newest}, 9 * time.Second, 7 * time.Second, 0, newest},
		"no ping":         {[]string{modern, newest}, 9 * time.Second, 7 * time.Second, time.Hour, newest},
		"old and no ping": {[]string{newest}, time.Hour, 7 * time.Second, time.Hour, newest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := &script{versions: test.versions}
				plain := &script{versions: test.versions}
				at := func(when time.Duration) func(*req) (any, error) {
					return func(r *req) (any, error) {
						select {
						case <-time.After(when - time.Since(start)):
						case <-r.ctx.Done():
						}
						if r.in.Method == mcp.MethodInitialize && !slices.Contains(test.versions, newest) {
							return nil, jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "initialize is not known")
						}
						return plain.handle(r)
					}
				}
				s.on = map[string]func(*req) (any, error){
					mcp.MethodDiscover: at(test.probe), mcp.MethodInitialize: at(test.shaken), mcp.MethodPing: at(test.pinged),
					mcp.MethodToolsList: func(*req) (any, error) {
						return raw(`{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`), nil
					},
				}
				memory := client.NewEraMemory()
				c := dial(t, mem.New(s, &mem.Options{Key: "slow"}), &client.Options{Eras: memory})
				if c.Version() != test.want || len(s.conns) != 1 {
					t.Errorf("version %s over %d connections", c.Version(), len(s.conns))
				}
				if took := time.Since(start); took > 8*time.Second {
					t.Errorf("it took %v", took)
				}
				for _, err := range c.Tools(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				time.Sleep(3 * time.Second) // the late answer comes
				synctest.Wait()
				if v, ok := memory.Recall("slow"); ok && v != modern && slices.Contains(test.versions, modern) {
					t.Errorf("remembered as %s", v)
				}
			})
		})
	}
}

// Ruling 4, over HTTP: a server that wakes up at the first request is spoken to in its newest
// revision, and the session that the handshake opened is deleted. One that stays too slow for
// the probe keeps its session, and the log says what that may cost.
func TestSlowStartHTTP(t *testing.T) {
	for name, test := range map[string]struct {
		probe time.Duration // each takes as long
		want  string
		took  time.Duration
		left  []string
		known string
		says  string
	}{
		"awake": {0, modern, 7 * time.Second, []string{"s-1"}, modern, ""},
		"slow":  {6 * time.Second, newest, 12 * time.Second, nil, "", "set Options.DiscoverProbe higher"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var left []string
				awake := &site{on: map[string]func(*http.Request, string) *http.Response{
					mcp.MethodInitialize: func(_ *http.Request, id string) *http.Response {
						resp := result(id, initialized)
						resp.Header.Set("Mcp-Session-Id", "s-1")
						return resp
					},
				}}
				s := webtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
					wait := 7*time.Second - time.Since(start)
					if r.Header.Get("Mcp-Method") == mcp.MethodDiscover {
						wait = max(wait, test.probe)
					}
					select {
					case <-time.After(wait):
					case <-r.Context().Done():
						return nil, context.Cause(r.Context())
					}
					if r.Method == http.MethodDelete {
						left = append(left, r.Header.Get("Mcp-Session-Id"))
					}
					return awake.RoundTrip(r)
				})
				memory := client.NewEraMemory()
				var log bytes.Buffer
				c := dial(t, &streamable.Dialer{URL: "http://slow.example/mcp", Client: &http.Client{Transport: s}},
					&client.Options{Eras: memory, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if took := time.Since(start); c.Version() != test.want || took != test.took {
					t.Errorf("version %s after %v", c.Version(), took)
				}
				if !slices.Equal(left, test.left) {
					t.Errorf("the sessions %q were ended", left)
				}
				if v, _ := memory.Recall("http://slow.example/mcp"); v != test.known {
					t.Errorf("remembered as %q", v)
				}
				if said := log.String(); !strings.Contains(said, test.says) || test.says == "" && said != "" {
					t.Errorf("the log says %q, want %q", said, test.says)
				}
			})
		})
	}
}

// Rulings 4 and 31: a server that ends at the probe gets another probe, and then
// a handshake, each on a connection of its own.
func TestProbeKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{newest}}
		s.on = map[string]func(*req) (any, error){mcp.MethodDiscover: func(r *req) (any, error) {
			r.conn.end()
			return nil, errSilent
		}}
		c := connect(t, s, nil)
		if c.Version() != newest || len(s.conns) != 3 {
			t.Errorf("version %s over %d connections", c.Version(), len(s.conns))
		}
	})
}

// Ruling 4: the era is remembered by the dialer's key, and found anew when it
// does not fit any more.
func TestEraMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := client.NewEraMemory()
		s := &script{versions: []string{newest}}
		dialer := mem.New(s, &mem.Options{Key: "old server"})
		once := func() (*client.Client, []string) {
			c, err := client.Connect(t.Context(), dialer, &client.Options{Eras: memory})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got := s.methods()
			s.heard = nil
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return c, got
		}
		if _, got := once(); got[0] != mcp.MethodDiscover {
			t.Errorf("heard %v first", got)
		}
		if v, ok := memory.Recall("old server"); !ok || v != newest {
			t.Errorf("remembered %q", v)
		}
		if _, got := once(); got[0] != mcp.MethodInitialize {
			t.Errorf("heard %v, want no probe", got)
		}
		s.versions = []string{modern}
		s.on = map[string]func(*req) (any, error){mcp.MethodInitialize: func(*req) (any, error) {
			return nil, jsonrpc.NewError(jsonrpc.CodeMethodNotFound, "initialize is not known")
		}}
		if c, got := once(); !slices.Equal(got, []string{mcp.MethodInitialize, mcp.MethodDiscover}) || c.Version() != modern {
			t.Errorf("heard %v, version %s", got, c.Version())
		}
		if v, _ := memory.Recall("old server"); v != modern {
			t.Errorf("remembered %q", v)
		}
	})
}

// Spec 2026-07-28, basic/versioning: a version refused later is negotiated
// anew, once, and the request repeated.
func TestRenegotiate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{versions: []string{modern, newest}}
		s.on = map[string]func(*req) (any, error){mcp.MethodToolsCall: func(r *req) (any, error) {
			if meta(r.in, mcp.MetaProtocolVersion) != "" {
				return nil, jsonrpc.NewError(mcp.CodeUnsupportedVersion, "not any more").With(mcp.UnsupportedVersionData{Supported: []string{newest}})
			}
			return raw(`{"content":[{"type":"text","text":"old"}]}`), nil
		}}
		c := connect(t, s, nil)
		out, err := client.Call[string](t.Context(), c, "t", nil)
		if err != nil || out != "old" || c.Version() != newest {
			t.Errorf("%q, %v, version %s", out, err, c.Version())
		}
	})
}

// Ruling 27; spec 2026-07-28, basic: what each request carries in _meta.
func TestRequestMeta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsCall: func(*req) (any, error) {
			return raw(`{"resultType":"complete","content":[]}`), nil
		}}}
		c := connect(t, s, &client.Options{
			Info:       mcp.Implementation{Name: "me", Version: "7"},
			OnRoots:    func(context.Context) ([]mcp.Root, error) { return nil, nil },
			OnLog:      func(context.Context, *mcp.LogParams) {},
			Extensions: []client.Extension{{ID: "com.example/x", Settings: raw(`{"a":1}`)}},
		})
		ctx := client.WithTrace(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "a=b", "k=\x01")
		if _, err := c.CallTool(ctx, "t", nil, &client.CallOptions{Meta: map[string]mcp.RawValue{"com.example/y": raw(`2`)}}); err != nil {
			t.Fatal(err)
		}
		call := s.await(mcp.MethodToolsCall, 1)
		for key, want := range map[string]string{
			mcp.MetaProtocolVersion:    `"` + modern + `"`,
			mcp.MetaClientInfo:         `{"name":"me","version":"7"}`,
			mcp.MetaClientCapabilities: `{"roots":{},"extensions":{"com.example/x":{"a":1}}}`,
			mcp.MetaLogLevel:           `"info"`,
			mcp.MetaTraceParent:        `"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"`,
			mcp.MetaTraceState:         `"a=b"`,
			mcp.MetaBaggage:            "",
			mcp.MetaProgressToken:      call.ID.String(),
			"com.example/y":            "2",
		} {
			if got := meta(call, key); got != want {
				t.Errorf("_meta %s is %s, want %s", key, got, want)
			}
		}
		for _, key := range []string{"progressToken", "io.modelcontextprotocol/protocolVersion", "dev.mcp/x", "-bad"} {
			if _, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{Meta: map[string]mcp.RawValue{key: raw(`1`)}}); err == nil {
				t.Errorf("_meta key %q was accepted", key)
			}
		}
	})
}

func TestHideInfo(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions}
			connect(t, s, &client.Options{Info: mcp.Implementation{Name: "secret"}, HideInfo: true})
			synctest.Wait()
			if len(s.heard) == 0 {
				t.Error("nothing was heard")
			}
			for _, m := range s.heard {
				if strings.Contains(string(m.Params.Raw()), "secret") {
					t.Errorf("%s says who asks: %s", m.Method, m.Params.Raw())
				}
			}
		})
	})
}

// Ruling 5: capabilities are declared in the words of the revision.
func TestInitializeCapabilities(t *testing.T) {
	for version, want := range map[string]string{
		newest:       `{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`,
		"2025-06-18": `{"elicitation":{},"roots":{"listChanged":true}}`,
		"2024-11-05": `{"roots":{"listChanged":true}}`,
	} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{versions: []string{version}}
				ask := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Decline() }
				connect(t, s, &client.Options{
					Versions: []string{version}, OnElicit: ask, OnElicitURL: ask,
					OnRoots: func(context.Context) ([]mcp.Root, error) { return nil, nil },
				})
				if got := text(s.await(mcp.MethodInitialize, 1), "capabilities"); got != want {
					t.Errorf("capabilities %s, want %s", got, want)
				}
			})
		})
	}
}
