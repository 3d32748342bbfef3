package otelmcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/client"
	otelmcp "github.com/parley-mcp/parley/contrib/otel"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// childVariable makes the test binary a server on standard input and output.
const childVariable = "OTELMCP_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	r := newRecord(nil)
	if err := stdio.Serve(context.Background(), r.server(whereAmI(r))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A seen span is one that a server tells about in a result, since its record
// may be in another process.
type seenSpan struct{ Trace, Span, Parent string }

// whereAmI tells of the span that its handler runs in.
func whereAmI(r *record) server.Feature {
	return server.Tool("where", "", func(ctx context.Context, _ none) (seenSpan, error) {
		sc := trace.SpanContextFromContext(ctx)
		out := seenSpan{Trace: sc.TraceID().String(), Span: sc.SpanID().String()}
		for _, s := range r.spans.Started() {
			if s.SpanContext().SpanID() == sc.SpanID() {
				out.Parent = s.Parent().SpanID().String()
			}
		}
		return out, nil
	})
}

// A hop puts something between a client and what d leads to, such as a proxy
// that traces with r too.
type hop func(t *testing.T, r *record, d transport.Dialer) transport.Dialer

// A request is one trace from the program that makes it to the handler, through
// every transport and all that is between: each span is the child of the one
// before. Ruling 27.
func TestOneTrace(t *testing.T) {
	transports := map[string]func(t *testing.T) transport.Dialer{
		"child process": func(*testing.T) transport.Dialer {
			c := stdio.Command(os.Args[0])
			c.ExtraEnv = []string{childVariable + "=1"}
			return c
		},
	}
	for _, name := range []string{"mem", "stdio", "streamable", "sse", "websocket"} {
		transports[name] = func(t *testing.T) transport.Dialer {
			far := newRecord(t)
			return mcptest.Dialer(t, far.server(whereAmI(far)), name)
		}
	}
	between := map[string][]hop{ // each hop adds a span of a server and one of a client
		"": nil, " by a proxy": {through("mem", "")}, " by a proxy over HTTP": {through("streamable", "")},
		" by a proxy over a pipe and one with a handshake": {through("stdio", ""), through("mem", legacy)},
	}
	for name, dial := range transports {
		for way, hops := range between {
			for _, version := range []string{newest, legacy} {
				if name == "sse" {
					version = "2024-11-05"
				}
				t.Run(name+way+" "+version, func(t *testing.T) {
					r := newRecord(t)
					d := dial(t)
					for _, h := range hops {
						d = h(t, r, d)
					}
					checkOneTrace(t, r, d, version, 1+2*len(hops))
				})
			}
		}
	}
}

// through is the hop of a proxy that is met over a transport. Version is what its
// client speaks, or "" for what the server likes best.
func through(transportName, version string) hop {
	return func(t *testing.T, r *record, d transport.Dialer) transport.Dialer {
		o := &proxy.Options{Logger: slog.New(slog.DiscardHandler)}
		o.Client.Middleware = []client.Middleware{otelmcp.Client(r.options())}
		if version != "" {
			o.Client.Versions = []string{version}
		}
		p, err := proxy.Connect(t.Context(), d, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		p.Server().Use(otelmcp.Server(r.options()))
		return mcptest.Dialer(t, p.Server(), transportName)
	}
}

func checkOneTrace(t *testing.T, r *record, d transport.Dialer, version string, spans int) {
	c, err := client.Connect(t.Context(), d, &client.Options{
		Versions: []string{version}, Middleware: []client.Middleware{otelmcp.Client(r.options())},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, root := r.tracer.Tracer("program").Start(t.Context(), "work")
	out, err := c.CallTool(ctx, "where", nil, nil)
	root.End()
	if err != nil {
		t.Fatal(err)
	}
	var there seenSpan
	if err := json.Unmarshal([]byte(out.Content[0].(*mcp.TextContent).Text), &there); err != nil {
		t.Fatal(err)
	}
	if there.Trace != root.SpanContext().TraceID().String() {
		t.Fatalf("the handler is in trace %s, the program in %s", there.Trace, root.SpanContext().TraceID())
	}
	met := 0
	for at := there.Parent; at != root.SpanContext().SpanID().String(); met++ {
		i := slices.IndexFunc(r.named("tools/call where"), hasID(at))
		if i < 0 {
			t.Fatalf("after %d spans of requests, the parent %q is none of them", met, at)
		}
		at = r.named("tools/call where")[i].Parent().SpanID().String()
	}
	if met != spans {
		t.Errorf("%d spans between the program and the handler's request, want %d", met, spans)
	}
}

func hasID(id string) func(s spanOf) bool {
	return func(s spanOf) bool { return s.SpanContext().SpanID().String() == id }
}

// Client and server name a session by the same digest, and do not tell its id.
func TestSessionDigest(t *testing.T) {
	r := newRecord(t)
	far := newRecord(t)
	c, err := client.Connect(t.Context(), mcptest.Dialer(t, carried{far.server(whereAmI(far))}, "streamable"), &client.Options{
		Versions: []string{legacy}, Middleware: []client.Middleware{otelmcp.Client(r.options())},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CallTool(t.Context(), "where", nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := value(r.one("tools/call where").Attributes(), "mcp.session.id"); got != transport.SessionRef(c.Session()) || got == "" || got == c.Session() {
		t.Errorf("the client says session %q, want the digest of %q", got, c.Session())
	}
	there := far.one("tools/call where").Attributes()
	if got := value(there, "mcp.session.id"); got != transport.SessionRef("key of the session") {
		t.Errorf("the server says session %q", got)
	}
	if got := value(there, "network.transport") + " " + value(there, "network.protocol.name"); got != "tcp http" {
		t.Errorf("the server says network %q", got)
	}
}

// carried says of every request in a session what it came by.
type carried struct{ transport.Handler }

func (h carried) Open(c transport.Conn) (transport.Session, error) {
	s, err := h.Handler.Open(c)
	return carriedSession{s}, err
}

type carriedSession struct{ transport.Session }

func (s carriedSession) Begin(ctx context.Context, x *transport.Exchange) func() {
	x.Transport = &transport.Info{Name: "http", SessionID: "key of the session"}
	return s.Session.Begin(ctx, x)
}

// The client's spans and metrics follow the conventions for each way in which a
// request can end.
func TestClientSpans(t *testing.T) {
	const tool = "gen_ai.operation.name=execute_tool gen_ai.tool.name=NAME "
	const rest = "mcp.method.name=tools/call mcp.protocol.version=" + newest
	rows := []struct{ call, span, metric string }{
		{"fine", tool + "ID " + rest + " status=Unset", tool + rest},
		{"told", "error.type=tool_error " + tool + "ID " + rest + " status=Error", "error.type=tool_error " + tool + rest},
		{"coded", "error.type=-7 " + tool + "ID " + rest + " rpc.response.status_code=-7 status=Errorcode 7", "error.type=-7 " + tool + rest + " rpc.response.status_code=-7"},
		{"absent", "error.type=-32602 " + tool + "ID " + rest + " rpc.response.status_code=-32602 status=Errorunknown tool \"absent\"", "error.type=-32602 gen_ai.operation.name=execute_tool " + rest + " rpc.response.status_code=-32602"},
	}
	r, far := newRecord(t), newRecord(t)
	s := far.server(
		server.Tool("fine", "", func(context.Context, none) (string, error) { return "secret", nil }),
		server.Tool("told", "", func(context.Context, none) (string, error) { return "", mcp.Errorf("secret") }),
		server.Tool("coded", "", func(context.Context, none) (string, error) { return "", mcp.NewError(-7, "code 7") }),
	)
	c := mcptest.Client(t, s, &client.Options{Versions: []string{newest}, Middleware: []client.Middleware{otelmcp.Client(r.options())}})
	counted := make(map[string]uint64)
	for _, row := range rows {
		_, _ = c.CallTool(t.Context(), row.call, nil, nil) // how it went is in the span
		span := r.one("tools/call " + row.call)
		want := strings.NewReplacer("NAME", row.call, "ID", "jsonrpc.request.id="+value(span.Attributes(), "jsonrpc.request.id")).Replace(row.span)
		if got := about(span); got != want || span.SpanKind() != trace.SpanKindClient {
			t.Errorf("%s: kind %v\n got %s\nwant %s", row.call, span.SpanKind(), got, want)
		}
		counted[strings.ReplaceAll(row.metric, "NAME", row.call)]++
	}
	got := r.durations("mcp.client.operation.duration")
	for key := range got {
		if strings.Contains(key, "server/discover") {
			delete(got, key)
		}
	}
	sameCounts(t, got, counted)
}

// The rounds of a request are in one trace, under one span of the client, and
// the handler that answers is below it. A refused question has its kind of error.
func TestClientQuestion(t *testing.T) {
	type form struct {
		OK bool `json:"ok"`
	}
	r := newRecord(t)
	s := r.server(server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
		_, err := server.Elicit[form](ctx, "well?")
		return "", err
	}))
	var refusal error
	c := mcptest.Client(t, s, &client.Options{
		Middleware: []client.Middleware{otelmcp.Client(r.options())},
		OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			_, span := r.tracer.Tracer("person").Start(ctx, "asked")
			span.End()
			if refusal != nil {
				return nil, refusal
			}
			return client.Accept(form{true})
		},
	})
	if _, err := c.CallTool(t.Context(), "asks", nil, nil); err != nil {
		t.Fatal(err)
	}
	spans := r.named("tools/call asks")
	if len(spans) != 3 {
		t.Fatalf("%d spans, want the client's and two of the server", len(spans))
	}
	own := spans[2]
	for _, s := range append(spans[:2:2], r.one("asked")) {
		if s.Parent().SpanID() != own.SpanContext().SpanID() || s.SpanContext().TraceID() != own.SpanContext().TraceID() {
			t.Errorf("%s is not below the client's span", s.Name())
		}
	}
	if value(own.Attributes(), "parley.rounds") != "1" || own.Status().Code != codes.Unset || value(own.Attributes(), "parley.attempts") != "" {
		t.Errorf("the client's span: %s", about(own))
	}
	r.spans.Reset()
	refusal = errors.New("not now")
	if _, err := c.CallTool(t.Context(), "asks", nil, nil); err == nil {
		t.Fatal("no error")
	}
	for _, s := range r.named("tools/call asks") {
		if s.SpanKind() == trace.SpanKindClient && value(s.Attributes(), "error.type") != "input_refused" {
			t.Errorf("refused: %s", about(s))
		}
	}
}

// A call that its caller cancels is no error; one without an answer in time is.
func TestClientEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := newRecord(t), newRecord(t)
		c := mcptest.Client(t, far.server(server.Tool("slow", "", func(ctx context.Context, _ none) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})), &client.Options{Middleware: []client.Middleware{otelmcp.Client(r.options())}})
		for _, test := range []struct {
			timeout time.Duration // before the caller cancels
			want    string
		}{
			{0, "parley.outcome=cancelled status=Unset"},
			{time.Second, "status=Error"},
		} {
			r.spans.Reset()
			ctx, cancel := context.WithCancel(t.Context())
			stop := time.AfterFunc(2*time.Second, cancel)
			defer stop.Stop()
			if _, err := c.CallTool(ctx, "slow", nil, &client.CallOptions{Timeout: test.timeout}); err == nil {
				t.Error("no error")
			}
			span := r.one("tools/call slow")
			if got := about(span); !strings.HasSuffix(got, test.want) || (value(span.Attributes(), "error.type") == "timeout") != (test.timeout > 0) {
				t.Errorf("%s, want %s", got, test.want)
			}
		}
	})
}

