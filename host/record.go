package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A Record is one entry of the log of a session: numbered, written once, never
// changed. It must not be written to.
type Record struct {
	// N is the number of the record in its session, from 1, without gaps. A fork
	// goes on after the record of its parent at which it began. 0 marks what is
	// only shown while it lasts, and is in no store: [ProgressRecord].
	N int64
	// Time is when it was written.
	Time time.Time
	// Body says what happened: one of the pointer types below.
	Body Body
}

// A Body is what a record says. The types are those of this package.
type Body interface {
	// Kind names the type in stores and in JSON.
	Kind() string
}

// A UserRecord is what the person said, or a prompt or resource that they put
// into the conversation.
type UserRecord struct {
	Content mcp.Contents `json:"content"`
	// Server and Name are set if the content is a stranger's: a prompt or a
	// resource of a server.
	Server string `json:"server,omitzero"`
	Name   string `json:"name,omitzero"`
	// ByPage is the URI of the server's page that said it, or empty.
	ByPage string `json:"byPage,omitzero"`
	// Role is the role of a prompt's message; default user.
	Role mcp.Role `json:"role,omitzero"`
}

// A TurnRecord begins a turn of the model.
type TurnRecord struct {
	// Step counts the turns of a run from 1.
	Step int `json:"step"`
	// Model is the model's name; Offline says that it is the built-in planner.
	Model   string `json:"model"`
	Offline bool   `json:"offline,omitzero"`
}

// A TextRecord is the next part of the model's text.
type TextRecord struct {
	Text string `json:"text"`
}

// A ReasoningRecord is a block of the model's reasoning.
type ReasoningRecord struct {
	Reasoning
}

// A CallRecord is a call that the model, or a page of a server, asked for. Nothing has
// been sent.
type CallRecord struct {
	// ID is the call's in the session: the model's own ids may come twice.
	ID string `json:"id"`
	// ModelName is what the model called; Server and Tool are whose tool that is,
	// and empty if there is none. A call of a page has no ModelName, and no model is given
	// its result.
	ModelName string `json:"modelName"`
	Server    string `json:"server,omitzero"`
	Tool      string `json:"tool,omitzero"`
	// ByPage is the URI of the server's page that asked for it; empty: the model did.
	ByPage string `json:"byPage,omitzero"`
	// Arguments are the model's, if they are JSON; else Text is what it wrote.
	Arguments mcp.RawValue `json:"arguments,omitzero"`
	Text      string       `json:"text,omitzero"`
}

// A TurnEndRecord ends a turn of the model.
type TurnEndRecord struct {
	Stop  StopReason `json:"stop"`
	Usage Usage      `json:"usage,omitzero"`
}

// A UsageRecord says what a model has cost beside the turns of the conversation.
type UsageRecord struct {
	// For is what it was used for: "summary", or the server that asked.
	For   string `json:"for"`
	Usage Usage  `json:"usage"`
}

// A StartRecord says that a call is sent to its server now.
type StartRecord struct {
	Call string `json:"call"`
	// Arguments are what is sent, byte for byte.
	Arguments mcp.RawValue `json:"arguments"`
	// Edited says that they are the person's, not the model's.
	Edited bool `json:"edited,omitzero"`
	// Why says why the call may be made.
	Why string `json:"why"`
}

// An Outcome says how a call or a run ended.
type Outcome string

// The outcomes of calls and runs.
const (
	// OutcomeDone is the end as it should be; a tool may still say that it failed.
	OutcomeDone Outcome = "done"
	// OutcomeFailed says that there is no result, but an error.
	OutcomeFailed Outcome = "failed"
	// OutcomeRefused says that policy or the person refused; nothing was done.
	OutcomeRefused Outcome = "refused"
	// OutcomeNotRun says that nothing was done for another reason.
	OutcomeNotRun Outcome = "not-run"
	// OutcomeCancelled says that the person cancelled; it may have had effects.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeInterrupted says that the host ended in the middle; it may have had
	// effects.
	OutcomeInterrupted Outcome = "interrupted"
)

