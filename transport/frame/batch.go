package frame

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
)

// A batch collects the answers to one JSON-RPC array, which leave as one array
// once the last request of the batch has been answered or abandoned.
type batch struct {
	server *server

	mu      sync.Mutex
	pending int // answers to come, and one for the reader while it hands out
	answers []*buffer
}

// handleBatch handles an array (spec 2025-03-26, basic: "MUST support
// receiving JSON-RPC batches"; ruling 10).
func (s *server) handleBatch(ctx context.Context, data []byte) {
	rules := s.session.Rules()
	if !rules.Batch {
		s.refuse(ctx, jsonrpc.ID{}, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"JSON-RPC batches are not part of the protocol revision in use; send each message by itself"))
		return
	}
	items, err := jsonrpc.ParseBatch(data, s.limits, cmp.Or(rules.MaxBatch, maxBatch))
	if err != nil {
		if _, e := s.parseFailure(nil, err); e != nil {
			s.refuse(ctx, jsonrpc.ID{}, e)
		}
		return
	}
	if mixesResponses(items) {
		s.refuse(ctx, jsonrpc.ID{}, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a batch holds either requests and notifications, or responses, not both"))
		return
	}
	b := &batch{server: s, pending: 1}
	for _, item := range items {
		b.begin(ctx, item)
	}
	_ = b.add(nil) // fails only when the connection has ended
}

// mixesResponses reports whether responses share a batch with other messages.
func mixesResponses(items []jsonrpc.BatchItem) bool {
	responses, others := false, false
	for _, item := range items {
		switch {
		case item.In == nil:
		case item.In.Kind == jsonrpc.Response:
			responses = true
		default:
			others = true
		}
	}
	return responses && others
}

// begin routes one element of the array. An invalid message gets an error
// element.
func (b *batch) begin(ctx context.Context, item jsonrpc.BatchItem) {
	if item.In != nil {
		if item.In.Kind == jsonrpc.Request {
			b.expect()
		}
		_ = b.server.route(ctx, item.In, b) // does not run here
		return
	}
	id, e := b.server.parseFailure(nil, item.Err)
	if e == nil {
		return
	}
	b.server.reportRefusal(ctx, e)
	buf, err := encode(b.server.errorResponse(id, e))
	if err != nil {
		b.server.log.Debug("refusing a message", "error", err)
		return
	}
	b.expect()
	_ = b.add(buf) // the reader holds the batch open
}

func (b *batch) expect() {
	b.mu.Lock()
	b.pending++
	b.mu.Unlock()
}

// answer keeps the response to x until the batch is complete.
func (b *batch) answer(x *exchange, m *jsonrpc.Outgoing) error {
	buf, err := encode(m)
	if err != nil {
		return err
	}
	if !claim(&x.answered) {
		buf.free()
		return jsonrpc.ErrEnded
	}
	return b.add(buf)
}

// add takes one answer, or nil for none, and sends the array after the
// last. If nothing was answered nothing is sent.
func (b *batch) add(answer *buffer) error {
	b.mu.Lock()
	if answer != nil {
		b.answers = append(b.answers, answer)
	}
	b.pending--
	complete := b.pending == 0 && len(b.answers) > 0
	b.mu.Unlock()
	if !complete {
		return nil
	}
	all := buffers.Get().(*buffer)
	all.b = append(all.b[:0], '[')
	for i, a := range b.answers {
		if i > 0 {
			all.b = append(all.b, ',')
		}
		all.b = append(all.b, a.b...)
		a.free()
	}
	all.b = append(all.b, ']')
	if err := b.server.out.answerBuffer(all, nil, byNewGoroutine); err != nil {
		return fmt.Errorf("answering a batch: %w", err)
	}
	return nil
}
