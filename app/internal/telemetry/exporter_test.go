package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-mcp/parley/app/internal/telemetry"
	"github.com/parley-mcp/parley/app/internal/telemetry/otlptest"
)

// A span with everything that a span can have arrives as it was.
func TestEncoding(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	e := newExporter(t, c.URL+"/", nil)
	start := time.Unix(1_700_000_000, 123)
	state, err := trace.ParseTraceState("a=b")
	if err != nil {
		t.Fatal(err)
	}
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 0xab}, SpanID: trace.SpanID{3}, Remote: true})
	other := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{4}, SpanID: trace.SpanID{5}})
	stub := tracetest.SpanStub{
		Name:        "tools/call x",
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 0xab}, SpanID: trace.SpanID{2}, TraceFlags: 1, TraceState: state}),
		Parent:      parent, SpanKind: trace.SpanKindServer, StartTime: start, EndTime: start.Add(time.Second),
		Attributes: []attribute.KeyValue{
			attribute.Bool("bool", false), attribute.Int64("int", math.MinInt64), attribute.Float64("float", 0),
			attribute.Float64("nan", math.NaN()), attribute.Float64("inf", math.Inf(1)), attribute.Float64("less", math.Inf(-1)),
			attribute.String("string", ""), attribute.ByteSlice("bytes", []byte{0xff}),
			attribute.BoolSlice("bools", []bool{true}), attribute.Int64Slice("ints", []int64{1, 2}),
			attribute.Float64Slice("floats", []float64{1.5}), attribute.StringSlice("strings", nil),
			attribute.Slice("mixed", attribute.IntValue(1), attribute.StringValue("b")),
			attribute.Map("map", attribute.Int("n", 7)),
		},
		Events:   []sdktrace.Event{{Name: "then", Time: start, Attributes: []attribute.KeyValue{attribute.Int("n", 1)}}},
		Links:    []sdktrace.Link{{SpanContext: other}},
		Status:   sdktrace.Status{Code: codes.Error, Description: "no"},
		Resource: sdkresource.NewSchemaless(attribute.String("service.name", "s")),
	}
	if err := e.ExportSpans(t.Context(), tracetest.SpanStubs{stub}.Snapshots()); err != nil {
		t.Fatal(err)
	}
	want := []otlptest.Span{{
		Name: "tools/call x", TraceID: "01ab" + strings.Repeat("0", 28), SpanID: "0200000000000000", ParentID: "0300000000000000",
		TraceState: "a=b", Kind: 2, Status: 2, StatusMessage: "no", Remote: true,
		Start: 1_700_000_000_000_000_123, End: 1_700_000_001_000_000_123,
		Attributes: map[string]any{
			"bool": false, "int": int64(math.MinInt64), "float": 0.0, "nan": "NaN", "inf": "Infinity", "less": "-Infinity",
			"string": "", "bytes": []byte{0xff}, "bools": []any{true}, "ints": []any{int64(1), int64(2)},
			"floats": []any{1.5}, "strings": []any{}, "mixed": []any{int64(1), "b"}, "map": map[string]any{"n": int64(7)},
		},
		Resource: map[string]any{"service.name": "s"},
		Events:   []string{"then"},
		Links:    []string{"04" + strings.Repeat("0", 30) + " 0500000000000000"},
	}}
	if got := c.Spans(); !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v, want\n%+v", got, want)
	}
}

