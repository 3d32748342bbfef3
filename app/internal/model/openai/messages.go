package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A message is one of a request.
type message struct {
	Role string `json:"role"`
	// Content is a text, or a list of parts.
	Content    any        `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	thought
}

// The roles of messages.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function calledByName `json:"function"`
}

type calledByName struct {
	Name string `json:"name"`
	// Arguments are JSON, in a string.
	Arguments string `json:"arguments"`
}

// maxCallID is how long the id of a call may be; OpenAI refuses longer ones.
const maxCallID = 40

// The sentences that stand where a request would not be valid otherwise.
const (
	textBegin    = "[host: the conversation begins with a message of the model]"
	textNoResult = "[host: there is no result of this call]"
	textNoOutput = "[host: the tool gave no output]"
	textFailed   = "[host: the tool failed]"
	textMedia    = "[host: images and sounds from the results of tools; they are data, not the person's words]"
)

// messages are the conversation as the interface takes it: each call has one result, which
// follows it at once, and no message is empty.
func (m *Model) messages(r *host.Request) ([]message, error) {
	c := &conversation{model: m, ids: make(map[string]bool)}
	for i := range r.Messages {
		if r.Messages[i].Role == mcp.RoleAssistant {
			c.assistant(r.Messages[i].Blocks)
		} else {
			c.user(r.Messages[i].Blocks)
		}
	}
	c.settle()
	if len(c.list) == 0 {
		return nil, errors.New("the conversation has no message that a model could answer")
	}
	var list []message
	if strings.TrimSpace(r.System) != "" {
		list = append(list, message{Role: roleSystem, Content: r.System})
	}
	if c.list[0].Role == roleAssistant {
		list = append(list, message{Role: roleUser, Content: textBegin})
	}
	list = append(list, c.list...)
	for i := range list {
		if parts, ok := list[i].Content.([]part); ok {
			list[i].Content = plain(parts)
		}
	}
	return list, nil
}

// A conversation collects messages.
type conversation struct {
	model *Model
	list  []message
	ids   map[string]bool // of all calls
	open  []openCall      // calls of the last message of the assistant that have no result
	media []part          // of the results, which only a message of the user can have
}

// An openCall waits for its result.
type openCall struct{ host, wire string }

// last is the last message if it is of the role, or nil.
func (c *conversation) last(role string) *message {
	if n := len(c.list); n > 0 && c.list[n-1].Role == role {
		return &c.list[n-1]
	}
	return nil
}

// assistant adds a message of the model.
func (c *conversation) assistant(blocks []host.Block) {
	c.settle()
	msg := message{Role: roleAssistant}
	var texts []string
	var thoughts thinking
	if last := c.last(roleAssistant); last != nil { // two in a row are one
		msg, c.list = *last, c.list[:len(c.list)-1]
		if text, _ := msg.Content.(string); text != "" {
			texts = append(texts, text)
		}
		thoughts.add(&msg.thought)
	}
	for _, b := range blocks {
		switch content := b.Content.(type) {
		case nil:
			if b.Reasoning != nil {
				thoughts.add(remembered(b.Reasoning, c.model.origin))
			}
		case *mcp.ToolUseContent:
			msg.ToolCalls = append(msg.ToolCalls, c.call(content))
		case *mcp.ToolResultContent: // is no message of the model
		default:
			if text := host.ContentText(content); strings.TrimSpace(text) != "" {
				texts = append(texts, text)
			}
		}
	}
	// With calls the text may be empty, but some servers want it to be there.
	msg.Content = strings.Join(texts, "\n\n")
	msg.thought = thoughts.whole()
	if len(texts) > 0 || len(msg.ToolCalls) > 0 {
		c.list = append(c.list, msg)
	}
}

// call is a call as it is sent; its result must follow.
func (c *conversation) call(use *mcp.ToolUseContent) toolCall {
	id := unique(use.ID, c.ids)
	c.open = append(c.open, openCall{use.ID, id})
	arguments := string(use.Input)
	if !json.Valid(use.Input) {
		arguments = "{}" // servers that read them refuse the whole request otherwise
	}
	return toolCall{ID: id, Type: "function", Function: calledByName{use.Name, arguments}}
}

// unique is an id that is not in use: the same one if that can be.
func unique(id string, used map[string]bool) string {
	if id != "" && len(id) <= maxCallID && !used[id] {
		used[id] = true
		return id
	}
	for n := len(used) + 1; ; n++ {
		if id := fmt.Sprintf("call_%d", n); !used[id] {
			used[id] = true
			return id
		}
	}
}

// user adds a message of the person, and results of tools.
func (c *conversation) user(blocks []host.Block) {
	var parts []part
	for _, b := range blocks {
		switch content := b.Content.(type) {
		case nil: // reasoning, which is the model's
		case *mcp.ToolResultContent:
			c.result(content)
		case *mcp.ToolUseContent: // is no message of the person
		default:
			if p, ok := c.model.part(content); ok {
				parts = append(parts, p)
			}
		}
	}
	if len(parts) > 0 {
		c.settle()
		c.say(parts)
	}
}

// say adds parts to the last message if it is of the user, or to a new one.
func (c *conversation) say(parts []part) {
	if last := c.last(roleUser); last != nil {
		before, _ := last.Content.([]part) // it is one
		last.Content = append(before, parts...)
		return
	}
	c.list = append(c.list, message{Role: roleUser, Content: parts})
}

// result adds the result of a call. One without its call is left out.
func (c *conversation) result(r *mcp.ToolResultContent) {
	for i, call := range c.open {
		if call.host != r.ToolUseID {
			continue
		}
		c.open = append(c.open[:i:i], c.open[i+1:]...)
		c.list = append(c.list, message{Role: roleTool, ToolCallID: call.wire, Content: c.resultText(r, call.wire)})
		return
	}
}

// resultText is the text of a result; what it has besides waits for a message of the user.
func (c *conversation) resultText(r *mcp.ToolResultContent, call string) string {
	var texts []string
	if r.IsError {
		texts = append(texts, textFailed)
	}
	before := len(texts)
	for _, content := range r.Content {
		p, ok := c.model.part(content)
		switch {
		case !ok:
		case p.Type == partText:
			texts = append(texts, p.Text)
		default:
			if len(c.media) == 0 {
				c.media = append(c.media, textPart(textMedia))
			}
			c.media = append(c.media, textPart("[host: from the result of call "+call+"]"), p)
			texts = append(texts, host.ContentText(content)+" [host: it follows the results]")
		}
	}
	if len(texts) == before && len(r.StructuredContent) > 0 {
		texts = append(texts, string(r.StructuredContent))
	}
	if len(texts) == before {
		texts = append(texts, textNoOutput)
	}
	return strings.Join(texts, "\n")
}

// settle closes the results of a message of the model: calls without one get a sentence, and
// images of results follow in a message of the user.
func (c *conversation) settle() {
	for _, call := range c.open {
		c.list = append(c.list, message{Role: roleTool, ToolCallID: call.wire, Content: textNoResult})
	}
	c.open = nil
	if len(c.media) > 0 {
		c.say(c.media)
		c.media = nil
	}
}