// Attack: a server that answers with a new code each time makes no series without
// end. Those that the protocol has keep theirs.
func TestHostileCodes(t *testing.T) {
	r, far := newRecord(t), newRecord(t)
	next := int64(1000)
	c := mcptest.Client(t, far.server(server.Tool("work", "", func(context.Context, none) (string, error) {
		next++
		return "", mcp.NewError(next, "odd")
	}), server.Tool("late", "", func(context.Context, none) (string, error) {
		return "", mcp.NewError(mcp.CodeTimeout, "late")
	})), &client.Options{Middleware: []client.Middleware{otelmcp.Client(r.options())}})
	const calls = 200
	for range calls {
		if _, err := c.CallTool(t.Context(), "work", nil, nil); err == nil {
			t.Fatal("no error")
		}
	}
	if _, err := c.CallTool(t.Context(), "late", nil, nil); err == nil {
		t.Fatal("no error")
	}
	for side, counts := range map[string]map[string]uint64{
		"client": r.durations("mcp.client.operation.duration"), "server": far.durations("mcp.server.operation.duration"),
	} {
		var all, other, late uint64
		for labels, n := range counts {
			all += n
			if strings.Contains(labels, "error.type=_OTHER") && !strings.Contains(labels, "status_code") {
				other += n
			}
			if strings.Contains(labels, "rpc.response.status_code=-31003") {
				late += n
			}
		}
		if len(counts) > 40 || all < calls || other < calls/2 || late != 1 {
			t.Errorf("%s: %d series for %d calls, %d of other codes, %d late", side, len(counts), all, other, late)
		}
	}
	if got := value(r.named("tools/call work")[calls-1].Attributes(), "rpc.response.status_code"); got != "1200" {
		t.Errorf("the last span has the code %s", got)
	}
}

