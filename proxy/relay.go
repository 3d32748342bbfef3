package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// relayKey is where a request keeps its rounds upstream.
const relayKey = "parley.proxy/relay"

// Bounds of a stateless upstream server.
const (
	// maxQuestions is how much it may ask in one round.
	maxQuestions = 64
	// maxWaits is how often it may say "not yet" within one round of its caller. A
	// detached call has Limits.MaxDetachedTime instead.
	maxWaits = 128
	// firstWait and longWait are the pauses after that.
	firstWait = 100 * time.Millisecond
	longWait  = 5 * time.Second
	// waitRound is how long a caller of a stateless revision waits before it is
	// told to send its request again.
	waitRound = 15 * time.Second
)

// rounds are those of a request at a stateless upstream server. They travel with
// the caller's request, sealed.
type rounds struct {
	// Asked are the questions so far, by round.
	Asked []mcp.InputRequests `json:"a,omitzero"`
	// State is what the upstream server wants to get back, or nil.
	State *string `json:"s,omitzero"`
	// Begun says that there was a round; Open, that the last questions have not
	// been answered upstream.
	Begun bool `json:"b,omitzero"`
	Open  bool `json:"o,omitzero"`
}

// relay carries a request out at a stateless upstream server. Its questions are
// asked as the caller's own, so that each round of the caller is one upstream if
// the caller's revision is stateless too; otherwise all rounds run here.
func (c *call) relay(ctx context.Context, caller *server.Call) (mcp.Result, error) {
	st, _, err := server.Kept[rounds](ctx, relayKey)
	if err != nil {
		return nil, err
	}
	a := c.newAsking(ctx, caller)
	defer a.told(ctx)
	defer c.p.calls.begin(ctx, a)()
	defer c.p.drain(ctx)
	ctx = c.traced(ctx, caller)
	options := a.options(caller.Meta())
	options.ResultTypes = []string{mcp.ResultInputRequired}
	options.Capabilities = c.p.capabilities(caller)
	began, waits, asked := time.Now(), 0, 0
	for {
		responses, err := c.askAll(ctx, &st, &asked)
		if err != nil {
			return nil, err
		}
		var raw mcp.RawValue
		if err := c.p.client.Request(ctx, c.method, c.round(responses, st.State), &raw, options); err != nil {
			return nil, err
		}
		done, err := c.settle(ctx, &st, raw)
		if done != nil || err != nil {
			return done, err
		}
		if err := server.Keep(ctx, relayKey, st); err != nil {
			return nil, err
		}
		if st.Open {
			if len(st.Asked) > c.p.opts.MaxRounds {
				return nil, mcp.NewError(mcp.CodeInternalError, "the server %q behind this proxy asked in more than %d rounds", c.p.name(), c.p.opts.MaxRounds)
			}
			continue
		}
		if waits++; waits > maxWaits && !caller.Detached() {
			return nil, mcp.NewError(mcp.CodeInternalError, "the server %q behind this proxy said \"not yet\" more than %d times", c.p.name(), maxWaits)
		}
		if !caller.Handshake() && !caller.Detached() && time.Since(began) >= waitRound {
			return nil, caller.RetryLater()
		}
		if err := c.pause(ctx, caller, min(firstWait<<min(waits-1, 10), longWait)); err != nil {
			return nil, err
		}
	}
}

// pause waits before a request is sent again that was not ready, while the
// caller's time stands still: a person may be busy elsewhere.
func (c *call) pause(ctx context.Context, caller *server.Call, d time.Duration) error {
	defer caller.PauseTimeouts()()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// round gives the parameters of the next round.
func (c *call) round(responses mcp.InputResponses, state *string) any {
	input := mcp.InputBase{InputResponses: responses, RequestState: state}
	switch p := c.params.(type) {
	case *mcp.CallToolParams:
		own := *p
		own.InputBase = input
		return &own
	case *mcp.GetPromptParams:
		own := *p
		own.InputBase = input
		return &own
	case *mcp.ReadResourceParams:
		own := *p
		own.InputBase = input
		return &own
	}
	panic(errParams(c.params))
}

// settle reads a result: the final one, or what is asked next.
func (c *call) settle(ctx context.Context, st *rounds, raw mcp.RawValue) (mcp.Result, error) {
	res := c.result()
	wrong := wire.DecodeParams(raw, res)
	if whole, ok := res.(interface{ Complete() bool }); wrong == nil && ok && whole.Complete() {
		return res, nil // as most are
	}
	var head mcp.ResultBase
	if err := wire.DecodeParams(raw, &head); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.method, client.ErrMalformed, err)
	}
	if head.Complete() {
		if wrong != nil {
			res = c.result()
			if err := c.p.client.Decode(ctx, c.method, raw, res); err != nil {
				return nil, err
			}
		}
		return res, nil
	}
	var asked mcp.InputRequiredResult
	if err := wire.DecodeParams(raw, &asked); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c.method, client.ErrMalformed, err)
	}
	if len(asked.InputRequests) == 0 && asked.RequestState == nil || len(asked.InputRequests) > maxQuestions {
		return nil, fmt.Errorf("%s: %w: %d questions at once", c.method, client.ErrMalformed, len(asked.InputRequests))
	}
	st.Begun, st.State, st.Open = true, asked.RequestState, len(asked.InputRequests) > 0
	if st.Open {
		st.Asked = append(st.Asked, asked.InputRequests)
	}
	return nil, nil
}