// The kit refuses what is not OTLP, so that it can fail.
func TestCollectorIsStrict(t *testing.T) {
	t.Parallel()
	const good = `{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[{"traceId":"01000000000000000000000000000000",` +
		`"spanId":"0100000000000000","flags":256,"name":"a","kind":1,"startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[{"key":"k","value":{"intValue":"1"}}],"status":{}}]}]}]}`
	if _, err := otlptest.Decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"kind":1`, `"kind":"SPAN_KIND_INTERNAL"`},
		{`"kind":1`, `"kind":6`},
		{`"1","end`, `1,"end`},
		{`"intValue":"1"`, `"intValue":1`},
		{`"intValue":"1"`, `"intValue":"1","boolValue":true`},
		{`"spanId":"0100000000000000"`, `"spanId":"AQAAAAAAAAA="`},
		{`"spanId":"0100000000000000"`, `"spanId":"0000000000000000"`},
		{`"name":"a"`, `"name":""`},
		{`"status":{}`, `"status":{},"more":1`},
		{`{"key":"k","value":{"intValue":"1"}}`, `{"key":"k","value":{}},{"key":"k","value":{}}`},
		{`"flags":256`, `"flags":1`},
		{`"status":{}}]}]}]}`, `"status":{}}]}]}]} {}`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%q is not there", change[0])
		}
		if _, err := otlptest.Decode([]byte(text)); err == nil {
			t.Errorf("%s instead of %s is taken", change[1], change[0])
		}
	}
}

func newExporter(t *testing.T, base string, o *telemetry.ExporterOptions) *telemetry.Exporter {
	t.Helper()
	e, err := telemetry.NewExporter(base, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// A script is a collector without a network, for a test that owns its clock.
type script struct {
	answers []*reply // nil: no connection
	at      []time.Duration
	since   time.Time
}

// A reply is an answer of a script.
type reply struct {
	status     int
	body       string
	name, text string // of a header
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.at = append(s.at, time.Since(s.since))
	a := &reply{status: http.StatusOK, body: "{}"}
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	if a == nil {
		return nil, errors.New("connection refused")
	}
	resp := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body))}
	if a.name != "" {
		resp.Header.Set(a.name, a.text)
	}
	return resp, nil
}

func answer(status int, body string, header ...string) *reply {
	r := &reply{status: status, body: body}
	if len(header) > 0 {
		r.name, r.text = header[0], header[1]
	}
	return r
}

var one = tracetest.SpanStubs{{
	Name: "a", SpanKind: trace.SpanKindInternal, StartTime: time.Unix(1, 0), EndTime: time.Unix(2, 0),
	SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}),
}}

// What passes is repeated, after the time that the collector names; what does
// not is given up at once; and there is an end.
func TestRetry(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers  []*reply
		deadline time.Duration
		want     string // "" if the spans are taken
		sent     int
		pauses   []time.Duration // least times between them
	}{
		"taken":         {sent: 1},
		"seconds":       {answers: []*reply{answer(429, "", "Retry-After", "7")}, sent: 2, pauses: []time.Duration{7 * time.Second}},
		"growing":       {answers: []*reply{answer(502, ""), answer(503, ""), answer(504, "")}, sent: 4, pauses: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		"no connection": {answers: []*reply{nil}, sent: 2, pauses: []time.Duration{time.Second}},
		"an end":        {answers: []*reply{nil, nil, nil, nil, nil, nil}, want: "connection refused", sent: 5},
		"bad request":   {answers: []*reply{answer(400, `{"message":"no\nsuch"}`)}, want: "HTTP status 400: no such", sent: 1},
		"server error":  {answers: []*reply{answer(500, "<html>")}, want: "HTTP status 500", sent: 1},
		"redirect":      {answers: []*reply{answer(307, "", "Location", "http://elsewhere.example/")}, want: "HTTP status 307", sent: 1},
		"too long":      {answers: []*reply{answer(503, "", "Retry-After", "86400")}, want: "HTTP status 503", sent: 1},
		"no time left":  {answers: []*reply{answer(503, "", "Retry-After", "10")}, deadline: 5 * time.Second, want: "HTTP status 503", sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
					defer cancel()
				}
				s := &script{answers: test.answers, since: time.Now()}
				e := newExporter(t, "http://collector.example", &telemetry.ExporterOptions{Transport: s})
				err := e.ExportSpans(ctx, one.Snapshots())
				if got := errorText(err); test.want == "" && got != "" || !strings.Contains(got, test.want) {
					t.Errorf("error %q, want %q", got, test.want)
				}
				if len(s.at) != test.sent {
					t.Errorf("sent %d times, want %d", len(s.at), test.sent)
				}
				for i, least := range test.pauses {
					if pause := s.at[i+1] - s.at[i]; pause < least || pause > least*3/2 {
						t.Errorf("pause %d is %v, want at least %v and not much more", i, pause, least)
					}
				}
			})
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A failure is logged once, its end too, and neither tells a secret.
func TestLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		s := &script{answers: []*reply{
			answer(401, `{"message":"who?"}`), answer(401, ""), nil, nil, nil, nil, nil,
			answer(200, "{}"), answer(200, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}`),
		}}
		e := newExporter(t, "https://collector.example/otlp", &telemetry.ExporterOptions{
			Transport: s, Header: http.Header{"Api-Key": {"swordfish"}}, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		})
		for range 5 {
			_ = e.ExportSpans(t.Context(), one.Snapshots())
		}
		var told []string
		for line := range strings.Lines(lines.String()) {
			_, line, _ = strings.Cut(line, "level=")
			told = append(told, strings.TrimSpace(line))
		}
		want := []string{
			`WARN msg="traces are lost: the collector does not take them" collector=https://collector.example/otlp/v1/traces err="HTTP status 401: who?"`,
			`INFO msg="the collector takes traces again" collector=https://collector.example/otlp/v1/traces lost=3`,
			`WARN msg="the collector did not take all spans" collector=https://collector.example/otlp/v1/traces rejected=1 message="too old"`,
		}
		if !slices.Equal(told, want) {
			t.Errorf("log\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
		if strings.Contains(lines.String(), "swordfish") {
			t.Error("the key is in the log")
		}
	})
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "collector:4318", "ftp://c.example", "http://", "http://u:swordfish@c.example", "http://c.example?x=1", "http://c.example#x", "://"} {
		_, err := telemetry.NewExporter(base, nil)
		if err == nil || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// What is queued is sent at the end, with what the program is, and a header
// from the environment; nothing is sent after.
func TestProvider(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	c := otlptest.New(t)
	header, err := telemetry.ParseHeaders("api-key=sword%20fish,other=a=b")
	if err != nil {
		t.Fatal(err)
	}
	e := newExporter(t, c.URL, &telemetry.ExporterOptions{Header: header})
	p, err := telemetry.Provider(t.Context(), e, telemetry.Service{Name: "parley", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, outer := p.Tracer("scope").Start(t.Context(), "outer")
	_, inner := p.Tracer("scope").Start(ctx, "inner")
	inner.End()
	outer.End()
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := c.Spans()
	if len(spans) != 2 || spans[0].ParentID != spans[1].SpanID || spans[0].Scope != "scope" || spans[0].Remote {
		t.Fatalf("spans %+v", spans)
	}
	for key, want := range map[string]any{"service.name": "parley", "service.version": "1", "deployment.environment.name": "test", "telemetry.sdk.language": "go"} {
		if got := spans[0].Resource[key]; got != want {
			t.Errorf("resource %s is %v, want %v", key, got, want)
		}
	}
	if got := c.Requests()[0].Header; got.Get("Api-Key") != "sword fish" || got.Get("Other") != "a=b" {
		t.Errorf("header %v", got)
	}
	if err := e.ExportSpans(t.Context(), one.Snapshots()); err == nil || len(c.Requests()) != 1 {
		t.Errorf("after the end: %v, %d requests", err, len(c.Requests()))
	}
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"swordfish", "a b=swordfish", "=swordfish", "a=swordfish%zz", "a=swordfish%0a"} {
		if _, err := telemetry.ParseHeaders(text); err == nil || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if h, err := telemetry.ParseHeaders(""); err != nil || len(h) != 0 {
		t.Errorf("nothing: %v %v", h, err)
	}
}