// A ResultRecord says how a call ended. Every call has one in the end.
type ResultRecord struct {
	Call    string  `json:"call"`
	Outcome Outcome `json:"outcome"`
	// Content is what the model is given.
	Content mcp.Contents `json:"content"`
	// Structured is the result as JSON, if the tool gave it and it is not longer than
	// what the model is given.
	Structured mcp.RawValue `json:"structuredContent,omitzero"`
	// Failed says that the tool reported a failure.
	Failed bool `json:"failed,omitzero"`
	// Why says, for an outcome that is not OutcomeDone, what stood in the way.
	Why string `json:"why,omitzero"`
	// Whole is the name under which the store has the whole result, if it is
	// longer than what the model is given, and Size its bytes.
	Whole string `json:"whole,omitzero"`
	Size  int64  `json:"size,omitzero"`
	// Found are the model names of tools that a search of the model found.
	Found []string `json:"found,omitzero"`
	// Millis is how long the call took.
	Millis int64 `json:"millis,omitzero"`
}

// A QuestionRecord asks the person.
type QuestionRecord struct {
	Question
}

// An AnswerRecord settles a question.
type AnswerRecord struct {
	Question string `json:"question"`
	Answer
	// Withdrawn says why nobody's answer is awaited any more; nothing was done.
	Withdrawn string `json:"withdrawn,omitzero"`
	// Grant is what the person agreed to for longer than once.
	Grant *Grant `json:"grant,omitzero"`
}

// A NoticeRecord tells the person something: that a server is down, what a
// server logs, that a conversation has become sensitive.
type NoticeRecord struct {
	Level mcp.LogLevel `json:"level"`
	// Server is whom it is about, or empty.
	Server string `json:"server,omitzero"`
	// Text is the notice. It is a stranger's if Untrusted is set.
	Text      string `json:"text"`
	Untrusted bool   `json:"untrusted,omitzero"`
}

// A LabelRecord says that the conversation has got labels, from what.
type LabelRecord struct {
	Labels []policy.Label `json:"labels"`
	Server string         `json:"server"`
	// Name is the tool, resource, prompt or skill.
	Name string `json:"name,omitzero"`
}

// A CompactionRecord says that the model is given a summary in the place of the
// records up to Through. The records stay.
type CompactionRecord struct {
	Through int64  `json:"through"`
	Summary string `json:"summary"`
}

// A RunEndRecord ends what a message of the person began.
type RunEndRecord struct {
	Outcome Outcome `json:"outcome"`
	// Why says, for an outcome that is not OutcomeDone, what stood in the way.
	Why string `json:"why,omitzero"`
	// Steps counts the turns of the model, Calls the calls that were sent, or could not
	// be because of a mistake in them or of the server, Failed those of them that failed,
	// Refused the calls that policy or the person refused.
	Steps   int `json:"steps,omitzero"`
	Calls   int `json:"calls,omitzero"`
	Failed  int `json:"failed,omitzero"`
	Refused int `json:"refused,omitzero"`
}

// A ProgressRecord is a server's word on how far a call is. It is in no store,
// and only the newest of a call is sure to be seen. Total is 0 if unknown.
type ProgressRecord struct {
	Call     string  `json:"call"`
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitzero"`
	Message  string  `json:"message,omitzero"`
}

// Kind returns "user".
func (*UserRecord) Kind() string { return "user" }

// Kind returns "turn".
func (*TurnRecord) Kind() string { return "turn" }

// Kind returns "text".
func (*TextRecord) Kind() string { return "text" }

// Kind returns "reasoning".
func (*ReasoningRecord) Kind() string { return "reasoning" }

// Kind returns "call".
func (*CallRecord) Kind() string { return "call" }

// Kind returns "turn-end".
func (*TurnEndRecord) Kind() string { return "turn-end" }

// Kind returns "usage".
func (*UsageRecord) Kind() string { return "usage" }

// Kind returns "start".
func (*StartRecord) Kind() string { return "start" }

// Kind returns "result".
func (*ResultRecord) Kind() string { return "result" }

// Kind returns "question".
func (*QuestionRecord) Kind() string { return "question" }

// Kind returns "answer".
func (*AnswerRecord) Kind() string { return "answer" }

// Kind returns "notice".
func (*NoticeRecord) Kind() string { return "notice" }

// Kind returns "label".
func (*LabelRecord) Kind() string { return "label" }

// Kind returns "compaction".
func (*CompactionRecord) Kind() string { return "compaction" }

// Kind returns "end".
func (*RunEndRecord) Kind() string { return "end" }

// Kind returns "progress".
func (*ProgressRecord) Kind() string { return "progress" }

