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

// eventCost is about how many bytes an event takes beside its data.
const eventCost = 256

// A memoryStore keeps events in memory: of each stream the newest, as far as
// they fit and are not too old. If all together are too much, the owner with the
// most bytes loses its oldest.
type memoryStore struct {
	most  int           // bytes of a stream
	total int           // bytes of all, with eventCost
	keep  time.Duration // an event

	mu       sync.Mutex
	size     int // bytes of all, with eventCost
	sessions map[string]*sessionLog
	owners   map[string]*ownerLog
	largest  ranking[*ownerLog]
}

// An ownerLog is what is kept of the sessions under one limit key.
type ownerLog struct {
	key            string
	size           int   // with eventCost
	oldest, newest *kept // a list through the events
	place          int   // in the ranking
}

type sessionLog struct {
	streams map[string]*streamLog
	size    int
}

type streamLog struct {
	session *sessionLog
	events  []*kept // the newest ones, without gaps
	last    uint64
	size    int
}

type kept struct {
	Event
	at     time.Time
	stream *streamLog
	owner  *ownerLog

	before, behind *kept // of the owner
}

var _ EventStore = (*memoryStore)(nil)

func newMemoryStore(most, total int, keep time.Duration) *memoryStore {
	return &memoryStore{
		most: most, total: total, keep: keep,
		sessions: make(map[string]*sessionLog),
		owners:   make(map[string]*ownerLog),
		largest: ranking[*ownerLog]{
			above: func(a, b *ownerLog) bool { return a.size > b.size },
			place: func(o *ownerLog) *int { return &o.place },
		},
	}
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
		stream = &streamLog{session: session}
		session.streams[e.Stream] = stream
	}
	s.add(stream, e)
	for stream.size > s.most && len(stream.events) > 1 {
		s.evict(stream)
	}
	for session.size/sessionBuffers > s.most {
		oldest := session.oldest()
		if oldest == nil {
			break
		}
		s.evict(oldest)
	}
	for s.size > s.total {
		s.evict(s.largest.first().oldest.stream)
	}
	return nil
}

// add puts an event at the end of its stream, and of what its owner has.
func (s *memoryStore) add(stream *streamLog, e Event) {
	o := s.owners[e.owner]
	if o == nil {
		o = &ownerLog{key: e.owner}
		s.owners[e.owner] = o
	}
	k := &kept{Event: e, at: time.Now(), stream: stream, owner: o, before: o.newest}
	if o.newest = k; k.before != nil {
		k.before.behind = k
	} else {
		o.oldest = k
	}
	stream.events = append(stream.events, k)
	stream.last = e.Seq
	s.count(k, 1)
}

// evict drops the oldest event of a stream.
func (s *memoryStore) evict(stream *streamLog) {
	k := stream.events[0]
	stream.events[0] = nil
	stream.events = stream.events[1:]
	o := k.owner
	if k.before != nil {
		k.before.behind = k.behind
	} else {
		o.oldest = k.behind
	}
	if k.behind != nil {
		k.behind.before = k.before
	} else {
		o.newest = k.before
	}
	s.count(k, -1)
	if o.oldest == nil {
		delete(s.owners, o.key)
	}
}

// count counts an event in or out.
func (s *memoryStore) count(k *kept, sign int) {
	n := sign * len(k.Data)
	k.stream.size += n
	k.stream.session.size += n
	n += sign * eventCost
	s.size += n
	k.owner.size += n
	s.largest.update(k.owner, k.owner.size > 0)
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
	of := s.sessions[session]
	if of == nil {
		return nil
	}
	for name, l := range of.streams {
		if stream != "" && stream != name {
			continue
		}
		for len(l.events) > 0 {
			s.evict(l)
		}
		delete(of.streams, name)
	}
	if stream == "" {
		delete(s.sessions, session)
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
				s.evict(stream)
			}
		}
	}
}
