package streamable

import (
	"errors"
	"net/http"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/transport"
)

// show shows what a request, or the answer to it, carries, if there is a tap.
func (l *link) show(kind transport.TapKind, req *http.Request, data []byte, err error) {
	if l.tap != nil {
		l.showPart(req, &transport.TapEvent{Kind: kind, Data: data, Err: err})
	}
}

func (l *link) showPart(req *http.Request, e *transport.TapEvent) {
	e.Exchange, _ = tap.Exchange(req.Context(), nil)
	l.tap(*e)
}

// showAnswer shows the body of an answer that is no stream. What was read of a
// body that cannot be read to its end is no message.
func (l *link) showAnswer(resp *http.Response, data []byte, err error) {
	switch {
	case l.tap == nil:
	case err != nil:
		l.show(transport.TapRefused, resp.Request, data, err)
	case len(data) > 0:
		l.show(transport.TapReceived, resp.Request, data, nil)
	}
}

// showEvent shows an event of a stream.
func (l *link) showEvent(resp *http.Response, e *eventstream.Event) {
	if l.tap != nil && (e.IsMessage() || len(e.Data) == 0) {
		l.showPart(resp.Request, &transport.TapEvent{Kind: transport.TapReceived, Data: e.Data, EventID: e.ID})
	}
}

// showClosed shows that the link has ended.
func (l *link) showClosed() {
	if l.tap == nil {
		return
	}
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	if errors.Is(err, errClosedHere) {
		err = nil
	}
	l.tap(transport.TapEvent{Kind: transport.TapClosed, Err: err})
}
