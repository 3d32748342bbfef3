package mcp

// ListenParams open a stream of change notices (schema
// SubscriptionsListenRequestParams; basic/patterns/subscriptions).
type ListenParams struct {
	RequestBase
	// Notifications are what the client wants to be told.
	Notifications SubscriptionFilter `json:"notifications"`
}

// ListenResult ends such a stream. Meta.SubscriptionID is the id of the request.
type ListenResult struct {
	ResultBase
}

// SubscriptionFilter says which changes are told. The server MUST NOT send what
// was not asked for.
type SubscriptionFilter struct {
	// ToolsListChanged tells of changes of the list of tools.
	ToolsListChanged bool `json:"toolsListChanged,omitzero"`
	// PromptsListChanged tells of changes of the list of prompts.
	PromptsListChanged bool `json:"promptsListChanged,omitzero"`
	// ResourcesListChanged tells of changes of the list of resources.
	ResourcesListChanged bool `json:"resourcesListChanged,omitzero"`
	// ResourceSubscriptions are URIs of resources whose changes are told.
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitzero"`
	// Extra are the members that extensions define.
	Extra map[string]RawValue `json:",embed"`
}

// AcknowledgedParams are the first message of the stream (schema
// SubscriptionsAcknowledgedNotificationParams).
type AcknowledgedParams struct {
	NotificationBase
	// Notifications are what will be told: of what was asked, what exists and
	// the caller may see.
	Notifications SubscriptionFilter `json:"notifications"`
}
