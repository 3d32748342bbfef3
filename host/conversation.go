package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// maxTurnText bounds the text of one turn of a model, in bytes.
const maxTurnText = 1 << 20

// A Conversation is what a person and a model say to each other, with the
// results of tools in between. One Ask runs at a time; others wait.
type Conversation struct {
	host     *Host
	model    Model
	turn     chan struct{}
	messages []Message
}

// Conversation begins a conversation with a model.
func (h *Host) Conversation(m Model) *Conversation {
	return &Conversation{host: h, model: m, turn: make(chan struct{}, 1)}
}

// An Answer is how a run ended.
type Answer struct {
	// Text is what the model said last, when it called nothing any more.
	Text string
	// Steps counts the turns of the model, Calls the calls that were carried
	// out, Failed those of them whose tool failed, Refused the calls that
	// policy or the person refused.
	Steps, Calls, Failed, Refused int
}

// Ask runs the agent loop on a request: the model answers, or calls tools
// whose results go back to it, until it calls nothing any more. Events go to
// sink, which may be nil. The answer is never nil; with an error it counts
// what was done until then.
//
// Errors: a *BudgetError when a budget is spent; a *ConsentError when consent
// is needed and no person can be asked, in which case no call of that turn was
// carried out; the model's; that of ctx. When every server is down, the first
// *ServerError. A call that was refused, or whose tool failed, is no error:
// the model is told.
func (c *Conversation) Ask(ctx context.Context, request string, sink func(Event)) (*Answer, error) {
	answer := &Answer{}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
	ctx, stop := c.host.run(ctx)
	defer stop()
	r := &run{conversation: c, host: c.host, answer: answer, sink: sink, known: make(map[string]bool)}
	before := len(c.messages)
	c.messages = append(c.messages, Message{mcp.RoleUser, []mcp.Content{mcp.Text(request)}})
	err := r.loop(ctx)
	if err != nil {
		// A turn with calls but without their results would be refused by
		// every model, so a run that failed leaves no trace.
		c.messages = c.messages[:before]
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
	}
	return answer, err
}

// A run is one Ask under way.
type run struct {
	conversation *Conversation
	host         *Host
	answer       *Answer
	known        map[string]bool // servers whose being down was told

	mu   sync.Mutex // one event at a time
	sink func(Event)
}

func (r *run) emit(e Event) {
	if r.sink == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sink(e)
}

// loop takes turns until the model calls nothing any more.
func (r *run) loop(ctx context.Context) error {
	c := r.conversation
	for step := 1; step <= r.host.opts.MaxSteps; step++ {
		catalog, err := r.catalog(ctx)
		if err != nil {
			return err
		}
		r.answer.Steps = step
		r.emit(&TurnEvent{Step: step, Model: c.model.Name(), Offline: c.model.Offline()})
		text, calls, err := r.generate(ctx, catalog)
		if err != nil {
			return err
		}
		c.messages = append(c.messages, turnMessage(text, calls))
		if len(calls) == 0 {
			r.answer.Text = text
			return nil
		}
		results, err := r.calls(ctx, catalog, calls)
		if err != nil {
			return err
		}
		c.messages = append(c.messages, Message{mcp.RoleUser, results})
	}
	return &BudgetError{"steps", fmt.Sprintf("%d steps", r.host.opts.MaxSteps)}
}

// catalog reads the tools of now. A server that is down is told once; if all
// are, there is nothing to work with.
func (r *run) catalog(ctx context.Context) (*Catalog, error) {
	catalog, err := r.host.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range catalog.Down {
		if !r.known[e.Server] {
			r.known[e.Server] = true
			r.emit(&DownEvent{e})
		}
	}
	if n := len(catalog.Down); n > 0 && n == len(r.host.all()) {
		return nil, catalog.Down[0]
	}
	return catalog, nil
}

// generate takes one turn of the model.
func (r *run) generate(ctx context.Context, catalog *Catalog) (string, []*mcp.ToolUseContent, error) {
	req := &Request{System: r.host.system(ctx), Messages: r.conversation.messages, Tools: catalog.specs()}
	var b strings.Builder
	var calls []*mcp.ToolUseContent
	for piece, err := range r.conversation.model.Generate(ctx, req) {
		if err != nil {
			return "", nil, fmt.Errorf("model %s: %w", r.conversation.model.Name(), err)
		}
		if piece.Text != "" {
			if b.Len()+len(piece.Text) > maxTurnText {
				return "", nil, fmt.Errorf("model %s: a turn of more than %d bytes", r.conversation.model.Name(), maxTurnText)
			}
			b.WriteString(piece.Text)
			r.emit(&TextEvent{piece.Text})
		}
		if piece.Call != nil {
			calls = append(calls, piece.Call)
		}
		if len(calls) > r.host.opts.MaxCalls {
			return "", nil, &BudgetError{"calls", fmt.Sprintf("%d calls in one turn", r.host.opts.MaxCalls)}
		}
	}
	return b.String(), calls, ctx.Err()
}

// turnMessage is a turn of the model as it stays in the conversation.
func turnMessage(text string, calls []*mcp.ToolUseContent) Message {
	m := Message{Role: mcp.RoleAssistant}
	if text != "" {
		m.Content = append(m.Content, mcp.Text(text))
	}
	for _, call := range calls {
		m.Content = append(m.Content, call)
	}
	return m
}

