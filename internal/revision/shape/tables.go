package shape

import "github.com/parley-mcp/parley/mcp"

// downParams translates params by method. What is not here differs nowhere.
var downParams = map[string]down{
	mcp.MethodInitialize:           request(initializeParams),
	mcp.MethodPing:                 request[mcp.EmptyParams](nil),
	mcp.MethodToolsList:            request[mcp.ListParams](nil),
	mcp.MethodToolsCall:            request[mcp.CallToolParams](nil),
	mcp.MethodResourcesList:        request[mcp.ListParams](nil),
	mcp.MethodResourcesTemplates:   request[mcp.ListParams](nil),
	mcp.MethodResourcesRead:        request[mcp.ReadResourceParams](nil),
	mcp.MethodResourcesSubscribe:   request[mcp.SubscribeParams](nil),
	mcp.MethodResourcesUnsubscribe: request[mcp.UnsubscribeParams](nil),
	mcp.MethodPromptsList:          request[mcp.ListParams](nil),
	mcp.MethodPromptsGet:           request[mcp.GetPromptParams](nil),
	mcp.MethodComplete:             request(completeParams),
	mcp.MethodSetLevel:             request[mcp.SetLevelParams](nil),
	mcp.MethodRootsList:            request[mcp.ListRootsParams](nil),
	mcp.MethodCreateMessage:        request(createMessageParams),
	mcp.MethodElicit:               request(elicitParams),

	mcp.NotifyInitialized:          notice[mcp.NotificationParams](nil),
	mcp.NotifyCancelled:            notice[mcp.CancelledParams](nil),
	mcp.NotifyProgress:             notice(progressParams),
	mcp.NotifyMessage:              notice[mcp.LogParams](nil),
	mcp.NotifyToolsListChanged:     notice[mcp.NotificationParams](nil),
	mcp.NotifyResourcesListChanged: notice[mcp.NotificationParams](nil),
	mcp.NotifyResourcesUpdated:     notice[mcp.ResourceUpdatedParams](nil),
	mcp.NotifyPromptsListChanged:   notice[mcp.NotificationParams](nil),
	mcp.NotifyRootsListChanged:     notice[mcp.NotificationParams](nil),
	mcp.NotifyElicitationComplete:  notice[mcp.ElicitationCompleteParams](nil),
}

// downResults translates results by method. What is not here differs nowhere.
var downResults = map[string]down{
	mcp.MethodInitialize:           result(initializeResult),
	mcp.MethodPing:                 result[mcp.EmptyResult](nil),
	mcp.MethodToolsList:            result(toolsResult),
	mcp.MethodToolsCall:            result(callToolResult),
	mcp.MethodResourcesList:        result(resourcesResult),
	mcp.MethodResourcesTemplates:   result(templatesResult),
	mcp.MethodResourcesRead:        result(readResourceResult),
	mcp.MethodResourcesSubscribe:   result[mcp.EmptyResult](nil),
	mcp.MethodResourcesUnsubscribe: result[mcp.EmptyResult](nil),
	mcp.MethodPromptsList:          result(promptsResult),
	mcp.MethodPromptsGet:           result(getPromptResult),
	mcp.MethodComplete:             result[mcp.CompleteResult](nil),
	mcp.MethodSetLevel:             result[mcp.EmptyResult](nil),
	mcp.MethodRootsList:            answer(rootsResult),
	mcp.MethodCreateMessage:        answer(createMessageResult),
	mcp.MethodElicit:               answer[mcp.ElicitResult](nil),
}
