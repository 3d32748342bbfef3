package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// RecordKind says what a Record is of.
type RecordKind string

// The kinds of records.
const (
	// RecordQuestion is a question with a Key that is about to be brought to the
	// client. Others need none: they are named by what they ask.
	RecordQuestion RecordKind = "question"
	// RecordAnswer is an answer to a question.
	RecordAnswer RecordKind = "answer"
	// RecordOnce is a result of Once, or a value of Keep, which takes the place
	// of an earlier one of the same key.
	RecordOnce RecordKind = "once"
)

// A Record is one thing that a handler has asked, was answered or has done, so that it
// is not asked otherwise, asked again or done again when the handler runs anew. It
// encodes as JSON by either package of the standard library and by package strictjson.
type Record struct {
	Kind RecordKind `json:"kind"`
	// Key names the question or the Once within the call.
	Key string `json:"key"`
	// Question is a digest of what was asked, of a question or answer only. A
	// handler that asks something else under the same key is stopped.
	Question string `json:"question,omitzero"`
	// Value is the answer as the client gave it, or the result; a question has
	// none.
	Value mcp.RawValue `json:"value,omitzero"`
}

// recordTimeout bounds the context of DetachOptions.Record: a store that fails over to
// another has room in it, and one that hangs does not hold Server.Shutdown for longer.
const recordTimeout = 30 * time.Second

// errCallOver says that a goroutine of a handler has something to record after the
// result of the call went to DetachOptions.Done.
var errCallOver = errors.New("the detached call has ended")

// recordQuestion keeps that a question is asked, before it is.
func (c *Call) recordQuestion(q *question, id string) error {
	asks := &c.extras().asks
	r := Record{Kind: RecordQuestion, Key: id, Question: asks.digestOf(id)}
	if !c.records() || id == r.Question || asks.isTold(r.name()) {
		return nil
	}
	if err := c.keepRecord(r); err != nil {
		asks.unask(id)
		return fmt.Errorf("asking for %s: keeping the question: %w", q.what, err)
	}
	return nil
}

// recordAnswer keeps a checked answer to a question.
func (c *Call) recordAnswer(q *question, id string, raw mcp.RawValue) error {
	asks := &c.extras().asks
	r := Record{Kind: RecordAnswer, Key: id, Question: asks.digestOf(id), Value: raw}
	if asks.answered(id) && (!c.records() || asks.isTold(r.name())) {
		return nil
	}
	if err := c.keepRecord(r); err != nil {
		asks.unask(id)
		return fmt.Errorf("asking for %s: keeping the answer: %w", q.what, err)
	}
	return nil
}

// recordResult keeps a result of Once.
func (c *Call) recordResult(key string, raw mcp.RawValue) error {
	if err := c.keepRecord(Record{Kind: RecordOnce, Key: key, Value: raw}); err != nil {
		return fmt.Errorf("keeping the result: %w", err)
	}
	return nil
}

// retryRecord keeps the record of a result of Once that could not be kept before.
func (c *Call) retryRecord(key string) error {
	asks := &c.extras().asks
	if name := (recordName{RecordOnce, key}); !c.records() || asks.isTold(name) {
		return nil
	}
	d := c.detachment()
	d.recording.Lock()
	defer d.recording.Unlock()
	raw, _ := asks.result(key)
	if err := c.tell(Record{Kind: RecordOnce, Key: key, Value: raw}); err != nil {
		return fmt.Errorf("keeping the result: %w", err)
	}
	return nil
}

// replaceResult keeps a value of Keep, or leaves what was there.
func (c *Call) replaceResult(key string, raw mcp.RawValue) error {
	r, asks := Record{Kind: RecordOnce, Key: key, Value: raw}, &c.extras().asks
	if !c.records() {
		asks.put(r)
		return nil
	}
	d := c.detachment()
	d.recording.Lock()
	defer d.recording.Unlock()
	before, had := asks.result(key)
	asks.put(r)
	if err := c.tell(r); err != nil {
		asks.putBack(key, before, had)
		return fmt.Errorf("keeping the value: %w", err)
	}
	return nil
}

