package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A thought is what a model thought, as a message of the assistant has it. Which members
// there are is the provider's choice, and it wants them back: reasoning_content (DeepSeek,
// llama.cpp, https://api-docs.deepseek.com/guides/thinking_mode), reasoning (vLLM, Ollama,
// https://docs.vllm.ai/en/v0.11.2/features/reasoning_outputs/), reasoning_details (OpenRouter,
// https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks).
type thought struct {
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
}

func (t *thought) empty() bool {
	return t.ReasoningContent == nil && t.Reasoning == nil && len(t.ReasoningDetails) == 0
}

// block is the thought as the host keeps it.
func (t *thought) block(origin, text string) *host.Reasoning {
	kept := *t
	if len(kept.ReasoningDetails) > 0 {
		kept.Reasoning, kept.ReasoningContent = nil, nil // the details hold the text, too
	}
	return &host.Reasoning{Provider: origin, Text: text, Data: mcp.RawValue(plainJSON(&kept))}
}

// remembered reads what the host kept: nothing if another provider made it.
func remembered(r *host.Reasoning, origin string) *thought {
	t := new(thought)
	if r.Provider != origin || len(r.Data) == 0 || decode(r.Data, t) != nil {
		return new(thought)
	}
	return t
}

// thinking puts a thought together from its parts.
type thinking struct {
	content, reasoning *strings.Builder // nil if there is no such member
	details            []*detail
}

// add adds the next part. Where it names the same text by two members, as vLLM does while it
// renames one, that counts once.
func (t *thinking) add(next *thought) {
	switch {
	case next.Reasoning != nil && *next.Reasoning != "":
		join(&t.reasoning, *next.Reasoning)
	case next.ReasoningContent != nil:
		join(&t.content, *next.ReasoningContent)
	}
	for _, raw := range next.ReasoningDetails {
		d := newDetail(raw)
		if n := len(t.details); n == 0 || !t.details[n-1].join(d) {
			t.details = append(t.details, d)
		}
	}
}

func join(to **strings.Builder, text string) {
	if *to == nil {
		*to = new(strings.Builder)
	}
	(*to).WriteString(text)
}

// whole is all that was added.
func (t *thinking) whole() thought {
	var w thought
	for _, member := range []struct {
		from *strings.Builder
		to   **string
	}{{t.content, &w.ReasoningContent}, {t.reasoning, &w.Reasoning}} {
		if member.from != nil {
			text := member.from.String()
			*member.to = &text
		}
	}
	for _, d := range t.details {
		w.ReasoningDetails = append(w.ReasoningDetails, d.json())
	}
	return w
}

// text is the readable part.
func (t *thinking) text() string {
	for _, b := range []*strings.Builder{t.reasoning, t.content} {
		if b != nil && b.Len() > 0 {
			return b.String()
		}
	}
	var text strings.Builder
	for _, d := range t.details {
		for _, name := range []string{"text", "summary"} {
			if b := d.texts[name]; b != nil {
				text.WriteString(b.String())
			}
		}
	}
	return text.String()
}

// A detail is an element of reasoning_details.
type detail struct {
	raw     json.RawMessage             // as it came; nil once parts were joined
	members map[string]json.RawMessage  // nil if it is no object
	texts   map[string]*strings.Builder // of members that a stream takes apart
}

// splitMembers are the members that a stream takes apart.
var splitMembers = []string{"text", "summary", "signature"}

func newDetail(raw json.RawMessage) *detail {
	d := &detail{raw: raw}
	_ = decode(raw, &d.members) // there are none if it is no object
	d.texts = make(map[string]*strings.Builder)
	for _, name := range splitMembers {
		var text *string
		if json.Unmarshal(d.members[name], &text) == nil && text != nil {
			d.texts[name] = new(strings.Builder)
			d.texts[name].WriteString(*text)
		}
	}
	return d
}

// join adds next if it goes on with d: a text or a summary with the same index. Others are
// kept as they came.
func (d *detail) join(next *detail) bool {
	kind := string(d.members["type"])
	if kind != string(next.members["type"]) || kind != `"reasoning.text"` && kind != `"reasoning.summary"` {
		return false
	}
	if !sameOrNone(d.members["index"], next.members["index"]) || !sameOrNone(d.members["id"], next.members["id"]) {
		return false
	}
	if none(d.members["index"]) && d.texts["signature"] != nil {
		return false // the signature ends a block that has no index
	}
	for name, value := range next.members {
		if !none(value) && !slices.Contains(splitMembers, name) {
			d.members[name] = value
		}
	}
	for name, text := range next.texts {
		if d.texts[name] == nil {
			d.texts[name] = new(strings.Builder)
		}
		d.texts[name].WriteString(text.String())
	}
	d.raw = nil
	return true
}

// none tells whether a member is missing or null.
func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func sameOrNone(a, b json.RawMessage) bool { return none(a) || none(b) || bytes.Equal(a, b) }

// json is the element.
func (d *detail) json() json.RawMessage {
	if d.raw != nil {
		return d.raw
	}
	for name, text := range d.texts {
		d.members[name] = plainJSON(text.String())
	}
	return plainJSON(d.members)
}

// plainJSON encodes without escaping what HTML would need.
func plainJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
