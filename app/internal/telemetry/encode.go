package telemetry

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The messages of OTLP as JSON: ids are hexadecimal, enums are numbers, and
// 64-bit integers are strings (OTLP specification, JSON Protobuf Encoding).
type (
	exportRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl,omitempty"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Scope     scope  `json:"scope"`
		Spans     []span `json:"spans"`
		SchemaURL string `json:"schemaUrl,omitempty"`
	}
	scope struct {
		Name       string     `json:"name,omitempty"`
		Version    string     `json:"version,omitempty"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	span struct {
		TraceID           string     `json:"traceId"`
		SpanID            string     `json:"spanId"`
		TraceState        string     `json:"traceState,omitempty"`
		ParentSpanID      string     `json:"parentSpanId,omitempty"`
		Flags             uint32     `json:"flags"`
		Name              string     `json:"name"`
		Kind              int        `json:"kind"`
		Start             string     `json:"startTimeUnixNano"`
		End               string     `json:"endTimeUnixNano"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
		Events            []event    `json:"events,omitempty"`
		DroppedEvents     int        `json:"droppedEventsCount,omitempty"`
		Links             []link     `json:"links,omitempty"`
		DroppedLinks      int        `json:"droppedLinksCount,omitempty"`
		Status            status     `json:"status"`
	}
	event struct {
		Time              string     `json:"timeUnixNano"`
		Name              string     `json:"name"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
	}
	link struct {
		TraceID           string     `json:"traceId"`
		SpanID            string     `json:"spanId"`
		TraceState        string     `json:"traceState,omitempty"`
		Flags             uint32     `json:"flags"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	// anyValue has one member, or none for an empty value.
	anyValue struct {
		String *string       `json:"stringValue,omitempty"`
		Bool   *bool         `json:"boolValue,omitempty"`
		Int    *string       `json:"intValue,omitempty"`
		Double any           `json:"doubleValue,omitempty"` // a number, or the name of one that JSON lacks
		Bytes  *[]byte       `json:"bytesValue,omitempty"`  // base64
		Array  *arrayValue   `json:"arrayValue,omitempty"`
		Map    *keyValueList `json:"kvlistValue,omitempty"`
	}
	arrayValue struct {
		Values []anyValue `json:"values"`
	}
	keyValueList struct {
		Values []keyValue `json:"values"`
	}
)

// Bits of a span's flags above those of the trace: whether it is known where
// the parent was, and that it was elsewhere.
const (
	flagHasIsRemote = 0x100
	flagIsRemote    = 0x200
)

// encode groups spans by resource and scope, in the order of their first span.
func encode(spans []sdktrace.ReadOnlySpan) exportRequest {
	type place struct {
		resource attribute.Distinct
		scope    instrumentation.Scope
	}
	var request exportRequest
	resources := make(map[attribute.Distinct]int)
	scopes := make(map[place]int)
	for _, s := range spans {
		from := s.Resource()
		r, known := resources[from.Equivalent()]
		if !known {
			r = len(request.ResourceSpans)
			resources[from.Equivalent()] = r
			request.ResourceSpans = append(request.ResourceSpans, resourceSpans{
				Resource:  resource{Attributes: keyValues(from.Attributes())},
				SchemaURL: from.SchemaURL(),
			})
		}
		group := &request.ResourceSpans[r]
		at := place{from.Equivalent(), s.InstrumentationScope()}
		i, known := scopes[at]
		if !known {
			i = len(group.ScopeSpans)
			scopes[at] = i
			attributes := at.scope.Attributes
			group.ScopeSpans = append(group.ScopeSpans, scopeSpans{
				Scope:     scope{Name: at.scope.Name, Version: at.scope.Version, Attributes: keyValues(attributes.ToSlice())},
				SchemaURL: at.scope.SchemaURL,
			})
		}
		group.ScopeSpans[i].Spans = append(group.ScopeSpans[i].Spans, spanOf(s))
	}
	return request
}

