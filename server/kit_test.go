package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/linetest"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

const (
	v2024 = "2024-11-05"
	v2503 = "2025-03-26"
	v2506 = "2025-06-18"
	v2511 = "2025-11-25"
	v2607 = "2026-07-28"
)

var (
	versions  = []string{v2024, v2503, v2506, v2511, v2607}
	bothEras  = []string{v2511, v2607}
	ada       = &principal.Principal{Issuer: "https://as.example", Subject: "ada", Client: "c1"}
	bob       = &principal.Principal{Issuer: "https://as.example", Subject: "bob", Client: "c1"}
	allCaps   = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true}}`
	accepted  = `{"action":"accept","content":{"sure":true}}`
	emptyBody = `{}`
)

// sure is the form that tests ask for.
type sure struct {
	Sure bool `json:"sure" desc:"Really?"`
}

// A message is one line from the server.
type message struct {
	raw    string
	ID     wire.RawValue `json:"id"`
	Method string        `json:"method"`
	Params wire.RawValue `json:"params"`
	Result wire.RawValue `json:"result"`
	Error  *struct {
		Code    int64         `json:"code"`
		Message string        `json:"message"`
		Data    wire.RawValue `json:"data"`
	} `json:"error"`
}

// A line is a raw connection to a server, in one revision. Whoever tests with
// it sees what a peer in another language would see.
type line struct {
	*linetest.Conn

	t       *testing.T
	version string
	caps    string // client capabilities
	meta    string // more members of `_meta`, such as `"progressToken":1`
	last    int
	notes   []message // notifications met while waiting for an answer
}

// dial connects to a server, without a handshake.
func dial(t *testing.T, s *server.Server, version string, who *principal.Principal) *line {
	t.Helper()
	return &line{Conn: linetest.Dial(t, over(s, who)), t: t, version: version, caps: allCaps}
}

// over serves one end of a pipe.
func over(s *server.Server, who *principal.Principal) func(context.Context, net.Conn) error {
	return func(ctx context.Context, far net.Conn) error {
		return stdio.ServeConn(ctx, far, s, &stdio.Options{Principal: who, Linger: -1})
	}
}

// parse reads a line. An array is left as it is.
func (l *line) parse(text string) message {
	l.t.Helper()
	m := message{raw: strings.TrimSpace(text)}
	if !strings.HasPrefix(m.raw, "[") {
		if err := wire.Decode(wire.RawValue(m.raw), &m); err != nil {
			l.t.Errorf("unreadable line %s: %v", m.raw, err)
		}
	}
	return m
}

// join connects in a revision, with the handshake if it has one.
func join(t *testing.T, s *server.Server, version string) *line {
	t.Helper()
	return joinAs(t, s, version, nil)
}

func joinAs(t *testing.T, s *server.Server, version string, who *principal.Principal) *line {
	t.Helper()
	l := dial(t, s, version, who)
	if !l.modern() {
		l.handshake()
	}
	return l
}

func (l *line) modern() bool { return l.version == v2607 }

func (l *line) handshake() message {
	l.t.Helper()
	m := l.call("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"raw","version":"1"}}`, l.version, l.caps))
	if m.Error != nil {
		l.t.Fatalf("initialize: %s", m.raw)
	}
	l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

// start sends a request and returns its id.
func (l *line) start(method, params string) string {
	l.t.Helper()
	l.last++
	id := fmt.Sprint(l.last)
	l.WriteLine(l.request(id, method, params))
	return id
}

