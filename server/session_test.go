package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type initialized struct {
	ProtocolVersion string                  `json:"protocolVersion"`
	Capabilities    map[string]mcp.RawValue `json:"capabilities"`
	ServerInfo      map[string]any          `json:"serverInfo"`
	Instructions    string                  `json:"instructions"`
}

func initParams(version string) string {
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`, version)
}

// The handshake negotiates what both know, else our newest one with a
// handshake. Proves: FLOW-INIT. Ruling 3.
func TestInitialize(t *testing.T) {
	o := quiet()
	o.Title, o.Instructions = "The Test", "Be kind."
	s := newServer(o, echo())
	for asked, want := range map[string]string{
		v2024: v2024, v2503: v2503, v2506: v2506, v2511: v2511,
		v2607: v2511, "1999-01-01": v2511, "2099-01-01": v2511, "": v2511, "latest": v2511,
	} {
		l := dial(t, s, asked, nil)
		l.version = v2511 // no `_meta`
		got := decode[initialized](t, l.result(l.call("initialize", initParams(asked))))
		if got.ProtocolVersion != want || got.ServerInfo["name"] != "test" || got.Instructions != "Be kind." {
			t.Errorf("asked for %q: %+v", asked, got)
		}
		if _, title := got.ServerInfo["title"]; title != (want >= v2506) {
			t.Errorf("%s: server info %v", want, got.ServerInfo)
		}
		if got.Capabilities["tools"] == nil || got.Capabilities["resources"] != nil || got.Capabilities["extensions"] != nil {
			t.Errorf("capabilities %v", got.Capabilities)
		}
	}
	l := dial(t, s, v2511, nil)
	for _, params := range []string{`{}`, `{"capabilities":{}}`, `{"protocolVersion":5}`, `{"protocolVersion":"2025-11-25","Capabilities":{}}`} {
		l.fails(l.call("initialize", params), mcp.CodeInvalidParams)
	}
	l.WriteLine(`{"jsonrpc":"2.0","id":70,"method":"initialize"}`)
	l.fails(l.wait("70"), mcp.CodeInvalidParams)
	l.handshake() // a failed one changes nothing
}

// What a client says of itself is kept for as long as its session lasts, and so
// it is bounded. Proves: SEC-DOS-1.
func TestInitializeIsBounded(t *testing.T) {
	s := newServer(nil)
	for _, size := range []int{65 << 10, 1 << 20} {
		l := dial(t, s, v2511, nil)
		params := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"experimental":{"x":{"y":%q}}},"clientInfo":{"name":"raw","version":"1"}}`,
			v2511, strings.Repeat("x", size))
		if got := l.fails(l.call("initialize", params), mcp.CodeInvalidParams); !strings.Contains(got, "and may have 65536") {
			t.Errorf("%d bytes: %s", size, got)
		}
		l.result(l.call("initialize", strings.Replace(params, strings.Repeat("x", size), strings.Repeat("x", 60<<10), 1)))
		l.result(l.call("ping", emptyBody))
	}
}

// A second initialize is refused and changes nothing. Ruling 3.
func TestInitializeTwice(t *testing.T) {
	s := newServer(nil, give("struct", sum{1}))
	l := join(t, s, v2506)
	if got := l.fails(l.call("initialize", initParams(v2024)), mcp.CodeInvalidRequest); !strings.Contains(got, v2506) {
		t.Errorf("got %q", got)
	}
	if m := l.tool("struct", emptyBody); !strings.Contains(m.raw, "structuredContent") {
		t.Errorf("the revision changed: %s", m.raw)
	}
}

// The operator decides what is served, in both eras. Proves: SEC-INIT-1.
// Rulings 2, 3 and 4.
func TestVersions(t *testing.T) {
	o := unlimited()
	o.Versions = []string{v2506, v2511}
	s := newServer(o, echo())
	if d := cmp.Diff([]string{v2511, v2506}, s.Versions()); d != "" {
		t.Error(d)
	}
	for asked, want := range map[string]string{v2024: v2511, v2506: v2506, v2607: v2511} {
		l := dial(t, s, v2511, nil)
		if got := decode[initialized](t, l.result(l.call("initialize", initParams(asked)))); got.ProtocolVersion != want {
			t.Errorf("asked for %s: %s", asked, got.ProtocolVersion)
		}
	}
	unsupported := func(l *line, m message, code int64, supported ...string) {
		t.Helper()
		l.fails(m, code)
		got := decode[mcp.UnsupportedVersionData](t, m.Error.Data)
		if d := cmp.Diff(supported, got.Supported); d != "" || got.Requested == "" {
			t.Errorf("data %+v: %s", got, d)
		}
	}
	l := dial(t, s, v2607, nil)
	unsupported(l, l.tool("echo", `{"text":"x"}`), mcp.CodeUnsupportedVersion, v2511, v2506)

	o.Versions = []string{v2607}
	s = newServer(o, echo())
	l = dial(t, s, v2511, nil)
	unsupported(l, l.call("initialize", initParams(v2511)), mcp.CodeInvalidParams, v2607)

	panics(t, "unknown protocol revision", func() { server.New("x", "1", &server.Options{Versions: []string{"1999-01-01"}}) })
}

