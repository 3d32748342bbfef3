package mcp

import "reflect"

// Methods is the table of all methods of all revisions, sorted by name. Which of
// them a revision has is no business of this table. Nobody may write to it.
var Methods = []Method{
	{
		Name: MethodComplete, From: Client, Capability: CapCompletions, Retry: true,
		Params: reflect.TypeFor[CompleteParams](), Result: reflect.TypeFor[CompleteResult](),
	},
	{
		Name: MethodElicit, From: Server, Capability: CapElicitation,
		Params: reflect.TypeFor[ElicitParams](), Result: reflect.TypeFor[ElicitResult](),
	},
	{
		Name: MethodInitialize, From: Client,
		Params: reflect.TypeFor[InitializeParams](), Result: reflect.TypeFor[InitializeResult](),
	},
	{
		Name: MethodSetLevel, From: Client, Capability: CapLogging, Retry: true,
		Params: reflect.TypeFor[SetLevelParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: NotifyCancelled, From: Both, Notification: true,
		Params: reflect.TypeFor[CancelledParams](),
	},
	{
		Name: NotifyElicitationComplete, From: Server, Notification: true,
		Params: reflect.TypeFor[ElicitationCompleteParams](),
	},
	{
		Name: NotifyInitialized, From: Client, Notification: true,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifyMessage, From: Server, Notification: true, Capability: CapLogging,
		Params: reflect.TypeFor[LogParams](),
	},
	{
		Name: NotifyProgress, From: Both, Notification: true,
		Params: reflect.TypeFor[ProgressParams](),
	},
	{
		Name: NotifyPromptsListChanged, From: Server, Notification: true, Capability: CapPromptsListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifyResourcesListChanged, From: Server, Notification: true, Capability: CapResourcesListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifyResourcesUpdated, From: Server, Notification: true, Capability: CapResourcesSubscribe, Target: "uri",
		Params: reflect.TypeFor[ResourceUpdatedParams](),
	},
	{
		Name: NotifyRootsListChanged, From: Client, Notification: true, Capability: CapRootsListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifySubscriptionsAcknowledged, From: Server, Notification: true,
		Params: reflect.TypeFor[AcknowledgedParams](),
	},
	{
		Name: NotifyToolsListChanged, From: Server, Notification: true, Capability: CapToolsListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: MethodPing, From: Both, Retry: true,
		Params: reflect.TypeFor[EmptyParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: MethodPromptsGet, From: Client, Capability: CapPrompts, Retry: true,
		Target: "name", Binding: []string{"name", "arguments"}, Asks: true,
		Params: reflect.TypeFor[GetPromptParams](), Result: reflect.TypeFor[GetPromptResult](),
	},
	{
		Name: MethodPromptsList, From: Client, Capability: CapPrompts, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListPromptsResult](),
	},
	{
		Name: MethodResourcesList, From: Client, Capability: CapResources, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListResourcesResult](),
	},
	{
		Name: MethodResourcesRead, From: Client, Capability: CapResources, Retry: true, Cacheable: true,
		Target: "uri", Binding: []string{"uri"}, Asks: true,
		Params: reflect.TypeFor[ReadResourceParams](), Result: reflect.TypeFor[ReadResourceResult](),
	},
	{
		Name: MethodResourcesSubscribe, From: Client, Capability: CapResourcesSubscribe, Retry: true, Target: "uri",
		Params: reflect.TypeFor[SubscribeParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: MethodResourcesTemplates, From: Client, Capability: CapResources, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListResourceTemplatesResult](),
	},
	{
		Name: MethodResourcesUnsubscribe, From: Client, Capability: CapResourcesSubscribe, Retry: true, Target: "uri",
		Params: reflect.TypeFor[UnsubscribeParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: MethodRootsList, From: Server, Capability: CapRoots,
		Params: reflect.TypeFor[ListRootsParams](), Result: reflect.TypeFor[ListRootsResult](),
	},
	{
		Name: MethodCreateMessage, From: Server, Capability: CapSampling,
		Params: reflect.TypeFor[CreateMessageParams](), Result: reflect.TypeFor[CreateMessageResult](),
	},
	{
		Name: MethodDiscover, From: Client, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[DiscoverParams](), Result: reflect.TypeFor[DiscoverResult](),
	},
	{
		Name: MethodListen, From: Client, Long: true, Retry: true,
		Params: reflect.TypeFor[ListenParams](), Result: reflect.TypeFor[ListenResult](),
	},
	{
		Name: MethodToolsCall, From: Client, Capability: CapTools,
		Target: "name", Binding: []string{"name", "arguments"}, Asks: true,
		Params: reflect.TypeFor[CallToolParams](), Result: reflect.TypeFor[CallToolResult](),
	},
	{
		Name: MethodToolsList, From: Client, Capability: CapTools, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListToolsResult](),
	},
}
