package mcp

import "github.com/parley-mcp/parley/internal/wire"

// The types below say something that encoding/json cannot: a nil list that is
// written as [], or unknown members, which stand beside the known
// ones. Their MarshalJSON is for that package and for all that uses it: users store
// and log results and pass them to other libraries, and without the method a nil
// list became null, and the type of content and Extra were lost, without an error.
//
// The module's own codec takes MarshalJSONTo, which encodes in place, so that
// nothing is encoded or checked twice. Its parameter is the encoder of
// encoding/json/v2, under a name of internal/wire. A test reads the source of the
// package, fills a value of each type and compares both codecs; a new type that is
// on no list fails it. A struct that embeds such a type inherits its MarshalJSON.

type (
	subscriptionFilter          SubscriptionFilter
	contents                    Contents
	imageContent                ImageContent
	audioContent                AudioContent
	toolResultContent           ToolResultContent
	callToolResult              CallToolResult
	listToolsResult             ListToolsResult
	listResourcesResult         ListResourcesResult
	listResourceTemplatesResult ListResourceTemplatesResult
	readResourceResult          ReadResourceResult
	insufficientScopeData       InsufficientScopeData
	unsupportedVersionData      UnsupportedVersionData
	urlElicitationRequiredData  URLElicitationRequiredData
	listPromptsResult           ListPromptsResult
	getPromptResult             GetPromptResult
	completion                  Completion
	discoverResult              DiscoverResult
	listRootsResult             ListRootsResult
	createMessageParams         CreateMessageParams
)

// MarshalJSON encodes the value as it goes on the wire.
func (m RequestMeta) MarshalJSON() ([]byte, error) { return wire.Marshal((*requestMeta)(&m)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (m *RequestMeta) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*requestMeta)(m))
}

// MarshalJSON encodes the value as it goes on the wire.
func (m NotificationMeta) MarshalJSON() ([]byte, error) { return wire.Marshal((*notificationMeta)(&m)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (m *NotificationMeta) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*notificationMeta)(m))
}

// MarshalJSON encodes the value as it goes on the wire.
func (m ResultMeta) MarshalJSON() ([]byte, error) { return wire.Marshal((*resultMeta)(&m)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (m *ResultMeta) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*resultMeta)(m))
}

// MarshalJSON encodes the value as it goes on the wire.
func (c ClientCapabilities) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*clientCapabilities)(&c))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (c *ClientCapabilities) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*clientCapabilities)(c))
}

// MarshalJSON encodes the value as it goes on the wire.
func (c ServerCapabilities) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*serverCapabilities)(&c))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (c *ServerCapabilities) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*serverCapabilities)(c))
}

// MarshalJSON encodes the value as it goes on the wire.
func (f SubscriptionFilter) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*subscriptionFilter)(&f))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (f *SubscriptionFilter) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*subscriptionFilter)(f))
}

// MarshalJSON encodes the value as it goes on the wire.
func (c Contents) MarshalJSON() ([]byte, error) { return wire.Marshal((*contents)(&c)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (c *Contents) MarshalJSONTo(enc *wire.Encoder) error { return wire.MarshalTo(enc, (*contents)(c)) }

// MarshalJSON encodes the value as it goes on the wire.
func (i ImageContent) MarshalJSON() ([]byte, error) { return wire.Marshal((*imageContent)(&i)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (i *ImageContent) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*imageContent)(i))
}

// MarshalJSON encodes the value as it goes on the wire.
func (a AudioContent) MarshalJSON() ([]byte, error) { return wire.Marshal((*audioContent)(&a)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (a *AudioContent) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*audioContent)(a))
}

// MarshalJSON encodes the value as it goes on the wire.
func (t ToolResultContent) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*toolResultContent)(&t))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (t *ToolResultContent) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*toolResultContent)(t))
}

// MarshalJSON encodes the value as it goes on the wire.
func (r CallToolResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// MarshalJSONTo is MarshalJSON without a copy.
func (r *CallToolResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*callToolResult)(r))
}

// MarshalJSON encodes the value as it goes on the wire.
func (l ListToolsResult) MarshalJSON() ([]byte, error) { return wire.Marshal((*listToolsResult)(&l)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (l *ListToolsResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*listToolsResult)(l))
}

// MarshalJSON encodes the value as it goes on the wire.
func (l ListResourcesResult) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*listResourcesResult)(&l))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (l *ListResourcesResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*listResourcesResult)(l))
}

// MarshalJSON encodes the value as it goes on the wire.
func (l ListResourceTemplatesResult) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*listResourceTemplatesResult)(&l))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (l *ListResourceTemplatesResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*listResourceTemplatesResult)(l))
}

// MarshalJSON encodes the value as it goes on the wire.
func (r ReadResourceResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// MarshalJSONTo is MarshalJSON without a copy.
func (r *ReadResourceResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*readResourceResult)(r))
}

// MarshalJSON encodes the value as it goes on the wire.
func (i InsufficientScopeData) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*insufficientScopeData)(&i))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (i *InsufficientScopeData) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*insufficientScopeData)(i))
}

// MarshalJSON encodes the value as it goes on the wire.
func (u UnsupportedVersionData) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*unsupportedVersionData)(&u))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (u *UnsupportedVersionData) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*unsupportedVersionData)(u))
}

// MarshalJSON encodes the value as it goes on the wire.
func (u URLElicitationRequiredData) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*urlElicitationRequiredData)(&u))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (u *URLElicitationRequiredData) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*urlElicitationRequiredData)(u))
}

// MarshalJSON encodes the value as it goes on the wire.
func (l ListPromptsResult) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*listPromptsResult)(&l))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (l *ListPromptsResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*listPromptsResult)(l))
}

// MarshalJSON encodes the value as it goes on the wire.
func (g GetPromptResult) MarshalJSON() ([]byte, error) { return wire.Marshal((*getPromptResult)(&g)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (g *GetPromptResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*getPromptResult)(g))
}

// MarshalJSON encodes the value as it goes on the wire.
func (c Completion) MarshalJSON() ([]byte, error) { return wire.Marshal((*completion)(&c)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (c *Completion) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*completion)(c))
}

// MarshalJSON encodes the value as it goes on the wire.
func (d DiscoverResult) MarshalJSON() ([]byte, error) { return wire.Marshal((*discoverResult)(&d)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (d *DiscoverResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*discoverResult)(d))
}

// MarshalJSON encodes the value as it goes on the wire.
func (l ListRootsResult) MarshalJSON() ([]byte, error) { return wire.Marshal((*listRootsResult)(&l)) }

// MarshalJSONTo is MarshalJSON without a copy.
func (l *ListRootsResult) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*listRootsResult)(l))
}

// MarshalJSON encodes the value as it goes on the wire.
func (c CreateMessageParams) MarshalJSON() ([]byte, error) {
	return wire.Marshal((*createMessageParams)(&c))
}

// MarshalJSONTo is MarshalJSON without a copy.
func (c *CreateMessageParams) MarshalJSONTo(enc *wire.Encoder) error {
	return wire.MarshalTo(enc, (*createMessageParams)(c))
}
