package connect

import (
	"context"
	"errors"

	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// attend answers, at the terminal, what servers ask while a command of the person
// runs, until the function that it returns is called. Without a terminal nobody is
// asked, and rules decide.
func (c *Connector) attend(ctx context.Context, h *host.Host) (leave func(), err error) {
	s, err := h.NewSession(ctx, model.Offline{}, nil)
	if err != nil || !c.Streams.InTerminal {
		return func() {}, err
	}
	line := ui.NewLine(c.Streams.Keyboard(), c.Streams.Err, &ui.LineOptions{
		Width: c.Streams.Width, QuestionsOnly: true, Discard: c.Streams.Discard(),
	})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := line.Run(ctx, ui.OfHost(h), ui.OfSession(s, nil)); err != nil && !errors.Is(err, context.Canceled) {
			c.Logger().Warn("asking at the terminal", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}, nil
}
