package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Bounds of the rounds of one call.
const (
	// maxQuestions is how much a server may ask in one round.
	maxQuestions = 64
	// maxWaits is how often it may answer "not yet".
	maxWaits = 128
	// firstWait and longWait are the pauses after "not yet".
	firstWait = 100 * time.Millisecond
	longWait  = 5 * time.Second
)

// plainComplete is how servers write that a result is final.
const plainComplete = `"` + mcp.ResultComplete + `"`

// settleResult checks a result's type: "complete" is final, "input_required" is
// answered, a type of an extension is settled, after which the answer has the final
// result, and what nobody knows is refused.
func (k *call) settleResult(ctx context.Context, in *jsonrpc.Incoming) (*round, error) {
	typ, err := resultType(in.Result)
	switch {
	case err != nil:
		return nil, err
	case typ == mcp.ResultComplete || slices.Contains(k.opts.ResultTypes, typ):
		return nil, nil
	case typ != mcp.ResultInputRequired:
		return nil, k.settleForeign(ctx, typ, in)
	case k.row == nil || !k.row.Asks:
		return nil, fmt.Errorf("%w: the server may not ask for input in answer to %s", ErrResultType, k.method)
	}
	var r mcp.InputRequiredResult
	if err := wire.DecodeParams(in.Result.Raw(), &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResultType, err)
	}
	if len(r.InputRequests) > 0 {
		return k.input(ctx, &r)
	}
	if r.RequestState == nil {
		return nil, fmt.Errorf("%w: input_required with neither inputRequests nor requestState", ErrResultType)
	}
	return k.wait(ctx, r.RequestState)
}

// input has the questions of one round answered (spec 2026-07-28,
// basic/patterns/mrtr: the state MUST be echoed exactly, and MUST NOT be
// there if it was absent).
func (k *call) input(ctx context.Context, r *mcp.InputRequiredResult) (*round, error) {
	if int(k.rounds.Add(1)) > k.c.opts.MaxRounds {
		return nil, fmt.Errorf("%w: more than %d times in one call", ErrTooManyRounds, k.c.opts.MaxRounds)
	}
	k.timer.Pause()
	defer k.timer.Resume()
	responses, err := k.c.answers(ctx, k, r.InputRequests)
	if err != nil {
		return nil, err
	}
	return &round{responses: responses, state: r.RequestState}, nil
}

// wait pauses before a request is repeated without answers (ruling 19).
func (k *call) wait(ctx context.Context, state *string) (*round, error) {
	pause := min(firstWait<<min(k.waits, 10), longWait)
	if k.waits++; k.waits > maxWaits {
		return nil, fmt.Errorf("%w: it said \"not yet\" more than %d times", ErrTooManyRounds, maxWaits)
	}
	if err := sleep(ctx, pause); err != nil {
		return nil, err
	}
	return &round{state: state}, nil
}

// Answer has questions of the server answered by the client's handlers, all
// at once, as it happens by itself during calls. It is for extensions that
// carry questions in results of their own. The error is [ErrNotCapable] if a
// kind of question was not declared, before any is asked, and
// [ErrInputRefused] if a handler refused. The handlers' context is made of ctx. The
// time limits of the request that ctx belongs to, if any, are paused.
func (c *Client) Answer(ctx context.Context, questions mcp.InputRequests) (mcp.InputResponses, error) {
	k, _ := ctx.Value(requestKey{}).(*call)
	if own, ok := pausetimer.From(ctx).(*pauseContext); ok && own.timer != nil {
		own.timer.Pause()
		defer own.timer.Resume()
	}
	return c.answers(ctx, k, questions)
}

