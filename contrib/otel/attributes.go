package otelmcp

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Attributes of the conventions, and some of our own.
const (
	keyMethod     = attribute.Key("mcp.method.name")
	keyVersion    = attribute.Key("mcp.protocol.version")
	keySession    = attribute.Key("mcp.session.id")
	keyURI        = attribute.Key("mcp.resource.uri")
	keyID         = attribute.Key("jsonrpc.request.id")
	keyCode       = attribute.Key("rpc.response.status_code")
	keyError      = attribute.Key("error.type")
	keyTool       = attribute.Key("gen_ai.tool.name")
	keyPrompt     = attribute.Key("gen_ai.prompt.name")
	keyOperation  = attribute.Key("gen_ai.operation.name")
	keyNetwork    = attribute.Key("network.transport")
	keyProtocol   = attribute.Key("network.protocol.name")
	keyClientAddr = attribute.Key("client.address")

	keyOutcome  = attribute.Key("parley.outcome")
	keyRound    = attribute.Key("parley.round")
	keyRounds   = attribute.Key("parley.rounds")
	keyAttempts = attribute.Key("parley.attempts")
	keyLimit    = attribute.Key("parley.limit")
)

// Values of error.type other than the codes of JSON-RPC.
const (
	errorTool    = "tool_error"
	errorPanic   = "panic"
	errorTimeout = "timeout"
	errorOther   = "_OTHER"
)

// A target is what a request is about, as spans and metrics say it.
type target struct {
	name   string               // for the span's name; "" if it is not for that
	span   []attribute.KeyValue // of the span
	labels []attribute.KeyValue // of span and metrics
}

// targetOf is the target of a request. Only names that are known to be the
// server's own go where their number must be small.
func targetOf(method, name string, known bool) target {
	var t target
	key := keyTool
	switch method {
	case mcp.MethodToolsCall:
		t.labels = append(t.labels, keyOperation.String("execute_tool"))
	case mcp.MethodPromptsGet:
		key = keyPrompt
	case mcp.MethodResourcesRead, mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		t.span = append(t.span, keyURI.String(clip(name)))
		return t
	default:
		return t
	}
	if known {
		t.name = name
		t.labels = append(t.labels, key.String(name))
		return t
	}
	t.span = append(t.span, key.String(clip(name)))
	return t
}

// network are the attributes of a kind of transport, as server.Call.Transport
// names it.
func network(transport string) []attribute.KeyValue {
	switch transport {
	case "stdio":
		return []attribute.KeyValue{keyNetwork.String("pipe")}
	case "http", "sse":
		return []attribute.KeyValue{keyNetwork.String("tcp"), keyProtocol.String("http")}
	case "websocket":
		return []attribute.KeyValue{keyNetwork.String("tcp"), keyProtocol.String("websocket")}
	default:
		return nil
	}
}

// told is the text of an error that the caller is told, or "".
func told(err error) string {
	if me, ok := errors.AsType[*mcp.Error](err); ok {
		return clip(me.Error())
	}
	if we, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return clip(we.Message)
	}
	return ""
}

// code is a code of JSON-RPC as the conventions write it.
func code(n int64) string { return strconv.FormatInt(n, 10) }

// clip bounds what peers choose, in bytes, and makes it valid UTF-8.
func clip(s string) string {
	const most = 256
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// A transport is the trace context of `_meta`.
type traceHeaders struct{ parent, state, baggage string }

var _ propagation.TextMapCarrier = (*traceHeaders)(nil)

func (c *traceHeaders) field(key string) *string {
	switch key {
	case "traceparent":
		return &c.parent
	case "tracestate":
		return &c.state
	case "baggage":
		return &c.baggage
	}
	return nil
}

// Get returns a field, or "".
func (c *traceHeaders) Get(key string) string {
	if f := c.field(key); f != nil {
		return *f
	}
	return ""
}

// Set sets a field that the protocol has.
func (c *traceHeaders) Set(key, value string) {
	if f := c.field(key); f != nil {
		*f = value
	}
}

// Keys are the fields that are set.
func (c *traceHeaders) Keys() []string {
	var keys []string
	for _, key := range []string{"traceparent", "tracestate", "baggage"} {
		if c.Get(key) != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
