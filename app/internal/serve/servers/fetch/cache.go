package fetch

import (
	"container/list"
	"sync"
	"time"
)

// A cache keeps values for a time, the least recently used ones first to go when
// they are too large together. It may be used by many goroutines at once.
type cache[V any] struct {
	room int // bytes
	time time.Duration
	now  func() time.Time

	mu    sync.Mutex
	used  int
	order *list.List // of *entry[V], the most recently used first
	byKey map[string]*list.Element
}

type entry[V any] struct {
	key   string
	value V
	size  int
	ends  time.Time
}

func newCache[V any](room int, lasts time.Duration) *cache[V] {
	return &cache[V]{room: room, time: lasts, now: time.Now, order: list.New(), byKey: make(map[string]*list.Element)}
}

// get returns the value of a key, and whether there is one.
func (c *cache[V]) get(key string) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byKey[key]
	if !ok {
		return v, false
	}
	e := el.Value.(*entry[V])
	if !c.now().Before(e.ends) {
		c.remove(el)
		return v, false
	}
	c.order.MoveToFront(el)
	return e.value, true
}

// put keeps a value of so many bytes, unless it alone is larger than the cache.
func (c *cache[V]) put(key string, v V, size int) {
	size += len(key) + 256
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byKey[key]; ok {
		c.remove(el)
	}
	if size > c.room {
		return
	}
	for c.used+size > c.room {
		c.remove(c.order.Back())
	}
	c.byKey[key] = c.order.PushFront(&entry[V]{key: key, value: v, size: size, ends: c.now().Add(c.time)})
	c.used += size
}

func (c *cache[V]) remove(el *list.Element) {
	e := c.order.Remove(el).(*entry[V])
	delete(c.byKey, e.key)
	c.used -= e.size
}