// askAll asks what the caller has not been asked in this run, and returns the
// answers to the questions that are open.
func (c *call) askAll(ctx context.Context, st *rounds, asked *int) (mcp.InputResponses, error) {
	var last mcp.InputResponses
	for ; *asked < len(st.Asked); *asked++ {
		var err error
		if last, err = c.askRound(ctx, st.Asked[:*asked], st.Asked[*asked]); err != nil {
			return nil, err
		}
	}
	if !st.Open {
		return nil, nil
	}
	return last, nil
}

// askRound asks the questions of one round at once, under the keys that they have
// unless an earlier round had the same. All of them are noted before it returns
// ErrInputPending; any other error ends those that wait.
func (c *call) askRound(ctx context.Context, before []mcp.InputRequests, questions mcp.InputRequests) (mcp.InputResponses, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		pending error
		out     = make(mcp.InputResponses, len(questions))
	)
	ask := func(key string, q *mcp.InputRequest) {
		own := key
		if slices.ContainsFunc(before, func(r mcp.InputRequests) bool { return r[key] != nil }) {
			own += "#" + strconv.Itoa(len(before))
		}
		raw, err := c.askRaw(ctx, q, own)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			out[key] = raw
		case errors.Is(err, server.ErrInputPending):
			pending = err
		default:
			cancel(err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		wg.Go(func() { ask(key, questions[key]) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return out, pending
}

// askRaw asks one question and gives the answer in the newest shape.
func (c *call) askRaw(ctx context.Context, q *mcp.InputRequest, key string) (mcp.RawValue, error) {
	if q == nil {
		return nil, fmt.Errorf("%w: a question is null", client.ErrMalformed)
	}
	var params mcp.Params
	var res any
	switch q.Method {
	case mcp.MethodElicit:
		params, res = new(mcp.ElicitParams), new(mcp.ElicitResult)
	case mcp.MethodCreateMessage:
		params, res = new(mcp.CreateMessageParams), new(mcp.CreateMessageResult)
	case mcp.MethodRootsList:
		params, res = new(mcp.ListRootsParams), new(mcp.ListRootsResult)
	default:
		return nil, fmt.Errorf("%w: %.64q is no question", client.ErrMalformed, q.Method)
	}
	if len(q.Params) > 0 {
		if err := wire.DecodeParams(q.Params, params); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", client.ErrMalformed, q.Method, err)
		}
	}
	if c.p.answers(params) {
		out, err := c.p.client.Answer(ctx, mcp.InputRequests{key: q})
		return out[key], err
	}
	raw, err := server.Ask(ctx, params, &server.AskOptions{Key: key})
	if err != nil {
		return nil, err
	}
	if err := wire.DecodeParams(raw, res); err != nil {
		return nil, err
	}
	return wire.Marshal(res)
}

// answers reports whether the program that made the proxy answers a question
// itself, with a handler in Options.Client.
func (p *Proxy) answers(params mcp.Params) bool {
	o := &p.opts.Client
	switch q := params.(type) {
	case *mcp.ElicitParams:
		return q.IsURL() && o.OnElicitURL != nil || !q.IsURL() && o.OnElicit != nil
	case *mcp.CreateMessageParams:
		return o.OnSample != nil
	default:
		return o.OnRoots != nil
	}
}

// capabilities are what a stateless upstream server is told of the client of one
// request: what its caller can answer, and what the program itself does.
func (p *Proxy) capabilities(caller *server.Call) *mcp.ClientCapabilities {
	own, can := &p.opts.Client, caller.ClientCapabilities()
	asks := !p.opts.NoQuestions
	form, url := own.OnElicit != nil || asks && server.CanElicit(caller), own.OnElicitURL != nil || asks && server.CanElicitURL(caller)
	caps := new(mcp.ClientCapabilities)
	if form || url {
		caps.Elicitation = new(mcp.ElicitationCapability)
	}
	if form {
		caps.Elicitation.Form = mcp.Settings{}
	}
	if url {
		caps.Elicitation.URL = mcp.Settings{}
	}
	tools, context := own.SampleTools, own.SampleContext
	if own.OnSample == nil {
		tools, context = asks && can.HasSamplingTools(), asks && can.HasSamplingContext()
	}
	if own.OnSample != nil || asks && server.CanSample(caller) {
		caps.Sampling = new(mcp.SamplingCapability)
		if tools {
			caps.Sampling.Tools = mcp.Settings{}
		}
		if context {
			caps.Sampling.Context = mcp.Settings{}
		}
	}
	if own.OnRoots != nil || asks && server.CanRoots(caller) {
		caps.Roots = new(mcp.RootsCapability)
	}
	return caps
}