// Without a tracer what the caller gives by itself is sent on.
func TestClientKeepsTrace(t *testing.T) {
	far := newRecord(t)
	c := mcptest.Client(t, far.server(whereAmI(far)), &client.Options{Middleware: []client.Middleware{otelmcp.Client(nil)}})
	ctx := client.WithTrace(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "", "")
	if _, err := c.CallTool(ctx, "where", nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := far.one("tools/call where").Parent().SpanID().String(); got != "00f067aa0ba902b7" {
		t.Errorf("the parent is %s", got)
	}
}

// A propagator of fields that the protocol has no place for changes nothing.
func TestForeignPropagator(t *testing.T) {
	r := newRecord(t)
	o := r.options()
	o.Propagator = propagation.NewCompositeTextMapPropagator(foreign{}, propagation.TraceContext{})
	far := newRecord(t)
	c := mcptest.Client(t, far.server(whereAmI(far)), &client.Options{Middleware: []client.Middleware{otelmcp.Client(o)}})
	if _, err := c.CallTool(t.Context(), "where", nil, nil); err != nil {
		t.Fatal(err)
	}
	if far.one("tools/call where").Parent().SpanID() != r.one("tools/call where").SpanContext().SpanID() {
		t.Error("the trace is broken")
	}
}

type foreign struct{}

func (foreign) Inject(_ context.Context, c propagation.TextMapCarrier) {
	c.Set("b3", "1")
	if c.Get("b3") != "" || slices.Contains(c.Keys(), "b3") {
		panic("a field that the protocol does not have")
	}
}

func (foreign) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context {
	return ctx
}

func (foreign) Fields() []string { return []string{"b3"} }

func ExampleServer() {
	r := tracetest.NewSpanRecorder()
	provider := newProvider(r) // sdktrace.NewTracerProvider, with an exporter of yours

	s := server.New("weather", "1.0.0", nil)
	s.Use(otelmcp.Server(&otelmcp.Options{TracerProvider: provider})) // nil: the global one
	s.Add(server.Tool("forecast", "Forecasts.", func(ctx context.Context, _ mcp.None) (string, error) {
		_, span := provider.Tracer("example").Start(ctx, "query")
		defer span.End()
		return "sunny", nil
	}))

	ctx := context.Background()
	c, err := client.Connect(ctx, inProcess(s), &client.Options{
		Middleware: []client.Middleware{otelmcp.Client(&otelmcp.Options{TracerProvider: provider})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	r.Reset() // of what connecting took
	fmt.Println(client.Call[string](ctx, c, "forecast", nil))
	for _, span := range r.Ended() {
		fmt.Println(span.SpanKind(), span.Name())
	}
	// Output:
	// sunny <nil>
	// internal query
	// server tools/call forecast
	// client tools/call forecast
}
