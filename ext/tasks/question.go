package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Ask has the task ask its client, and waits for the answer.
func (r *run) Ask(c *server.Call, key, method string, params mcp.RawValue) (mcp.RawValue, error) {
	if err := r.countQuestion(key, len(params)); err != nil {
		return nil, err
	}
	if _, err := r.create(c); err != nil {
		return nil, fmt.Errorf("asking needs a task: %w", err)
	}
	if err := r.change(c, Change{Ask: &Question{Key: key, Method: method, Params: params}}); err != nil {
		return nil, r.askFailed(c, err)
	}
	answer, err := r.await(c, key)
	if err != nil && c.Err() != nil {
		r.withdraw(key)
	}
	return answer, err
}

// await waits for the answer to an open question.
func (r *run) await(c *server.Call, key string) (mcp.RawValue, error) {
	for {
		changed, release := r.t.waitFor(r.id)
		answer, err := r.given(c, key)
		if answer == nil && err == nil {
			select {
			case <-changed:
			case <-c.Done():
				err = context.Cause(c)
			}
		}
		release()
		if answer != nil || err != nil {
			return answer, err
		}
	}
}

// given is the answer that was given to a question, or nil.
func (r *run) given(c *server.Call, key string) (mcp.RawValue, error) {
	var answers mcp.InputResponses
	err := r.t.retry(c, func() (err error) {
		answers, err = r.t.store.Answers(c, r.lease)
		return err
	})
	if err != nil {
		return nil, r.askFailed(c, err)
	}
	return answers[key], nil
}

// askFailed is the error of a question that could not be asked: why the handler should
// end, if it should.
func (r *run) askFailed(c *server.Call, err error) error {
	if c.Err() == nil && errors.Is(err, ErrLost) {
		r.lose(c)
	}
	if c.Err() != nil {
		return context.Cause(c)
	}
	return err
}

// withdraw takes back a question that the handler gave up. The questions of a run that ends
// stay: it may be taken up.
func (r *run) withdraw(key string) {
	if r.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, storeTimeout)
	defer cancel()
	if err := r.change(ctx, Change{Withdraw: key}); err != nil && !errors.Is(err, ErrLost) {
		r.t.opts.Log.WarnContext(ctx, "tasks: withdrawing a question", "task", r.id, "err", err)
	}
}

// countQuestion counts a question against the bounds of the task.
func (r *run) countQuestion(key string, size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := size + len(key)
	for k, n := range r.asked {
		if k != key {
			total += n
		}
	}
	_, again := r.asked[key]
	switch o := &r.t.opts; {
	case !again && over(len(r.asked)+1, o.MaxQuestions):
		return &SizeError{"questions", "MaxQuestions", o.MaxQuestions}
	case over(total, o.MaxAskBytes):
		return &SizeError{"bytes of questions", "MaxAskBytes", o.MaxAskBytes}
	}
	if r.asked == nil {
		r.asked = make(map[string]int)
	}
	r.asked[key] = size + len(key)
	return nil
}
