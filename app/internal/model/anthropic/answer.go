package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// errStopped says that the consumer wants no more.
var errStopped = errors.New("the consumer stopped")

// maxAnswer bounds the text, reasoning and arguments of an answer, in bytes.
const maxAnswer = 16 << 20

// An answer is an answer of the model, as it comes.
type answer struct {
	model  *Model
	yield  func(host.Piece, error) bool
	blocks map[int]*part // that are not complete
	ids    map[string]bool
	calls  bool // there were some
	size   int  // bytes so far
	usage  usage
	stop   string
	why    string // the words of a refusal
}

// A part is a block of an answer that is not complete.
type part struct {
	kind   string
	fields map[string]json.RawMessage
	text   bytes.Buffer // reasoning, or arguments
	sign   bytes.Buffer // the signature of reasoning
}

// An event is one of the stream. What it does not need of its type is empty.
type event struct {
	Type    string                     `json:"type"`
	Index   int                        `json:"index"`
	Block   map[string]json.RawMessage `json:"content_block"`
	Message struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		JSON       string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
		Details    *struct {
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
}

// answer makes a request, and yields its answer.
func (m *Model) answer(ctx context.Context, body *request, yield func(host.Piece, error) bool) error {
	a := &answer{model: m, yield: yield, blocks: make(map[int]*part), ids: make(map[string]bool)}
	for e, err := range m.at.Stream(ctx, "/v1/messages", body) {
		if err != nil {
			return err
		}
		if done, err := a.event(e); done || err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return m.at.Cut()
}

// event takes an event; done says that it was the last one.
func (a *answer) event(e provider.Event) (done bool, err error) {
	var in event
	if err := json.Unmarshal(e.Data, &in); err != nil && in.Type == "" && e.Name != "error" {
		return false, a.model.at.Errorf("sends an event that is no JSON of the Messages API: %s", e.Data)
	}
	switch cmp.Or(in.Type, e.Name) {
	case "message_start":
		a.usage.read(in.Message.Usage)
	case "content_block_start":
		err = a.begin(in.Index, in.Block)
	case "content_block_delta":
		err = a.delta(&in)
	case "content_block_stop":
		err = a.complete(in.Index)
	case "message_delta":
		a.usage.read(in.Usage)
		a.stop = cmp.Or(in.Delta.StopReason, a.stop)
		if in.Delta.Details != nil {
			a.why = in.Delta.Details.Explanation
		}
	case "message_stop":
		return true, a.end()
	case "error":
		return false, a.fault(e.Data)
	}
	return false, err
}

// piece yields a piece.
func (a *answer) piece(p host.Piece) error {
	if !a.yield(p, nil) {
		return errStopped
	}
	return nil
}

// grow counts what came.
func (a *answer) grow(n int) error {
	if a.size += n; a.size > maxAnswer {
		return a.model.at.Errorf("answers with more than %d MiB", maxAnswer>>20)
	}
	return nil
}

// word is a member of an object that is a text.
func word(fields map[string]json.RawMessage, name string) (s string) {
	_ = json.Unmarshal(fields[name], &s) // or empty
	return s
}

// begin begins a block.
func (a *answer) begin(index int, fields map[string]json.RawMessage) error {
	p := &part{kind: word(fields, "type"), fields: fields}
	for _, value := range fields {
		if err := a.grow(len(value) + 64); err != nil {
			return err
		}
	}
	a.blocks[index] = p
	switch p.kind {
	case "text":
		if said := word(fields, "text"); said != "" {
			return a.piece(host.Piece{Text: said})
		}
	case "thinking":
		p.text.WriteString(word(fields, "thinking"))
		p.sign.WriteString(word(fields, "signature"))
	}
	return nil
}

// delta adds to a block.
func (a *answer) delta(in *event) error {
	d := &in.Delta
	if err := a.grow(len(d.Text) + len(d.Thinking) + len(d.Signature) + len(d.JSON)); err != nil {
		return err
	}
	if d.Type == "text_delta" && d.Text != "" {
		return a.piece(host.Piece{Text: d.Text})
	}
	p := a.blocks[in.Index]
	if p == nil {
		return nil
	}
	switch d.Type {
	case "thinking_delta":
		p.text.WriteString(d.Thinking)
	case "signature_delta":
		p.sign.WriteString(d.Signature)
	case "input_json_delta":
		p.text.WriteString(d.JSON)
	}
	return nil
}

// complete yields a block that is complete.
func (a *answer) complete(index int) error {
	p := a.blocks[index]
	delete(a.blocks, index)
	switch {
	case p == nil:
		return nil
	case p.kind == "tool_use":
		return a.call(p)
	case p.kind == "thinking" && p.text.Len()+p.sign.Len() > 0:
		p.set("thinking", p.text.String())
		p.set("signature", p.sign.String())
	case p.kind != "redacted_thinking":
		return nil
	}
	data, err := unescaped(p.fields) // what is not known of it is kept, too
	if err != nil {
		return a.model.at.Errorf("sends reasoning that cannot be kept: %v", err)
	}
	return a.piece(host.Piece{Reasoning: &host.Reasoning{Provider: a.model.origin, Text: p.text.String(), Data: mcp.RawValue(data)}})
}

// set sets a member of the block.
func (p *part) set(name, value string) {
	p.fields[name], _ = unescaped(value) // a text
}

// call yields a call.
func (a *answer) call(p *part) error {
	input := bytes.TrimSpace(p.text.Bytes())
	if len(input) == 0 {
		input = p.fields["input"]
	}
	if len(input) == 0 || string(input) == "null" {
		input = []byte("{}")
	}
	a.calls = true
	id := word(p.fields, "id")
	if id == "" || a.ids[id] {
		id = unique(id, a.ids)
	}
	a.ids[id] = true
	return a.piece(host.Piece{Call: &mcp.ToolUseContent{ID: id, Name: word(p.fields, "name"), Input: mcp.RawValue(input)}})
}

// end yields what stands at the end of an answer.
func (a *answer) end() error {
	for _, index := range slices.Sorted(maps.Keys(a.blocks)) { // some servers do not say that a block is complete
		if err := a.complete(index); err != nil {
			return err
		}
	}
	stop, said := a.reason()
	if said != "" {
		if err := a.piece(host.Piece{Text: said}); err != nil {
			return err
		}
	}
	usage := a.usage.host(&a.model.info)
	if err := a.piece(host.Piece{Usage: &usage}); err != nil {
		return err
	}
	return a.piece(host.Piece{Stop: stop})
}

// reason is why the answer ended, and a text that says so where the reason does not. See
// https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons.
func (a *answer) reason() (host.StopReason, string) {
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded":
		return host.StopLength, ""
	case "stop_sequence":
		return host.StopSequence, ""
	case "refusal":
		return host.StopRefusal, a.why
	}
	known := a.stop == "" || a.stop == "end_turn" || a.stop == "tool_use"
	said := ""
	if !known {
		said = "[" + Provider + " ended the answer: " + a.stop + "]"
	}
	switch {
	case a.calls:
		return host.StopCalls, said
	case known:
		return host.StopEnd, ""
	}
	return host.StopOther, said
}

// fault is an error of the stream in plain words.
func (a *answer) fault(data []byte) error {
	fault := a.model.at.Fault(data)
	said := fault.Text
	fault.Advice = "try again later"
	switch fault.Type {
	case "overloaded_error":
		fault.Text = "is overloaded"
	case "rate_limit_error":
		fault.Text = "has had too many requests"
	case "timeout_error":
		fault.Text = "took too long"
	default:
		fault.Text = "failed"
	}
	if said != "" {
		fault.Text += ": " + said
	}
	return fault
}

// unescaped encodes JSON without escaping what HTML would need.
func unescaped(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
