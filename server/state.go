package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// state is what travels through the client between the rounds of a request,
// sealed: what was asked, answered and done, and until when it is good.
type state struct {
	Flow    string                  `json:"f"`
	Round   int                     `json:"r"`
	Expires int64                   `json:"x"` // Unix seconds; 0: never
	Order   []string                `json:"o"`
	Kinds   map[string]string       `json:"k"`
	Answers map[string]mcp.RawValue `json:"a"`
	Done    map[string]mcp.RawValue `json:"d"`
}

// errState refuses a requestState that does not verify. The text is fixed: it
// does not say what was wrong.
var errState = mcp.NewError(mcp.CodeInvalidParams, "requestState is not valid for this request: it was changed, has expired, or belongs to another request or caller; send the request again without it")

// input returns what a request brings for an asked one.
func (c *Call) input() (responses mcp.InputResponses, sealed *string) {
	if p, ok := c.params.(mcp.Retryable); ok {
		return p.Input().InputResponses, p.Input().RequestState
	}
	return nil, nil
}

// resume takes up a request where an earlier round of it ended.
//
// spec 2026-07-28, basic/patterns/mrtr: a requestState is "attacker-controlled
// input"; unexpected responses are ignored, missing ones asked again.
func (c *Call) resume() error {
	responses, sealed := c.input()
	if sealed == nil {
		// A client may know from before what will be asked, and save a round:
		// "the server processing the retry does not need any information beyond
		// what is directly present in the retry request". What is not asked in
		// this run stays unused.
		if responses != nil {
			c.extras().asks.offered = responses
		}
		return nil
	}
	if most := c.srv.limits.MaxState; most >= 0 && len(*sealed) > sealedLen(most) {
		return errState
	}
	bound, err := c.bound()
	if err != nil {
		return err
	}
	plain, err := c.srv.seal.open(*sealed, bound)
	if err != nil {
		return errState
	}
	var st state
	if err := wire.Decode(plain, &st); err != nil {
		return errState
	}
	if st.Expires != 0 && time.Now().Unix() > st.Expires {
		return errState
	}
	r := &c.extras().asks
	r.flow, r.round, r.order, r.kinds, r.answers, r.done = st.Flow, st.Round, st.Order, st.Kinds, st.Answers, st.Done
	for id, raw := range responses {
		_, asked := r.kinds[id]
		_, answered := r.answers[id]
		if asked && !answered {
			r.record(id, raw)
		}
	}
	return nil
}

// suspend answers a request with what its handler asked.
func (c *Call) suspend() (Result, error) {
	r := &c.extras().asks
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unasked() {
		return nil, errChanged
	}
	if len(r.pending) > 0 { // a pause without a question is no round
		r.round++
	}
	if over(r.round, c.srv.limits.MaxRounds) {
		return nil, mcp.NewError(mcp.CodeInternalError, "the request asked in more than %d rounds (Limits.MaxRounds)", c.srv.limits.MaxRounds)
	}
	res := &mcp.InputRequiredResult{}
	for _, p := range r.pending {
		params, err := c.shape().DownParams(p.q.method, p.q.params)
		if err != nil {
			return nil, fmt.Errorf("asking for %s: %w", p.q.what, err)
		}
		raw, err := wire.Marshal(params)
		if err != nil {
			return nil, fmt.Errorf("asking for %s: %w", p.q.what, err)
		}
		if res.InputRequests == nil {
			res.InputRequests = make(mcp.InputRequests)
		}
		res.InputRequests[p.id] = &mcp.InputRequest{Method: p.q.method, Params: raw}
	}
	if r.flow == "" {
		r.flow = rand.Text()
	}
	sealed, err := c.sealState()
	if err != nil {
		return nil, err
	}
	res.RequestState = &sealed
	c.fillResult(res, mcp.ResultInputRequired)
	return res, nil
}

