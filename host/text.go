package host

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

// textInterval is how often the text of a turn is written down while it comes: each
// record is a transaction of the store.
const textInterval = 30 * time.Millisecond

// A textWriter writes the text of a turn down as it comes: at once, or textInterval
// after the text before, also if the model says nothing in between. Its methods are for
// one goroutine.
type textWriter struct {
	session *Session
	rest    string         // of the text: the beginning of a character
	timers  sync.WaitGroup // callbacks of timers that were not stopped

	mu      sync.Mutex
	pending strings.Builder // what is not written down yet
	flushed time.Time       // when text was written down last
	timer   *time.Timer     // writes what is pending down; nil if nothing waits
	err     error           // of the timer
}

// add adds text. A character whose rest comes with the next piece is held back.
func (w *textWriter) add(text string) error {
	text = w.rest + text
	whole := complete(text)
	w.rest = text[len(whole):]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending.WriteString(strings.ToValidUTF8(whole, "\uFFFD"))
	wait := textInterval - time.Since(w.flushed)
	if wait <= 0 {
		return w.flushLocked()
	}
	if w.timer == nil && w.pending.Len() > 0 {
		w.timers.Add(1)
		w.timer = time.AfterFunc(wait, w.late)
	}
	return nil
}

// late writes down what no further piece came for.
func (w *textWriter) late() {
	defer w.timers.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	if err := w.flushLocked(); w.err == nil {
		w.err = err
	}
}

// flush writes down all that has come: what follows is not text.
func (w *textWriter) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rest != "" {
		w.pending.WriteString("\uFFFD")
		w.rest = ""
	}
	return w.flushLocked()
}

// flushLocked is flush for a caller that holds mu; the beginning of a character stays.
func (w *textWriter) flushLocked() error {
	if w.timer != nil && w.timer.Stop() {
		w.timers.Done()
		w.timer = nil
	}
	if w.err != nil || w.pending.Len() == 0 {
		return w.err
	}
	_, err := w.session.write(&TextRecord{Text: w.pending.String()})
	w.pending.Reset()
	w.flushed = time.Now()
	return err
}

// end is flush at the end of the turn: no timer is left when it returns.
func (w *textWriter) end() error {
	err := w.flush()
	w.timers.Wait()
	return err
}

// valid is a text in valid UTF-8, as records need it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// valid is the reasoning as records can hold it: data that is no JSON is left out.
func (r *Reasoning) valid() Reasoning {
	v := Reasoning{Provider: valid(r.Provider), Text: valid(r.Text), Data: r.Data}
	if v.Data != nil && wire.Valid(v.Data, wire.Limits{}) != nil {
		v.Data = nil
	}
	return v
}

// What is believed of one turn's usage: sums of it neither overflow nor become less.
const (
	maxCount = 1 << 40
	maxCost  = 1e9
)

// valid is the usage as records can hold it.
func (u Usage) valid() Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite} {
		*n = min(max(*n, 0), maxCount)
	}
	if math.IsNaN(u.Cost) || u.Cost < 0 {
		u.Cost = 0
	}
	u.Cost = min(u.Cost, maxCost)
	return u
}