// An unknown version of a modern request, a legacy one in its place, and what
// is missing in `_meta`. Rulings 1 and 2.
func TestModernMeta(t *testing.T) {
	s := newServer(unlimited(), echo())
	l := dial(t, s, v2511, nil) // no `_meta` by itself
	call := func(meta string) message {
		return l.call("tools/call", `{"_meta":`+meta+`,"name":"echo","arguments":{"text":"hi"}}`)
	}
	version := func(v string) string { return `"io.modelcontextprotocol/protocolVersion":` + v }
	const caps = `"io.modelcontextprotocol/clientCapabilities":`
	if got := l.text(call(`{` + version(`"2026-07-28"`) + `,` + caps + `{}}`)); got != "hi" {
		t.Errorf("without clientInfo: %q", got)
	}
	for meta, code := range map[string]int64{
		`{` + version(`"2099-01-01"`) + `,` + caps + `{}}`:                                               mcp.CodeUnsupportedVersion,
		`{` + version(`"2025-11-25"`) + `,` + caps + `{}}`:                                               mcp.CodeUnsupportedVersion,
		`{` + version(`""`) + `,` + caps + `{}}`:                                                         mcp.CodeUnsupportedVersion,
		`{` + version(`7`) + `,` + caps + `{}}`:                                                          mcp.CodeInvalidParams,
		`{` + version(`"2026-07-28"`) + `}`:                                                              mcp.CodeInvalidParams,
		`{` + version(`"2026-07-28"`) + `,` + caps + `null}`:                                             mcp.CodeInvalidParams,
		`{` + version(`"2026-07-28"`) + `,` + caps + `[]}`:                                               mcp.CodeInvalidParams,
		`{` + version(`"2026-07-28"`) + `,` + caps + `{},"io.modelcontextprotocol/clientInfo":5}`:        mcp.CodeInvalidParams,
		`{` + version(`"2026-07-28"`) + `,` + caps + `{},"progressToken":true}`:                          mcp.CodeInvalidParams,
		`{` + version(`"2026-07-28"`) + `,"io.modelcontextprotocol/protocolversion":"x",` + caps + `{}}`: 0, // another key: ignored

		// Legacy, before the handshake.
		`{` + caps + `{}}`: mcp.CodeInvalidRequest,
	} {
		m := call(meta)
		if code == 0 {
			l.text(m)
			continue
		}
		if m.Error == nil || m.Error.Code != code {
			t.Errorf("%s gives %s", meta, m.raw)
		}
	}
}

// Modern requests are served on any connection, before and after a handshake,
// and legacy methods named by them are not found. Ruling 1.
func TestModernOnHandshaken(t *testing.T) {
	s := newServer(nil, give("struct", []int{1}))
	l := dial(t, s, v2607, nil)
	modern := func() {
		t.Helper()
		l.version = v2607
		if m := l.tool("struct", emptyBody); !strings.Contains(m.raw, `"structuredContent":[1]`) || !strings.Contains(m.raw, `"resultType":"complete"`) {
			t.Errorf("modern: %s", m.raw)
		}
		for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe"} {
			l.fails(l.call(method, emptyBody), mcp.CodeMethodNotFound)
		}
	}
	modern()
	l.version = v2511
	l.fails(l.tool("struct", emptyBody), mcp.CodeInvalidRequest)
	l.handshake()
	if m := l.tool("struct", emptyBody); strings.Contains(m.raw, "structuredContent") || strings.Contains(m.raw, "resultType") {
		t.Errorf("legacy: %s", m.raw)
	}
	modern()
	l.version = v2511
	l.result(l.call("ping", emptyBody))
}

// Before the handshake only ping, server/discover and modern requests are
// served; after its answer all, without notifications/initialized. Ruling 3.
// Proves: FLOW-PING.
func TestBeforeInitialize(t *testing.T) {
	s := newServer(nil, echo())
	l := dial(t, s, v2511, nil)
	l.result(l.call("ping", emptyBody))
	l.fails(l.call("server/discover", emptyBody), mcp.CodeInvalidParams) // it says what is missing, not to initialize
	for _, method := range []string{"tools/list", "tools/call", "nosuch", "resources/read", "logging/setLevel"} {
		if got := l.fails(l.call(method, emptyBody), mcp.CodeInvalidRequest); !strings.Contains(got, "initialize") {
			t.Errorf("%s: %q", method, got)
		}
	}
	l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	l.fails(l.call("tools/list", emptyBody), mcp.CodeInvalidRequest)
	l.result(l.call("initialize", initParams(v2511)))
	l.text(l.tool("echo", `{"text":"x"}`))
}

