package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// handshake is the era of sessions: what a client can do was said once, and
// the server may send requests of its own.
type handshake struct{}

func (handshake) open(c *Call) error {
	c.caps = c.session.clientCaps()
	return nil
}

// ask sends the question to the client and waits for the answer. The timer of
// the call is paused meanwhile: a person may be thinking.
func (handshake) ask(c *Call, _ string, q *question) (mcp.RawValue, error) {
	q.identify(c)
	params, err := c.shape().DownParams(q.method, q.params)
	if err != nil { // the revision cannot say it, which the peer may know
		return nil, mcp.Errorf("asking for %s: %w", q.what, err)
	}
	c.timer.Pause()
	defer c.timer.Resume()
	m, err := c.session.call(c, c.x.Out, q.method, jsonrpc.JSON(params))
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", q.what, err)
	}
	if m.Error != nil {
		return nil, refused(m.Error)
	}
	return m.Result.Raw(), nil
}

// refused words the error a client answered an ask with.
func refused(e *jsonrpc.Error) error {
	if e.Code == mcp.CodeUserRejected {
		return ErrRefused
	}
	return fmt.Errorf("the client answered %q: %w", clip(e.Message), ErrAskFailed)
}

func (handshake) settle(_ *Call, res Result) (Result, error) { return res, nil }

func (handshake) level(c *Call) mcp.LogLevel { return c.session.level() }

func (handshake) refusal(c *Call, err *NotCapableError) *jsonrpc.Error {
	return jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "%v", err)
}

// cancelNoticeTimeout bounds how long it takes to tell a client that no call waits any
// more: one that does not read must not keep a handler.
const cancelNoticeTimeout = time.Second

// call sends a request to the client of the session and waits for its answer.
// If ctx ends first the client is told.
func (p *session) call(ctx context.Context, via jsonrpc.Sender, method string, params jsonrpc.Body) (*jsonrpc.Incoming, error) {
	m, err := p.peer.Call(ctx, via, method, params)
	var gone *jsonrpc.AbandonedError
	if errors.As(err, &gone) {
		cancel := &mcp.CancelledParams{RequestID: gone.ID, Reason: "the server no longer waits"}
		out := &jsonrpc.Outgoing{Method: mcp.NotifyCancelled, Params: jsonrpc.JSON(cancel)}
		telling, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelNoticeTimeout)
		defer stop()
		if sendErr := via.Send(telling, out); sendErr != nil {
			p.srv.log.Debug("cancellation not delivered", "err", sendErr)
		}
	}
	return m, err
}

var errNoSession = errors.New("this needs a session, which the protocol revision does not have")

// Ping asks the client of a handshake session for a sign of life.
//
// spec 2025-11-25, basic/utilities/ping.
func (c *Call) Ping(ctx context.Context) error {
	if c.session == nil || !c.facts.Handshake {
		return fmt.Errorf("ping: %w", errNoSession)
	}
	m, err := c.session.call(ctx, c.x.Out, mcp.MethodPing, jsonrpc.Raw(wire.RawValue("{}")))
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	if m.Error != nil {
		return fmt.Errorf("ping: %w", m.Error)
	}
	return nil
}
