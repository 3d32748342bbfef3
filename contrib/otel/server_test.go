package otelmcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/client"
	otelmcp "github.com/parley-mcp/parley/contrib/otel"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

const (
	newest = "2026-07-28"
	legacy = "2025-11-25"
)

func eachEra(t *testing.T, body func(t *testing.T, version string)) {
	for _, version := range []string{newest, legacy} {
		t.Run(version, func(t *testing.T) { body(t, version) })
	}
}

// The names, attributes and status of spans, and the metrics, follow the
// conventions for each way in which a request can end.
func TestServerSpans(t *testing.T) {
	type row struct{ call, name, span, metric string }
	rows := []row{
		{"fine", "tools/call fine", "gen_ai.operation.name=execute_tool gen_ai.tool.name=fine ID mcp.method.name=tools/call VERSION status=Unset", ""},
		{"told", "tools/call told", "error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=told ID mcp.method.name=tools/call VERSION parley.outcome=tool error status=Error", ""},
		{"hidden", "tools/call hidden", "error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=hidden ID mcp.method.name=tools/call VERSION parley.outcome=failed status=Error", ""},
		{"coded", "tools/call coded", "error.type=-7 gen_ai.operation.name=execute_tool gen_ai.tool.name=coded ID mcp.method.name=tools/call VERSION parley.outcome=refused rpc.response.status_code=-7 status=Errorcode 7", ""},
		{"panics", "tools/call panics", "error.type=panic gen_ai.operation.name=execute_tool gen_ai.tool.name=panics ID mcp.method.name=tools/call VERSION rpc.response.status_code=-32603 status=Error", ""},
		{"absent", "tools/call", "error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=absent ID mcp.method.name=tools/call VERSION parley.outcome=refused rpc.response.status_code=-32602 status=Errorunknown tool \"absent\"", "error.type=-32602 gen_ai.operation.name=execute_tool mcp.method.name=tools/call VERSION rpc.response.status_code=-32602"},
		{"prompt", "prompts/get prompt", "gen_ai.prompt.name=prompt ID mcp.method.name=prompts/get VERSION status=Unset", ""},
		{"x://a", "resources/read", "ID mcp.method.name=resources/read VERSION mcp.resource.uri=x://a status=Unset", "mcp.method.name=resources/read VERSION"},
	}
	eachEra(t, func(t *testing.T, version string) {
		r := newRecord(t)
		fail := func(name string, err error) server.Feature {
			return server.Tool(name, "", func(context.Context, none) (string, error) { return "secret result", err })
		}
		s := r.server(
			fail("fine", nil), fail("told", mcp.Errorf("secret")), fail("hidden", errors.New("secret")), fail("coded", mcp.NewError(-7, "code 7")),
			server.Tool("panics", "", func(context.Context, none) (string, error) { panic("secret") }),
			server.Prompt("prompt", "", func(context.Context, mcp.None) (string, error) { return "secret", nil }),
			server.Resource("x://a", "a", func(context.Context) (string, error) { return "secret", nil }),
		)
		c := mcptest.Client(t, s, &client.Options{Versions: []string{version}})
		counted := make(map[string]uint64)
		for _, row := range rows {
			before := len(r.named(row.name))
			switch row.call { // how it went is in the spans
			case "prompt":
				_, _ = c.GetPrompt(t.Context(), row.call, nil, nil)
			case "x://a":
				_, _ = c.ReadResource(t.Context(), row.call, nil)
			default:
				_, _ = c.CallTool(t.Context(), row.call, nil, nil)
			}
			spans := r.named(row.name)
			if len(spans) != before+1 {
				t.Errorf("%s: no span %q", row.call, row.name)
				continue
			}
			span := spans[len(spans)-1]
			got := about(span)
			id := value(span.Attributes(), "jsonrpc.request.id")
			want := strings.NewReplacer("ID", "jsonrpc.request.id="+id, "VERSION", "mcp.protocol.version="+version).Replace(row.span)
			if got != want || id == "" || span.SpanKind() != trace.SpanKindServer {
				t.Errorf("%s: kind %v\n got %s\nwant %s", row.call, span.SpanKind(), got, want)
			}
			if row.metric == "" {
				row.metric, _, _ = strings.Cut(strings.ReplaceAll(row.span, "ID ", ""), " status=")
				row.metric = strings.NewReplacer(" parley.outcome=tool error", "", " parley.outcome=failed", "", " parley.outcome=refused", "").Replace(row.metric)
			}
			counted[strings.ReplaceAll(row.metric, "VERSION", "mcp.protocol.version="+version)]++
			if strings.Contains(fmt.Sprint(got), "secret") {
				t.Errorf("%s: %s tells what is nobody's business", row.call, got)
			}
		}
		got := r.durations("mcp.server.operation.duration")
		for _, opening := range []string{"server/discover", "initialize"} {
			delete(got, "mcp.method.name="+opening+" mcp.protocol.version="+version)
		}
		sameCounts(t, got, counted)
	})
}

