package guard

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"
)

// A digest stands for a token, so that none is kept.
type digest [sha256.Size]byte

// digestOf needs no memory for tokens of usual length.
func digestOf(token string) digest {
	var room [2 << 10]byte
	return sha256.Sum256(append(room[:0], token...))
}

// A cache remembers verified tokens. It never holds more than its size, or
// one of each shard; what has not been used for long goes first, roughly.
type cache struct {
	shards [shards]shard
	most   int // of each shard
}

const (
	shards = 16
	// sample is how many entries are looked at to find one to drop.
	sample = 8
)

type shard struct {
	mu      sync.Mutex
	entries map[digest]*cached
}

type cached struct {
	*verified
	used atomic.Int64 // when, in Unix nanoseconds
}

func newCache(size int) *cache {
	c := &cache{most: max(1, size/shards)}
	for i := range c.shards {
		c.shards[i].entries = make(map[digest]*cached)
	}
	return c
}

// get returns what is remembered of a token, or nil.
func (c *cache) get(key digest, now time.Time) *verified {
	s := &c.shards[key[0]%shards]
	s.mu.Lock()
	e := s.entries[key]
	s.mu.Unlock()
	if e == nil || !now.Before(e.until) {
		return nil
	}
	e.used.Store(now.UnixNano())
	return e.verified
}

// put remembers a token until v.until.
func (c *cache) put(key digest, v *verified, now time.Time) {
	e := &cached{verified: v}
	e.used.Store(now.UnixNano())
	s := &c.shards[key[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries) >= c.most && s.entries[key] == nil {
		s.drop(now)
	}
	s.entries[key] = e
}

// remove forgets a token.
func (c *cache) remove(key digest) {
	s := &c.shards[key[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key)
}

// drop makes room: of a few entries, which a map yields at random, those that
// have ended go, or else the one that was used longest ago.
func (s *shard) drop(now time.Time) {
	var oldest digest
	var used int64
	seen, ended := 0, false
	for key, e := range s.entries {
		if !now.Before(e.until) {
			delete(s.entries, key)
			ended = true
		} else if at := e.used.Load(); seen == 0 || at < used {
			oldest, used = key, at
		}
		if seen++; seen == sample {
			break
		}
	}
	if !ended {
		delete(s.entries, oldest)
	}
}
