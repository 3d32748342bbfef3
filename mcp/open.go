package mcp

import "github.com/parley-mcp/parley/internal/wire"

// The types below keep members that they do not know, in Extra. They decode
// themselves, because in them any name is allowed: nothing is refused for
// looking like a known one, as it is in the other types of this package.

type (
	requestMeta        RequestMeta
	notificationMeta   NotificationMeta
	resultMeta         ResultMeta
	clientCapabilities ClientCapabilities
	serverCapabilities ServerCapabilities
)

// UnmarshalJSON decodes the object; what is not known goes to Extra.
func (m *RequestMeta) UnmarshalJSON(data []byte) error {
	return wire.Decode(data, (*requestMeta)(m))
}

// UnmarshalJSON decodes the object; what is not known goes to Extra.
func (m *NotificationMeta) UnmarshalJSON(data []byte) error {
	return wire.Decode(data, (*notificationMeta)(m))
}

// UnmarshalJSON decodes the object; what is not known goes to Extra.
func (m *ResultMeta) UnmarshalJSON(data []byte) error {
	return wire.Decode(data, (*resultMeta)(m))
}

// UnmarshalJSON decodes the object; what is not known goes to Extra.
func (c *ClientCapabilities) UnmarshalJSON(data []byte) error {
	return wire.Decode(data, (*clientCapabilities)(c))
}

// UnmarshalJSON decodes the object; what is not known goes to Extra.
func (c *ServerCapabilities) UnmarshalJSON(data []byte) error {
	return wire.Decode(data, (*serverCapabilities)(c))
}

// UnmarshalJSON decodes the object; what is not known goes to Extra.
func (f *SubscriptionFilter) UnmarshalJSON(data []byte) error {
	return wire.DecodeParams(data, (*subscriptionFilter)(f))
}