func value(attributes []attribute.KeyValue, key attribute.Key) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// The server's span is the child of the caller's and the parent of what the
// handler does; baggage reaches the handler; a span that is there already is
// linked, and is the parent where the caller brings none.
func TestServerContext(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		r := newRecord(t)
		var carried string
		s := r.server(server.Tool("work", "", func(ctx context.Context, _ none) (string, error) {
			carried = baggage.FromContext(ctx).Member("user").Value()
			_, span := r.tracer.Tracer("handler").Start(ctx, "query")
			span.End()
			return "", nil
		}))
		c := mcptest.Client(t, s, &client.Options{Versions: []string{version}})
		ctx := client.WithTrace(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "a=b", "user=ada")
		if _, err := c.CallTool(ctx, "work", nil, nil); err != nil {
			t.Fatal(err)
		}
		span, query := r.one("tools/call work"), r.one("query")
		if p := span.Parent(); p.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || p.SpanID().String() != "00f067aa0ba902b7" || !p.IsRemote() || p.TraceState().String() != "a=b" {
			t.Errorf("the span's parent is %+v", p)
		}
		if query.Parent().SpanID() != span.SpanContext().SpanID() {
			t.Error("the handler's span is not below the request's")
		}
		if carried != "ada" {
			t.Errorf("baggage %q", carried)
		}
		if links := span.Links(); len(links) != 0 {
			t.Errorf("links %v", links)
		}
	})
}

// A span of what carries the request, as an HTTP server makes it, is linked to,
// and is the parent of a request without a trace.
func TestServerAmbient(t *testing.T) {
	r := newRecord(t)
	var outer trace.SpanContext
	s := server.New("test", "1", nil)
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			ctx, span := r.tracer.Tracer("http").Start(context.WithoutCancel(c), "POST")
			defer span.End()
			outer = span.SpanContext()
			return next(c.WithContext(ctx))
		}
	})
	s.Use(otelmcp.Server(r.options()))
	s.Add(server.Tool("work", "", func(context.Context, none) (string, error) { return "", nil }))
	c := mcptest.Client(t, s, nil)
	if _, err := c.CallTool(t.Context(), "work", nil, nil); err != nil {
		t.Fatal(err)
	}
	if span := r.one("tools/call work"); span.Parent().SpanID() != outer.SpanID() || len(span.Links()) != 0 {
		t.Errorf("without a trace: parent %v, links %v", span.Parent(), span.Links())
	}
	r.spans.Reset()
	ctx := client.WithTrace(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "", "")
	if _, err := c.CallTool(ctx, "work", nil, nil); err != nil {
		t.Fatal(err)
	}
	span := r.one("tools/call work")
	if span.Parent().SpanID().String() != "00f067aa0ba902b7" || len(span.Links()) != 1 || span.Links()[0].SpanContext.SpanID() != outer.SpanID() {
		t.Errorf("with a trace: parent %v, links %v", span.Parent(), span.Links())
	}
}

