package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// errWithdrawn ends a question that is not open any more.
var errWithdrawn = errors.New("the server does not ask this any more")

// questions are those that a task has asked so far, by key. They may be used by many
// goroutines at once.
type questions struct {
	mu   sync.Mutex
	list map[string]asked
}

// An asked question, and how far its answer is:
//
//	askedOpen -> askedGiven -> askedAnswered; askedGiven -> askedOpen if it got lost
type asked struct {
	digest string // of the question
	state  askedState
}

type askedState int

const (
	askedOpen     askedState = iota // nobody has answered it
	askedGiven                      // a handler has, and the server may not know yet
	askedAnswered                   // the server has the answer
)

// note notes an open question, and reports whether it is to be asked. The error says that
// the key was that of another question, or that there are too many.
func (q *questions) note(one *Question, most int) (ask bool, err error) {
	digest, err := digestOf(one)
	if err != nil {
		return false, fmt.Errorf("%w: the question %.64q: %w", client.ErrMalformed, one.Key, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	before, known := q.list[one.Key]
	switch {
	case known && before.digest != digest:
		// "A server MUST NOT use the same key to refer to two distinct requests over a
		// task's lifetime" (ext-tasks, Task Update Requests).
		return false, fmt.Errorf("%w: the key %.64q was that of another question of this task", client.ErrMalformed, one.Key)
	case known:
		return before.state == askedOpen, nil
	case len(q.list) >= most:
		return false, fmt.Errorf("%w: more than %d questions in one task", client.ErrTooManyRounds, most)
	}
	if q.list == nil {
		q.list = make(map[string]asked)
	}
	q.list[one.Key] = asked{digest: digest}
	return true, nil
}

// set changes the state of a question that was noted.
func (q *questions) set(key string, state askedState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	one := q.list[key]
	one.state = state
	q.list[key] = one
}

// all is a copy of the questions.
func (q *questions) all() map[string]asked {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.list)
}

// digestOf is a digest of method and params without _meta. Members may come in any
// order.
func digestOf(q *Question) (string, error) {
	var params map[string]any
	if len(q.Params) > 0 {
		if err := strictjson.Unmarshal(q.Params, &params); err != nil {
			return "", err
		}
	}
	delete(params, "_meta")
	text, err := strictjson.Marshal(params)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(q.Method+"\x00"), text...))
	return hex.EncodeToString(sum[:16]), nil
}

// ask has the open questions of a task answered that nobody is asked yet, all at once,
// and ends those that are open no more. open are those that are being answered, with
// what ends each.
func (p *poller) ask(ctx context.Context, wg *sync.WaitGroup, t *Task, open map[string]context.CancelCauseFunc) error {
	wanted := make(map[string]bool, len(t.Questions))
	for i := range t.Questions {
		q := &t.Questions[i]
		wanted[q.Key] = true
		ask, err := p.asked.note(q, p.o.MaxQuestions)
		if err != nil {
			return err
		}
		if !ask || open[q.Key] != nil {
			continue
		}
		asking, end := context.WithCancelCause(ctx)
		open[q.Key] = end
		wg.Go(func() { p.answer(ctx, asking, q) })
	}
	for key, end := range open {
		if !wanted[key] {
			end(errWithdrawn)
			delete(open, key)
		}
	}
	return nil
}

// answer has one question answered by the handlers of the client, and tells the server:
// "clients MUST treat each entry in inputRequests as they would the equivalent
// standalone server-to-client request" (ext-tasks, Task Update Requests). asking ends when
// the question is open no more; an answer that there is by then is sent all the same.
func (p *poller) answer(ctx, asking context.Context, q *Question) {
	answers, err := p.c.Answer(asking, mcp.InputRequests{q.Key: {Method: q.Method, Params: q.Params}})
	if err == nil {
		p.asked.set(q.Key, askedGiven)
		err = p.o.insist(ctx, func() error {
			_, err := client.CallMethod[mcp.None](ctx, p.c, MethodUpdate, updateParams{p.id, answers})
			return err
		})
		asking = ctx
	}
	switch {
	case err == nil:
		p.asked.set(q.Key, askedAnswered)
	case asking.Err() != nil:
		p.asked.set(q.Key, askedOpen) // withdrawn, or nobody waits for the task any more
	default:
		p.asked.set(q.Key, askedOpen)
		select {
		case p.failed <- err:
		default:
		}
	}
}
