package mcp

import "github.com/parley-mcp/parley/internal/wire"

// RawValue is the text of one JSON value. It is encoding/json's RawMessage.
type RawValue = wire.RawValue

// ID identifies a request, a subscription or a progress stream: a string or an
// integer. IDs can be compared with ==; the zero ID means absent. Its methods are
// IsZero, Equal(ID), String, AppendJSON, MarshalJSON and UnmarshalJSON.
type ID = wire.ID

// StringID returns the ID that is the string s.
func StringID(s string) ID { return wire.StringID(s) }

// IntID returns the ID that is the integer n.
func IntID(n int64) ID { return wire.IntID(n) }

// Meta is the `_meta` member of things that are neither requests,
// notifications nor results. Nil is absent. For the names of keys see
// [ValidMetaKey].
type Meta map[string]RawValue

// Params are the parameters of a request.
type Params interface {
	// Base returns what all requests have in common; never nil.
	Base() *RequestBase
}

// Result is the result of a request from a client.
type Result interface {
	// Base returns what all results have in common; never nil.
	Base() *ResultBase
}

// RequestBase is what the parameters of all requests have in common.
type RequestBase struct {
	// Meta is the metadata of the request. The newest revision requires it in
	// every request of a client (basic/index, "_meta").
	Meta RequestMeta `json:"_meta,omitzero"`
}

// Base returns b itself, so that all parameters implement [Params].
func (b *RequestBase) Base() *RequestBase { return b }

// RequestMeta is the `_meta` member of requests.
type RequestMeta struct {
	// ProgressToken asks for progress notifications that carry it; zero asks
	// for none.
	ProgressToken ID `json:"progressToken,omitzero"`
	// ProtocolVersion is the revision that the request speaks. Required by the
	// newest revision; older ones do not have it.
	ProtocolVersion string `json:"io.modelcontextprotocol/protocolVersion,omitzero"`
	// ClientInfo names the client's software, for display and logs only.
	ClientInfo *Implementation `json:"io.modelcontextprotocol/clientInfo,omitzero"`
	// ClientCapabilities are what the client offers for this request. Required
	// by the newest revision; nil means absent, which is not "none".
	ClientCapabilities *ClientCapabilities `json:"io.modelcontextprotocol/clientCapabilities,omitzero"`
	// LogLevel asks for log messages of at least this level on the stream of
	// the request. Empty asks for none.
	LogLevel LogLevel `json:"io.modelcontextprotocol/logLevel,omitzero"`
	// TraceParent, TraceState and Baggage carry W3C trace context.
	TraceParent string `json:"traceparent,omitzero"`
	TraceState  string `json:"tracestate,omitzero"`
	Baggage     string `json:"baggage,omitzero"`
	// Extra are all other keys.
	Extra map[string]RawValue `json:",embed"`
}

// NotificationBase is what the parameters of all notifications have in common.
type NotificationBase struct {
	// Meta is the metadata of the notification.
	Meta NotificationMeta `json:"_meta,omitzero"`
}

// NotificationMeta is the `_meta` member of notifications.
type NotificationMeta struct {
	// SubscriptionID is the id of the subscriptions/listen request on whose
	// stream the notification was sent; zero elsewhere (basic/patterns/
	// subscriptions: MUST be there on such a stream).
	SubscriptionID ID `json:"io.modelcontextprotocol/subscriptionId,omitzero"`
	// TraceParent, TraceState and Baggage carry W3C trace context.
	TraceParent string `json:"traceparent,omitzero"`
	TraceState  string `json:"tracestate,omitzero"`
	Baggage     string `json:"baggage,omitzero"`
	// Extra are all other keys.
	Extra map[string]RawValue `json:",embed"`
}

// NotificationMeta returns the metadata, in place; never nil.
func (b *NotificationBase) NotificationMeta() *NotificationMeta { return &b.Meta }

// ResultBase is what the results of all requests of a client have in common.
type ResultBase struct {
	// Meta is the metadata of the result.
	Meta ResultMeta `json:"_meta,omitzero"`
	// ResultType says how to read the result: [ResultComplete] or
	// [ResultInputRequired], or what an extension adds. Absent, as in older
	// revisions, means complete (basic/index, ResultType: MUST).
	ResultType string `json:"resultType,omitzero"`
}

// Base returns b itself, so that all results implement [Result].
func (b *ResultBase) Base() *ResultBase { return b }

// Complete reports whether the result is a final one: its type is
// [ResultComplete] or absent.
func (b *ResultBase) Complete() bool {
	return b.ResultType == "" || b.ResultType == ResultComplete
}

// The result types of the core protocol.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
)

// ResultMeta is the `_meta` member of results.
type ResultMeta struct {
	// ServerInfo names the server's software, for display and logs only.
	ServerInfo *Implementation `json:"io.modelcontextprotocol/serverInfo,omitzero"`
	// SubscriptionID is, in the result of subscriptions/listen, the id of that
	// request.
	SubscriptionID ID `json:"io.modelcontextprotocol/subscriptionId,omitzero"`
	// Extra are all other keys.
	Extra map[string]RawValue `json:",embed"`
}

// Cacheable are the cache hints of a result (server/utilities/caching). Older
// revisions do not have them.
type Cacheable struct {
	// TTLMs is how long the result stays fresh, in milliseconds. Nil is
	// absent, which like a negative value means 0: stale at once.
	TTLMs *int64 `json:"ttlMs,omitzero"`
	// CacheScope says which caches may keep the result.
	CacheScope CacheScope `json:"cacheScope,omitzero"`
}

// Hints returns c itself, so that all results with cache hints implement
// [CacheableResult].
func (c *Cacheable) Hints() *Cacheable { return c }

// CacheableResult is a result with cache hints.
type CacheableResult interface {
	Result
	// Hints returns the cache hints; never nil.
	Hints() *Cacheable
}

// CacheScope says which caches may keep a result.
type CacheScope string

// The cache scopes.
const (
	// CachePrivate keeps a result within one authorization context.
	CachePrivate CacheScope = "private"
	// CachePublic lets any cache keep a result: it holds nothing of one user.
	CachePublic CacheScope = "public"
)

// EmptyParams are the parameters of requests that have none of their own:
// ping, server/discover.
type EmptyParams struct {
	RequestBase
}

// NotificationParams are the parameters of notifications that have none of
// their own: the four list_changed and notifications/initialized.
type NotificationParams struct {
	NotificationBase
}

// EmptyResult is the result of requests whose success is all there is to say:
// ping, logging/setLevel, resources/subscribe, resources/unsubscribe.
type EmptyResult struct {
	ResultBase
}

// ListParams are the parameters of tools/list, prompts/list, resources/list and
// resources/templates/list (schema PaginatedRequestParams).
type ListParams struct {
	RequestBase
	// Cursor is where to go on, from the NextCursor of an earlier page. Nil
	// begins with the first page; the empty string is a cursor.
	Cursor *string `json:"cursor,omitzero"`
}

// Page is what all pages of lists have in common.
type Page struct {
	// NextCursor leads to the next page; nil says that this is the last one.
	NextCursor *string `json:"nextCursor,omitzero"`
}