func spanOf(s sdktrace.ReadOnlySpan) span {
	sc, parent := s.SpanContext(), s.Parent()
	out := span{
		TraceID:           sc.TraceID().String(),
		SpanID:            sc.SpanID().String(),
		TraceState:        sc.TraceState().String(),
		Flags:             flags(sc, parent),
		Name:              s.Name(),
		Kind:              int(s.SpanKind()), // the numbers are the same
		Start:             nanoseconds(s.StartTime()),
		End:               nanoseconds(s.EndTime()),
		Attributes:        keyValues(s.Attributes()),
		DroppedAttributes: s.DroppedAttributes(),
		DroppedEvents:     s.DroppedEvents(),
		DroppedLinks:      s.DroppedLinks(),
		Status:            statusOf(s.Status()),
	}
	if parent.SpanID().IsValid() {
		id := parent.SpanID()
		out.ParentSpanID = hex.EncodeToString(id[:])
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, event{
			Time: nanoseconds(e.Time), Name: e.Name,
			Attributes: keyValues(e.Attributes), DroppedAttributes: e.DroppedAttributeCount,
		})
	}
	for _, l := range s.Links() {
		to := l.SpanContext
		out.Links = append(out.Links, link{
			TraceID: to.TraceID().String(), SpanID: to.SpanID().String(), TraceState: to.TraceState().String(),
			Flags:      flags(to, to),
			Attributes: keyValues(l.Attributes), DroppedAttributes: l.DroppedAttributeCount,
		})
	}
	return out
}

// flags are the trace flags of sc, and whether other came from elsewhere.
func flags(sc, other trace.SpanContext) uint32 {
	f := uint32(sc.TraceFlags()) | flagHasIsRemote
	if other.IsRemote() {
		f |= flagIsRemote
	}
	return f
}

// statusOf translates a status: OTLP counts unset, ok, error.
func statusOf(s sdktrace.Status) status {
	switch s.Code {
	case codes.Ok:
		return status{Code: 1}
	case codes.Error:
		return status{Code: 2, Message: s.Description}
	default:
		return status{}
	}
}

// nanoseconds since 1970; 0 for no time.
func nanoseconds(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}

// keyValues are in the order of their keys, so that equal spans look equal.
func keyValues(list []attribute.KeyValue) []keyValue {
	if len(list) == 0 {
		return nil
	}
	out := make([]keyValue, 0, len(list))
	for _, kv := range list {
		out = append(out, keyValue{string(kv.Key), valueOf(kv.Value)})
	}
	slices.SortStableFunc(out, func(a, b keyValue) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

func valueOf(v attribute.Value) anyValue {
	switch v.Type() {
	case attribute.BOOL:
		return boolValue(v.AsBool())
	case attribute.INT64:
		return intValue(v.AsInt64())
	case attribute.FLOAT64:
		return doubleValue(v.AsFloat64())
	case attribute.STRING:
		return stringValue(v.AsString())
	case attribute.BYTESLICE:
		b := v.AsByteSlice()
		return anyValue{Bytes: &b}
	case attribute.BOOLSLICE:
		return arrayOf(v.AsBoolSlice(), boolValue)
	case attribute.INT64SLICE:
		return arrayOf(v.AsInt64Slice(), intValue)
	case attribute.FLOAT64SLICE:
		return arrayOf(v.AsFloat64Slice(), doubleValue)
	case attribute.STRINGSLICE:
		return arrayOf(v.AsStringSlice(), stringValue)
	case attribute.SLICE:
		return arrayOf(v.AsSlice(), valueOf)
	case attribute.MAP:
		return anyValue{Map: &keyValueList{keyValues(v.AsMap())}}
	default: // empty
		return anyValue{}
	}
}

func stringValue(s string) anyValue { return anyValue{String: &s} }
func boolValue(b bool) anyValue     { return anyValue{Bool: &b} }

func intValue(n int64) anyValue {
	s := strconv.FormatInt(n, 10)
	return anyValue{Int: &s}
}

// doubleValue writes what JSON has no number for as Protocol Buffers do.
func doubleValue(f float64) anyValue {
	switch {
	case math.IsNaN(f):
		return anyValue{Double: "NaN"}
	case math.IsInf(f, 1):
		return anyValue{Double: "Infinity"}
	case math.IsInf(f, -1):
		return anyValue{Double: "-Infinity"}
	}
	return anyValue{Double: f}
}

func arrayOf[T any](list []T, one func(T) anyValue) anyValue {
	values := make([]anyValue, 0, len(list))
	for _, v := range list {
		values = append(values, one(v))
	}
	return anyValue{Array: &arrayValue{values}}
}