// What a stranger makes up is bounded in spans, and not in their names.
func TestServerHostile(t *testing.T) {
	r := newRecord(t)
	c := mcptest.Client(t, r.server(server.Resource("x://a", "a", func(context.Context) (string, error) { return "", nil }),
		server.Tool("work", "", func(context.Context, none) (string, error) { return "", nil })), nil)
	long := strings.Repeat("ä", 10_000)
	_, _ = c.CallTool(t.Context(), long, nil, nil) // it fails, which is not the matter
	_, _ = c.ReadResource(t.Context(), "x://"+long, nil)
	for name, key := range map[string]attribute.Key{"tools/call": "gen_ai.tool.name", "resources/read": "mcp.resource.uri"} {
		if got := value(r.one(name).Attributes(), key); len(got) < 200 || len(got) > 300 || !strings.HasSuffix(got, "ä…") {
			t.Errorf("%s has %d bytes: %.20q", key, len(got), got)
		}
	}
}

// A question is no error. In the stateless revision each round is a span, and
// says which it is.
func TestServerQuestion(t *testing.T) {
	type form struct {
		OK bool `json:"ok"`
	}
	eachEra(t, func(t *testing.T, version string) {
		r := newRecord(t)
		s := r.server(server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
			_, err := server.Elicit[form](ctx, "well?")
			return "", err
		}))
		c := mcptest.Client(t, s, &client.Options{
			Versions: []string{version},
			OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return client.Accept(form{true})
			},
		})
		if _, err := c.CallTool(t.Context(), "asks", nil, nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range r.named("tools/call asks") {
			got = append(got, fmt.Sprintf("%s %q %q %q", s.Status().Code, value(s.Attributes(), "parley.outcome"), value(s.Attributes(), "parley.round"), value(s.Attributes(), "error.type")))
		}
		want := `Unset "" "" ""`
		if version == newest {
			want = `Unset "input required" "" "", Unset "" "1" ""`
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("spans %v, want %s", got, want)
		}
	})
}

// A cancelled call is no error; one that took too long is.
func TestServerEnds(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		synctest.Test(t, func(t *testing.T) {
			r := newRecord(t)
			c := mcptest.Client(t, r.server(server.Tool("slow", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			})), &client.Options{Versions: []string{version}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.CallTool(ctx, "slow", nil, nil); err == nil {
				t.Error("no error")
			}
			synctest.Wait()
			if got := about(r.one("tools/call slow")); !strings.HasSuffix(got, "parley.outcome=cancelled status=Unset") {
				t.Errorf("cancelled: %s", got)
			}
			r.spans.Reset()
			if _, err := c.CallTool(t.Context(), "slow", nil, &client.CallOptions{Timeout: time.Hour}); err == nil {
				t.Error("no error")
			}
			synctest.Wait()
			got := about(r.one("tools/call slow"))
			code := fmt.Sprint(mcp.CodeTimeout)
			if !strings.Contains(got, "error.type="+code+" ") || !strings.Contains(got, "rpc.response.status_code="+code) || !strings.Contains(got, "status=Error") {
				t.Errorf("too long: %s", got)
			}
		})
	})
}

// An HTTP server's span is linked to by the requests that it carries.
func TestServerOverHTTP(t *testing.T) {
	r, far := newRecord(t), newRecord(t)
	endpoint := streamable.NewHandler(far.server(whereAmI(far)), nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		ctx, span := far.tracer.Tracer("http").Start(q.Context(), q.Method)
		defer span.End()
		endpoint.ServeHTTP(w, q.WithContext(ctx))
	}))
	defer web.Close()
	c, err := client.Connect(t.Context(), streamable.URL(web.URL), &client.Options{
		Versions: []string{newest}, Middleware: []client.Middleware{otelmcp.Client(r.options())},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CallTool(t.Context(), "where", nil, nil); err != nil {
		t.Fatal(err)
	}
	span := far.one("tools/call where")
	var last trace.SpanContext // of HTTP requests, which may end later
	for _, s := range far.spans.Started() {
		if s.Name() == http.MethodPost {
			last = s.SpanContext()
		}
	}
	if links := span.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != last.SpanID() {
		t.Errorf("links %v, want one to the last HTTP request %v", links, last.SpanID())
	}
	if span.Parent().SpanID() != r.one("tools/call where").SpanContext().SpanID() {
		t.Error("the parent is not the client's span")
	}
}
