package mcp_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

func TestValidMetaKey(t *testing.T) {
	for key, valid := range map[string]bool{
		"progressToken": true, "a": true, "a.b_c-d": true, "9": true,
		"com.example/name": true, "com.ex-ample/n": true, "com.example/": true, "a/b": true, "": true,
		"/a": false, "com..example/a": false, "1com/a": false, "com.example-/a": false, "com.-example/a": false,
		"com.ex_ample/a": false, "com.example/-a": false, "com.example/a-": false, "a b": false, "é": false,
		"com.example/a/b": false,
	} {
		if err := mcp.ValidMetaKey(key); (err == nil) != valid {
			t.Errorf("ValidMetaKey(%q) = %v", key, err)
		}
	}
}

// Ruling 27: reserved keys.
func TestReservedMetaKey(t *testing.T) {
	for key, reserved := range map[string]bool{
		"progressToken": true, "traceparent": true, "tracestate": true, "baggage": true,
		mcp.MetaProtocolVersion: true, mcp.MetaServerInfo: true,
		"io.modelcontextprotocol/": true, "dev.mcp/x": true, "org.modelcontextprotocol.api/x": true,
		"com.mcp.tools/x": true, "com.MCP/x": true,
		"com.example.mcp/x": false, "mcp/x": false, "modelcontextprotocol/x": false, "x": false, "io.mcpx/x": false,
	} {
		if got := mcp.ReservedMetaKey(key); got != reserved {
			t.Errorf("ReservedMetaKey(%q) = %t", key, got)
		}
	}
}

func FuzzMetaKey(f *testing.F) {
	f.Add("com.example/a")
	f.Add("io.modelcontextprotocol/x")
	f.Fuzz(func(t *testing.T, key string) {
		if mcp.ValidMetaKey(key) != nil {
			return
		}
		for _, c := range []byte(key) {
			if c >= 0x80 || c <= ' ' {
				t.Errorf("%q is valid", key)
			}
		}
		if strings.Count(key, "/") > 1 {
			t.Errorf("%q is valid", key)
		}
	})
}

// Ruling 5: sub-capabilities; `elicitation: {}` means form.
func TestClientCapabilities(t *testing.T) {
	for raw, want := range map[string][]string{
		`{}`:                                          nil,
		`{"elicitation":{}}`:                          {mcp.CapElicitation, mcp.CapElicitationForm},
		`{"elicitation":{"form":{}}}`:                 {mcp.CapElicitation, mcp.CapElicitationForm},
		`{"elicitation":{"url":{}}}`:                  {mcp.CapElicitation, mcp.CapElicitationURL},
		`{"elicitation":{"url":{},"form":{}}}`:        {mcp.CapElicitation, mcp.CapElicitationForm, mcp.CapElicitationURL},
		`{"sampling":{}}`:                             {mcp.CapSampling},
		`{"sampling":{"tools":{},"context":{}}}`:      {mcp.CapSampling, mcp.CapSamplingContext, mcp.CapSamplingTools},
		`{"roots":{}}`:                                {mcp.CapRoots},
		`{"roots":{"listChanged":true}}`:              {mcp.CapRoots, mcp.CapRootsListChanged},
		`{"tools":{},"Roots":{},"tasks":{"list":{}}}`: nil,
	} {
		var c mcp.ClientCapabilities
		if err := wire.DecodeParams([]byte(raw), &c); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		var got []string
		for _, name := range []string{
			mcp.CapElicitation, mcp.CapElicitationForm, mcp.CapElicitationURL, mcp.CapSampling,
			mcp.CapSamplingContext, mcp.CapSamplingTools, mcp.CapRoots, mcp.CapRootsListChanged, "x",
		} {
			if c.Has(name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: has %v, want %v", raw, got, want)
		}
		if out := marshal(t, &c); !wire.Equal([]byte(out), []byte(raw)) {
			t.Errorf("%s came back as %s", raw, out)
		}
	}
	var none *mcp.ClientCapabilities
	if none.Has(mcp.CapRoots) || none.HasForm() || !none.Has("") {
		t.Error("nil has capabilities, or not the empty one")
	}
}

func TestServerCapabilities(t *testing.T) {
	const raw = `{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"x":[1],"extensions":{"com.example/x":{}}}`
	var c mcp.ServerCapabilities
	if err := wire.DecodeParams([]byte(raw), &c); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		mcp.CapTools: true, mcp.CapToolsListChanged: true, mcp.CapResources: true, mcp.CapResourcesSubscribe: true,
		mcp.CapResourcesListChanged: false, mcp.CapPrompts: true, mcp.CapPromptsListChanged: false,
		mcp.CapCompletions: true, mcp.CapLogging: false, "": true, "x": false,
	} {
		if got := c.Has(name); got != want {
			t.Errorf("Has(%q) = %t", name, got)
		}
	}
	if out := marshal(t, &c); !wire.Equal([]byte(out), []byte(raw)) {
		t.Errorf("%s came back as %s", raw, out)
	}
	var none *mcp.ServerCapabilities
	if none.Has(mcp.CapTools) {
		t.Error("nil has tools")
	}
}

