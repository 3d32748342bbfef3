package host

import (
	"context"
	"iter"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema/provider"
)

// A Model turns messages and tools into text and tool calls. Its methods may
// be called by many goroutines at once. If one panics, the run ends with an error that
// has a reference, under which the stack is in Options.Logger.
type Model interface {
	// Generate streams one turn: pieces of text and reasoning, tool calls, and at
	// the end usage and the reason why it stopped, in order. An error ends the
	// stream. It ends early when ctx ends, or when the consumer stops; nothing of
	// it may be left then.
	Generate(ctx context.Context, r *Request) iter.Seq2[Piece, error]
	// Info says which model it is and what it takes.
	Info() ModelInfo
}

// ModelInfo describes a model.
type ModelInfo struct {
	// Name is the model's name, which faces show.
	Name string `json:"name"`
	// Provider says who runs it; reasoning goes back to the same provider only.
	Provider string `json:"provider,omitzero"`
	// Offline says that it is no language model but the built-in planner,
	// which faces must tell wherever it answers.
	Offline bool `json:"offline,omitzero"`
	// Window is how many tokens a request and its answer may have. 0: unknown; a model may find
	// it out later.
	Window int `json:"window,omitzero"`
	// MaxImage is the most bytes of one image; 0: the model takes none.
	MaxImage int `json:"maxImage,omitzero"`
	// Schemas says which JSON Schemas of tools the model takes. Default all.
	Schemas provider.Profile `json:"-"`
	// InputPrice and OutputPrice are dollars for a million tokens. 0: nothing.
	InputPrice  float64 `json:"inputPrice,omitzero"`
	OutputPrice float64 `json:"outputPrice,omitzero"`
	// Intelligence and Speed rank the model among others, from 0 to 1; for servers
	// that say which model they would prefer.
	Intelligence float64 `json:"intelligence,omitzero"`
	Speed        float64 `json:"speed,omitzero"`
}

// A Request is what a model is asked. A model must not write to it.
type Request struct {
	// System is the host's instruction, or empty.
	System string
	// Messages are the conversation, oldest first.
	Messages []Message
	// Tools are what the model may call, under the names it must use.
	Tools []ToolSpec
	// MaxTokens bounds the answer; 0 leaves it to the model.
	MaxTokens int
	// Temperature is nil to leave it to the model.
	Temperature *float64
	// Stop are texts at which the answer ends.
	Stop []string
}

// A Message is one turn of a conversation.
type Message struct {
	Role   mcp.Role
	Blocks []Block
}

// A Block is a part of a message: content, or reasoning. The content of a
// message of the assistant may be *mcp.ToolUseContent, that of one of the user
// *mcp.ToolResultContent.
type Block struct {
	Content   mcp.Content
	Reasoning *Reasoning
}

// Reasoning is what a model thought before it answered. A provider that wants
// it back gets it unchanged.
type Reasoning struct {
	// Provider made it; it goes to no other.
	Provider string `json:"provider"`
	// Text is the readable part, or empty.
	Text string `json:"text,omitzero"`
	// Data is the provider's own form of it, which only the provider reads.
	Data mcp.RawValue `json:"data,omitzero"`
}

// A ToolSpec is a tool as the model sees it.
type ToolSpec struct {
	Name        string
	Description string
	// InputSchema is the JSON Schema of the arguments.
	InputSchema mcp.RawValue
}

// A Piece is a part of a model's turn. One of the fields is set.
type Piece struct {
	// Text is the next part of the answer.
	Text string
	// Reasoning is a whole block of it.
	Reasoning *Reasoning
	// Call is a call that is complete. Its ID is the model's.
	Call *mcp.ToolUseContent
	// Usage is what the turn has cost until now.
	Usage *Usage
	// Stop says why the turn ended. Without it the reason is StopEnd, or StopCalls
	// if there were calls.
	Stop StopReason
}

// A StopReason says why a turn of a model ended.
type StopReason string

// The reasons why a turn ends.
const (
	// StopEnd says that the model has said everything.
	StopEnd StopReason = "end"
	// StopCalls says that the model waits for the results of its calls.
	StopCalls StopReason = "calls"
	// StopLength says that the answer was cut off at its bound.
	StopLength StopReason = "length"
	// StopSequence says that one of Request.Stop came.
	StopSequence StopReason = "sequence"
	// StopRefusal says that the model, or its provider, refused to answer.
	StopRefusal StopReason = "refusal"
	// StopOther says that the answer ended for a reason that is none of these, such as one
	// that the provider has introduced since: it may not be whole.
	StopOther StopReason = "other"
)

// Usage is what turns of a model have cost.
type Usage struct {
	// Input and Output count tokens; Input includes those of CacheRead, which the
	// provider had kept, and CacheWrite, which it keeps from now on.
	Input      int64 `json:"input,omitzero"`
	Output     int64 `json:"output,omitzero"`
	CacheRead  int64 `json:"cacheRead,omitzero"`
	CacheWrite int64 `json:"cacheWrite,omitzero"`
	// Cost is in dollars. 0: unknown or nothing.
	Cost float64 `json:"cost,omitzero"`
}

// add sums usage.
func (u *Usage) add(v Usage) {
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Cost += v.Cost
}

// priced fills in the cost by the prices of the model, where the provider told none.
func (u Usage) priced(m ModelInfo) Usage {
	if u.Cost == 0 {
		u.Cost = (float64(u.Input)*m.InputPrice + float64(u.Output)*m.OutputPrice) / 1e6
	}
	return u
}
