package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// starting reports whether a server's tools are missing because it is still starting.
func starting(e *ServerError) bool { return e.State == StateStarting }

// turn takes one turn of the model and returns its calls.
func (r *run) turn(ctx context.Context, catalog *Catalog, step int) ([]*CallRecord, error) {
	s := r.session
	info := s.model.Info()
	if _, err := s.write(&TurnRecord{Step: step, Model: info.Name, Offline: info.Offline}); err != nil {
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
	s.mu.Lock()
	r.count.Steps = step
	req := &Request{System: system, Messages: messages(s.records, s.state.compacted), Tools: s.specs(catalog, pinned, info)}
	s.mu.Unlock()
	t := &turn{run: r, catalog: catalog, stop: StopEnd}
	for piece, err := range s.model.Generate(ctx, req) {
		if err == nil {
			err = t.piece(&piece)
		} else {
			err = errors.Join(fmt.Errorf("model %s: %w", info.Name, err), t.flush())
		}
		if err != nil {
			return nil, err
		}
	}
	if err := t.flush(); err != nil {
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

// spent says which budget of the run is used up: by turns, summaries and servers.
func (s *Session) spent() error {
	o := &s.host.opts
	s.mu.Lock()
	usage := s.state.runUsage
	s.mu.Unlock()
	switch {
	case o.MaxTokens > 0 && usage.Input+usage.Output >= o.MaxTokens:
		return &BudgetError{"tokens", fmt.Sprintf("%d tokens", o.MaxTokens)}
	case o.MaxCost > 0 && usage.Cost >= o.MaxCost:
		return &BudgetError{"money", fmt.Sprintf("%.2f dollars", o.MaxCost)}
	}
	return nil
}

// A turn is one answer of the model, as it comes.
type turn struct {
	run     *run
	catalog *Catalog
	text    int             // bytes
	rest    string          // of the text: the beginning of a character
	pending strings.Builder // text that is not written down yet
	flushed time.Time       // when text was written down last
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
		t.text += len(p.Text)
		t.pending.WriteString(t.whole(p.Text))
		if time.Since(t.flushed) < textInterval {
			break
		}
		if err := t.flush(); err != nil {
			return err
		}
	case p.Reasoning != nil:
		if err := t.flush(); err != nil {
			return err
		}
		t.text += len(p.Reasoning.Text) + len(p.Reasoning.Data)
		body = &ReasoningRecord{*p.Reasoning}
	case p.Call != nil:
		if err := t.flush(); err != nil {
			return err
		}
		return t.call(p.Call)
	}
	if t.text > maxTurnText {
		return fmt.Errorf("model %s: a turn of more than %d bytes", s.model.Info().Name, maxTurnText)
	}
	if p.Usage != nil {
		t.usage = *p.Usage
	}
	if p.Stop != "" {
		t.stop = p.Stop
	}
	if body == nil {
		return nil
	}
	_, err := s.write(body)
	return err
}

// textInterval is how often the text of a turn is written down while it comes: each
// record is a transaction of the store.
const textInterval = 30 * time.Millisecond

// flush writes down the text that has come.
func (t *turn) flush() error {
	if t.pending.Len() == 0 {
		return nil
	}
	_, err := t.run.session.write(&TextRecord{Text: t.pending.String()})
	t.pending.Reset()
	t.flushed = time.Now()
	return err
}

// whole returns what has come of a text, in valid UTF-8: a character whose rest comes
// with the next piece is held back.
func (t *turn) whole(text string) string {
	text = t.rest + text
	whole := complete(text)
	t.rest = text[len(whole):]
	return strings.ToValidUTF8(whole, "\uFFFD")
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