// Ids in flight are refused when they come again, free when they are answered,
// and those of the two directions do not meet. Ruling 7. Proves: MSG-3.
func TestDuplicateIDs(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			s := newServer(unlimited(), echo(), server.Tool("waits", "", func(context.Context, none) (string, error) {
				<-let
				return "first", nil
			}))
			l := join(t, s, v)
			for _, id := range []string{`77`, `"77"`, `"a"`} { // a number is not a string
				l.WriteLine(l.request(id, "tools/call", toolParams("waits", emptyBody)))
			}
			synctest.Wait()
			for _, id := range []string{`77`, `"77"`, `"a"`} {
				l.WriteLine(l.request(id, "tools/call", toolParams("echo", `{"text":"second"}`)))
				l.fails(l.wait(id), mcp.CodeInvalidRequest)
			}
			other := join(t, s, v)
			other.WriteLine(other.request("77", "tools/call", toolParams("echo", `{"text":"other"}`)))
			if got := other.text(other.wait("77")); got != "other" {
				t.Errorf("on another connection: %q", got)
			}
			close(let)
			for range 3 {
				if got := l.text(l.next()); got != "first" {
					t.Errorf("got %q", got)
				}
			}
			for range 100 {
				l.WriteLine(l.request("77", "tools/call", toolParams("echo", `{"text":"again"}`)))
				l.text(l.wait("77"))
			}
		})
	})
	s := newServer(nil, asker("drop", "Drop?"), echo())
	l := join(t, s, v2511)
	l.WriteLine(l.request("1", "tools/call", toolParams("drop", emptyBody)))
	q := l.next()
	if q.Method != "elicitation/create" {
		t.Fatalf("got %s", q.raw)
	}
	// The client's ids are its own affair: one may be that of the server's request.
	l.WriteLine(l.request(string(q.ID), "tools/call", toolParams("echo", `{"text":"same id"}`)))
	if got := l.text(l.wait(string(q.ID))); got != "same id" {
		t.Errorf("got %q", got)
	}
	l.WriteLine(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + accepted + `}`)
	if got := l.text(l.wait("1")); got != "accept true" {
		t.Errorf("got %q", got)
	}
}

