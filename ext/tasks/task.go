package tasks

import (
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// A Status is the state of a task.
//
//	Working <-> InputRequired; either -> Completed, Failed or Cancelled
type Status string

// The states of a task (ext-tasks, Task Status).
const (
	// Working: the handler runs, or will be run again.
	Working Status = "working"
	// InputRequired: the handler waits for the answers to Questions.
	InputRequired Status = "input_required"
	// Completed: there is a Result, which may say isError.
	Completed Status = "completed"
	// Failed: the request came to a JSON-RPC error.
	Failed Status = "failed"
	// Cancelled: it was cancelled before it came to an end.
	Cancelled Status = "cancelled"
)

// Ended reports whether the state is final.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Cancelled }

// A Question is what a task asks its client: elicitation/create,
// sampling/createMessage or roots/list.
type Question struct {
	// Key names the question; it is used for no other in the life of the task.
	Key string `json:"key"`
	// Method is the method.
	Method string `json:"method"`
	// Params are its parameters as JSON; nil is absent.
	Params mcp.RawValue `json:"params,omitzero"`
}

// A Task is the state of a task at one time. It belongs to its receiver, but for what
// Questions, Result and Error hold, which must not be written to.
type Task struct {
	// ID is the identifier, of at least 128 random bits.
	ID string
	// Tool is the name of the tool, on the server's side.
	Tool string
	// Status is the state.
	Status Status
	// Message describes the state to a person; it may be empty.
	Message string
	// Created and Updated are the times of the creation and of the last change.
	Created, Updated time.Time
	// TTL is how long after Created the task is kept at least; 0 is without end. It
	// is sent in whole milliseconds.
	TTL time.Duration
	// PollInterval is how long a client should wait between two looks, in whole
	// milliseconds; 0 says nothing.
	PollInterval time.Duration
	// Questions are all open ones, in the order in which they were asked, if the
	// Status is InputRequired.
	Questions []Question
	// Result is the result of the request as JSON, of a Completed task.
	Result mcp.RawValue
	// Error is the error of the request, of a Failed task.
	Error *jsonrpc.Error
}
