package inspect

import (
	"context"
	"errors"
	"sync"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
)

// A Watcher passes on the notifications of a server, as they came. Its Tap belongs to the
// dialer of the target.
type Watcher struct {
	mu    sync.Mutex
	emit  func(line mcp.RawValue) error // nil while nobody watches
	left  int                           // how many are still wanted; below 0 without end
	early []mcp.RawValue                // that came while nobody watched
	ended bool
	err   error
	done  chan struct{} // closed at the end
}

// NewWatcher makes a watcher.
func NewWatcher() *Watcher { return &Watcher{done: make(chan struct{})} }

// maxEarly is how many notifications are kept until somebody watches.
const maxEarly = 1000

// Tap is shown what the connections of the target carry.
func (w *Watcher) Tap(e transport.TapEvent) {
	if e.Kind != transport.TapReceived {
		return
	}
	messages := []mcp.RawValue{e.Data}
	if len(e.Data) > 0 && e.Data[0] == '[' && strictjson.Unmarshal(e.Data, &messages) != nil {
		return
	}
	for _, raw := range messages {
		m, err := strictjson.ParseObject(raw)
		if err != nil {
			continue
		}
		_, isCall := m.Member("method")
		_, hasID := m.Member("id")
		if isCall && !hasID {
			w.notice(append(mcp.RawValue(nil), raw...)) // the memory is not ours
		}
	}
}

// notice passes a notification on, or keeps it.
func (w *Watcher) notice(raw mcp.RawValue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
	case w.emit == nil:
		if len(w.early) < maxEarly {
			w.early = append(w.early, raw)
		}
	default:
		w.pass(raw)
	}
}

// pass emits a notification. w.mu is held.
func (w *Watcher) pass(raw mcp.RawValue) {
	if w.ended {
		return
	}
	w.err = w.emit(raw)
	w.left--
	if w.err != nil || w.left == 0 {
		w.ended = true
		close(w.done)
	}
}

// watch passes on what has come and what comes, until there were count of them, or for as
// long as ctx lasts and the connection does not end.
func (w *Watcher) watch(ctx context.Context, count int, lost <-chan error, emit func(mcp.RawValue) error) error {
	w.mu.Lock()
	w.emit, w.left = emit, count
	if count == 0 {
		w.left = -1
	}
	for _, raw := range w.early {
		w.pass(raw)
	}
	w.early = nil
	w.mu.Unlock()
	var err error
	select {
	case <-w.done:
	case <-ctx.Done(): // the person has seen enough
	case err = <-lost:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.left == 0 || ctx.Err() != nil { // the server may end right behind the last one
		err = nil
	}
	return errors.Join(err, w.err)
}

// watch is the method of that name.
func watch(ctx context.Context, t *Target, a *Args) (*Outcome, error) {
	if t.Watcher == nil {
		return nil, Internal(errors.New("watch: the target has no Watcher"))
	}
	own := *t
	lost := make(chan error, 1)
	own.watching = true
	own.OnDisconnect = func(err error) { lost <- err }
	if own.LogLevel = a.Level; own.LogLevel == "" {
		own.LogLevel = mcp.LogDebug
	}
	s, err := own.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if a.URI != "" {
		_, err = s.client.Subscribe(ctx, a.URI) // it ends with the connection
	}
	if err == nil {
		err = t.Watcher.watch(ctx, a.Count, lost, a.Emit)
	}
	closing := s.Close()
	if err == nil && ctx.Err() == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	return &Outcome{}, nil
}

// subscribe tells of changes of a resource, in the form of the Inspector.
func subscribe(ctx context.Context, t *Target, a *Args) (*Outcome, error) {
	if a.URI == "" {
		return nil, missing(mcp.MethodResourcesSubscribe, flagURI)
	}
	own := *t
	lost, changed := make(chan error, 1), make(chan string)
	ended := make(chan struct{})
	own.OnDisconnect = func(err error) { lost <- err }
	own.OnUpdate = func(uri string) {
		select {
		case changed <- uri:
		case <-ended:
		}
	}
	s, err := own.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.client.Subscribe(ctx, a.URI) // it ends with the connection
	if err == nil {
		err = a.tellChanges(ctx, changed, lost)
	}
	close(ended)
	closing := s.Close()
	if err == nil && ctx.Err() == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	return &Outcome{}, nil
}

// A changeLine is a line of resources/subscribe.
type changeLine struct {
	Type string `json:"type"`
	URI  string `json:"uri"`
}

// tellChanges writes a line for each change.
func (a *Args) tellChanges(ctx context.Context, changed <-chan string, lost <-chan error) error {
	line := changeLine{"subscribed", a.URI}
	for n := 0; ; n++ {
		raw, err := strictjson.Marshal(line)
		if err != nil {
			return Internal(err)
		}
		if err := a.Emit(raw); err != nil {
			return err
		}
		if n > 0 && n == a.Count {
			return nil
		}
		select {
		case <-ctx.Done(): // the person has seen enough
			return nil
		case err := <-lost:
			return err
		case uri := <-changed:
			line = changeLine{"resources/updated", uri}
		}
	}
}
