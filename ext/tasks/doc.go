// Package tasks is the official extension for calls of tools that take long
// (io.modelcontextprotocol/tasks, SEP-2663). The answer of such a call is a task: the
// client asks for its state, answers its questions and cancels it by requests of their
// own, and the handler of the tool stays a straight line.
//
// On a server, [Enable] says which tools may become tasks, and a [Store] keeps them. A
// client with [Client] among its extensions gets the final result from an ordinary call,
// or a handle from [Start].
package tasks

// ID is the identifier of the extension.
const ID = "io.modelcontextprotocol/tasks"

// The methods, the notification and the type of result of the extension.
const (
	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update"
	MethodCancel = "tasks/cancel"
	// Notify tells of a change of a task, to subscriptions that named it.
	Notify = "notifications/tasks"
	// ResultTask is the resultType of an answer that is a task.
	ResultTask = "task"

	filterIDs  = "taskIds"
	targetTask = "taskId"
)