// bodies makes an empty body of each kind that is stored.
var bodies = map[string]func() Body{
	"user":       func() Body { return new(UserRecord) },
	"turn":       func() Body { return new(TurnRecord) },
	"text":       func() Body { return new(TextRecord) },
	"reasoning":  func() Body { return new(ReasoningRecord) },
	"call":       func() Body { return new(CallRecord) },
	"turn-end":   func() Body { return new(TurnEndRecord) },
	"usage":      func() Body { return new(UsageRecord) },
	"start":      func() Body { return new(StartRecord) },
	"result":     func() Body { return new(ResultRecord) },
	"page":       func() Body { return new(PageRecord) },
	"question":   func() Body { return new(QuestionRecord) },
	"answer":     func() Body { return new(AnswerRecord) },
	"notice":     func() Body { return new(NoticeRecord) },
	"label":      func() Body { return new(LabelRecord) },
	"compaction": func() Body { return new(CompactionRecord) },
	"skill":      func() Body { return new(SkillRecord) },
	"end":        func() Body { return new(RunEndRecord) },
}

// ErrNewer says that a session has records which only a newer version of this
// package knows.
var ErrNewer = errors.New("the session was written by a newer version of the program")

// EncodeBody returns a body as JSON, for stores and exports.
func EncodeBody(b Body) (mcp.RawValue, error) {
	raw, err := wire.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("record of kind %s: %w", b.Kind(), err)
	}
	return raw, nil
}

// DecodeBody reads what [EncodeBody] wrote. The error is an [ErrNewer] if the
// kind is unknown.
func DecodeBody(kind string, raw mcp.RawValue) (Body, error) {
	make, ok := bodies[kind]
	if !ok {
		return nil, fmt.Errorf("record of kind %q: %w", kind, ErrNewer)
	}
	b := make()
	if err := wire.Decode(raw, b); err != nil {
		return nil, fmt.Errorf("record of kind %s: %w", kind, err)
	}
	return b, nil
}

// A Question is what the person is asked. All of it but Server and Origin is a
// stranger's text: a face shows it through [Escape], marked as untrusted.
type Question struct {
	// ID names the question in its session.
	ID string `json:"id"`
	// Kind is what is asked about.
	Kind QuestionKind `json:"kind"`
	// Server is the name of the server in this host, which the person gave,
	// and Origin where it comes from: a command line, a configuration file.
	Server string `json:"server"`
	Origin string `json:"origin,omitzero"`
	// Call is the call that it belongs to, or empty.
	Call string `json:"call,omitzero"`
	// ByPage is the URI of the server's page that asks for it; empty: no page does.
	ByPage string `json:"byPage,omitzero"`
	// Name is what is to be done; for a tool its own name, for a page its URI.
	Name string `json:"name,omitzero"`
	// Tool is the definition of the tool, or nil for other kinds. Its title,
	// description and annotations are claims of the server.
	Tool *mcp.Tool `json:"tool,omitzero"`
	// Arguments are what would be sent to the tool, byte for byte.
	Arguments mcp.RawValue `json:"arguments,omitzero"`
	// Batch are the calls that are asked about in QuestionCalls, at most 16; Call and
	// Arguments are empty then.
	Batch []BatchedCall `json:"batch,omitzero"`
	// Secrets are places in what is shown that look like secrets.
	Secrets []Secret `json:"secrets,omitzero"`
	// Changes are how the definition differs from what the person agreed to.
	Changes []Change `json:"changes,omitzero"`
	// Warnings say in words what is suspicious.
	Warnings []string `json:"warnings,omitzero"`
	// Sample is what a server wants to ask the model, in QuestionSample.
	Sample *mcp.CreateMessageParams `json:"sample,omitzero"`
	// Models are the models that may be chosen for it, the suggested one first.
	Models []string `json:"models,omitzero"`
	// Sampled is the model's answer that would go to the server, in QuestionSampled.
	Sampled *mcp.CreateMessageResult `json:"sampled,omitzero"`
	// Form is the form to fill in, or the page to visit; Page is what a person
	// should know about its address, nil for a form.
	Form *mcp.ElicitParams  `json:"form,omitzero"`
	Page *client.ElicitPage `json:"page,omitzero"`
	// Content is what a page wants to say to the model, in QuestionMessage.
	Content mcp.Contents `json:"content,omitzero"`
	// Roots are the directories that may be told to the server.
	Roots []mcp.Root `json:"roots,omitzero"`
	// SignIn is what the person would sign in for, in QuestionSignIn.
	SignIn *SignIn `json:"signIn,omitzero"`
	// Skill is the skill that would be loaded, in QuestionSkill.
	Skill *SkillEntry `json:"skill,omitzero"`
	// Why says why the person is asked.
	Why string `json:"why"`
	// Offers are the grants that an answer may choose, widest last. Without any,
	// the answer is for this time only.
	Offers []Offer `json:"offers,omitzero"`
}

