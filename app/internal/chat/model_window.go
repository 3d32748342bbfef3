package chat

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/host"
)

// windowWait is how long a provider may take to tell a window. Nothing waits for it.
const windowWait = 20 * time.Second

// modelWindows asks providers for the windows of models while a conversation goes on.
type modelWindows struct {
	ctx    context.Context //nolint:containedctx // that of the conversation
	cancel context.CancelFunc
	asking sync.WaitGroup
}

func newModelWindows(ctx context.Context) *modelWindows {
	w := &modelWindows{}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// close ends what is still asked.
func (w *modelWindows) close() {
	w.cancel()
	w.asking.Wait()
}

// talkTo makes the client of a model for a conversation. Where the person configured no window,
// the provider is asked for it.
func (ms *models) talkTo(ctx context.Context, c *chosenModel, w *modelWindows) (host.Model, error) {
	m, o, err := ms.clientOf(ctx, c)
	if err != nil || o == nil || c.entry.Window > 0 {
		return m, err
	}
	quiet := *o
	quiet.waiting = nil
	asked := &windowedModel{Model: m, of: w, window: func(ctx context.Context) (int, error) { return c.provider.window(ctx, &quiet) }}
	asked.ask()
	return asked, nil
}

// A windowedModel is a model whose window the provider is asked for: at once, and again after
// its first answer, since programs that run models know it once the model is loaded. What it
// cannot tell stays unknown.
type windowedModel struct {
	host.Model

	of     *modelWindows
	window func(ctx context.Context) (int, error)
	told   atomic.Int64
	again  sync.Once
}

// Info implements [host.Model].
func (m *windowedModel) Info() host.ModelInfo {
	info := m.Model.Info()
	info.Window = int(m.told.Load())
	return info
}

// Generate implements [host.Model].
func (m *windowedModel) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	return func(yield func(host.Piece, error) bool) {
		m.Model.Generate(ctx, r)(yield)
		if m.told.Load() == 0 {
			m.again.Do(m.ask)
		}
	}
}

// ask asks the provider, and waits for nothing.
func (m *windowedModel) ask() {
	if m.of.ctx.Err() != nil {
		return
	}
	m.of.asking.Go(func() {
		ctx, cancel := context.WithTimeout(m.of.ctx, windowWait)
		defer cancel()
		if window, err := m.window(ctx); err == nil && window > 0 {
			m.told.Store(int64(window))
		}
	})
}
