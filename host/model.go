package host

import (
	"context"
	"iter"

	"github.com/parley-mcp/parley/mcp"
)

// A Model turns messages and tools into text and tool calls. Its methods may
// be called by many goroutines at once.
type Model interface {
	// Generate streams one turn: pieces of text, and tool calls, in order. An
	// error ends the stream. It ends early when ctx ends, or when the
	// consumer stops; nothing of it may be left then.
	Generate(ctx context.Context, r *Request) iter.Seq2[Piece, error]
	// Name says which model it is; faces show it.
	Name() string
	// Offline says that it is no language model but the built-in planner,
	// which faces must tell wherever it answers.
	Offline() bool
}

// A Request is what a model is asked. It must not be written to by a model.
type Request struct {
	// System is the host's instruction, or empty.
	System string
	// Messages are the conversation, oldest first.
	Messages []Message
	// Tools are what the model may call, under the names it must use.
	Tools []ToolSpec
	// MaxTokens bounds the answer; 0 leaves it to the model.
	MaxTokens int
	// Stop are texts at which the answer ends.
	Stop []string
}

// A Message is one turn of a conversation. Its content may hold text and
// media, in a message of the assistant also *mcp.ToolUseContent, and in one of
// the user also *mcp.ToolResultContent.
type Message struct {
	Role    mcp.Role
	Content []mcp.Content
}

// A ToolSpec is a tool as the model sees it.
type ToolSpec struct {
	Name        string
	Description string
	// InputSchema is the JSON Schema of the arguments.
	InputSchema mcp.RawValue
}

// A Piece is a part of a model's turn: a text, or a call.
type Piece struct {
	// Text is the next part of the answer, or empty.
	Text string
	// Call is a call that is complete, or nil.
	Call *mcp.ToolUseContent
}
