package shape

import "github.com/parley-mcp/parley/mcp"

// downParams translates params by method. What is not here differs nowhere.
var downParams = map[string]down{
	mcp.MethodInitialize:           request((*Shape).initializeParams),
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
	mcp.MethodComplete:             request((*Shape).completeParams),
	mcp.MethodSetLevel:             request[mcp.SetLevelParams](nil),
	mcp.MethodRootsList:            request[mcp.ListRootsParams](nil),
	mcp.MethodCreateMessage:        request((*Shape).createMessageParams),
	mcp.MethodElicit:               request((*Shape).elicitParams),

	mcp.NotifyInitialized:          notice[mcp.NotificationParams](nil),
	mcp.NotifyCancelled:            notice[mcp.CancelledParams](nil),
	mcp.NotifyProgress:             notice((*Shape).progressParams),
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
	mcp.MethodInitialize:           result((*Shape).initializeResult),
	mcp.MethodPing:                 result[mcp.EmptyResult](nil),
	mcp.MethodToolsList:            result((*Shape).toolsResult),
	mcp.MethodToolsCall:            result((*Shape).callToolResult),
	mcp.MethodResourcesList:        result((*Shape).resourcesResult),
	mcp.MethodResourcesTemplates:   result((*Shape).templatesResult),
	mcp.MethodResourcesRead:        result((*Shape).readResourceResult),
	mcp.MethodResourcesSubscribe:   result[mcp.EmptyResult](nil),
	mcp.MethodResourcesUnsubscribe: result[mcp.EmptyResult](nil),
	mcp.MethodPromptsList:          result((*Shape).promptsResult),
	mcp.MethodPromptsGet:           result((*Shape).getPromptResult),
	mcp.MethodComplete:             result[mcp.CompleteResult](nil),
	mcp.MethodSetLevel:             result[mcp.EmptyResult](nil),
	mcp.MethodRootsList:            answer((*Shape).rootsResult),
	mcp.MethodCreateMessage:        answer((*Shape).createMessageResult),
	mcp.MethodElicit:               answer[mcp.ElicitResult](nil),
}
