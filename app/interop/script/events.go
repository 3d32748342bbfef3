package script

import (
	"slices"
	"sync"
)

// Events are what the handlers of a client were asked and told. All methods may
// be called by many goroutines at once.
type Events struct {
	updated chan string
	changed chan struct{}

	mu        sync.Mutex
	questions []string
	sampled   string
}

// NewEvents returns events of which none has happened.
func NewEvents() *Events {
	return &Events{updated: make(chan string, 1), changed: make(chan struct{}, 1)}
}

// Answer notes a question to the person, and gives the answer.
func (e *Events) Answer(question string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.questions = append(e.questions, question)
	return Answers[question]
}

// Sample notes what the model is asked.
func (e *Events) Sample(prompt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sampled = prompt
}

// Updated notes that a resource has changed.
func (e *Events) Updated(uri string) {
	select {
	case e.updated <- uri:
	default: // one will do
	}
}

// ToolsChanged notes that the list of tools has.
func (e *Events) ToolsChanged() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// asked are the questions, sorted.
func (e *Events) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.questions))
}

func (e *Events) prompt() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sampled
}
