package streamable

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// sessionBuffers bounds what the memory keeps of one session with many
// streams: so many times ReplayBuffer.
const sessionBuffers = 4

// A memoryStore keeps events in memory: of each stream the newest, as far as
// they fit and are not too old.
type memoryStore struct {
	most int           // bytes of a stream
	keep time.Duration // an event

	mu       sync.Mutex
	sessions map[string]*sessionLog
}

type sessionLog struct {
	streams map[string]*streamLog
	size    int
}

type streamLog struct {
	events []kept // the newest ones, without gaps
	last   uint64
	size   int
}

type kept struct {
	Event
	at time.Time
}

var _ EventStore = (*memoryStore)(nil)

func newMemoryStore(most int, keep time.Duration) *memoryStore {
	return &memoryStore{most: most, keep: keep, sessions: make(map[string]*sessionLog)}
}

// Append adds an event.
func (s *memoryStore) Append(_ context.Context, e Event) error {
	e.Data = bytes.Clone(e.Data)
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[e.Session]
	if session == nil {
		session = &sessionLog{streams: make(map[string]*streamLog)}
		s.sessions[e.Session] = session
	}
	stream := session.streams[e.Stream]
	if stream == nil {
		stream = new(streamLog)
		session.streams[e.Stream] = stream
	}
	stream.events = append(stream.events, kept{e, time.Now()})
	stream.last = e.Seq
	stream.size += len(e.Data)
	session.size += len(e.Data)
	for stream.size > s.most && len(stream.events) > 1 {
		session.evict(stream)
	}
	for session.size/sessionBuffers > s.most {
		oldest := session.oldest()
		if oldest == nil {
			break
		}
		session.evict(oldest)
	}
	return nil
}

// evict drops the oldest event of a stream.
func (l *sessionLog) evict(stream *streamLog) {
	n := len(stream.events[0].Data)
	stream.events[0] = kept{}
	stream.events = stream.events[1:]
	stream.size -= n
	l.size -= n
}

// oldest is the stream with the oldest event, if it is not the last one left.
func (l *sessionLog) oldest() *streamLog {
	var oldest *streamLog
	events := 0
	for _, stream := range l.streams {
		events += len(stream.events)
		if len(stream.events) > 0 && (oldest == nil || stream.events[0].at.Before(oldest.events[0].at)) {
			oldest = stream
		}
	}
	if events <= 1 {
		return nil
	}
	return oldest
}

// After returns the events that follow seq.
func (s *memoryStore) After(_ context.Context, session, stream string, seq uint64) ([]Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l *streamLog
	if of := s.sessions[session]; of != nil {
		l = of.streams[stream]
	}
	if l == nil {
		return nil, ErrEventsGone
	}
	if seq >= l.last {
		return nil, nil
	}
	if len(l.events) == 0 || l.events[0].Seq > seq+1 {
		return nil, ErrEventsGone
	}
	var events []Event
	for _, e := range l.events {
		if e.Seq > seq {
			events = append(events, e.Event)
		}
	}
	return events, nil
}

// Forget drops a stream or a session.
func (s *memoryStore) Forget(_ context.Context, session, stream string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stream == "" {
		delete(s.sessions, session)
		return nil
	}
	if of := s.sessions[session]; of != nil && of.streams[stream] != nil {
		of.size -= of.streams[stream].size
		delete(of.streams, stream)
	}
	return nil
}

// expire drops events that are too old.
func (s *memoryStore) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		for _, stream := range session.streams {
			for len(stream.events) > 0 && now.Sub(stream.events[0].at) >= s.keep {
				session.evict(stream)
			}
		}
	}
}