// sealState makes the requestState of the recorder, whose lock is held.
func (c *Call) sealState() (string, error) {
	r := &c.extras().asks
	st := &state{Flow: r.flow, Round: r.round, Order: r.order, Kinds: r.kinds, Answers: r.answers, Done: r.done}
	if expiry := c.srv.limits.StateExpiry; expiry >= 0 {
		st.Expires = time.Now().Add(expiry).Unix()
	}
	plain, err := wire.Marshal(st)
	if err != nil {
		return "", fmt.Errorf("sealing the state of the request: %w", err)
	}
	if over(len(plain), c.srv.limits.MaxState) {
		return "", fmt.Errorf("the answers and results of Once take %d bytes, over Limits.MaxState (%d)", len(plain), c.srv.limits.MaxState)
	}
	bound, err := c.bound()
	if err != nil {
		return "", err
	}
	return c.seal(plain, bound), nil
}

// bound is what a state is good for: this server, this caller, this request.
func (c *Call) bound() ([]byte, error) {
	parts := []string{"state", c.srv.info.Name, c.Principal().Identity(), c.Method()}
	for _, name := range c.row.Binding {
		raw, ok := c.x.In.Params.Member(name)
		if !ok || string(raw) == "null" { // ruling 33
			parts = append(parts, "")
			continue
		}
		canonical, err := wire.Canonical(raw)
		if err != nil {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "%s of %s: %v", name, c.Method(), err)
		}
		parts = append(parts, string(canonical))
	}
	return binding(parts...), nil
}

// ask notes the question for the answer "input required".
func (stateless) ask(c *Call, id string, q *question) (mcp.RawValue, error) {
	c.extras().asks.addPending(id, q)
	return nil, fmt.Errorf("asking for %s: %w", q.what, ErrInputPending)
}

// How ElicitURL waits: it asks done at once and then in growing steps; in the
// stateless era a round lasts awaitRound at most, so that the client sees life.
const (
	awaitStep  = 250 * time.Millisecond
	awaitMost  = 2 * time.Second
	awaitRound = 15 * time.Second
)

var errRoundOver = errors.New("not yet")

// poll calls done until it reports true or fails, or ctx ends.
func poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	for step := awaitStep; ; step = min(2*step, awaitMost) {
		ok, err := done(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(step):
		}
	}
}

// await waits until what a person does behind an opened URL is done. A detached
// call waits for it where it is: its client is told nothing by the server.
func (c *Call) await(q *question, done func(context.Context) (bool, error)) error {
	d := c.detachment()
	if d == nil {
		return c.era().await(c, q, done)
	}
	if err := poll(c, done); err != nil {
		return err
	}
	if p, ok := q.params.(*mcp.ElicitParams); ok && p.ElicitationID != "" && d.opts.Elicited != nil {
		d.opts.Elicited(p.ElicitationID)
	}
	return nil
}

// await waits a while for done, and then has the client repeat the request.
func (stateless) await(c *Call, _ *question, done func(context.Context) (bool, error)) error {
	c.timer.Pause() // before the timeout is set: see Call.Deadline
	defer c.timer.Resume()
	ctx, cancel := context.WithTimeoutCause(c, awaitRound, errRoundOver)
	defer cancel()
	err := poll(ctx, done)
	if errors.Is(err, errRoundOver) {
		c.extras().asks.requestRetry()
		return fmt.Errorf("waiting for the opened URL: %w", ErrInputPending)
	}
	return err
}

// await waits for done, and tells the client.
//
// spec 2025-11-25, client/elicitation: notifications/elicitation/complete.
func (handshake) await(c *Call, q *question, done func(context.Context) (bool, error)) error {
	c.timer.Pause()
	defer c.timer.Resume()
	if err := poll(c, done); err != nil {
		return err
	}
	p := &mcp.ElicitationCompleteParams{ElicitationID: q.params.(*mcp.ElicitParams).ElicitationID}
	return c.x.Out.Send(c, &jsonrpc.Outgoing{Method: mcp.NotifyElicitationComplete, Params: jsonrpc.JSON(p)})
}
