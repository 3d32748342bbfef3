package host

import (
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// An Event tells a face what happens in a run: one of the pointer types below.
// Events come one at a time and in order; the function that takes them must not call the
// conversation.
type Event interface{ event() }

// A TurnEvent says that the model is asked.
type TurnEvent struct {
	// Step counts the model's turns of this run from 1.
	Step int
	// Model is its name; Offline says that it is the built-in planner.
	Model   string
	Offline bool
}

// A TextEvent is the next part of the model's text.
type TextEvent struct{ Text string }

// A CallEvent says that a tool is called, and why it may be.
type CallEvent struct {
	ID        string
	Tool      *Tool
	Arguments mcp.RawValue
	Why       string
}

// A ProgressEvent is a server's word on how far a call is. Total is 0 if unknown.
type ProgressEvent struct {
	ID              string
	Tool            *Tool
	Progress, Total float64
	Message         string
}

// A ResultEvent says how a call ended: with a result, or with an error, which
// is a *ConsentError if the call was refused. Tool is nil if the model called
// what does not exist.
type ResultEvent struct {
	ID     string
	Tool   *Tool
	Result *mcp.CallToolResult
	Err    error
	Took   time.Duration
}

// A DownEvent says that a server cannot be used at the moment.
type DownEvent struct{ Err *ServerError }

func (*TurnEvent) event()     {}
func (*TextEvent) event()     {}
func (*CallEvent) event()     {}
func (*ProgressEvent) event() {}
func (*ResultEvent) event()   {}
func (*DownEvent) event()     {}
