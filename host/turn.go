package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/parley-mcp/parley/mcp"
)

// starting reports whether a server's tools are missing because it is still starting.
func starting(e *ServerError) bool { return e.State == StateStarting }

// turn takes one turn of the model and returns its calls.
func (r *run) turn(ctx context.Context, catalog *Catalog, step int) ([]*CallRecord, error) {
	s := r.session
	info, err := s.describe()
	if err != nil {
		return nil, err
	}
	if _, err := s.write(&TurnRecord{Step: step, Model: valid(info.Name), Offline: info.Offline}); err != nil {
		return nil, err
	}
	system, err := s.system(ctx)
	if err != nil {
		return nil, err
	}
	pinned, err := s.host.pinned(ctx)
	if err != nil {
		return nil, err
	}
	req := r.request(catalog, step, pinned, info)
	req.System = system
	t := &turn{run: r, model: info.Name, catalog: catalog, stop: StopEnd}
	t.text.session = s
	if err := t.generate(ctx, req); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	usage := t.usage.priced(info)
	if _, err := s.write(&TurnEndRecord{Stop: t.stop, Usage: usage}); err != nil {
		return nil, err
	}
	if len(t.calls) == 0 {
		return nil, nil
	}
	return t.calls, s.spent()
}

// request is what the model is given in a turn, but for the instruction.
func (r *run) request(catalog *Catalog, step int, pinned map[PinKey]*Pin, info ModelInfo) *Request {
	s := r.session
	s.mu.Lock()
	defer s.mu.Unlock()
	r.count.Steps = step
	return &Request{Messages: messages(s.records, s.state.compacted), Tools: s.specs(catalog, pinned, info)}
}

// generate takes what the model says, until its end.
func (t *turn) generate(ctx context.Context, req *Request) (err error) {
	s := t.run.session
	defer func() { err = errors.Join(err, t.text.end()) }()
	defer recovered(s.log, "Model.Generate", &err)
	for piece, err := range s.using().Generate(ctx, req) {
		if err != nil {
			return fmt.Errorf("model %s: %w", t.model, err)
		}
		if err := t.piece(&piece); err != nil {
			return err
		}
	}
	return nil
}

// spent says which budget of the run is used up: by turns, summaries and servers.
func (s *Session) spent() error {
	s.mu.Lock()
	usage, most := s.state.runUsage, s.limit
	s.mu.Unlock()
	switch {
	case most.Tokens > 0 && usage.Input+usage.Output >= most.Tokens:
		return &BudgetError{"tokens", fmt.Sprintf("%d tokens", most.Tokens)}
	case most.Cost > 0 && usage.Cost >= most.Cost:
		return &BudgetError{"money", fmt.Sprintf("%.2f dollars", most.Cost)}
	}
	return nil
}

// A turn is one answer of the model, as it comes.
type turn struct {
	run     *run
	model   string // its name
	catalog *Catalog
	size    int // bytes of text and reasoning
	text    textWriter
	calls   []*CallRecord
	usage   Usage
	stop    StopReason
}

// piece writes a part of the turn down.
func (t *turn) piece(p *Piece) error {
	s := t.run.session
	var body Body
	switch {
	case p.Text != "":
		t.size += len(p.Text)
		if err := t.text.add(p.Text); err != nil {
			return err
		}
	case p.Reasoning != nil:
		if err := t.text.flush(); err != nil {
			return err
		}
		t.size += len(p.Reasoning.Text) + len(p.Reasoning.Data)
		body = &ReasoningRecord{p.Reasoning.valid()}
	case p.Call != nil:
		if err := t.text.flush(); err != nil {
			return err
		}
		return t.call(p.Call)
	}
	if t.size > maxTurnText {
		return fmt.Errorf("model %s: a turn of more than %d bytes", t.model, maxTurnText)
	}
	if p.Usage != nil {
		t.usage = p.Usage.valid()
	}
	if p.Stop != "" {
		t.stop = StopReason(bounded(string(p.Stop), maxName))
	}
	if body == nil {
		return nil
	}
	_, err := s.write(body)
	return err
}

// maxName bounds the names of tools that a model makes up.
const maxName = 256

// call writes down a call that the model asks for.
func (t *turn) call(use *mcp.ToolUseContent) error {
	s := t.run.session
	if len(t.calls) == s.host.opts.MaxCalls {
		return &BudgetError{"calls", fmt.Sprintf("%d calls in one turn", s.host.opts.MaxCalls)}
	}
	rec := &CallRecord{ModelName: bounded(use.Name, maxName), Arguments: mcp.RawValue("{}")}
	if len(use.Input) > 0 {
		args, err := compact(use.Input)
		if err != nil {
			rec.Text = bounded(string(use.Input), maxWhy)
		}
		rec.Arguments = args
	}
	if tool, ok := t.catalog.Named(use.Name); ok && !tool.Hidden {
		rec.Server, rec.Tool = tool.Server, tool.Def.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec.ID = "c" + strconv.Itoa(len(s.records)+1)
	if _, err := s.appendLocked(rec); err != nil {
		return err
	}
	t.calls, t.stop = append(t.calls, rec), StopCalls
	return nil
}