// request is the text of a request in the revision of the line.
func (l *line) request(id, method, params string) string {
	var meta []string
	if l.modern() {
		meta = append(meta, fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s`, l.version, l.caps))
	}
	if l.meta != "" {
		meta = append(meta, l.meta)
	}
	members := strings.TrimSuffix(strings.TrimPrefix(params, "{"), "}")
	if len(meta) > 0 {
		own := `"_meta":{` + strings.Join(meta, ",") + `}`
		if members != "" {
			own += "," + members
		}
		members = own
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, members)
}

// next returns the next message, and fails the test if the line ended.
func (l *line) next() message {
	l.t.Helper()
	return l.parse(l.ReadLine())
}

// wait returns the answer to a request; notifications before it are kept in notes.
func (l *line) wait(id string) message {
	l.t.Helper()
	for {
		m := l.next()
		switch {
		case m.Method != "" && m.ID == nil:
			l.notes = append(l.notes, m)
		case m.Method == "" && string(m.ID) == id:
			return m
		default:
			l.t.Fatalf("waiting for %s: unexpected %s", id, m.raw)
		}
	}
}

// note returns the next notification of a method; others before it fail.
func (l *line) note(method string) message {
	l.t.Helper()
	m := l.next()
	if m.Method != method || m.ID != nil {
		l.t.Fatalf("want %s, got %s", method, m.raw)
	}
	return m
}

// call sends a request and waits for its answer.
func (l *line) call(method, params string) message {
	l.t.Helper()
	return l.wait(l.start(method, params))
}

// tool calls a tool with arguments as JSON.
func (l *line) tool(name, arguments string) message {
	l.t.Helper()
	return l.call("tools/call", toolParams(name, arguments))
}

func toolParams(name, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)
}

// fails checks that an answer is an error of a code, and returns its message.
func (l *line) fails(m message, code int64) string {
	l.t.Helper()
	if m.Error == nil || m.Error.Code != code {
		l.t.Fatalf("want error %d, got %s", code, m.raw)
		return ""
	}
	return m.Error.Message
}

// text is the text of a tool's result, which must not be an error.
func (l *line) text(m message) string {
	l.t.Helper()
	res := l.toolResult(m)
	if res.IsError || len(res.Content) != 1 {
		l.t.Fatalf("want one text, got %s", m.raw)
	}
	return res.Content[0].Text
}

type toolResult struct {
	ResultType string `json:"resultType"`
	IsError    bool   `json:"isError"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StructuredContent wire.RawValue                       `json:"structuredContent"`
	InputRequests     map[string]map[string]wire.RawValue `json:"inputRequests"`
	RequestState      *string                             `json:"requestState"`
	Meta              map[string]wire.RawValue            `json:"_meta"`
}

func (l *line) toolResult(m message) toolResult {
	l.t.Helper()
	return decode[toolResult](l.t, l.result(m))
}

// isError is the text of a failed tool call.
func (l *line) isError(m message) string {
	l.t.Helper()
	res := l.toolResult(m)
	if !res.IsError || len(res.Content) != 1 {
		l.t.Fatalf("want isError, got %s", m.raw)
	}
	return res.Content[0].Text
}

// result is the result of an answer, which must have one.
func (l *line) result(m message) wire.RawValue {
	l.t.Helper()
	if m.Error != nil || m.Result == nil {
		l.t.Fatalf("want a result, got %s", m.raw)
	}
	return m.Result
}

// asked checks that an answer is "input required", and returns it.
func (l *line) asked(m message) toolResult {
	l.t.Helper()
	res := l.toolResult(m)
	if res.ResultType != mcp.ResultInputRequired {
		l.t.Fatalf("want input_required, got %s", m.raw)
	}
	return res
}

// answers are the params members that answer every question of a result alike.
func (r toolResult) answers(answer string) string {
	var parts []string
	for id := range r.InputRequests {
		parts = append(parts, fmt.Sprintf(`%q:%s`, id, answer))
	}
	slices.Sort(parts)
	members := fmt.Sprintf(`"inputResponses":{%s}`, strings.Join(parts, ","))
	if r.RequestState != nil {
		members += fmt.Sprintf(`,"requestState":%q`, *r.RequestState)
	}
	return members
}

// with adds members to params.
func with(params, members string) string {
	return strings.TrimSuffix(params, "}") + "," + members + "}"
}

func decode[T any](t *testing.T, raw wire.RawValue) T {
	t.Helper()
	var v T
	if err := wire.Decode(raw, &v); err != nil {
		t.Fatalf("decoding %s: %v", raw, err)
	}
	return v
}

// quiet are options whose log goes nowhere.
func quiet() *server.Options { return &server.Options{Logger: slog.New(slog.DiscardHandler)} }

// unlimited are options without rates.
func unlimited() *server.Options {
	o := quiet()
	o.Limits = server.Limits{ToolRate: server.Unlimited, ListRate: server.Unlimited, CompletionRate: server.Unlimited, PingRate: server.Unlimited}
	return o
}

// none are no arguments.
type none = struct{}

// newServer makes a server with features.
func newServer(o *server.Options, features ...server.Feature) *server.Server {
	if o == nil {
		o = quiet()
	}
	s := server.New("test", "1.2.3", o)
	s.Add(features...)
	return s
}

// echo is a tool that answers what it is given.
func echo() server.Feature {
	return server.Tool("echo", "Echoes.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return in.Text, nil
	})
}

// each runs a test body for revisions.
func each(t *testing.T, versions []string, body func(t *testing.T, version string)) {
	t.Helper()
	for _, v := range versions {
		t.Run(v, func(t *testing.T) { body(t, v) })
	}
}

// panics checks that f panics with a text.
func panics(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), text) {
			t.Errorf("want a panic with %q, got %v", text, v)
		}
	}()
	f()
}

func mustJSON(t *testing.T, v any) wire.RawValue {
	t.Helper()
	raw, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