// What is not an answer to us is dropped; the session goes on. Proves: MSG-3.
func TestStrayResponses(t *testing.T) {
	s := newServer(nil, echo())
	l := join(t, s, v2511)
	l.WriteLine(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	l.WriteLine(`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"x"}}`)
	l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/nosuch","params":{"x":1}}`)
	if got := l.text(l.tool("echo", `{"text":"on"}`)); got != "on" {
		t.Errorf("got %q", got)
	}
}

// Errors without an id: null before negotiation and in older revisions, left
// out in the newest with a handshake. Ruling 9.
func TestErrorsWithoutID(t *testing.T) {
	s := newServer(nil, echo())
	check := func(l *line, null bool) {
		t.Helper()
		l.WriteLine(`{"jsonrpc":"2.0",`)
		m := l.next()
		if m.Error == nil || m.Error.Code != mcp.CodeParseError || strings.Contains(m.raw, `"id":null`) != null {
			t.Errorf("%s: %s", l.version, m.raw)
		}
	}
	check(dial(t, s, v2511, nil), true)
	for _, v := range []string{v2024, v2503, v2506} {
		check(join(t, s, v), true)
	}
	check(join(t, s, v2511), false)
}

// Arrays are messages in one revision alone, after negotiation, and within
// bounds. Proves: FLOW-BATCH, SEC-DOS-1. Ruling 10.
func TestBatches(t *testing.T) {
	o := unlimited()
	o.Limits.MaxBatch = 3
	s := newServer(o, echo())
	one := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%[1]d"}}}`
	pair := "[" + fmt.Sprintf(one, 51) + "," + fmt.Sprintf(one, 52) + "]"
	refused := func(l *line, text string) {
		t.Helper()
		l.WriteLine(text)
		if m := l.next(); m.Error == nil || m.Error.Code != mcp.CodeInvalidRequest {
			t.Errorf("%s: %s gives %s", l.version, text, m.raw)
		}
	}
	refused(dial(t, s, v2503, nil), pair)
	for _, v := range []string{v2024, v2506, v2511} {
		refused(join(t, s, v), pair)
	}
	l := join(t, s, v2503)
	l.WriteLine(pair)
	m := l.next()
	var ids []int
	for _, answer := range decode[[]struct {
		ID     int `json:"id"`
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}](t, mcp.RawValue(m.raw)) {
		ids = append(ids, answer.ID)
		if answer.Result.Content[0].Text != fmt.Sprint(answer.ID) {
			t.Errorf("answers are mixed up: %s", m.raw)
		}
	}
	if len(ids) != 2 {
		t.Errorf("got %s", m.raw)
	}
	refused(l, "[]")
	refused(l, "["+strings.Repeat(fmt.Sprintf(one, 1)+",", 3)+fmt.Sprintf(one, 2)+"]")
	l.WriteLine(`[{"jsonrpc":"2.0","id":60,"method":"initialize","params":` + initParams(v2503) + `},` + fmt.Sprintf(one, 61) + `]`)
	if m := l.next(); !strings.Contains(m.raw, `-32600`) {
		t.Errorf("initialize in a batch: %s", m.raw)
	}
	l.text(l.tool("echo", `{"text":"on"}`))
}

// Discovery tells what is there, and what the operator wants told.
// Proves: FLOW-INIT, SEC-INIT-1, SEC-CAP-1. Ruling 4.
func TestDiscover(t *testing.T) {
	s := newServer(&server.Options{Instructions: "Be kind.", Experimental: map[string]mcp.RawValue{"x": mcp.RawValue("{}")}},
		append(templates(), echo(), review())...)
	l := join(t, s, v2607)
	m := l.call("server/discover", emptyBody)
	got := decode[map[string]any](t, l.result(m))
	meta, _ := got["_meta"].(map[string]any)
	if d := cmp.Diff(map[string]any{"name": "test", "version": "1.2.3"}, meta["io.modelcontextprotocol/serverInfo"]); d != "" {
		t.Error(d)
	}
	delete(got, "_meta")
	want := decode[map[string]any](t, mcp.RawValue(`{
		"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],
		"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},
			"completions":{},"logging":{},"experimental":{"x":{}}},
		"instructions":"Be kind.","resultType":"complete","ttlMs":0,"cacheScope":"private"}`))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	hidden := newServer(&server.Options{HideInfo: true}, echo())
	l = join(t, hidden, v2607)
	if m := l.call("server/discover", emptyBody); strings.Contains(m.raw, "1.2.3") {
		t.Errorf("hidden, and told: %s", m.raw)
	}
}

// The server hears that roots changed, from clients that declared them; a flood
// makes no more work than one. Proves: FLOW-ROOTS, SEC-DOS-1.
func TestRootsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := 0
		o := quiet()
		let := make(chan struct{}, 10)
		o.OnRootsChanged = func(context.Context) {
			heard++
			<-let
			if heard == 2 {
				panic("an author's mistake") // logged, and survived
			}
		}
		s := newServer(o)
		l := join(t, s, v2511)
		for range 100 { // a flood is heard while the first is worked on, and once after
			l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			synctest.Wait() // the first is worked on before the second comes
		}
		if heard != 1 {
			t.Errorf("heard %d at once", heard)
		}
		for range 10 {
			let <- struct{}{}
		}
		synctest.Wait()
		if heard != 2 {
			t.Errorf("heard %d", heard)
		}
		l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		synctest.Wait()
		if heard != 3 {
			t.Errorf("heard %d after a panic", heard)
		}
		bare := dial(t, s, v2511, nil)
		bare.caps = emptyBody
		bare.handshake()
		bare.WriteLine(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		synctest.Wait()
		if heard != 3 {
			t.Errorf("a client without roots was heard")
		}
	})
}

// What a handler sees of its request. Proves: FLOW-INIT, FLOW-PING.
func TestCallFacts(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("facts", "", func(ctx context.Context, _ none) (string, error) {
			c := server.CallFrom(context.WithValue(ctx, jobKey{}, 1))
			ping := ""
			if err := c.Ping(ctx); err != nil {
				ping = "no ping"
			}
			return fmt.Sprintf("%s %s %s %s %v %v %s", c.Method(), c.Target(), c.ClientInfo().Name, server.Caller(ctx).Subject,
				c.ClientCapabilities().Elicitation != nil, server.CanElicit(ctx), ping), nil
		}))
		return s
	}
	o := &client.Options{
		Info:     mcp.Implementation{Name: "tester", Version: "1"},
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Decline() },
	}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		got, err := client.Call[string](t.Context(), c, "facts", nil)
		want := "tools/call facts tester local true true "
		if era.Transport != "mem" && era.Transport != "stdio" {
			want = strings.Replace(want, "local", "", 1) // over the network a caller is nobody until authenticated
		}
		switch era.Version {
		case v2607:
			want += "no ping"
		case v2024, v2503:
			want = strings.Replace(want, "true true", "false false", 1)
			got = strings.Replace(got, "true false", "false false", 1) // declared, though the revision has none
		}
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	})
	if server.CallFrom(t.Context()) != nil || server.Caller(t.Context()) != nil || server.CanSample(t.Context()) {
		t.Error("outside of a request there is a request")
	}
}
