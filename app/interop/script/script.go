// Package script says what every pair of client and server goes through, so
// that all pairs can be compared: what each server offers, what each client
// does with it, and what must come out.
//
// Each server offers the tools, resources and the prompt that
// the constants name. Each client goes through the steps in the
// order of the fields of Report and writes down what it saw. The peers in
// other languages follow the same script, in peers/script.mjs.
package script

import (
	"slices"
	"strings"
)

// Server is the name that each server gives itself.
const Server = "interop"

// PageSize is how many items a page of a list has, where a server has pages.
const PageSize = 4

// The tools that each server offers.
const (
	// Add gives the sum of a and b as structured content.
	Add = "add"
	// AskModel asks the client's model Prompt, and gives model and answer.
	AskModel = "ask-model"
	// AskPerson asks the two questions, and gives a greeting.
	AskPerson = "ask-person"
	// Echo gives its message back.
	Echo = "echo"
	// Fail fails with its reason.
	Fail = "fail"
	// Grow adds the tool Grown.
	Grow = "grow"
	// Hang reports progress once, and waits until it is cancelled.
	Hang = "hang"
	// Steps reports progress, from 1 to its count.
	Steps = "steps"
	// Stopped waits until a call of Hang has been cancelled.
	Stopped = "stopped"
	// Touch says that the resource Counter has changed.
	Touch = "touch"
	// Grown is there once Grow was called.
	Grown = "grown"
)

// Fillers are tools that make the list longer than a page.
var Fillers = []string{"filler-1", "filler-2", "filler-3"}

// The other things that each server offers.
const (
	// Greeting is a resource with the text GreetingText.
	Greeting     = "test://greeting"
	GreetingText = "hello, world"
	// Counter is a resource to subscribe to, with the text CounterText.
	Counter     = "test://counter"
	CounterText = "0"
	// Items is a resource template; the text of an item is ItemText and its id.
	Items    = "test://items/{id}"
	Item     = "test://items/7"
	ItemText = "item "
	// Missing is no resource.
	Missing = "test://missing"
	// Review is a prompt with the argument Language, which completes to
	// one of Languages.
	Review   = "review"
	Language = "language"
	// Schema is what both questions of AskPerson ask for: one text.
	Schema = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`
	// WhoQuestion and TeamQuestion are the questions of AskPerson.
	WhoQuestion  = "Who are you?"
	TeamQuestion = "Which team?"
	// Prompt is what AskModel asks.
	Prompt = "Say hi."
)

// Languages are what Language completes to.
var Languages = []string{"c", "go", "groovy", "java"}

// Complete are the Languages that begin with typed.
func Complete(typed string) []string {
	return slices.DeleteFunc(slices.Clone(Languages), func(s string) bool { return !strings.HasPrefix(s, typed) })
}

// ReviewText is the text of the prompt Review.
func ReviewText(language string) string { return "Review this " + language + " code." }

// Hello is what AskPerson gives.
func Hello(who, team string) string { return "hello, " + who + " of " + team }

// What each client does and answers.
const (
	// Model and Said are what the client's model is called and says.
	Model = "test-model"
	Said  = "hi"
	// StepCount is how many steps it asks Steps for.
	StepCount = 5
	// Typed is what it wants completed.
	Typed = "g"
)

// Answers are what the person behind each client answers.
var Answers = map[string]string{WhoQuestion: "Ada", TeamQuestion: "Blue"}

// A Report is what a client saw. A field of a step that a client or a revision
// does not have is left at its zero value.
type Report struct {
	// Version is the revision that was agreed on, Server the server's name.
	Version string `json:"version"`
	Server  string `json:"server"`
	// Tools are the names of all tools, of all pages, sorted.
	Tools []string `json:"tools"`
	// Echo is the text of Echo, Sum the structured sum of Add, Failure the
	// text of Fail, whose result says that it is an error.
	Echo    string  `json:"echo"`
	Sum     float64 `json:"sum"`
	Failure string  `json:"failure"`
	// Progress are the values that Steps reported, in order.
	Progress []float64 `json:"progress"`
	// Greeting and Item are texts of resources; Missing is the code of the
	// error for Missing.
	Greeting string `json:"greeting"`
	Item     string `json:"item"`
	Missing  int64  `json:"missing"`
	// Prompt is the text of Review, Completion what was suggested for Typed.
	Prompt     string   `json:"prompt"`
	Completion []string `json:"completion"`
	// Questions are what the person was asked, sorted, and Hello what came of it.
	Questions []string `json:"questions"`
	Hello     string   `json:"hello"`
	// Sampled is what the model was asked, Model what came of it.
	Sampled string `json:"sampled"`
	Model   string `json:"model"`
	// Updated is the resource that changed after Touch.
	Updated string `json:"updated"`
	// Grown is the tool that was there after the notice that the list changed.
	Grown string `json:"grown"`
	// Stopped is what Stopped said after a call of Hang was cancelled.
	Stopped string `json:"stopped"`
	// Errors are what went wrong, each with its step.
	Errors []string `json:"errors"`
}

// The steps that a pair may have to do without.
const (
	StepProgress  = "progress"
	StepQuestions = "questions"
	StepModel     = "model"
	StepSubscribe = "subscribe"
	StepGrow      = "grow"
	StepCancel    = "cancel"
)

// Want is what must come out of a pair that has all that the revision has, but
// for the steps that are left out.
func Want(version string, skip ...string) Report {
	r := Report{
		Version:    version,
		Server:     Server,
		Tools:      append([]string{Add, AskModel, AskPerson, Echo, Fail, Grow, Hang, Steps, Stopped, Touch}, Fillers...),
		Echo:       EchoText,
		Sum:        5,
		Failure:    FailText,
		Greeting:   GreetingText,
		Item:       ItemText + "7",
		Missing:    -32002,
		Prompt:     ReviewText("go"),
		Completion: Complete(Typed),
		Questions:  []string{TeamQuestion, WhoQuestion},
		Hello:      Hello(Answers[WhoQuestion], Answers[TeamQuestion]),
		Sampled:    Prompt,
		Model:      Model + ": " + Said,
		Updated:    Counter,
		Grown:      Grown,
		Stopped:    StoppedText,
	}
	slices.Sort(r.Tools)
	for i := range StepCount {
		r.Progress = append(r.Progress, float64(i+1))
	}
	if version == "2026-07-28" {
		r.Missing = -32602
	}
	if !Structured(version) {
		r.Sum = 0
	}
	if !Forms(version) {
		r.without(StepQuestions)
	}
	for _, step := range skip {
		r.without(step)
	}
	return r
}

// without takes back what comes of a step.
func (r *Report) without(step string) {
	switch step {
	case StepProgress:
		r.Progress = nil
	case StepQuestions:
		r.Questions, r.Hello = nil, ""
	case StepModel:
		r.Sampled, r.Model = "", ""
	case StepSubscribe:
		r.Updated = ""
	case StepGrow:
		r.Grown = ""
	case StepCancel:
		r.Stopped = ""
	}
}

// Texts that come back.
const (
	EchoText = "héllo 世界"
	// FailReason is what Fail is given, FailText what it says.
	FailReason = "too late"
	FailText   = "cannot: " + FailReason
	// StoppedText is what Stopped says.
	StoppedText = "stopped"
)

// Structured says whether a revision has structured content.
func Structured(version string) bool { return version >= "2025-06-18" }

// Forms says whether a revision has elicitation.
func Forms(version string) bool { return version >= "2025-06-18" }