// A BatchedCall is one of several calls of a tool that are asked about together.
type BatchedCall struct {
	// Call is its id.
	Call string `json:"call"`
	// Arguments are what would be sent to the tool, byte for byte.
	Arguments mcp.RawValue `json:"arguments"`
	// Secrets are places in the arguments that look like secrets.
	Secrets []Secret `json:"secrets,omitzero"`
}

// A QuestionKind is what the person is asked about.
type QuestionKind string

// The kinds of questions.
const (
	// QuestionCall asks whether a tool may be called.
	QuestionCall QuestionKind = "call"
	// QuestionCalls asks whether a tool may be called several times, with the arguments
	// of Question.Batch. An answer is for all of them, or [Each].
	QuestionCalls QuestionKind = "calls"
	// QuestionChange asks whether a tool, or a server's instructions, may be used
	// although the definition has changed.
	QuestionChange QuestionKind = "change"
	// QuestionSample asks whether a server may use the model, and QuestionSampled
	// whether the model's answer may go to the server.
	QuestionSample  QuestionKind = "sample"
	QuestionSampled QuestionKind = "sampled"
	// QuestionForm and QuestionPage are a server's own questions.
	QuestionForm QuestionKind = "form"
	QuestionPage QuestionKind = "page"
	// QuestionApp asks whether a page of a server may be shown, and QuestionMessage
	// whether one that is shown may say something to the model.
	QuestionApp     QuestionKind = "app"
	QuestionMessage QuestionKind = "message"
	// QuestionRoots asks which directories a server may be told of.
	QuestionRoots QuestionKind = "roots"
	// QuestionUse asks whether a prompt or a resource may be put into the
	// conversation, or a server be asked for a skill that it does not list.
	QuestionUse QuestionKind = "use"
	// QuestionSkill asks whether a skill may be loaded, also when it has changed since
	// the person agreed to it: then there are Changes.
	QuestionSkill QuestionKind = "skill"
	// QuestionSignIn asks whether the person wants to sign in to a server; see
	// [AskSignIn].
	QuestionSignIn QuestionKind = "sign-in"
)

// An Answer is what the person says to a question.
type Answer struct {
	// Action is what is to be done. The zero value refuses.
	Action Action `json:"action"`
	// Face is where the answer was given, for the other faces: "terminal", ...
	Face string `json:"face,omitzero"`
	// Offer is the index of the chosen grant plus 1; 0 is this time only.
	Offer int `json:"offer,omitzero"`
	// Minutes limits the chosen grant; 0 is until it is revoked.
	Minutes int `json:"minutes,omitzero"`
	// Edited takes the place of what was shown: the arguments of a call, the
	// params of a QuestionSample or the result of a QuestionSampled, as JSON.
	Edited mcp.RawValue `json:"edited,omitzero"`
	// Model is the model chosen in a QuestionSample; default the suggested one.
	Model string `json:"model,omitzero"`
	// Values are what a form was filled in with, by the names of its fields.
	Values map[string]mcp.RawValue `json:"values,omitzero"`
	// Roots are the URIs of the directories that the server is told of.
	Roots []string `json:"roots,omitzero"`
	// Reason is what a refusal tells the model, or empty.
	Reason string `json:"reason,omitzero"`
}

// An Action is what a person decides.
type Action string

// The actions of answers.
const (
	// Refuse does not do it. A server that asked is told that the person declined.
	Refuse Action = "refuse"
	// Approve does it.
	Approve Action = "approve"
	// Dismiss closes a server's own question without an answer; elsewhere it is as
	// Refuse.
	Dismiss Action = "dismiss"
	// Each asks about the calls of a QuestionCalls one by one.
	Each Action = "each"
)
