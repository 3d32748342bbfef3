package inspect

import (
	"context"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

// The methods of tasks, as servers of both eras know them. Not every era has all of them.
const (
	methodTaskResult = "tasks/result"
	methodTaskList   = "tasks/list"
)

// task is a method about one task.
func task(method string) func(context.Context, *Session, *Args) (*Outcome, error) {
	return func(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
		if a.TaskID == "" {
			return nil, missing(method, flagTask)
		}
		params := map[string]mcp.RawValue{"taskId": quoted(a.TaskID)}
		if method == tasks.MethodUpdate {
			if a.Responses == nil {
				return nil, missing(method, "--input-responses")
			}
			params["inputResponses"] = a.Responses
		}
		return result(s.ask(ctx, method, params, nil))
	}
}

// memberTask asks for a task in params, where tasks are part of the core.
const memberTask = "task"
