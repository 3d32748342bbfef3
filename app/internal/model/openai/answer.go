package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/model/provider"
	"github.com/parley-mcp/parley/host"
)

// A chunk is an event of the stream.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Choices []choice        `json:"choices"`
	Usage   *tokens         `json:"usage"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
	// StopReason is vLLM's: the text, or the number of the token, that stopped the answer.
	StopReason json.RawMessage `json:"stop_reason"`
}

type delta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   string          `json:"refusal"`
	ToolCalls []callDelta     `json:"tool_calls"`
	thought
}

// tokens are the usage of a turn.
type tokens struct {
	Prompt     float64 `json:"prompt_tokens"`
	Completion float64 `json:"completion_tokens"`
	Details    struct {
		Cached  float64 `json:"cached_tokens"`
		Written float64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Total     float64 `json:"total_tokens"`
	Completed struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	// CacheHit is DeepSeek's word for cached_tokens.
	CacheHit float64 `json:"prompt_cache_hit_tokens"`
	// Cost is in dollars (OpenRouter, https://openrouter.ai/docs/use-cases/usage-accounting).
	Cost float64 `json:"cost"`
}

func (t *tokens) usage() *host.Usage {
	output := t.Completion
	if reasoning := t.Completed.Reasoning; reasoning > 0 && t.Total == t.Prompt+output+reasoning {
		output += reasoning // xAI's completion_tokens are without them
	}
	return &host.Usage{
		Input: count(t.Prompt), Output: count(output),
		CacheRead: count(max(t.Details.Cached, t.CacheHit)), CacheWrite: count(t.Details.Written),
		Cost: max(t.Cost, 0),
	}
}

// count is a number of tokens as one that can be: nothing if it is negative.
func count(n float64) int64 { return int64(min(max(n, 0), math.MaxInt32)) }

// decode reads JSON. Members with a value of another type than is known are left empty.
func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// maxHeld bounds what is held of a turn until it is whole (reasoning and calls), in bytes.
const maxHeld = 16 << 20

// maxCalls bounds the calls of a turn: each part of a call is looked for among them.
const maxCalls = 1024

// An answer reads the stream of one turn.
type answer struct {
	endpoint *provider.Endpoint
	origin   string
	stops    []string
	yield    func(host.Piece, error) bool

	thinking thinking
	thought  bool // a thought was yielded
	calls    calls
	tokens   *tokens
	finish   string // why it ended, as the provider says
	sequence bool   // one of stops ended it
	refused  bool
	said     bool // there was text
	done     bool // the stream has ended as it should
	held     int  // bytes
}

// event takes an event in, and tells whether it was the last one.
func (a *answer) event(data []byte) (last bool, err error) {
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		a.done = true
		return true, nil
	}
	var c chunk
	if decode(data, &c) != nil {
		return false, a.endpoint.Errorf("sent an event that is no JSON, or too deep: %s", data)
	}
	if c.Object == "error" || len(c.Error) > 0 && !slices.Contains(nothing, string(c.Error)) {
		return false, a.fault(data)
	}
	if c.Usage != nil {
		a.tokens = c.Usage
	}
	for i := range c.Choices {
		if c.Choices[i].Index == 0 { // one was asked for
			if err := a.choice(&c.Choices[i]); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// nothing are values of a member "error" that say that there is none.
var nothing = []string{"null", `""`, "{}", "false"}

// fault is the error that a stream ends with.
func (a *answer) fault(data []byte) error {
	fault := a.endpoint.Fault(data)
	if fault.Text == "" {
		return a.endpoint.Errorf("stopped with an error, and did not say which")
	}
	fault.Text = "stopped with an error: " + fault.Text
	return fault
}

// choice takes a part of the answer in.
func (a *answer) choice(c *choice) error {
	d := &c.Delta
	text := contentText(d.Content)
	a.hold(d)
	a.thinking.add(&d.thought)
	if text != "" || d.Refusal != "" || len(d.ToolCalls) > 0 {
		if err := a.think(); err != nil {
			return err
		}
	}
	for _, t := range []string{text, d.Refusal} {
		if t == "" {
			continue
		}
		a.said = true
		if err := a.give(host.Piece{Text: t}); err != nil {
			return err
		}
	}
	a.refused = a.refused || d.Refusal != ""
	for i := range d.ToolCalls {
		if a.calls.add(&d.ToolCalls[i]); len(a.calls.list) > maxCalls {
			return a.endpoint.Errorf("sent more than %d calls in one turn", maxCalls)
		}
	}
	if a.held > maxHeld {
		return a.endpoint.Errorf("sent more than %d MiB of reasoning and calls in one turn", maxHeld>>20)
	}
	if c.FinishReason != "" {
		a.finish = c.FinishReason
	}
	var stopped string
	if json.Unmarshal(c.StopReason, &stopped) == nil && slices.Contains(a.stops, stopped) {
		a.sequence = true
	}
	return nil
}

// hold counts what is held.
func (a *answer) hold(d *delta) {
	for _, text := range []*string{d.Reasoning, d.ReasoningContent} {
		if text != nil {
			a.held += len(*text)
		}
	}
	for _, raw := range d.ReasoningDetails {
		a.held += len(raw)
	}
	const perCall = 64
	for i := range d.ToolCalls {
		c := &d.ToolCalls[i]
		a.held += perCall + len(c.ID) + len(c.Function.Name) + len(c.Function.Arguments)
	}
}

// contentText is the text of content: a string, or a list of parts as Mistral sends them.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = decode(raw, &parts) // what there is
	for _, p := range parts {
		if p.Type == partText {
			text += p.Text
		}
	}
	return text
}

// give yields a piece.
func (a *answer) give(p host.Piece) error {
	if !a.yield(p, nil) {
		return errStopped
	}
	return nil
}

// think yields what was thought until now.
func (a *answer) think() error {
	t := a.thinking.whole()
	text := a.thinking.text()
	if text == "" && len(t.ReasoningDetails) == 0 {
		// DeepSeek wants an empty thought back, too, if there are calls. It says nothing.
		if t.ReasoningContent == nil || a.thought || len(a.calls.list) == 0 {
			return nil
		}
	}
	a.thinking, a.thought = thinking{}, true
	return a.give(host.Piece{Reasoning: t.block(a.origin, text)})
}

// end yields what waits for the end: the rest of the reasoning, calls, usage, and why the
// turn ended.
func (a *answer) end() error {
	if a.finish == "" && !a.done {
		return a.endpoint.Cut()
	}
	if err := a.think(); err != nil {
		return err
	}
	reason, err := a.stop()
	if err != nil {
		return err
	}
	for _, c := range a.calls.list {
		if err := a.give(host.Piece{Call: c.use(&a.calls)}); err != nil {
			return err
		}
	}
	if a.tokens != nil {
		if err := a.give(host.Piece{Usage: a.tokens.usage()}); err != nil {
			return err
		}
	}
	return a.give(host.Piece{Stop: reason})
}

// reasons are the words for why a turn ended, in lower case: OpenAI's, and those of servers that speak
// its protocol.
var reasons = map[string]host.StopReason{
	"":               host.StopEnd, // with [DONE]
	"stop":           host.StopEnd,
	"eos":            host.StopEnd, // Together
	"eos_token":      host.StopEnd, // Text Generation Inference
	"end_turn":       host.StopEnd, // gateways to Anthropic
	"complete":       host.StopEnd, // Cohere
	"stop_sequence":  host.StopSequence,
	"length":         host.StopLength,
	"max_tokens":     host.StopLength,
	"model_length":   host.StopLength, // Mistral
	"tool_calls":     host.StopCalls,
	"function_call":  host.StopCalls,
	"content_filter": host.StopRefusal,
	"safety":         host.StopRefusal, // gateways to Gemini
	"sensitive":      host.StopRefusal, // Z.ai
}

// failures are the words with which a turn ends that is not whole.
var failures = []string{
	"error",                        // OpenRouter
	"abort",                        // vLLM
	"insufficient_system_resource", // DeepSeek
	"network_error",                // Z.ai
}

// stop says why the turn ended. A word that is not known is shown if the model said nothing.
func (a *answer) stop() (host.StopReason, error) {
	finish := strings.ToLower(a.finish)
	if slices.Contains(failures, finish) {
		return "", a.endpoint.Errorf("broke the answer off, and gave as the reason: %s", a.finish)
	}
	reason, known := reasons[finish]
	switch {
	case a.refused:
		return host.StopRefusal, nil
	case a.sequence:
		return host.StopSequence, nil
	case !known:
		reason = host.StopOther
		if !a.said && len(a.calls.list) == 0 {
			text := a.endpoint.Errorf("ended for the reason %q, and said nothing", a.finish) // no error, but as plain
			return reason, a.give(host.Piece{Text: "[" + text.Error() + "]"})
		}
	}
	switch {
	case (reason == host.StopEnd || reason == host.StopOther) && len(a.calls.list) > 0:
		return host.StopCalls, nil // several servers say "stop"
	case reason == host.StopCalls && len(a.calls.list) == 0:
		return host.StopEnd, nil
	}
	return reason, nil
}
