package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Texts that stand for what a request must have and the conversation has not.
const (
	beginningText = "[host: the beginning of the conversation is left out]"
	goOnText      = "[host: go on]"
	noResultText  = "there is no result of this call"
)

// A builder makes turns of messages: they alternate, the first and the last one are the
// user's, and the results of all calls of a turn come right after it, in their order.
type builder struct {
	model    *Model
	contents []content
	calls    []madeCall                          // of the last turn of the model
	results  map[string][]*mcp.ToolResultContent // of them, by the ID in the conversation
	user     []part                              // of the user's turn under way
}

// A madeCall is a call of the model.
type madeCall struct {
	id, wireID, name string // ID in the conversation, the model's own, and the function
}

func textPart(text string) part { return part{Text: &text} }

// message adds a message.
func (b *builder) message(msg *host.Message) {
	if msg.Role == mcp.RoleAssistant {
		b.assistant(msg.Blocks)
		return
	}
	for _, block := range msg.Blocks {
		switch c := block.Content.(type) {
		case nil:
		case *mcp.ToolResultContent:
			if b.results == nil {
				b.results = make(map[string][]*mcp.ToolResultContent)
			}
			b.results[c.ToolUseID] = append(b.results[c.ToolUseID], c)
		default:
			if p, ok := b.model.content(c); ok {
				b.user = append(b.user, p)
			}
		}
	}
}

// flush ends the user's turn that is under way. Results without a call are left out.
func (b *builder) flush() {
	var parts, beside []part
	for _, call := range b.calls {
		result := &mcp.ToolResultContent{Content: mcp.Contents{mcp.Text(noResultText)}, IsError: true}
		if list := b.results[call.id]; len(list) > 0 {
			result, b.results[call.id] = list[0], list[1:]
		}
		p, more := b.model.result(call, result)
		parts, beside = append(parts, p), append(beside, more...)
	}
	parts = slices.Concat(parts, beside, b.user)
	b.calls, b.results, b.user = nil, nil, nil
	b.add(roleUser, parts)
}

// add adds parts to the last turn if it is of the role, or else as a new one.
func (b *builder) add(role string, parts []part) {
	if len(parts) == 0 {
		return
	}
	if n := len(b.contents); n > 0 && b.contents[n-1].Role == role {
		b.contents[n-1].Parts = append(b.contents[n-1].Parts, parts...)
		return
	}
	if len(b.contents) == 0 && role == roleModel {
		b.add(roleUser, []part{textPart(beginningText)})
	}
	b.contents = append(b.contents, content{role, parts})
}

// end ends the conversation.
func (b *builder) end() {
	b.flush()
	if n := len(b.contents); n > 0 && b.contents[n-1].Role == roleModel {
		b.add(roleUser, []part{textPart(goOnText)})
	}
}

// assistant adds a message of the model.
func (b *builder) assistant(blocks []host.Block) {
	b.flush()
	var parts []part
	var calls []madeCall
	var next kept // of the next call
	for _, block := range blocks {
		switch c := block.Content.(type) {
		case nil:
			if r := block.Reasoning; r != nil && r.Provider == b.model.origin {
				parts, next = restore(parts, r)
			}
			continue
		case *mcp.ToolUseContent:
			call := &functionCall{ID: next.ID, Name: functionName(c.Name), Args: object(c.Input)}
			parts = append(parts, part{FunctionCall: call, ThoughtSignature: next.Signature})
			calls = append(calls, madeCall{c.ID, next.ID, call.Name})
		case *mcp.ToolResultContent: // the user's
		default:
			if text := host.ContentText(c); text != "" {
				parts = append(parts, textPart(text))
			}
		}
		next = kept{}
	}
	b.add(roleModel, parts)
	b.calls = calls
}

// object is raw if it is a JSON object, or else an empty one: the provider takes no other
// arguments.
func object(raw mcp.RawValue) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(raw)
}

// A kept is the Data of reasoning: what must go back with a part.
type kept struct {
	// Kind says which part it is of: keptThought, of the reasoning's own text; keptText, of
	// the end of the text before it, Bytes long; keptCall, of the call after it.
	Kind      string `json:"kind"`
	Signature string `json:"thoughtSignature,omitzero"`
	// ID is the model's own of the call, or empty.
	ID    string `json:"id,omitzero"`
	Bytes int    `json:"bytes,omitzero"`
}

// Kinds of what is kept.
const (
	keptThought = "thought"
	keptText    = "text"
	keptCall    = "call"
)

// restore puts reasoning back where it came from. What belongs to the next call is returned.
func restore(parts []part, r *host.Reasoning) ([]part, kept) {
	var k kept
	if json.Unmarshal(r.Data, &k) != nil {
		return parts, kept{}
	}
	switch k.Kind {
	case keptCall:
		return parts, k
	case keptThought:
		if r.Text != "" || k.Signature != "" {
			p := textPart(r.Text)
			p.Thought, p.ThoughtSignature = true, k.Signature
			parts = append(parts, p)
		}
	case keptText:
		parts = signText(parts, k)
	}
	return parts, kept{}
}

