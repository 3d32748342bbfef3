package cassette

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Bounds of a bridge.
const (
	// maxInFlight is how many requests of the client may wait for their answers at once.
	maxInFlight = 1000
	// lastTime is how long requests may go on after the end of the client's input.
	lastTime = 2 * time.Second
)

// A Bridge stands between a client on a stream and a server that a dialer reaches, such as one at a
// URL. Its Tap has to be that of the dialer: what the server sends goes to the client as it is.
type Bridge struct {
	r      *Recorder
	client io.ReadWriteCloser

	writing sync.Mutex
	failed  error // of writing to the client

	work    sync.WaitGroup
	mu      sync.Mutex
	running map[string]context.CancelFunc // requests of the client, by ids
	long    []context.CancelFunc          // those that stay open for as long as both like
}

// NewBridge returns a bridge for a client. Close of its stream must unblock Read.
func NewBridge(r *Recorder, client io.ReadWriteCloser) *Bridge {
	return &Bridge{r: r, client: client, running: make(map[string]context.CancelFunc)}
}

// Tap records what the server sends and passes it on; it is a transport.Tap.
func (b *Bridge) Tap(e transport.TapEvent) {
	if e.Kind != transport.TapReceived || len(bytes.TrimSpace(e.Data)) == 0 || b.own(e.Data) {
		return
	}
	b.r.Add(Server, e.Time, 0, e.Data)
	if json.Valid(e.Data) {
		b.write(oneLine(e.Data))
	}
}

// own reports whether a message answers a request of the bridge itself.
func (b *Bridge) own(data []byte) bool {
	m, err := readMessage(data)
	return err == nil && m.isAnswer() && strings.HasPrefix(textOf(m.ID), ownID)
}

// write writes a line to the client.
func (b *Bridge) write(line []byte) {
	b.writing.Lock()
	defer b.writing.Unlock()
	if b.failed == nil {
		_, b.failed = b.client.Write(append(bytes.Clone(line), '\n'))
	}
}

// Run connects and passes messages until the client ends its input, the server ends the connection,
// or ctx ends. It closes both.
func (b *Bridge) Run(ctx context.Context, d transport.Dialer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { _ = b.client.Close() }) // unblocks the reading
	defer stop()
	p, err := dialPeer(ctx, d, func(*peer, *jsonrpc.Incoming) {}, func(err error) { cancel(err) })
	if err != nil {
		_ = b.client.Close() // nothing was said
		return err
	}
	err = b.read(ctx, p)
	b.finish(ctx)
	cause := context.Cause(ctx)
	cancel(transport.ErrClosed)
	end, done := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer done()
	closeErr := p.link.Close(end)
	b.work.Wait()
	_ = b.client.Close() // it is over
	switch {
	case cause != nil:
		return cause
	case err != nil:
		return err
	}
	return closeErr
}

// finish lets requests under way come to their end, for a while.
func (b *Bridge) finish(ctx context.Context) {
	b.mu.Lock()
	for _, stop := range b.long {
		stop()
	}
	b.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the requests, which Run cancels
		b.work.Wait()
		close(done)
	}()
	late := time.NewTimer(lastTime)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-ctx.Done():
	}
}

// read takes what the client sends.
func (b *Bridge) read(ctx context.Context, p *peer) error {
	in := bufio.NewReaderSize(b.client, 64<<10)
	for {
		line, err := longLine(in)
		if text := bytes.TrimSpace(line); len(text) > 0 {
			b.r.Add(Client, time.Now(), 0, line)
			if len(line) > MaxFrame {
				b.write(failure(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than %d bytes", MaxFrame)))
				err = copyLine(in, io.Discard)
			} else {
				b.take(ctx, p, text)
			}
		}
		b.writing.Lock()
		failed := b.failed
		b.writing.Unlock()
		switch {
		case failed != nil:
			return fmt.Errorf("writing to the client: %w", failed)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
			return nil
		case err != nil:
			return err
		}
	}
}

// take passes on a message of the client, or an array of several one by one.
func (b *Bridge) take(ctx context.Context, p *peer, text []byte) {
	lim := jsonrpc.Limits{Bytes: MaxFrame}
	if !jsonrpc.IsBatch(text) {
		m, err := jsonrpc.Parse(text, lim)
		b.forward(ctx, p, m, err)
		return
	}
	items, err := jsonrpc.ParseBatch(text, lim, maxInFlight)
	if err != nil {
		b.forward(ctx, p, nil, err)
	}
	for _, item := range items {
		b.forward(ctx, p, item.In, item.Err)
	}
}

// forward passes on one message. What is none cannot be sent to a server over HTTP.
func (b *Bridge) forward(ctx context.Context, p *peer, m *jsonrpc.Incoming, err error) {
	switch {
	case err != nil:
		b.write(failure(nil, jsonrpc.CodeParseError, err.Error()))
	case m.Kind == jsonrpc.Request && m.Method == mcp.MethodInitialize:
		b.request(ctx, p, m, idText(m.ID)) // what follows belongs to its session
	case m.Kind == jsonrpc.Request:
		b.begin(ctx, p, m)
	case m.Kind == jsonrpc.Notification:
		params := json.RawMessage(m.Params.Raw())
		if m.Method == mcp.NotifyCancelled && p.link.Traits().Abandons {
			b.mu.Lock()
			if stop := b.running[string(memberOf(params, "requestId"))]; stop != nil {
				stop()
			}
			b.mu.Unlock()
			return
		}
		_ = p.post(ctx, m.Method, params) // nobody waits for it; a connection that is lost fails the next request
	default:
		out := &jsonrpc.Outgoing{ID: m.ID, Error: m.Error}
		if m.Error == nil {
			out.Result = jsonrpc.Raw(m.Result.Raw())
		}
		_ = p.link.Post(ctx, out, transport.Route{})
	}
}

// idText is an id as JSON.
func idText(id jsonrpc.ID) string {
	raw, err := jsonrpc.JSON(id).AppendJSON(nil)
	if err != nil { // ids always encode
		return "null"
	}
	return string(raw)
}

// begin passes on a request while others go on.
func (b *Bridge) begin(ctx context.Context, p *peer, m *jsonrpc.Incoming) {
	id := idText(m.ID)
	ctx, stop := context.WithCancel(ctx)
	b.mu.Lock()
	_, twice := b.running[id]
	full := len(b.running) >= maxInFlight
	if !twice && !full {
		b.running[id] = stop
		if row, ok := mcp.Lookup(m.Method); ok && row.Long {
			b.long = append(b.long, stop)
		}
	}
	b.mu.Unlock()
	if twice || full {
		stop()
		b.write(failure(json.RawMessage(id), jsonrpc.CodeInvalidRequest, fmt.Sprintf("the id is in use, or %d requests are under way already", maxInFlight)))
		return
	}
	b.work.Go(func() {
		defer stop()
		b.request(ctx, p, m, id)
		b.mu.Lock()
		delete(b.running, id)
		b.mu.Unlock()
	})
}

// request passes on a request. Its answer goes to the client by the tap.
func (b *Bridge) request(ctx context.Context, p *peer, m *jsonrpc.Incoming, id string) {
	_, err := p.do(ctx, m.ID, m.Method, json.RawMessage(m.Params.Raw()))
	if err != nil && ctx.Err() == nil {
		b.write(failure(json.RawMessage(id), jsonrpc.CodeInternalError, "the server did not answer: "+b.r.mask.Text(err.Error())))
	}
}