// keepRecord keeps a record in memory, and then has the extension keep it: what the
// extension saves meanwhile has it. If the extension fails, it stays in memory untold.
func (c *Call) keepRecord(r Record) error {
	asks := &c.extras().asks
	if !c.records() {
		asks.put(r)
		return nil
	}
	d := c.detachment()
	d.recording.Lock()
	defer d.recording.Unlock()
	asks.put(r)
	return c.tell(r)
}

// records reports whether an extension keeps the records of the call.
func (c *Call) records() bool {
	d := c.detachment()
	return d != nil && d.opts.Record != nil
}

// tell has the extension keep a record. It is called with the lock of recording. What
// has happened is recorded although the call, or the context that the handler gave
// it, ends: the time of Record is its own.
func (c *Call) tell(r Record) error {
	d := c.detachment()
	if d.over {
		return errCallOver
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c), recordTimeout)
	defer cancel()
	own := r // Value belongs to the extension
	own.Value = slices.Clone(r.Value)
	if err := d.opts.Record(ctx, own); err != nil {
		return err
	}
	c.extras().asks.setTold(r.name())
	return nil
}

// A recordName names what later records take the place of.
type recordName struct {
	kind RecordKind
	key  string
}

func (r *Record) name() recordName { return recordName{r.Kind, r.Key} }

// put keeps a record in memory; the extension is not told yet.
func (r *recorder) put(rec Record) {
	switch rec.Kind {
	case RecordAnswer:
		r.record(rec.Key, rec.Value)
	case RecordOnce:
		r.keep(rec.Key, rec.Value)
	default: // begin has kept the question
	}
}

// putBack undoes a put of a value that could not be kept.
func (r *recorder) putBack(key string, raw mcp.RawValue, had bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if had {
		r.done[key] = raw
	} else {
		delete(r.done, key)
	}
}

// isTold reports whether the extension has a record, alone or in the saved call.
func (r *recorder) isTold(name recordName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told[name]
}

func (r *recorder) setTold(name recordName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told == nil {
		r.told = make(map[recordName]bool)
	}
	r.told[name] = true
}

// unask lets the handler ask a question again whose record could not be kept.
func (r *recorder) unask(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, id)
}

// digestOf is the digest of a question that was asked.
func (r *recorder) digestOf(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds[id]
}

// answered reports whether the answer to a question is recorded.
func (r *recorder) answered(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.answers[id]
	return ok
}

// all are the records of what was asked, answered and done, in a stated order.
func (r *recorder) all() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Record
	for _, id := range r.order {
		if raw, ok := r.answers[id]; ok {
			all = append(all, Record{Kind: RecordAnswer, Key: id, Question: r.kinds[id], Value: raw})
		} else if id != r.kinds[id] {
			all = append(all, Record{Kind: RecordQuestion, Key: id, Question: r.kinds[id]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.done)) {
		all = append(all, Record{Kind: RecordOnce, Key: key, Value: r.done[key]})
	}
	return all
}

// restore takes what was saved, and the records that came later.
func (r *recorder) restore(st *saved, later []Record) error {
	r.flow, r.round, r.offered = st.Flow, st.Round, st.Offered
	for _, rec := range slices.Concat(st.Records, later) {
		if err := rec.check(); err != nil {
			return fmt.Errorf("the record of %q, of the kind %q: %w", clip(rec.Key), clip(string(rec.Kind)), err)
		}
		rec.Value = slices.Clone(rec.Value)
		if rec.Kind != RecordOnce {
			r.restoreQuestion(rec)
		}
		r.put(rec)
		r.setTold(rec.name())
	}
	return nil
}

// check says why r is no record.
func (r *Record) check() error {
	asked := r.Question != ""
	switch {
	case r.Kind == RecordQuestion && asked && len(r.Value) == 0:
		return nil
	case r.Kind == RecordAnswer && asked, r.Kind == RecordOnce && !asked:
		return wire.Valid(r.Value, wire.Limits{Depth: maxDefinitionDepth})
	}
	return errors.New("it is neither a question nor an answer to one nor a result")
}

func (r *recorder) restoreQuestion(rec Record) {
	if r.kinds == nil {
		r.kinds = make(map[string]string)
	}
	if _, ok := r.kinds[rec.Key]; !ok {
		r.order = append(r.order, rec.Key)
	}
	r.kinds[rec.Key] = rec.Question
}