// answers asks all questions at once. The first that fails ends the others.
func (c *Client) answers(ctx context.Context, of *call, questions mcp.InputRequests) (mcp.InputResponses, error) {
	if len(questions) > maxQuestions {
		return nil, fmt.Errorf("%w: %d questions at once", ErrTooManyRounds, len(questions))
	}
	s := c.session()
	ready := make(map[string]*question, len(questions))
	for key, r := range questions {
		if r == nil {
			return nil, fmt.Errorf("%w: inputRequests: a member is null", ErrResultType)
		}
		q, err := c.prepare(s, of, r.Method, r.Params)
		if err != nil {
			return nil, fmt.Errorf("input asked for by the server: %w", err)
		}
		ready[key] = q
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg        sync.WaitGroup
		mu        sync.Mutex
		responses = make(mcp.InputResponses, len(ready))
	)
	for key, q := range ready {
		wg.Go(func() {
			raw, err := c.answer(ctx, q)
			if err != nil {
				cancel(&inputError{q.method, err})
				return
			}
			mu.Lock()
			defer mu.Unlock()
			responses[key] = raw
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return responses, nil
}

// answer runs the handler and encodes what it says.
func (c *Client) answer(ctx context.Context, q *question) (raw wire.RawValue, err error) {
	v, err := c.run(ctx, q)
	if err != nil {
		return nil, err
	}
	err = c.guarded(q.method, func() (err error) {
		raw, err = wire.Marshal(v)
		return err
	})
	return raw, err
}

// visitPages has the person visit the pages that a call was refused for, and then
// lets it be repeated (revision 2025-11-25, client/elicitation, "URL
// Elicitation Required Error"; ruling 18).
func (k *call) visitPages(ctx context.Context, refusal *jsonrpc.Error) (*round, error) {
	c := k.c
	if int(k.rounds.Add(1)) > c.opts.MaxRounds {
		return nil, fmt.Errorf("%w: more than %d times in one call", ErrTooManyRounds, c.opts.MaxRounds)
	}
	var data mcp.URLElicitationRequiredData
	if err := wire.DecodeParams(refusal.Data, &data); err != nil || len(data.Elicitations) == 0 {
		return nil, refusal
	}
	if len(data.Elicitations) > maxQuestions {
		return nil, fmt.Errorf("%w: %d questions at once", ErrTooManyRounds, len(data.Elicitations))
	}
	k.timer.Pause()
	defer k.timer.Resume()
	var visits []chan struct{}
	for i := range data.Elicitations {
		p := &data.Elicitations[i]
		if !p.IsURL() || p.ElicitationID == "" {
			return nil, fmt.Errorf("%w: an elicitation without page or id", refusal)
		}
		q, err := c.prepareElicit(k, p)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", refusal, err)
		}
		done := c.await(p.ElicitationID)
		defer c.forgo(done)
		v, err := c.run(ctx, q)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, &inputError{mcp.MethodElicit, err}
		}
		if r := v.(*mcp.ElicitResult); r.Action != mcp.ElicitAccept {
			return nil, &inputError{mcp.MethodElicit, fmt.Errorf("%w: %s", ErrRefused, r.Action)}
		}
		visits = append(visits, done)
	}
	return &round{}, c.awaitVisits(ctx, visits)
}

// awaitVisits waits until the server says that the visits are over, for as long
// as URLWait allows. Not hearing of it is no error: the server MAY say so.
func (c *Client) awaitVisits(ctx context.Context, visits []chan struct{}) error {
	timer := time.NewTimer(c.opts.URLWait)
	defer timer.Stop()
	for _, done := range visits {
		select {
		case <-done:
		case <-timer.C:
			c.log.Info("the server did not say that the visit is over; trying again")
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// await returns a channel that is closed when an elicitation is complete.
func (c *Client) await(id string) chan struct{} {
	done := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited[done] = id
	return done
}

func (c *Client) forgo(done chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.awaited, done)
}

// completed wakes calls that wait for an elicitation.
func (c *Client) completed(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for done, want := range c.awaited {
		if want == id {
			close(done)
			delete(c.awaited, done)
		}
	}
}

var errNoAnswer = errors.New("the handler gave no answer")