// system is the host's instruction with those of trusted servers, marked.
func (h *Host) system(ctx context.Context) string {
	var b strings.Builder
	b.WriteString(h.opts.System)
	for _, l := range h.all() {
		if text := l.instructions(ctx); text != "" {
			fmt.Fprintf(&b, "\n\nInstructions of server %s:\n%s", l.spec.Name, text)
		}
	}
	return b.String()
}

// calls authorizes the calls of a turn, one after the other, and then carries
// those out that may be, several at once. The results are in the order of the
// calls.
func (r *run) calls(ctx context.Context, catalog *Catalog, calls []*mcp.ToolUseContent) ([]mcp.Content, error) {
	results := make([]mcp.Content, len(calls))
	ready := make([]*readyCall, len(calls))
	for i, use := range calls {
		call, err := r.authorize(ctx, catalog, use)
		var refused *ConsentError
		switch {
		case err == nil:
			ready[i] = call
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &refused) && !refused.Refused:
			return nil, err
		case refused == nil && !errors.Is(err, errCall):
			return nil, err
		default:
			if refused != nil {
				r.answer.Refused++
			}
			tool, _ := catalog.Named(use.Name)
			r.emit(&ResultEvent{ID: use.ID, Tool: tool, Err: err})
			results[i] = failed(use, err, r.host.opts.MaxResultBytes)
		}
	}
	room := make(chan struct{}, r.host.opts.MaxParallel)
	var wg sync.WaitGroup
	for i, call := range ready {
		if call == nil {
			continue
		}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			results[i] = r.carryOut(ctx, call)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

// errCall is every mistake of the model in a call; the model is told.
var errCall = errors.New("the call is wrong")

// A readyCall is a call that may be carried out.
type readyCall struct {
	use  *mcp.ToolUseContent
	tool *Tool
	args mcp.RawValue
	why  string
}

// authorize finds the tool of a call and gets consent for it.
func (r *run) authorize(ctx context.Context, catalog *Catalog, use *mcp.ToolUseContent) (*readyCall, error) {
	tool, ok := catalog.Named(use.Name)
	if !ok || tool.Hidden {
		return nil, fmt.Errorf("%w: there is no tool %q", errCall, use.Name)
	}
	args := use.Input
	if len(args) == 0 {
		args = mcp.RawValue("{}")
	}
	if _, err := members(args); err != nil {
		return nil, fmt.Errorf("%w: the arguments of %s are no JSON object: %w", errCall, use.Name, err)
	}
	j := &consentRequest{
		key:    grantKey{KindTool, tool.Server, tool.Def.Name},
		digest: tool.digest,
		question: &Question{
			Kind: KindTool, Server: tool.Server, Origin: r.host.origin(tool.Server),
			Name: tool.Def.Name, Tool: tool.Def, Arguments: args, Secrets: ArgumentSecrets(args),
		},
	}
	if err := r.host.consent(ctx, j); err != nil {
		return nil, err
	}
	return &readyCall{use, tool, args, j.why}, nil
}

func (h *Host) origin(server string) string {
	for _, l := range h.all() {
		if l.spec.Name == server {
			return l.spec.Origin
		}
	}
	return ""
}

// carryOut calls the tool and returns what the model is told.
func (r *run) carryOut(ctx context.Context, call *readyCall) mcp.Content {
	r.emit(&CallEvent{ID: call.use.ID, Tool: call.tool, Arguments: call.args, Why: call.why})
	start := time.Now()
	var result *mcp.CallToolResult
	c, err := r.host.Client(ctx, call.tool.Server)
	if err == nil {
		result, err = c.CallTool(ctx, call.tool.Def.Name, call.args, &client.CallOptions{
			OnProgress: func(progress, total float64, message string) {
				r.emit(&ProgressEvent{call.use.ID, call.tool, progress, total, message})
			},
		})
	}
	r.emit(&ResultEvent{ID: call.use.ID, Tool: call.tool, Result: result, Err: err, Took: time.Since(start)})
	r.mu.Lock()
	r.answer.Calls++
	if err != nil || result.IsError {
		r.answer.Failed++
	}
	r.mu.Unlock()
	if err != nil {
		return failed(call.use, err, r.host.opts.MaxResultBytes)
	}
	return &mcp.ToolResultContent{
		ToolUseID: call.use.ID,
		Content:   forModel(result, r.host.opts.MaxResultBytes),
		IsError:   result.IsError,
	}
}

// failed is what the model is told of a call that gave no result. An error of
// a server is as long as the server likes, so that it is cut like a result.
func failed(use *mcp.ToolUseContent, err error, limit int) mcp.Content {
	text, isCut := cut(err.Error(), limit)
	if isCut {
		text += "\n[cut off by the host]"
	}
	var refused *ConsentError
	if errors.As(err, &refused) {
		text = "The call was refused. Do not repeat it."
		if refused.Reason != "" {
			text += " The person says: " + refused.Reason
		}
	}
	return &mcp.ToolResultContent{ToolUseID: use.ID, Content: mcp.Contents{mcp.Text(text)}, IsError: true}
}
