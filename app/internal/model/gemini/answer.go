package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A chunk is a GenerateContentResponse, as far as it is read.
type chunk struct {
	Candidates     []candidate     `json:"candidates"`
	UsageMetadata  *usage          `json:"usageMetadata"`
	PromptFeedback *feedback       `json:"promptFeedback"`
	Error          json.RawMessage `json:"error"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []given `json:"parts"`
	} `json:"content"`
	FinishReason      string `json:"finishReason"`
	FinishMessage     string `json:"finishMessage"`
	ContinuationToken string `json:"continuationToken"`
}

// A given is a part that the model made.
type given struct {
	Text             string        `json:"text"`
	Thought          bool          `json:"thought"`
	ThoughtSignature string        `json:"thoughtSignature"`
	FunctionCall     *functionCall `json:"functionCall"`
	InlineData       *struct {
		MIMEType string `json:"mimeType"`
		Data     string `json:"data"`
	} `json:"inlineData"`
}

type feedback struct {
	BlockReason        string `json:"blockReason"`
	BlockReasonMessage string `json:"blockReasonMessage"`
}

type usage struct {
	Prompt     float64 `json:"promptTokenCount"`
	Cached     float64 `json:"cachedContentTokenCount"`
	Candidates float64 `json:"candidatesTokenCount"`
	ToolUse    float64 `json:"toolUsePromptTokenCount"`
	Thoughts   float64 `json:"thoughtsTokenCount"`
}

// Reasons why an answer ends.
const (
	finishStop         = "STOP"
	finishLength       = "MAX_TOKENS"
	finishContinuation = "CONTINUATION"
	finishUnspecified  = "FINISH_REASON_UNSPECIFIED"
)

// refusals are the reasons that are refusals of the model or of its provider, in words.
var refusals = map[string]string{
	"SAFETY":                   "its safety filter stopped the answer",
	"RECITATION":               "the answer was too close to a text of others",
	"LANGUAGE":                 "it does not speak the language",
	"BLOCKLIST":                "the answer had a forbidden word in it",
	"PROHIBITED_CONTENT":       "the answer would have had prohibited content in it",
	"SPII":                     "the answer would have had personal data in it",
	"IMAGE_SAFETY":             "its safety filter stopped an image",
	"IMAGE_PROHIBITED_CONTENT": "an image would have had prohibited content in it",
	"IMAGE_RECITATION":         "an image was too close to one of others",
}

// faults are the reasons that are failures, in words: there is no answer then.
var faults = map[string]string{
	"MALFORMED_FUNCTION_CALL":   "made a call that cannot be read",
	"UNEXPECTED_TOOL_CALL":      "made a call although it was given no tool",
	"TOO_MANY_TOOL_CALLS":       "made too many calls, one after the other",
	"MISSING_THOUGHT_SIGNATURE": "misses the signature of a thought in the conversation",
	"MALFORMED_RESPONSE":        "made an answer that cannot be read",
}

// An answer reads the chunks of one turn and yields its pieces.
type answer struct {
	model *Model
	yield func(host.Piece, error) bool

	thought  strings.Builder // that came until now
	thinking bool
	text     bool // there was some
	calls    int
	ids      map[string]bool
	held     int // bytes of thoughts and calls
	finish   string
	message  string // about the finish
	blocked  bool   // the request was
	token    string // to go on with
	before   host.Usage
	usage    host.Usage // of the request under way
	used     bool
}

func newAnswer(m *Model, r *host.Request, yield func(host.Piece, error) bool) *answer {
	return &answer{model: m, yield: yield, ids: make(map[string]bool)}
}

// event reads one event.
func (a *answer) event(data []byte) error {
	if string(bytes.TrimSpace(data)) == "[DONE]" { // of servers that speak like others too
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return a.fail(a.model.endpoint.Errorf("sends an event that cannot be read: %v", err))
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		fault := a.model.endpoint.Fault(data)
		fault.Text = "broke its answer off: " + fault.Text
		return a.fail(fault)
	}
	if c.UsageMetadata != nil {
		a.usage, a.used = c.UsageMetadata.usage(), true
	}
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" {
		a.finish, a.message, a.blocked = f.BlockReason, f.BlockReasonMessage, true
	}
	for i := range c.Candidates {
		if c.Candidates[i].Index != 0 {
			continue
		}
		if err := a.candidate(&c.Candidates[i]); err != nil {
			return err
		}
	}
	return nil
}

// fail is an error after what came before it.
func (a *answer) fail(err error) error {
	if stopped := a.flush(); stopped != nil {
		return stopped
	}
	return err
}

func (a *answer) candidate(c *candidate) error {
	for i := range c.Content.Parts {
		if err := a.part(&c.Content.Parts[i]); err != nil {
			return err
		}
	}
	if c.FinishReason != "" && c.FinishReason != finishUnspecified {
		a.finish, a.message = c.FinishReason, c.FinishMessage
	}
	if c.ContinuationToken != "" {
		a.token = c.ContinuationToken
	}
	return nil
}

// give yields a piece.
func (a *answer) give(p host.Piece) error {
	if !a.yield(p, nil) {
		return errStopped
	}
	return nil
}

// keep yields reasoning.
func (a *answer) keep(text string, k kept) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return a.give(host.Piece{Reasoning: &host.Reasoning{Provider: a.model.origin, Text: text, Data: data}})
}

// maxHeld bounds the thoughts and calls of a turn, in bytes.
const maxHeld = 16 << 20

// hold counts what is held of a turn.
func (a *answer) hold(p *given) error {
	if p.Thought {
		a.held += len(p.Text)
	}
	if c := p.FunctionCall; c != nil {
		const perCall = 64
		a.held += perCall + len(c.ID) + len(c.Name) + len(c.Args)
	}
	if a.held > maxHeld {
		return a.model.endpoint.Errorf("sent more than %d MiB of thoughts and calls in one turn", maxHeld>>20)
	}
	return nil
}

func (a *answer) part(p *given) error {
	if err := a.hold(p); err != nil {
		return err
	}
	if p.Thought && p.FunctionCall == nil {
		a.thinking = true
		a.thought.WriteString(p.Text)
		if p.ThoughtSignature == "" {
			return nil
		}
		return a.endThought(p.ThoughtSignature)
	}
	if p.FunctionCall == nil && p.InlineData == nil && p.Text == "" && p.ThoughtSignature == "" {
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	if p.FunctionCall != nil {
		return a.call(p)
	}
	text := p.Text
	if p.InlineData != nil {
		text = fmt.Sprintf("[%s, %d bytes, which is not shown]", p.InlineData.MIMEType, len(p.InlineData.Data)/4*3)
	}
	if text != "" {
		a.text = true
		if err := a.give(host.Piece{Text: text}); err != nil {
			return err
		}
	}
	if p.ThoughtSignature == "" {
		return nil
	}
	return a.keep("", kept{Kind: keptText, Signature: p.ThoughtSignature, Bytes: len(p.Text)})
}

// flush yields the thought that came until now.
func (a *answer) flush() error {
	if !a.thinking {
		return nil
	}
	return a.endThought("")
}

func (a *answer) endThought(signature string) error {
	text := a.thought.String()
	a.thought.Reset()
	a.thinking = false
	if text == "" && signature == "" {
		return nil
	}
	return a.keep(text, kept{Kind: keptThought, Signature: signature})
}

// call yields a call, after what must go back with it.
func (a *answer) call(p *given) error {
	c := p.FunctionCall
	if p.ThoughtSignature != "" || c.ID != "" {
		if err := a.keep("", kept{Kind: keptCall, Signature: p.ThoughtSignature, ID: c.ID}); err != nil {
			return err
		}
	}
	a.calls++
	id := c.ID
	for n := a.calls; id == "" || a.ids[id]; n++ {
		id = fmt.Sprintf("call-%d", n)
	}
	a.ids[id] = true
	input := mcp.RawValue("{}")
	if len(c.Args) > 0 && string(c.Args) != "null" {
		input = mcp.RawValue(c.Args)
	}
	return a.give(host.Piece{Call: &mcp.ToolUseContent{ID: id, Name: c.Name, Input: input}})
}

// close ends the stream of a request, which must have said why it ends.
func (a *answer) close() error {
	if err := a.flush(); err != nil {
		return err
	}
	if a.finish == "" {
		return a.model.endpoint.Cut()
	}
	return nil
}

// goesOn reports whether the answer goes on after another request.
func (a *answer) goesOn() bool { return a.finish == finishContinuation && a.token != "" }

// next begins the next request of the answer, and returns its token.
func (a *answer) next() string {
	token := a.token
	a.before, a.usage = a.sum(), host.Usage{}
	a.finish, a.message, a.token = "", "", ""
	return token
}

// sum is the usage of all requests of the answer.
func (a *answer) sum() host.Usage {
	return host.Usage{
		Input: a.before.Input + a.usage.Input, Output: a.before.Output + a.usage.Output,
		CacheRead: a.before.CacheRead + a.usage.CacheRead,
	}
}

// end yields usage and the reason of the end.
func (a *answer) end() error {
	stop, words := a.reason()
	if words != "" {
		if a.text {
			words = "\n" + words
		}
		if err := a.give(host.Piece{Text: words}); err != nil {
			return err
		}
	}
	if a.used {
		u := a.sum()
		if err := a.give(host.Piece{Usage: &u}); err != nil {
			return err
		}
	}
	if text, failed := faults[a.finish]; failed && !a.blocked {
		if a.message != "" {
			text += ": " + a.message
		}
		return a.model.endpoint.Errorf("%s (%s); try again, or another model", text, a.finish)
	}
	return a.give(host.Piece{Stop: stop})
}

// reason is why the answer ended, and what to say of it.
func (a *answer) reason() (host.StopReason, string) {
	said := a.finish
	if a.message != "" {
		said += ": " + a.message
	}
	refusal, refused := refusals[a.finish]
	_, failed := faults[a.finish]
	switch {
	case a.blocked:
		return host.StopRefusal, "[" + Provider + " refuses to answer: what it was asked is blocked (" + said + ")]"
	case refused:
		return host.StopRefusal, "[" + Provider + " refuses to answer: " + refusal + " (" + said + ")]"
	case a.finish == finishLength, a.finish == finishContinuation:
		return host.StopLength, ""
	case failed:
		return host.StopEnd, ""
	case a.finish != finishStop:
		return host.StopOther, "[" + Provider + " ended its answer (" + said + ")]"
	case a.calls > 0:
		return host.StopCalls, ""
	}
	return host.StopEnd, ""
}

// usage is what a request has cost. What is missing or negative is 0.
func (u *usage) usage() host.Usage {
	input := count(u.Prompt) + count(u.ToolUse)
	return host.Usage{
		Input: input, Output: count(u.Candidates) + count(u.Thoughts),
		CacheRead: min(count(u.Cached), input),
	}
}

// maxCount is more tokens than a request has.
const maxCount = 1 << 40

func count(n float64) int64 { return int64(min(max(n, 0), maxCount)) }