// signText gives a signature to the end of the text that comes last, or, if it was of none,
// to a part of its own.
func signText(parts []part, k kept) []part {
	n := len(parts) - 1
	if k.Bytes <= 0 || n < 0 || parts[n].Text == nil || parts[n].Thought || parts[n].ThoughtSignature != "" {
		p := textPart("")
		p.ThoughtSignature = k.Signature
		return append(parts, p)
	}
	text := *parts[n].Text
	if at := len(text) - k.Bytes; at > 0 && utf8.RuneStart(text[at]) {
		parts[n] = textPart(text[:at])
		parts = append(parts, textPart(text[at:]))
		n++
	}
	parts[n].ThoughtSignature = k.Signature
	return parts
}

// The formats of https://ai.google.dev/gemini-api/docs/image-understanding,
// https://ai.google.dev/gemini-api/docs/audio and, within results of functions,
// https://ai.google.dev/gemini-api/docs/function-calling.
var (
	imageTypes  = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
	resultTypes = []string{"image/png", "image/jpeg", "image/webp"}
	audioTypes  = map[string]string{
		"audio/wav": "audio/wav", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav",
		"audio/mp3": "audio/mp3", "audio/mpeg": "audio/mp3",
		"audio/aiff": "audio/aiff", "audio/x-aiff": "audio/aiff", "audio/aac": "audio/aac", "audio/ogg": "audio/ogg",
		"audio/flac": "audio/flac", "audio/x-flac": "audio/flac",
	}
)

// content is content of the user as a part; an empty text is none.
func (m *Model) content(c mcp.Content) (part, bool) {
	switch c := c.(type) {
	case *mcp.ImageContent:
		p, why := m.image(c, imageTypes)
		if why != "" {
			p = textPart(leftOut(c, why))
		}
		return p, true
	case *mcp.AudioContent:
		kind := audioTypes[strings.ToLower(c.MIMEType)]
		switch {
		case m.maxAudio <= 0:
			return textPart(leftOut(c, "the model takes no sound")), true
		case kind == "":
			return textPart(leftOut(c, "the model does not take its format")), true
		case len(c.Data) == 0 || len(c.Data) > m.maxAudio:
			return textPart(leftOut(c, fmt.Sprintf("the model takes 1 to %d bytes", m.maxAudio))), true
		}
		return part{InlineData: &blob{kind, c.Data}}, true
	}
	text := host.ContentText(c)
	return textPart(text), text != ""
}

// image is an image as a part, or why the model does not take it.
func (m *Model) image(c *mcp.ImageContent, types []string) (part, string) {
	kind := strings.ToLower(c.MIMEType)
	if kind == "image/jpg" {
		kind = "image/jpeg"
	}
	switch {
	case m.info.MaxImage <= 0:
		return part{}, "the model takes no images"
	case !slices.Contains(types, kind):
		return part{}, "the model does not take its format"
	case len(c.Data) == 0 || len(c.Data) > m.info.MaxImage:
		return part{}, fmt.Sprintf("the model takes 1 to %d bytes", m.info.MaxImage)
	}
	return part{InlineData: &blob{kind, c.Data}}, ""
}

// leftOut says that content was left out, and why.
func leftOut(c mcp.Content, why string) string {
	return fmt.Sprintf("%s [host: left out: %s]", host.ContentText(c), why)
}

// result is the result of a call, and the parts that stand beside the results: models
// before Gemini 3 take no images within them.
func (m *Model) result(call madeCall, r *mcp.ToolResultContent) (part, []part) {
	var texts []string
	var images []part
	within := generation(m.name) >= 3
	for _, c := range r.Content {
		image, ok := c.(*mcp.ImageContent)
		if !ok {
			texts = append(texts, host.ContentText(c))
			continue
		}
		p, why := m.image(image, resultTypes)
		if why != "" {
			texts = append(texts, leftOut(c, why))
			continue
		}
		images = append(images, p)
		if !within {
			texts = append(texts, fmt.Sprintf("%s [host: image %d after the results]", host.ContentText(c), len(images)))
		}
	}
	var output any = strings.Join(texts, "\n")
	if len(r.Content) == 0 && len(r.StructuredContent) > 0 {
		output = r.StructuredContent
	}
	of := "output"
	if r.IsError {
		of = "error"
	}
	response := &functionResponse{ID: call.wireID, Name: call.name, Response: map[string]any{of: output}}
	if within {
		response.Parts = images
		return part{FunctionResponse: response}, nil
	}
	if len(images) > 0 {
		images = append([]part{textPart(fmt.Sprintf("[host: the images of the result of %s]", call.name))}, images...)
	}
	return part{FunctionResponse: response}, images
}
