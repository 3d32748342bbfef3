package streamable

import (
	"bytes"
	"sync"
	"time"
)

// sessionBuffers bounds what the memory keeps of one session with many
// streams: so many times ReplayBuffer.
const sessionBuffers = 4

// chunkCost is about how many bytes a chunk takes beside its text.
const chunkCost = 256

// A memoryStore keeps events in memory, as they are written: of each stream the
// newest, as far as they fit and are not too old. If all together are too much,
// the owner with the most bytes loses its oldest.
type memoryStore struct {
	most  int           // bytes of a stream
	total int           // bytes of all, with chunkCost
	keep  time.Duration // a chunk

	mu       sync.Mutex
	size     int // bytes of all, with chunkCost
	sessions map[string]*sessionLog
	owners   map[string]*ownerLog
	largest  ranking[*ownerLog]
}

// An ownerLog is what is kept of the sessions under one limit key.
type ownerLog struct {
	key            string
	size           int    // with chunkCost
	oldest, newest *chunk // a list through the chunks
	place          int    // in the ranking
}

type sessionLog struct {
	streams map[string]*streamLog
	size    int
}

type streamLog struct {
	session *sessionLog
	chunks  []*chunk // the newest ones, without gaps
	last    uint64
	size    int
}

// A chunk is events of a stream that were written at once, with their ids.
type chunk struct {
	first, last uint64
	text        []byte
	at          time.Time
	stream      *streamLog
	owner       *ownerLog

	before, behind *chunk // of the owner
}

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

// add adds the events first to last, whose text it copies.
func (s *memoryStore) add(owner, session, stream string, first, last uint64, text []byte) {
	text = bytes.Clone(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.sessions[session]
	if in == nil {
		in = &sessionLog{streams: make(map[string]*streamLog)}
		s.sessions[session] = in
	}
	l := in.streams[stream]
	if l == nil {
		l = &streamLog{session: in}
		in.streams[stream] = l
	}
	o := s.owners[owner]
	if o == nil {
		o = &ownerLog{key: owner}
		s.owners[owner] = o
	}
	c := &chunk{first: first, last: last, text: text, at: time.Now(), stream: l, owner: o, before: o.newest}
	if o.newest = c; c.before != nil {
		c.before.behind = c
	} else {
		o.oldest = c
	}
	l.chunks, l.last = append(l.chunks, c), last
	s.count(c, 1)
	s.trim(in, l)
}

// trim makes room after l, a stream of the session in, has got more.
func (s *memoryStore) trim(in *sessionLog, l *streamLog) {
	for l.size > s.most && len(l.chunks) > 1 {
		s.evict(l)
	}
	for in.size/sessionBuffers > s.most {
		oldest := in.oldest()
		if oldest == nil {
			break
		}
		s.evict(oldest)
	}
	for s.size > s.total {
		s.evict(s.largest.first().oldest.stream)
	}
}

// evict drops the oldest chunk of a stream.
func (s *memoryStore) evict(l *streamLog) {
	c := l.chunks[0]
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
	o := c.owner
	if c.before != nil {
		c.before.behind = c.behind
	} else {
		o.oldest = c.behind
	}
	if c.behind != nil {
		c.behind.before = c.before
	} else {
		o.newest = c.before
	}
	s.count(c, -1)
	if o.oldest == nil {
		delete(s.owners, o.key)
	}
}

// count counts a chunk in or out.
func (s *memoryStore) count(c *chunk, sign int) {
	n := sign * len(c.text)
	c.stream.size += n
	c.stream.session.size += n
	n += sign * chunkCost
	s.size += n
	c.owner.size += n
	s.largest.update(c.owner, c.owner.size > 0)
}

// oldest is the stream with the oldest chunk, if it is not the last one left.
func (l *sessionLog) oldest() *streamLog {
	var oldest *streamLog
	chunks := 0
	for _, stream := range l.streams {
		chunks += len(stream.chunks)
		if len(stream.chunks) > 0 && (oldest == nil || stream.chunks[0].at.Before(oldest.chunks[0].at)) {
			oldest = stream
		}
	}
	if chunks <= 1 {
		return nil
	}
	return oldest
}

// after returns the text of the events that follow seq, up to last.
func (s *memoryStore) after(session, stream string, seq, last uint64) (text [][]byte, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l *streamLog
	if in := s.sessions[session]; in != nil {
		l = in.streams[stream]
	}
	switch {
	case l == nil || l.last != last:
		return nil, ErrEventsGone
	case seq == last:
		return nil, nil
	case len(l.chunks) == 0 || l.chunks[0].first > seq+1:
		return nil, ErrEventsGone
	}
	for _, c := range l.chunks {
		if c.last > seq {
			text = append(text, c.after(seq))
		}
	}
	return text, nil
}

// after is the text of the events that follow seq. An empty line ends each event,
// and is nowhere else.
func (c *chunk) after(seq uint64) []byte {
	text := c.text
	for n := c.first; n <= seq; n++ {
		text = text[bytes.Index(text, []byte("\n\n"))+2:]
	}
	return text
}

// forget drops a stream or, with "", a session.
func (s *memoryStore) forget(session, stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.sessions[session]
	if in == nil {
		return
	}
	for name, l := range in.streams {
		if stream != "" && stream != name {
			continue
		}
		for len(l.chunks) > 0 {
			s.evict(l)
		}
		delete(in.streams, name)
	}
	if stream == "" {
		delete(s.sessions, session)
	}
}

// expire drops events that are too old.
func (s *memoryStore) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		for _, l := range session.streams {
			for len(l.chunks) > 0 && now.Sub(l.chunks[0].at) >= s.keep {
				s.evict(l)
			}
		}
	}
}
