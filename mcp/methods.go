package mcp

import "reflect"

// Methods is the table of all methods of all revisions, sorted by name. Which of
// them a revision has is no business of this table. It must not be written to.
var Methods = []Method{
	{
		Name: MethodComplete, From: FromClient, Capability: CapCompletions, Retry: true,
		Params: reflect.TypeFor[CompleteParams](), Result: reflect.TypeFor[CompleteResult](),
	},
	{
		Name: MethodElicit, From: FromServer, Capability: CapElicitation,
		Params: reflect.TypeFor[ElicitParams](), Result: reflect.TypeFor[ElicitResult](),
	},
	{
		Name: MethodInitialize, From: FromClient,
		Params: reflect.TypeFor[InitializeParams](), Result: reflect.TypeFor[InitializeResult](),
	},
	{
		Name: MethodSetLevel, From: FromClient, Capability: CapLogging, Retry: true,
		Params: reflect.TypeFor[SetLevelParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: NotifyCancelled, From: FromBoth, Notification: true,
		Params: reflect.TypeFor[CancelledParams](),
	},
	{
		Name: NotifyElicitationComplete, From: FromServer, Notification: true,
		Params: reflect.TypeFor[ElicitationCompleteParams](),
	},
	{
		Name: NotifyInitialized, From: FromClient, Notification: true,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifyMessage, From: FromServer, Notification: true, Capability: CapLogging,
		Params: reflect.TypeFor[LogParams](),
	},
	{
		Name: NotifyProgress, From: FromBoth, Notification: true,
		Params: reflect.TypeFor[ProgressParams](),
	},
	{
		Name: NotifyPromptsListChanged, From: FromServer, Notification: true, Capability: CapPromptsListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifyResourcesListChanged, From: FromServer, Notification: true, Capability: CapResourcesListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifyResourcesUpdated, From: FromServer, Notification: true, Capability: CapResourcesSubscribe, Target: "uri",
		Params: reflect.TypeFor[ResourceUpdatedParams](),
	},
	{
		Name: NotifyRootsListChanged, From: FromClient, Notification: true, Capability: CapRootsListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: NotifySubscriptionsAcknowledged, From: FromServer, Notification: true,
		Params: reflect.TypeFor[AcknowledgedParams](),
	},
	{
		Name: NotifyToolsListChanged, From: FromServer, Notification: true, Capability: CapToolsListChanged,
		Params: reflect.TypeFor[NotificationParams](),
	},
	{
		Name: MethodPing, From: FromBoth, Retry: true,
		Params: reflect.TypeFor[EmptyParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: MethodPromptsGet, From: FromClient, Capability: CapPrompts, Retry: true,
		Target: "name", Binding: []string{"name", "arguments"}, Asks: true,
		Params: reflect.TypeFor[GetPromptParams](), Result: reflect.TypeFor[GetPromptResult](),
	},
	{
		Name: MethodPromptsList, From: FromClient, Capability: CapPrompts, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListPromptsResult](),
	},
	{
		Name: MethodResourcesList, From: FromClient, Capability: CapResources, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListResourcesResult](),
	},
	{
		Name: MethodResourcesRead, From: FromClient, Capability: CapResources, Retry: true, Cacheable: true,
		Target: "uri", Binding: []string{"uri"}, Asks: true,
		Params: reflect.TypeFor[ReadResourceParams](), Result: reflect.TypeFor[ReadResourceResult](),
	},
	{
		Name: MethodResourcesSubscribe, From: FromClient, Capability: CapResourcesSubscribe, Retry: true, Target: "uri",
		Params: reflect.TypeFor[SubscribeParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: MethodResourcesTemplates, From: FromClient, Capability: CapResources, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListResourceTemplatesResult](),
	},
	{
		Name: MethodResourcesUnsubscribe, From: FromClient, Capability: CapResourcesSubscribe, Retry: true, Target: "uri",
		Params: reflect.TypeFor[UnsubscribeParams](), Result: reflect.TypeFor[EmptyResult](),
	},
	{
		Name: MethodRootsList, From: FromServer, Capability: CapRoots,
		Params: reflect.TypeFor[ListRootsParams](), Result: reflect.TypeFor[ListRootsResult](),
	},
	{
		Name: MethodCreateMessage, From: FromServer, Capability: CapSampling,
		Params: reflect.TypeFor[CreateMessageParams](), Result: reflect.TypeFor[CreateMessageResult](),
	},
	{
		Name: MethodDiscover, From: FromClient, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[DiscoverParams](), Result: reflect.TypeFor[DiscoverResult](),
	},
	{
		Name: MethodListen, From: FromClient, Long: true, Retry: true,
		Params: reflect.TypeFor[ListenParams](), Result: reflect.TypeFor[ListenResult](),
	},
	{
		Name: MethodToolsCall, From: FromClient, Capability: CapTools,
		Target: "name", Binding: []string{"name", "arguments"}, Asks: true,
		Params: reflect.TypeFor[CallToolParams](), Result: reflect.TypeFor[CallToolResult](),
	},
	{
		Name: MethodToolsList, From: FromClient, Capability: CapTools, Retry: true, Cacheable: true,
		Params: reflect.TypeFor[ListParams](), Result: reflect.TypeFor[ListToolsResult](),
	},
}
