package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A conversation is messages that the API takes: roles in turns, the user first and last,
// the results of all calls at the beginning of the message after them, and no empty text.
type conversation struct {
	maxImage int
	origin   string // whose reasoning it takes
	list     []*message
	open     []call          // of the last message, without a result
	used     map[string]bool // IDs of calls
	names    []string        // of tools that were called
	failed   bool            // content is that of an error, which is text only
}

// A call is one without a result.
type call struct {
	id   string // as the host names it
	sent string // as it is sent
}

// add adds a message of the host.
func (c *conversation) add(m *host.Message) {
	if m.Role == mcp.RoleAssistant {
		c.assistant(m.Blocks)
		return
	}
	c.user(m.Blocks)
}

// user adds what the user says. Results come first.
func (c *conversation) user(blocks []host.Block) {
	var results, rest []*block
	for _, b := range blocks {
		result, ok := b.Content.(*mcp.ToolResultContent)
		if !ok {
			rest = append(rest, c.content(b.Content)...)
			continue
		}
		i := slices.IndexFunc(c.open, func(open call) bool { return open.id == result.ToolUseID })
		if i < 0 {
			rest = append(rest, text("[host: the result of a call that is not in the conversation]"))
			rest = append(rest, c.result(result)...)
			continue
		}
		results = append(results, &block{Type: "tool_result", ToolUseID: c.open[i].sent, IsError: result.IsError, Content: c.result(result)})
		c.open = slices.Delete(c.open, i, i+1)
	}
	if len(results)+len(rest) == 0 {
		return
	}
	c.say(mcp.RoleUser, slices.Concat(results, rest)...)
}

// say adds blocks to the last message if it is of the role, or to a new one.
func (c *conversation) say(role mcp.Role, blocks ...*block) {
	n := len(c.list)
	switch {
	case n > 0 && c.list[n-1].Role == role:
		last := c.list[n-1]
		// A result of a call before stands before the text of the user.
		at := 0
		for role == mcp.RoleUser && at < len(last.Content) && last.Content[at].Type == "tool_result" {
			at++
		}
		results := 0
		for results < len(blocks) && blocks[results].Type == "tool_result" {
			results++
		}
		last.Content = slices.Insert(last.Content, at, blocks[:results]...)
		last.Content = append(last.Content, blocks[results:]...)
		return
	case n == 0 && role == mcp.RoleAssistant:
		c.list = append(c.list, &message{mcp.RoleUser, []*block{text("[host: the conversation begins with an answer]")}})
	}
	c.list = append(c.list, &message{role, blocks})
}

// close gives each open call a result: the API refuses a call without one.
func (c *conversation) close() {
	open := c.open
	c.open = nil
	for _, o := range open {
		c.say(mcp.RoleUser, &block{Type: "tool_result", ToolUseID: o.sent, IsError: true, Content: []*block{text("[host: there is no result of this call]")}})
	}
}

// end makes the conversation one that the API takes: it ends with the user.
func (c *conversation) end() {
	c.close()
	if n := len(c.list); n > 0 && c.list[n-1].Role == mcp.RoleAssistant {
		c.say(mcp.RoleUser, text("[host: go on]"))
	}
}

// assistant adds what the model said. Reasoning must not come last.
func (c *conversation) assistant(blocks []host.Block) {
	c.close()
	var list []*block
	var calls []call
	for _, b := range blocks {
		switch content := b.Content.(type) {
		case nil:
			if raw := c.reasoning(b.Reasoning); raw != nil {
				list = append(list, &block{Type: "thinking", raw: raw})
			}
		case *mcp.ToolUseContent:
			id := unique(content.ID, c.used)
			name := toolName(content.Name)
			if !slices.Contains(c.names, name) {
				c.names = append(c.names, name)
			}
			calls = append(calls, call{content.ID, id})
			list = append(list, &block{Type: "tool_use", ID: id, Name: name, Input: object(content.Input)})
		default:
			if said := host.ContentText(content); strings.TrimSpace(said) != "" {
				list = append(list, text(said))
			}
		}
	}
	for len(list) > 0 && list[len(list)-1].raw != nil {
		list = list[:len(list)-1]
	}
	if len(list) > 0 {
		c.say(mcp.RoleAssistant, list...)
		c.open = calls
	}
}

// reasoning is a block of reasoning as this provider made it, or nil.
func (c *conversation) reasoning(r *host.Reasoning) json.RawMessage {
	if r == nil || r.Provider != c.origin {
		return nil
	}
	var b kind
	if json.Unmarshal(r.Data, &b) != nil || b.Type != "thinking" && b.Type != "redacted_thinking" {
		return nil
	}
	return json.RawMessage(r.Data)
}

// unique is an ID that the API takes and that is not used yet.
func unique(id string, used map[string]bool) string {
	id = strings.Map(plainRune, id)
	if id == "" {
		id = "call"
	}
	try := id
	for n := 2; used[try]; n++ {
		try = id + "_" + strconv.Itoa(n)
	}
	used[try] = true
	return try
}

// plainRune is a character that the API takes in names and IDs.
func plainRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		return r
	}
	return '_'
}

// maxName is the longest name of a tool that the API takes.
const maxName = 128

// toolName is the name of a tool that was called as the API takes it. The model may have
// made it up.
func toolName(name string) string {
	name = strings.Map(plainRune, name)
	if name == "" {
		return "_"
	}
	return name[:min(len(name), maxName)]
}

// object is JSON of an object: the API takes nothing else as arguments.
func object(data mcp.RawValue) json.RawMessage {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' && json.Valid(data) {
		return json.RawMessage(data)
	}
	return json.RawMessage("{}")
}

// result is the content of a result.
func (c *conversation) result(r *mcp.ToolResultContent) (list []*block) {
	c.failed = r.IsError
	defer func() { c.failed = false }()
	for _, content := range r.Content {
		list = append(list, c.content(content)...)
	}
	if len(list) == 0 && len(r.StructuredContent) > 0 {
		list = append(list, text(string(r.StructuredContent)))
	}
	return list
}

// content is a block of content of the user or of a result; there may be none of it.
func (c *conversation) content(content mcp.Content) []*block {
	switch of := content.(type) {
	case nil: // reasoning, which is not the user's
		return nil
	case *mcp.ImageContent:
		return []*block{c.image(of.Data, content)}
	case *mcp.EmbeddedResource:
		if of.Resource.Blob != nil && strings.HasPrefix(of.Resource.MIMEType, "image/") {
			return []*block{c.image(of.Resource.Blob, content)}
		}
	}
	said := host.ContentText(content)
	if strings.TrimSpace(said) == "" { // which the API refuses
		return nil
	}
	return []*block{text(said)}
}

// image is an image, or a text that says why it was left out. The API refuses one whose
// type is not that of its bytes.
func (c *conversation) image(data []byte, content mcp.Content) *block {
	media := http.DetectContentType(data)
	why := ""
	switch {
	case c.maxImage == 0:
		why = "the model takes no images"
	case c.failed:
		why = "the model takes only the text of an error"
	case len(data) > c.maxImage:
		why = fmt.Sprintf("the model takes images of at most %d bytes", c.maxImage)
	case !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media):
		why = "the model takes PNG, JPEG, GIF and WebP"
	default:
		return &block{Type: "image", Source: &source{"base64", media, data}}
	}
	return text(host.ContentText(content) + " [host: it was left out: " + why + "]")
}

// text is a block of text.
func text(s string) *block { return &block{Type: "text", Text: s} }
