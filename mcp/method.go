package mcp

import (
	"reflect"
	"slices"
	"strings"
)

// Side is the sender of a message.
type Side uint8

// The sides.
const (
	FromClient Side = 1 << iota
	FromServer
	// FromBoth: both sides may send it.
	FromBoth = FromClient | FromServer
)

// Method is a row of the table of methods.
type Method struct {
	// Name is the method.
	Name string
	// From is its sender.
	From Side
	// Notification says that it is a notification; otherwise it is a request.
	Notification bool
	// Params is the type of its parameters, a struct. Result is the type of
	// its result, a struct, or nil for a notification.
	Params, Result reflect.Type
	// Capability is the dotted name of the capability that it needs: one of
	// the server for what a client sends and for notifications of a server,
	// one of the client for the other requests of a server and for
	// notifications of a client. Empty if it needs none.
	Capability string
	// Target is the member of params that names what is asked for, or empty.
	Target string
	// Binding are the members of params that a request state is bound to.
	Binding []string
	// Asks says that it may be answered with an [InputRequiredResult].
	Asks bool
	// Long says that it stays open as long as both like.
	Long bool
	// Cacheable says that its result carries cache hints.
	Cacheable bool
	// Retry says that it is safe to send it again when the connection broke
	// before the answer. Calls of tools are not, unless the tool says so.
	Retry bool
}

// The names of methods.
const (
	MethodInitialize                = "initialize"
	MethodPing                      = "ping"
	MethodDiscover                  = "server/discover"
	MethodToolsList                 = "tools/list"
	MethodToolsCall                 = "tools/call"
	MethodResourcesList             = "resources/list"
	MethodResourcesTemplates        = "resources/templates/list"
	MethodResourcesRead             = "resources/read"
	MethodResourcesSubscribe        = "resources/subscribe"
	MethodResourcesUnsubscribe      = "resources/unsubscribe"
	MethodPromptsList               = "prompts/list"
	MethodPromptsGet                = "prompts/get"
	MethodComplete                  = "completion/complete"
	MethodSetLevel                  = "logging/setLevel"
	MethodListen                    = "subscriptions/listen"
	MethodCreateMessage             = "sampling/createMessage"
	MethodElicit                    = "elicitation/create"
	MethodRootsList                 = "roots/list"
	NotifyInitialized               = "notifications/initialized"
	NotifyCancelled                 = "notifications/cancelled"
	NotifyProgress                  = "notifications/progress"
	NotifyMessage                   = "notifications/message"
	NotifyToolsListChanged          = "notifications/tools/list_changed"
	NotifyResourcesListChanged      = "notifications/resources/list_changed"
	NotifyResourcesUpdated          = "notifications/resources/updated"
	NotifyPromptsListChanged        = "notifications/prompts/list_changed"
	NotifyRootsListChanged          = "notifications/roots/list_changed"
	NotifyElicitationComplete       = "notifications/elicitation/complete"
	NotifySubscriptionsAcknowledged = "notifications/subscriptions/acknowledged"
)

// Lookup returns the row of a method. It must not be written to.
func Lookup(name string) (*Method, bool) {
	i, found := slices.BinarySearchFunc(Methods, name, func(m Method, name string) int {
		return strings.Compare(m.Name, name)
	})
	if !found {
		return nil, false
	}
	return &Methods[i], true
}