// Ruling 19, ruling 21: absent is not empty.
func TestAbsentIsNotEmpty(t *testing.T) {
	for _, raw := range []string{`{"name":"t"}`, `{"name":"t","requestState":"","inputResponses":{}}`} {
		var p mcp.CallToolParams
		if err := wire.DecodeParams([]byte(raw), &p); err != nil {
			t.Fatal(err)
		}
		if out := marshal(t, &p); !wire.Equal([]byte(out), []byte(raw)) {
			t.Errorf("%s came back as %s", raw, out)
		}
	}
	if got, want := marshal(t, &mcp.ListParams{Cursor: new("")}), `{"cursor":""}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := marshal(t, &mcp.CallToolResult{}), `{"content":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrors(t *testing.T) {
	err := mcp.Errorf("read %s: %w", "a", io.ErrUnexpectedEOF)
	if err.Error() != "read a: unexpected EOF" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Errorf = %v", err)
	}
	if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Code != 0 {
		t.Errorf("Errorf gives %#v", err)
	}
	plain := mcp.NewError(mcp.CodeRateLimited, "too fast")
	full := plain.With(mcp.RetryData{RetryAfterMs: 5})
	if plain.Data != nil || full.Data == nil || full.Code != mcp.CodeRateLimited {
		t.Errorf("With: %#v, %#v", plain, full)
	}
	for _, test := range []struct {
		err  error
		want int64
	}{{nil, 0}, {io.EOF, mcp.CodeInternalError}, {err, mcp.CodeInternalError}, {full, mcp.CodeRateLimited}, {errors.Join(io.EOF, full), mcp.CodeRateLimited}} {
		if got := mcp.Code(test.err); got != test.want {
			t.Errorf("Code(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}

// Ruling 26: own codes are outside of the reserved range, and have names.
func TestOwnCodes(t *testing.T) {
	seen := map[int64]bool{}
	for _, code := range []int64{
		mcp.CodeRateLimited, mcp.CodeTooManyInFlight, mcp.CodeTimeout, mcp.CodeShuttingDown, mcp.CodeTooLarge,
		mcp.CodeInsufficientScope,
	} {
		if code >= -32768 && code <= -32000 || seen[code] {
			t.Errorf("code %d is reserved or used twice", code)
		}
		seen[code] = true
		if mcp.CodeName(code) == "" {
			t.Errorf("code %d has no name", code)
		}
	}
	if got := mcp.CodeName(12345); got != "" {
		t.Errorf("CodeName of an unknown code = %q", got)
	}
}

// Proves: FLOW-LOG (the order of levels is that of RFC 5424).
func TestLogLevels(t *testing.T) {
	for i, level := range mcp.LogLevels() {
		if level.Severity() != i || !level.Valid() {
			t.Errorf("%s: severity %d, valid %t", level, level.Severity(), level.Valid())
		}
	}
	if !mcp.LogError.AtLeast(mcp.LogWarning) || mcp.LogDebug.AtLeast(mcp.LogInfo) || !mcp.LogInfo.AtLeast(mcp.LogInfo) {
		t.Error("levels are in the wrong order")
	}
	if bad := mcp.LogLevel("loud"); bad.Valid() || bad.AtLeast(mcp.LogDebug) || mcp.LogError.AtLeast(bad) {
		t.Error("an unknown level is valid")
	}
}

func TestToolAnnotationsHaveDefaults(t *testing.T) {
	var none *mcp.ToolAnnotations
	if none.ReadOnly() || none.Idempotent() || !none.Destructive() || !none.OpenWorld() {
		t.Error("nil annotations have other defaults than the specification")
	}
	given := &mcp.ToolAnnotations{ReadOnlyHint: new(true), IdempotentHint: new(true), OpenWorldHint: new(false)}
	if !given.ReadOnly() || !given.Idempotent() || given.Destructive() || given.OpenWorld() {
		t.Error("hints are not taken")
	}
}

// Proves: MSG-5 (the table is sorted and complete in itself).
func TestMethods(t *testing.T) {
	if !slices.IsSortedFunc(mcp.Methods, func(a, b mcp.Method) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("Methods is not sorted")
	}
	for i := range mcp.Methods {
		m := &mcp.Methods[i]
		if found, ok := mcp.Lookup(m.Name); !ok || found != m {
			t.Errorf("Lookup(%q) = %v, %t", m.Name, found, ok)
		}
		if m.Params == nil || m.Notification != (m.Result == nil) || m.From == 0 {
			t.Errorf("%s: params %v, result %v, from %d", m.Name, m.Params, m.Result, m.From)
		}
		have := fields(m.Params)
		for _, member := range append(slices.Clone(m.Binding), m.Target) {
			if _, ok := have[member]; !ok && member != "" {
				t.Errorf("%s: params have no %q", m.Name, member)
			}
		}
		if _, ok := have["requestState"]; ok != m.Asks || m.Asks != (len(m.Binding) > 0) {
			t.Errorf("%s: Asks is %t, Binding %v", m.Name, m.Asks, m.Binding)
		}
		if m.Result != nil {
			if _, ok := fields(m.Result)["ttlMs"]; ok != m.Cacheable {
				t.Errorf("%s: Cacheable is %t", m.Name, m.Cacheable)
			}
		}
	}
	if m, ok := mcp.Lookup("tools/unknown"); ok {
		t.Errorf("Lookup of an unknown method = %v", m)
	}
}
