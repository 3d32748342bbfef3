package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// frame is the least time between two batches of records: no more is drawn in it anyway.
const frame = 16 * time.Millisecond

// maxBatch is how many records come in one message at most.
const maxBatch = 1024

// recordsMsg has records of a session.
type recordsMsg struct {
	watch   int // counts the sessions that were watched
	records []host.Record
	ended   bool
	err     error
}

// A recordEvent is a record, or the end of a session.
type recordEvent struct {
	record host.Record
	ended  bool
	err    error
}

// watch sends the records of a session, in batches, until ctx ends. The first record of a
// batch is sent at once; what comes within a frame after it makes the next batch.
func watch(ctx context.Context, s ui.Session, since int64, number int, send func(tea.Msg)) {
	events := make(chan recordEvent, maxBatch)
	go func() {
		defer close(events)
		put := func(e recordEvent) bool {
			select {
			case events <- e:
				return true
			case <-ctx.Done():
				return false
			}
		}
		for r, err := range s.Watch(ctx, since) {
			if !put(recordEvent{record: r, err: err, ended: err != nil}) || err != nil {
				return
			}
		}
		put(recordEvent{ended: true})
	}()
	pause := time.NewTimer(frame)
	defer pause.Stop()
	for e := range events {
		msg := recordsMsg{watch: number}
		msg.add(e)
		for more := true; more && len(msg.records) < maxBatch; {
			select {
			case e, ok := <-events:
				if more = ok; ok {
					msg.add(e)
				}
			default:
				more = false
			}
		}
		if ctx.Err() != nil {
			continue // until the watching has ended
		}
		send(msg)
		pause.Reset(frame)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// add adds what happened.
func (m *recordsMsg) add(e recordEvent) {
	if e.ended {
		m.ended, m.err = true, e.err
		return
	}
	m.records = append(m.records, e.record)
}
